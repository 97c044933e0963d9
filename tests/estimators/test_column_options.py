"""``column_groups``, ``penalty_factors``, signs and ``offset``, by place and by name; adaptive refits.

Covers: what users see, along paths and in folds. Does not cover: the optima (tests/boosting), all options together
(test_options_together.py), other engines and what is saved (test_every_kind.py).
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import dboost
from dboost import BoostedClassifier, BoostedClassifierCV, BoostedRegressor, MultiTaskBoostedRegressor
from dboost.errors import DataError, UsageError
from tests.boosting import plain

NAMES = [f"x{j}" for j in range(8)]
LABELS = np.array([4, 1, 1, 0, 4, 4, 2, 3])
FACTORS = np.array([0.5, 2.0, 1.0, np.inf, 0.7, 1.5, 1.0, 3.0])
LOWER = [0.0, -np.inf, 0.0, -np.inf, -np.inf, -np.inf, -np.inf, -np.inf]
BOTH = [1, -1, 1, -1, 0, 0, 0, 0]
SHORT_GRID = pytest.mark.filterwarnings("ignore:alpha_best_")


@pytest.fixture(scope="module")
def data():
    return plain.make("multinomial", m=90, n=8, seed=4)


def whole(coef):
    """Whether each group is used as a whole or not at all."""
    used = np.any(coef, axis=0)
    return all(used[LABELS == g].all() or not used[LABELS == g].any() for g in LABELS)


# Ways to say the same, each with the kind of rows that it is said of; and what the weights then are.
SAID = {
    "groups": (
        [
            ({"column_groups": LABELS}, "array"),
            ({"column_groups": {"first": ["x0", "x4", "x5"], "second": ["x1", "x2"]}}, "table"),
            ({"column_groups": {"a": [5, 0, 4], "b": (1, 2)}}, "array"),
            ({"column_groups": pd.Series(LABELS)}, "sparse"),
        ],
        whole,
    ),
    "factors": (
        [
            ({"penalty_factors": FACTORS}, "array"),
            ({"penalty_factors": {n: f for n, f in zip(NAMES, FACTORS, strict=True) if f != 1.0}}, "table"),
            ({"penalty_factors": {n: f for n, f in zip(NAMES, FACTORS, strict=True) if f != 1.0}}, "array"),
            ({"penalty_factors": {np.int64(j): f for j, f in enumerate(FACTORS) if f != 1.0}}, "table"),
        ],
        lambda coef: not coef[:, 3].any(),
    ),
    "signs": (
        [
            ({"lower": LOWER, "upper": [np.inf, 0.0, np.inf, 0.0, *[np.inf] * 4]}, "array"),
            ({"lower": LOWER, "upper": {"x1": 0.0, "x3": 0.0}}, "table"),
        ],
        lambda coef: np.all(BOTH * coef >= 0.0),
    ),
    "offset": (
        [({"offset": [-3, -2, -1]}, "array"), ({"offset": ["x5", "x6", "x7"]}, "table")],
        lambda coef: np.array_equal(coef[:, 5:], np.eye(3)),
    ),
}


@pytest.mark.parametrize("option", SAID)
def test_by_name_by_place_and_sparse_are_the_same(data, option):
    rows = {"array": data.X, "table": pd.DataFrame(data.X, columns=NAMES), "sparse": sp.csr_array(data.X)}
    ways, obeys = SAID[option]
    asked = BoostedClassifier(standardize=False, alpha=0.03, penalty="l1/l2")
    found = [clone(asked).set_params(**given).fit(rows[kind], data.y) for given, kind in ways]
    for other in found[1:]:
        np.testing.assert_array_equal(other.coef_, found[0].coef_)
    assert found[0].duality_gap_ <= 1e-4 and found[0].coef_.any() and obeys(found[0].coef_)


# ---- paths, folds and refits -----------------------------------------------------------------------------------------


@SHORT_GRID
def test_groups_stay_whole_along_paths_in_folds_and_in_refits(data):
    given = {"penalty": "l1/linf", "column_groups": LABELS}
    along = dboost.regularization_path(data.X, data.y, n_alphas=5, **given)
    assert (along.gaps <= 1e-4).all() and all(map(whole, along.coefs))
    assert not along.coefs[0].any() and along.coefs[-1].any()
    # of 90 examples the three of the rarest class are separated in a fold
    more = plain.make("multinomial", m=300, n=8, seed=4)
    found = BoostedClassifierCV(cv=2, n_alphas=3, relax=True, **given).fit(more.X, more.y)
    assert whole(found.coef_) and np.nanmax(found.fold_gaps_) <= 1e-2 and found.fold_losses_.shape == (2, 3, 5)
    model = BoostedClassifier(alpha=0.02, warm_start=True, **given).fit(data.X, data.y)
    refit = dboost.relaxed(model, data.X, data.y)
    assert refit.active_features_ == model.active_features_ and whole(refit.coef_)
    before = model.coef_
    again = model.fit(data.X, data.y)
    assert again.n_iter_ == 1 and np.allclose(again.coef_, before, atol=1e-3)


def test_stability_counts_groups_together(data):
    asked = BoostedClassifier(alpha="quick", penalty="l1/l2", column_groups=LABELS)
    chosen = dboost.StabilitySelection(asked, n_pairs=2, n_alphas=3, eps=0.5).fit(data.X, data.y).frequencies_
    assert chosen.any() and all((np.ptp(chosen[:, LABELS == g], axis=1) == 0.0).all() for g in LABELS)


def test_a_path_has_factors(data):
    freed = np.where(np.arange(8) == 1, 0.0, FACTORS)
    found = dboost.regularization_path(data.X, data.y, n_alphas=5, penalty="l1/l2", penalty_factors=freed)
    assert (found.gaps <= 1e-4).all() and not found.coefs[:, :, 3].any() and found.n_active_features[-1] == 7
    assert found.coefs[:, :, 1].all() and found.n_active_features[0] == 1


@SHORT_GRID
def test_paths_folds_and_targets_have_signs(data):
    along = dboost.regularization_path(data.X, data.y, n_alphas=4, penalty="l1", positive=True)
    assert (along.gaps <= 1e-4).all() and (along.coefs >= 0.0).all() and along.coefs[-1].any()
    found = BoostedClassifierCV(cv=2, n_alphas=3, penalty="l1", upper=0).fit(data.X, data.y)
    assert (found.coef_ <= 0.0).all() and found.coef_.any() and (found.fold_gaps_ <= 1e-2).all()
    labels = data.X @ np.random.default_rng(0).normal(size=(8, 2))
    several = MultiTaskBoostedRegressor(alpha=0.01, positive=True).fit(data.X, labels)
    assert several.duality_gap_ <= 1e-4 and several.coef_.any() and (several.coef_ >= 0.0).all()


def test_where_no_feature_may_have_its_sign_there_is_no_path():
    rng = np.random.default_rng(0)
    x = rng.normal(size=100)
    X, y = np.column_stack([x, x + 0.01 * rng.normal(size=100)]), -x + 0.1 * rng.normal(size=100)
    estimator = BoostedRegressor(alpha="quick", positive=True)
    one = BoostedRegressor(positive=True, alpha=0.1).fit(X, y)
    assert one.alpha_max_ == 0.0 and not one.coef_.any() and one.duality_gap_ <= 1e-4
    for asked in (
        lambda: dboost.regularization_path(X, y, estimator=estimator),
        lambda: dboost.BoostedRegressorCV(positive=True, cv=3).fit(X, y),
        lambda: dboost.StabilitySelection(estimator, n_pairs=2).fit(X, y),
    ):
        with pytest.raises(DataError, match="alpha_max.* is 0; check positive=, lower= and upper="):
            asked()
    path = dboost.regularization_path(X, y, estimator=estimator, alphas=[0.1, 0.01])
    assert path.n_active_features.tolist() == [0, 0]


# ---- offsets ---------------------------------------------------------------------------------------------------------

EXPOSED = ["a", "exposure", "b", "c", "d"]


@pytest.fixture(scope="module")
def counts():
    """A table of four features and the logarithm of an exposure, and counts."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.normal(size=(120, 5)), columns=EXPOSED)
    table["exposure"] = np.log(rng.uniform(0.2, 5.0, 120))
    return table, rng.poisson(np.exp(table["exposure"] + 0.8 * table["a"])).astype(float)


