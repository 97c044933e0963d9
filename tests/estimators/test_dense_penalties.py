"""Penalties that keep every feature, and classical boosting, through the estimators."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from dboost import BoostedClassifier


def test_the_ridge_is_scikit_learns_logistic_regression(multiclass):
    """With alpha left alone it is its C = 1."""
    X, y = multiclass
    ours = BoostedClassifier(standardize=False, alpha="quick", penalty="l2_squared", tol=1e-10).fit(X, y)
    theirs = LogisticRegression(C=1.0, tol=1e-9, max_iter=10_000).fit(X, y)
    assert ours.alpha_ == pytest.approx(1.0 / len(y))
    assert ours.duality_gap_ <= 1e-10 and ours.stop_reason_ == "tol"
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
    np.testing.assert_allclose(
        ours.intercept_ - ours.intercept_.mean(), theirs.intercept_ - theirs.intercept_.mean(), atol=1e-4
    )
