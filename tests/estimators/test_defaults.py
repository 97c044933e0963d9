"""What a fit does where nobody said: tables are standardised, features are selected and refitted, nothing is silent."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import dboost
from dboost.errors import DboostWarning, UsageError

RNG = np.random.default_rng(0)
X = RNG.normal(size=(240, 6))
Y = X[:, 0] - 0.8 * X[:, 1] + 0.3 * RNG.normal(size=240)
LABELS = np.where(Y > 0, "yes", "no")
UNITS = np.array([1e4, 1.0, 1e-3, 1.0, 10.0, 1.0])


@pytest.fixture(scope="module")
def chosen() -> Any:
    return dboost.BoostedClassifier().fit(X, LABELS)


def test_tables_are_standardised_and_sparse_rows_are_not() -> None:
    plain, scaled, kept = (
        dboost.BoostedClassifier(alpha=0.05, standardize=how).fit(X * UNITS, LABELS) for how in ("auto", True, "auto")
    )
    np.testing.assert_array_equal(plain.coef_, scaled.coef_)
    np.testing.assert_array_equal(plain.coef_, kept.coef_)
    rows = csr_matrix(X)
    by_default, unscaled = (
        dboost.BoostedClassifier(alpha=0.05, standardize=how).fit(rows, LABELS) for how in ("auto", False)
    )
    np.testing.assert_array_equal(by_default.coef_, unscaled.coef_)
    with pytest.raises(UsageError, match="standardize='yes'"):
        dboost.BoostedClassifier(standardize="yes").fit(X, LABELS)


def test_units_of_a_table_do_not_matter(chosen: Any) -> None:
    other = dboost.BoostedClassifier().fit(X * UNITS, LABELS)
    assert other.model_.active.tolist() == chosen.model_.active.tolist()
    np.testing.assert_allclose(other.coef_ * UNITS, chosen.coef_, rtol=1e-2)


def test_features_are_selected_and_refitted_with_a_ridge_and_both_are_certified(chosen: Any) -> None:
    record = chosen.relaxed_
    assert chosen.duality_gap_ <= chosen.tol and record["selection_gap"] <= chosen.tol
    held = chosen.model_.active
    ridge = dboost.BoostedClassifier(penalty="l2_squared", alpha=record["ridge"], tol=1e-6).fit(X[:, held], LABELS)
    np.testing.assert_allclose(chosen.coef_[:, held], ridge.coef_, rtol=1e-2)
    assert {0, 1} <= set(held.tolist())


@pytest.mark.full
def test_the_frontier_says_what_was_judged_and_holds_what_was_taken(chosen: Any) -> None:
    table = list(chosen.frontier_)
    features = [row["features"] for row in table]
    taken = [row for row in table if row["chosen"]]
    assert features == sorted(features) and features[0] == 0.0 and len(taken) == 1
    assert taken[0]["score"] > table[0]["score"] + 5 * table[0]["se_score"]
    few, accurate = (dboost.BoostedClassifier(prefer=how).fit(X, LABELS).frontier_ for how in ("few", "accurate"))
    place = [next(row["features"] for row in one if row["chosen"]) for one in (few, table, accurate)]
    assert place == sorted(place)


@pytest.mark.full
def test_labels_of_noise_give_a_model_too() -> None:
    """The best of what was judged on held-out rows may tell less than no feature does."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        model = dboost.BoostedClassifier().fit(csr_matrix(rng.random((200, 20)) < 0.05), rng.integers(0, 4, 200))
        assert model.duality_gap_ <= model.tol


def test_features_that_tell_nothing_at_all_give_the_empty_model() -> None:
    for hypotheses in (None, dboost.Stumps()):
        model = dboost.BoostedClassifier(hypotheses=hypotheses).fit(np.ones((20, 2)), np.arange(20) % 2)
        assert len(model.active_features_) == 0 and model.duality_gap_ <= model.tol


@pytest.mark.full
def test_max_features_names_a_point_of_the_frontier() -> None:
    for most in (1, 2):
        model = dboost.BoostedClassifier(max_features=most).fit(X, LABELS)
        assert 1 <= len(model.model_.active) <= most
    assert model.score(X, LABELS) > 0.85


def test_prefer_is_refused_beside_a_strength_and_what_is_no_limit_anyhow() -> None:
    with pytest.raises(UsageError, match=r"beside alpha=0.1"):
        dboost.BoostedClassifier(alpha=0.1, prefer="few").fit(X, LABELS)
    for given in ({"prefer": "many"}, {"max_features": -1}, {"max_features": True}, {"max_features": 2.5}):
        with pytest.raises(UsageError, match=next(iter(given))):
            dboost.BoostedClassifier(**given).fit(X, LABELS)
    assert not dboost.BoostedClassifier(max_features=0).fit(X, LABELS).coef_.any()


def test_what_is_saved_predicts_the_same_and_keeps_the_frontier(chosen: Any, tmp_path: Path) -> None:
    chosen.save(tmp_path / "model")
    loaded = dboost.load_model(tmp_path / "model")
    np.testing.assert_array_equal(loaded.decision_function(X), chosen.decision_function(X))
    np.testing.assert_allclose(chosen.to_sklearn().decision_function(X), chosen.decision_function(X), rtol=1e-12)
    assert list(loaded.frontier_) == list(chosen.frontier_)


def test_a_regression_finds_its_strength() -> None:
    model = dboost.BoostedRegressor().fit(X * UNITS, Y)
    assert model.score(X * UNITS, Y) > 0.9 and model.duality_gap_ <= model.tol


def test_signs_are_kept_where_features_cannot_be_refitted() -> None:
    model = dboost.BoostedRegressor(positive=True).fit(X, Y)
    assert np.all(model.coef_ >= 0.0) and model.coef_[0, 0] > 0.5 and model.frontier_[-1]["ridge"] == 0.0


@pytest.mark.full
def test_a_dask_array_gives_the_same_model(chosen: Any) -> None:
    da = pytest.importorskip("dask.array")
    other = dboost.BoostedClassifier().fit(da.from_array(X, chunks=(240, 6)), da.from_array(LABELS, chunks=240))
    np.testing.assert_array_equal(other.coef_, chosen.coef_)


def test_an_empty_model_is_said() -> None:
    with pytest.warns(DboostWarning, match=r"no feature is used.*alpha=5 is at or above alpha_max=0\.\d+"):
        dboost.BoostedClassifier(alpha=5.0).fit(X, LABELS)


def test_a_column_in_other_units_is_said_where_it_leads_the_penalty() -> None:
    with pytest.warns(DboostWarning, match=re.escape("column 0 varies 1e+04 times as much")):
        dboost.BoostedClassifier(alpha=0.05, standardize=False).fit(X * UNITS, LABELS)
    dboost.BoostedClassifier(alpha=0.05, standardize=False).fit(csr_matrix(X * UNITS), LABELS)


def test_systems_of_stumps_take_stumps_on_tables() -> None:
    inside = np.abs(X[:, 0]) < 0.7
    for kind in (dboost.AdaBoostL1Classifier, dboost.LeveragingClassifier):
        model = kind(max_rounds=8).fit(X, inside)
        assert model.score(X, inside) > 0.9 and all("x0 <" in name for name in model.active_features_[:1])
    assert dboost.AdaBoostL1Classifier(max_rounds=2).fit(csr_matrix(X), inside).model_.plain
    assert dboost.AdaBoostL1Classifier(max_rounds=2, hypotheses=dboost.Columns()).fit(X, inside).model_.plain
