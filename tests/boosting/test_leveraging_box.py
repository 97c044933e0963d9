"""Leveraging within a box and with a strength for each hypothesis (RMW, Theorem 1), against scipy and a plain loop."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dboost import (
    BoostedClassifier,
    Columns,
    LeveragingClassifier,
    LeveragingRegressor,
    Products,
    UsageError,
)
from dboost.boosting.leveraging import Leveraging, given_bounds
from tests.boosting import plain
from tests.boosting.test_leveraging import correlated

BOXES = {
    "not negative": (0.0, math.inf),
    "narrow": (-0.2, 0.3),
    "each its own": (
        [-0.1, 0.0, -math.inf, -1.0, -0.05, 0.0, -0.3, 0.0],
        [0.1, 0.2, 0.0, math.inf, 0.4, 0.05, 0.0, 1.0],
    ),
}


def fitting(data, bounds, alpha=0.0, rule="edge", **settings):
    system = Leveraging(rule, bounds=given_bounds(bounds))
    settings = {"penalty": system.penalty(alpha), "alpha": alpha, "tol": 1e-9, "max_rounds": 20_000, **settings}
    return plain.fitting(data, system=system, **settings)


def minimum(data, bounds, lam):
    """The least objective within the box, and its weights."""
    low, high = (np.broadcast_to(side, data.X.shape[1])[:, None] for side in bounds)

    def prox(Z, step):
        return np.clip(np.sign(Z) * np.maximum(np.abs(Z) - step * lam, 0.0), low, high)

    found = plain.fista(data, prox, lambda W: lam * np.abs(W).sum())
    return found.value, found.W[:, 0]


@pytest.mark.parametrize("box", BOXES)
@pytest.mark.parametrize("loss,share", [("exp", 0.0), ("squared", 0.0), ("log", 0.1)])
def test_the_fit_ends_at_the_minimum_within_the_box(loss, share, box):
    data = correlated(loss, m=70, n=8, seed=12)
    alpha = share * plain.alpha_max(data, "l1")
    result = fitting(data, BOXES[box], alpha).fit(alpha)
    least, w = minimum(data, BOXES[box], alpha * data.s.sum())
    assert result.stop_reason == "gradient" and np.isnan(result.gap)
    assert result.objective * data.s.sum() <= least + 1e-7 * abs(least)
    mine = plain.dense(result, 8)[:, 0]
    low, high = (np.broadcast_to(side, 8) for side in BOXES[box])
    assert (mine >= low).all() and (mine <= high).all()
    np.testing.assert_allclose(mine, w, atol=2e-3)
    free = fitting(data, (-math.inf, math.inf), alpha).fit(alpha)
    assert free.objective < result.objective, "the box changed nothing: the data proves nothing"
    assert (mine == low).any() or (mine == high).any()


def test_the_joint_learner_takes_the_largest_fall_within_the_box():
    data = correlated("squared", m=60, n=6, seed=5)
    result = fitting(data, (-0.1, 0.2), rule="joint").fit(0.0)
    least, _ = minimum(data, (-0.1, 0.2), 0.0)
    assert result.objective * data.s.sum() == pytest.approx(least, rel=1e-8)


@pytest.mark.parametrize("loss", ["log", "squared"])
def test_a_strength_for_each_hypothesis(loss):
    data = correlated(loss, m=70, n=8, seed=9)
    factors = np.array([0.2, 1.0, 3.0, 1.0, 0.5, 2.0, 1.0, np.inf])
    alpha = 0.2 * plain.alpha_max(data, "l1")
    estimator = LeveragingClassifier(loss="log") if loss == "log" else LeveragingRegressor()
    y = data.y[:, 0] if loss == "log" else data.y
    estimator.set_params(hypotheses=Columns(), alpha=alpha, penalty_factors=factors, tol=1e-9, max_rounds=20_000)
    model = estimator.fit(data.X, y, data.s)
    lam = alpha * factors * data.s.sum()
    W, b = model.model_.W, np.ravel(model.intercept_)
    dense = np.ravel(model.coef_)
    G = data.X.T @ data.residual((data.X @ dense)[:, None] + b)[:, 0]
    held = dense != 0
    assert model.stop_reason_ == "tol" and W.shape[1] == 1 and held.any() and dense[7] == 0.0
    np.testing.assert_allclose(G[held], lam[held] * np.sign(dense[held]), rtol=1e-3)
    assert (np.abs(G[~held]) <= lam[~held] * (1 + 1e-3)).all()
    plain_one = estimator.set_params(penalty_factors=None).fit(data.X, y, data.s)
    assert not np.allclose(np.ravel(plain_one.coef_), dense, atol=1e-3)
    if loss == "log":
        best = BoostedClassifier(standardize=False, alpha=alpha, penalty="l1", penalty_factors=factors, tol=1e-9)
        best.fit(data.X, y, data.s)
        np.testing.assert_allclose(np.ravel(best.coef_), dense, atol=1e-4)


def test_factors_and_a_box_together():
    data = correlated("log", m=70, n=8, seed=9)
    factors, alpha = [0.2, 1.0, 3.0, 1.0, 0.5, 2.0, 1.0, 1.0], 0.05
    model = LeveragingClassifier(
        hypotheses=Columns(), loss="log", alpha=alpha, penalty_factors=factors, bounds=(-0.1, 0.1), tol=1e-8
    )
    w = np.ravel(model.set_params(max_rounds=5000).fit(data.X, data.y[:, 0], data.s).coef_)
    G = data.X.T @ data.residual((data.X @ w)[:, None] + np.ravel(model.intercept_))[:, 0]
    lam = alpha * data.s.sum() * np.array(factors)
    inside = (np.abs(w) < 0.1) & (w != 0)
    np.testing.assert_allclose(G[inside], (lam * np.sign(w))[inside], rtol=1e-4)
    assert (np.abs(G[w == 0]) <= lam[w == 0] * (1 + 1e-6)).all()
    at_bound = np.abs(w) == 0.1
    assert at_bound.any() and (G[at_bound] * np.sign(w[at_bound]) >= lam[at_bound] * (1 - 1e-6)).all()


@pytest.mark.parametrize(
    "more,said",
    [
        ({"bounds": 3.0}, "bounds=3.0.*expected"),
        ({"bounds": (0.1, 1.0)}, "leaves out the weight 0"),
        ({"bounds": (0.0, 0.0)}, "leaves every weight at 0"),
        ({"bounds": (-1.0, "much")}, "expected"),
        ({"bounds": ([0.0, 0.0], 1.0)}, "bounds has 2 numbers for 5 features"),
        ({"bounds": ([0.0] * 5, 1.0), "hypotheses": Products(max_degree=2)}, "those of raw columns"),
        ({"penalty_factors": [1.0] * 5}, "penalty_factors multiply the strength"),
    ],
)
def test_refusals(more, said):
    data = correlated("log", m=70, n=5, seed=2)
    with pytest.raises(UsageError, match=said):
        LeveragingClassifier(loss="log", **more).fit(data.X, data.y[:, 0])
