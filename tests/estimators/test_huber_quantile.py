"""Huber's loss and the quantile's as users meet them: beside scikit-learn and a linear program, on engines, saved.

Covers: ``BoostedRegressor`` with both. Does not cover: formulas (tests/losses), other solvers and penalties
(tests/boosting).
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import QuantileRegressor
from sklearn.metrics import d2_pinball_score

from dboost import BoostedRegressor
from dboost.losses import Quantile


@pytest.fixture(scope="module")
def skewed():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 6))
    return X, X[:, 0] - 0.5 * X[:, 1] + rng.exponential(size=200) * np.where(rng.random(200) < 0.1, 10.0, 1.0)


@pytest.mark.parametrize("tau", [0.1, 0.5, 0.9])
def test_the_pinball_loss_of_a_linear_program_is_within_the_gap_and_an_eighth_of_the_width(skewed, tau):
    X, y = skewed
    alpha, width = 0.02, 0.02
    # scikit-learn minimises the mean pinball loss plus alpha times the l1 norm, by a linear program
    theirs = QuantileRegressor(quantile=tau, alpha=alpha, solver="highs").fit(X, y)
    ours = BoostedRegressor(standardize=False, loss=Quantile(tau, width), alpha=alpha, tol=1e-7).fit(X, y)
    assert ours.duality_gap_ <= 1e-7

    def pinball(w, b):
        return Quantile(tau).deviance(y, X @ w + b).mean() + alpha * np.abs(w).sum()

    best = pinball(theirs.coef_, theirs.intercept_)
    found = pinball(ours.coef_[0], ours.intercept_[0])
    assert -1e-9 <= found - best <= ours.duality_gap_ * ours.objective_ + width / 8
    assert best - 1e-9 <= ours.objective_ <= best + width / 8
    assert abs(np.mean(y <= ours.predict(X)) - tau) < 0.05
    assert ours.score(X, y) == pytest.approx(d2_pinball_score(y, ours.predict(X), alpha=tau), abs=1e-2)
