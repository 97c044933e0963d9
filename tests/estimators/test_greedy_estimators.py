"""AdaBoost+L1, leveraging and JointBoost as estimators: stumps, margins, the l1 problem, probabilities, refusals.

Their rounds are compared with the formulas in tests/boosting.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import RegressorMixin, clone

from dboost import (
    AdaBoostL1Classifier,
    BoostedClassifier,
    BoostedRegressor,
    Columns,
    JointBoostClassifier,
    LeveragingClassifier,
    LeveragingRegressor,
    Products,
    Stumps,
    UsageError,
)

PAIRS = Columns() | Products(min_degree=2, max_degree=2)
KINDS = {
    "adaboost_l1": AdaBoostL1Classifier(hypotheses=Columns(), nu=0.7),
    "adaboost": LeveragingClassifier(hypotheses=Columns()),
    "penalised": LeveragingClassifier(hypotheses=Columns(), loss="log", alpha="auto"),
    "lasso": LeveragingRegressor(hypotheses=Columns(), alpha=0.01),
}


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    return rng.normal(size=(150, 5)) * (rng.random((150, 5)) < 0.8)


def target(model, X):
    score = 2.0 * X[:, 0] - X[:, 1] * X[:, 2] + 0.4 * np.random.default_rng(1).normal(size=len(X))
    return score if isinstance(model, RegressorMixin) else np.where(score > 0.3, "yes", "no")


def shown(model, X):
    return np.asarray(model.predict(X) if isinstance(model, RegressorMixin) else model.decision_function(X))


@pytest.mark.full
@pytest.mark.parametrize("kind", KINDS)
def test_stumps_are_their_columns(X, kind):
    """Listed one by one or looked into bin by bin: the fit is that of all stumps as columns."""
    X = np.round(X, 1)
    model = clone(KINDS[kind]).set_params(max_rounds=15)
    y = target(model, X)
    cuts = [np.unique(column) for column in X.T]
    columns = [np.where(X[:, [j]] < (v[1:] + v[:-1]) / 2, 1.0, -1.0) for j, v in enumerate(cuts)]
    expected = clone(model).fit(np.hstack(columns), y)
    for family in (Stumps(signed=True), Stumps(signed=True, bins=4, max_listed=0)):
        fitted = clone(model).set_params(hypotheses=family).fit(X, y)
        np.testing.assert_allclose(shown(fitted, X), shown(expected, np.hstack(columns)), atol=1e-7)
        assert len(fitted.active_features_) == len(expected.active_features_)


def test_margins_of_the_training_data(X):
    y = np.where(X[:, 0] + 0.2 * X[:, 1] > 0, 1, 0)
    model = AdaBoostL1Classifier(hypotheses=Columns(), max_rounds=60).fit(X, y)
    peaks = np.abs(X).max(axis=0)
    norm = (np.abs(model.coef_[0]) * peaks).sum() + abs(model.intercept_[0])
    least = (np.where(y == 1, 1, -1) * model.decision_function(X)).min() / norm
    assert model.margin_ == pytest.approx(least, abs=1e-12) and model.budget_ == pytest.approx(norm)
    assert model.margin_gap_ > 0


@pytest.mark.parametrize("kind", ["penalised", "lasso"])
def test_algorithm_2_is_the_l1_problem(X, kind):
    """Over products of columns; over columns it is in tests/boosting."""
    model = clone(KINDS[kind]).set_params(max_rounds=3000, tol=1e-7, hypotheses=PAIRS, alpha=0.03)
    model.fit(X, target(model, X))
    other = BoostedRegressor if kind == "lasso" else BoostedClassifier
    best = other(standardize=False, penalty="l1", alpha=0.03, tol=1e-9, hypotheses=PAIRS).fit(X, target(model, X))
    assert model.stop_reason_ == "tol" and model.objective_ == pytest.approx(best.objective_, rel=2e-7)
    assert model.active_features_ == best.active_features_
    assert model.alpha_max_ == pytest.approx(best.alpha_max_)


def test_a_warm_start_goes_on(X):
    y = target(KINDS["adaboost"], X)
    whole = LeveragingClassifier(hypotheses=Columns(), max_rounds=20).fit(X, y)
    model = LeveragingClassifier(hypotheses=Columns(), max_rounds=10, warm_start=True).fit(X, y)
    model.fit(X, y)
    np.testing.assert_allclose(model.coef_, whole.coef_, atol=1e-12)


def test_refusals(X):
    y = target(KINDS["adaboost"], X)
    for model, labels, said in (
        (LeveragingClassifier(hypotheses=Products(max_degree=None)), y, "infinite class"),
        (AdaBoostL1Classifier(hypotheses=Columns(), nu=0), y, "nu=0"),
        (LeveragingClassifier(hypotheses=Columns(), step="half"), y, "step='half'"),
        (LeveragingRegressor(hypotheses=Columns(), learner="best"), y == "yes", "learner='best'"),
        (LeveragingClassifier(hypotheses=Columns(), loss="squared"), y, "loss='squared'"),
        (JointBoostClassifier(hypotheses=Stumps(signed=True)), y, "JointBoost: hypotheses="),
        (JointBoostClassifier(max_rounds=0), y, "max_rounds"),
        (JointBoostClassifier(tol=-1.0), y, "tol=-1.0"),
    ):
        with pytest.raises(UsageError, match=said):
            model.fit(X, labels)
    with pytest.raises(ValueError, match="Only binary classification is supported"):
        AdaBoostL1Classifier(hypotheses=Columns()).fit(X, np.arange(len(X)) % 3)


# ---- JointBoost ------------------------------------------------------------------------------------------------------


@pytest.fixture(params=[2, 3], ids=["two classes", "three"])
def y(request, X):
    score = 2.0 * X[:, 0] - X[:, 1] + 0.4 * np.random.default_rng(1).normal(size=len(X))
    return np.array(["no", "maybe", "yes"])[np.digitize(score, [0.3, 1.5][: request.param - 1])]


def test_scores_are_against_the_rest_and_probabilities_follow(X, y):
    model = JointBoostClassifier(max_rounds=8).fit(X, y)
    F, P = model.decision_function(X), model.predict_proba(X)
    z = np.where(y[:, None] == model.classes_, 1, -1) if F.ndim == 2 else np.where(y == model.classes_[1], 1, -1)
    assert np.exp(-z * F).sum() / len(y) == pytest.approx(model.objective_, rel=1e-9)
    if F.ndim == 2:
        np.testing.assert_allclose(P, np.exp(2 * F) / np.exp(2 * F).sum(axis=1, keepdims=True), rtol=1e-9)
    else:
        np.testing.assert_allclose(P[:, 1], 1 / (1 + np.exp(-2 * F)), rtol=1e-9)
    assert all("<" in name for name in model.active_features_)
    assert np.isnan(model.duality_gap_) and model.stop_reason_ == "max_rounds"


def test_a_class_without_examples_is_never_predicted(X, y):
    model = JointBoostClassifier(max_rounds=8, classes=[*sorted(set(y)), "zebra"]).fit(X, y)
    assert set(model.predict(X)) <= set(y) and model.predict_proba(X)[:, -1].max() < 1e-9
