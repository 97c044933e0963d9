"""Leveraging within a box and with a strength for each hypothesis (RMW, Theorem 1), against scipy and a plain loop."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.base import clone

from dboost import (
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
    finite = np.where(np.isinf(lam), 0.0, lam)

    def prox(Z, step):
        return np.clip(np.sign(Z) * np.maximum(np.abs(Z) - step * lam, 0.0), low, high)

    found = plain.fista(data, prox, lambda W: np.sum(finite * np.abs(W)))
    return found.value, found.W[:, 0]


@pytest.mark.full
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
@pytest.mark.parametrize("bounds", [None, (-0.1, 0.1)], ids=["all", "box"])
def test_a_strength_for_each_hypothesis(loss, bounds):
    data = correlated(loss, m=70, n=8, seed=9)
    factors = np.array([0.2, 1.0, 3.0, 1.0, 0.5, 2.0, 1.0, np.inf])
    alpha = 0.05 if bounds else 0.2 * plain.alpha_max(data, "l1")
    estimator = LeveragingClassifier(loss="log") if loss == "log" else LeveragingRegressor()
    y = data.y[:, 0] if loss == "log" else data.y
    estimator.set_params(hypotheses=Columns(), alpha=alpha, bounds=bounds, tol=1e-9, max_rounds=20_000)
    found, plainly = (clone(estimator).set_params(penalty_factors=f).fit(data.X, y, data.s) for f in (factors, None))
    least, w = minimum(data, bounds or (-math.inf, math.inf), alpha * data.s.sum() * factors[:, None])
    mine = np.ravel(found.coef_)
    assert found.stop_reason_ == ("gradient" if bounds else "tol")
    assert found.objective_ * data.s.sum() == pytest.approx(least, rel=1e-8)
    np.testing.assert_allclose(mine, w, atol=1e-4)
    assert mine[7] == 0.0 and mine.any() and not np.allclose(np.ravel(plainly.coef_), mine, atol=1e-3)
    assert not bounds or (np.abs(mine) == 0.1).any()


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
