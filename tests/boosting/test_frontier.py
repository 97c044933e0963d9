"""The frontier of accuracy over features: which point is taken, and refits that begin where columns were left out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import dboost
from dboost.boosting.fit import Fitting
from dboost.boosting.frontier import BLOCKS, REFITTED_STEP, Frontier, Point, Search, falling
from dboost.boosting.relaxed import RidgeRefits
from dboost.estimators.fitting import prepared


def judged(half: float, *shares: tuple[float, float]) -> Frontier:
    """Points of so many features and shares of wrong labels, of 6,400 rows whose errors are those of chance."""
    rng = np.random.default_rng(0)
    rows = rng.random((BLOCKS, 200))
    found = Frontier(np.full(BLOCKS, 200.0), half, labels=True, null_loss=1.0)
    for features, share in shares:
        wrong = np.sum(rows < share, axis=1).astype(float)
        found.points.append(Point(features, int(features), 0.0, 1.0, int(features), 0.5 * wrong, wrong))
    return found


def test_the_fewest_features_within_a_standard_error_of_the_difference_are_taken() -> None:
    # one standard error of a share of 0.2 is 0.005, and that of the difference of 0.2 and 0.202 is 0.0006
    points = ((1000, 0.2), (800, 0.2), (400, 0.202), (100, 0.2021), (10, 0.3))
    assert judged(np.inf, *points).chosen().features == 800
    assert judged(np.inf, *points).chosen("accurate").features == 800
    assert judged(np.inf, *points).chosen("few").features == 100


def test_more_than_half_of_the_features_are_taken_for_a_standard_error_and_not_for_less() -> None:
    points = ((1000, 0.2), (800, 0.2), (400, 0.202), (100, 0.2021), (10, 0.3))
    # of those with at most half the rule takes the fewest again, where these are no worse than the difference allows
    assert judged(500, *points).chosen().features == 100
    assert judged(500, *points[:3], (100, 0.2042), (10, 0.3)).chosen().features == 400
    assert judged(500, points[0], (700, 0.2), (400, 0.22)).chosen().features == 700


def test_a_number_of_features_is_used_up_where_fewer_are_not_better() -> None:
    points = ((1000, 0.2), (300, 0.2105), (280, 0.21), (100, 0.23), (3, 0.3))
    assert judged(np.inf, *points).chosen(most=300).features == 300
    assert judged(np.inf, *points).chosen(most=299).features == 280
    assert judged(np.inf, (300, 0.25), (100, 0.21)).chosen(most=300).features == 100


def test_a_point_whose_labels_are_as_good_and_whose_loss_is_not_is_not_taken() -> None:
    found = judged(np.inf, (1000, 0.2), (100, 0.2))
    assert found.chosen().features == 100
    found.points[1] = replace(found.points[1], loss=1.1 * found.points[1].loss)
    assert found.chosen().features == 1000


def test_a_weaker_ridge_is_not_better_for_a_wrong_label_less() -> None:
    found = judged(np.inf, (100, 0.2))
    point = found.points[0]
    fewer = point.error.copy()
    fewer[np.argmax(fewer)] -= 1
    fits_noise = replace(point, ridge=point.ridge / 4.0, error=fewer, loss=1.2 * point.loss)
    assert not found.better(fits_noise, point) and not found.better(point, fits_noise)
    assert found.better(replace(fits_noise, ridge=4.0 * point.ridge), point)
    assert found.better(replace(fits_noise, loss=0.9 * point.loss), point)
    assert not found.better(point, point)


def test_the_path_is_followed_to_nearly_as_many_features_as_are_asked_for() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 60))
    y = X @ np.geomspace(1.0, 0.01, 60) + 0.3 * rng.normal(size=400)
    with prepared(dboost.BoostedRegressor(), X, y, None) as parts:
        whole = Fitting(parts.plan, parts.engine, parts.settings)
        frontier = Search(parts.plan, parts.engine, parts.settings, most=20).both(
            falling(whole.alpha_max(), step=REFITTED_STEP)
        )
    sizes = [point.most for point in frontier.points if point.alpha > 0.0]
    assert max(size for size in sizes if size <= 20) >= 18
    assert frontier.chosen(most=20).most <= 20


def test_the_last_points_are_judged_by_more_rows_than_the_search() -> None:
    """The search sees a third of these rows, on which other features than those that tell may look as good."""
    rng = np.random.default_rng(1)
    X = (rng.random((1800, 150)) < 0.2).astype(float)
    y = X[:, :30] @ rng.normal(size=30) + 0.5 * rng.normal(size=1800) > 0.0
    records: list[int] = []
    with prepared(dboost.BoostedClassifier(), csr_matrix(X), y, None) as parts:
        whole = Fitting(parts.plan, parts.engine, parts.settings)
        search = Search(parts.plan, parts.engine, parts.settings, lambda record, state: records.append(record["fold"]))
        frontier = search.both(falling(whole.alpha_max(), step=REFITTED_STEP))
    before = frontier.chosen()
    assert any(search.chosen() is point for point in frontier.points)
    assert search.chosen().features >= before.features and (len(set(records)) == 3 or before is frontier.best)


def test_fewer_columns_begin_at_the_best_fit_of_the_fewest_that_hold_them_all() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 12))
    with prepared(dboost.BoostedRegressor(), X, X @ rng.normal(size=12), None) as parts:
        Fitting(parts.plan, parts.engine, parts.settings)
        fold = Search(parts.plan, parts.engine, parts.settings).folds[0]
        fold.ranking = rng.permutation(12)
        for size, ridge in ((0, 1.0), (8, 0.1), (8, 10.0)):
            fold.open_first(size)
            fold.fit(ridge, None)
            if ridge <= 1.0:
                fold.keep(size)
        starts = {}
        for size in (0, 9, 8, 5):
            fold.open_first(size)
            starts[size] = None if fold.start is None else (len(fold.start.active), fold.start.alpha)
    assert starts == {0: (12, 1.0), 9: (12, 1.0), 8: (8, 0.1), 5: (8, 0.1)}


@pytest.mark.full
def test_models_with_a_few_features_less_than_the_one_that_is_taken_were_judged() -> None:
    rng = np.random.default_rng(0)
    for told, of in ((40, 500), (6, 60)):
        X = (rng.random((400, of)) < 0.2).astype(float)
        y = X[:, :told].sum(axis=1) + 0.3 * rng.normal(size=400) > 0.2 * told
        with prepared(dboost.BoostedClassifier(), csr_matrix(X), y, None) as parts:
            whole = Fitting(parts.plan, parts.engine, parts.settings)
            search = Search(parts.plan, parts.engine, parts.settings)
            frontier = search.both(falling(whole.alpha_max(), step=REFITTED_STEP))
        taken = search.chosen().features
        assert taken <= 1.5 * max(point.features for point in frontier.points if point.features < taken)


def test_a_ridge_of_some_columns_begins_at_what_the_others_say_in_the_mean() -> None:
    """Columns far from zero: their rows without the others would be as wrong as scores can be."""
    rng = np.random.default_rng(0)
    common = rng.normal(size=(300, 1))
    X = 100.0 + 5.0 * (common + 0.5 * rng.normal(size=(300, 8)))
    y = np.digitize(X[:, 0] + X[:, 5] - 2 * X[:, 2], [-5.0, 5.0])
    with prepared(dboost.BoostedClassifier(standardize=True, tol=1e-6), X, y, None) as parts:
        whole = Fitting(parts.plan, parts.engine, parts.settings)
        every = RidgeRefits(whole, parts.engine, None, 1e-6).fit(1e-4, None)
        some = RidgeRefits(whole, parts.engine, np.array([0, 2, 3]), 1e-6)
        cold, warm = some.fit(1e-4, None), some.fit(1e-4, every)
    assert max(cold.gap, warm.gap) <= 1e-6
    np.testing.assert_allclose(warm.objective, cold.objective, rtol=1e-5)