def poisson(**more):
    return BoostedRegressor(loss="poisson", alpha=0.02, tol=1e-8, **more)


def test_a_prediction_needs_the_offset_and_adds_it(counts):
    table, y = counts
    model = poisson(offset="exposure").fit(table, y)
    assert model.duality_gap_ <= 1e-8 and model.coef_[0, 1] == 1.0
    np.testing.assert_array_equal(poisson(offset=1).fit(table.to_numpy(), y).coef_, model.coef_)
    score = table.to_numpy() @ model.coef_[0] + model.intercept_[0]
    np.testing.assert_allclose(model.predict(table), np.exp(score), rtol=1e-12)
    twice = table.assign(exposure=table["exposure"] + np.log(2.0))
    np.testing.assert_allclose(model.predict(twice), 2.0 * model.predict(table), rtol=1e-12)
    with pytest.raises((DataError, ValueError), match="exposure|4 columns"):
        model.predict(table.drop(columns="exposure"))
    free = poisson().fit(table, y)
    assert free.coef_[0, 1] != 1.0 and model.score(table, y) > 0.2
    before, rounds = model.coef_, model.n_iter_
    warm = model.set_params(warm_start=True).fit(table, y)
    assert warm.n_iter_ <= rounds and warm.coef_[0, 1] == 1.0
    np.testing.assert_allclose(warm.coef_, before, atol=1e-4)


