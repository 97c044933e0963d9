"""``JointBoostClassifier``: scores, probabilities, classes, refusals.

Its rounds are compared with the formulas in tests/boosting/test_jointboost.py.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from dboost import JointBoostClassifier, Stumps, UsageError


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    return np.round(rng.normal(size=(150, 4)) * (rng.random((150, 4)) < 0.8), 2)


@pytest.fixture(params=[2, 3], ids=["two classes", "three"])
def y(request, X):
    score = 2.0 * X[:, 0] - X[:, 1] + 0.4 * np.random.default_rng(1).normal(size=len(X))
    return np.array(["no", "maybe", "yes"])[np.digitize(score, [0.3, 1.5][: request.param - 1])]


MODEL = JointBoostClassifier(max_rounds=8)


def test_scores_are_against_the_rest_and_probabilities_follow(X, y):
    model = clone(MODEL).fit(X, y)
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
    model = clone(MODEL).set_params(classes=[*sorted(set(y)), "zebra"]).fit(X, y)
    assert set(model.predict(X)) <= set(y) and model.predict_proba(X)[:, -1].max() < 1e-9


def test_refusals(X, y):
    for params, match in (
        ({"hypotheses": Stumps(signed=True)}, "JointBoost: hypotheses="),
        ({"max_rounds": 0}, "max_rounds"),
        ({"tol": -1.0}, "tol=-1.0"),
    ):
        with pytest.raises(UsageError, match=match):
            clone(MODEL).set_params(**params).fit(X, y)