def test_a_class_that_a_fold_lacks_takes_its_offset_with_it(data):
    folds = np.where(data.y == 2, 0, 1 + np.arange(90) % 2)
    given = {"n_alphas": 3, "offset": [5, 6, 7], "penalty": "l1/l2"}
    found = BoostedClassifierCV(folds=folds, **given).fit(data.X, data.y)
    assert np.isfinite(found.fold_losses_).all() and found.duality_gap_ <= 1e-4


# ---- adaptive refits -------------------------------------------------------------------------------------------------


def test_an_adaptive_refit_is_less_biased_and_keeps_out_what_the_first_did_not_use():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 30))
    w = np.zeros(30)
    w[:3] = 2.0, -1.0, 0.7
    y = X @ w + rng.normal(size=400)
    first = BoostedRegressor(alpha=0.05, tol=1e-8).fit(X, y)
    factors = dboost.adaptive_factors(first, gamma=1.0)
    np.testing.assert_allclose(factors[:3], 1.0 / np.abs(first.coef_[0, :3]))
    assert np.isinf(factors[first.coef_[0] == 0.0]).all() and len(first.active_features_) > 3
    second = clone(first).set_params(penalty_factors=factors).fit(X, y)
    assert second.duality_gap_ <= 1e-8 and np.flatnonzero(second.coef_[0]).tolist() == [0, 1, 2]
    free = BoostedRegressor(penalty="none").fit(X[:, :3], y).coef_[0, 0]
    assert free - second.coef_[0, 0] < 0.75 * (free - first.coef_[0, 0])
    np.testing.assert_array_equal(np.isfinite(dboost.adaptive_factors(first, 0.0)), first.coef_[0] != 0.0)


# ---- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given,said",
    [
        ({"upper": {"x9": 0.0}}, "upper names 'x9'.*did you mean 'x"),
        ({"penalty_factors": {"x1": 2.0, 1: 2.0}}, "penalty_factors has 'x1' twice"),
        ({"lower": 0, "upper": {"x1": 0.0}}, "lower and upper are both 0 for 'x1'"),
        ({"positive": True, "penalty": "smooth_l1"}, "need a certificate.*penalty 'smooth_l1' has none"),
        ({"positive": True, "hypotheses": dboost.Products(max_degree=2)}, "made in the fit"),
        ({"penalty_factors": FACTORS, "penalty": "none"}, "penalty_factors .* penalty 'none'"),
        (
            {"penalty_factors": FACTORS, "hypotheses": dboost.Products(max_degree=2)},
            "penalty_factors.*hypotheses=Products",
        ),
        ({"offset": "x0"}, "has 1 column.*3 output"),
        ({"offset": ["x0", "x1", "x2", "x3"], "classes": [0, 1, 2, 3]}, "class 3 has no example"),
        ({"offset": ["x0", "x1", "x2"], "hypotheses": dboost.Stumps()}, "offset= with hypotheses=Stumps"),
        ({"penalty": "elastic_net", "hypotheses": dboost.Stumps()}, "penalty 'elastic_net'.*hypotheses=Stumps"),
        ({"penalty": "l1/l2+ridge", "standardize": True}, "'l1/l2\\+ridge' does not follow"),
    ],
)
def test_what_has_no_meaning_is_refused(data, given, said):
    with pytest.raises(UsageError, match=said):
        BoostedClassifier(**{"penalty": "l1"} | given).fit(pd.DataFrame(data.X, columns=NAMES), data.y)


def test_what_has_no_adaptive_factors_is_refused(data):
    for params, gamma, said in (
        ({"alpha": 10.0}, 1.0, "uses no feature"),
        ({"alpha": "quick", "hypotheses": dboost.Stumps()}, 1.0, "induced hypotheses"),
        ({"alpha": 0.01}, -1.0, "gamma"),
    ):
        with pytest.raises(UsageError, match=said):
            dboost.adaptive_factors(BoostedClassifier(**params).fit(data.X, data.y), gamma)
