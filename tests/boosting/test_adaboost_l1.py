"""AdaBoost+L1 against its formulas in dense numpy, scipy's minimum within the budget, and the best margin of an LP."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import linprog

from dboost.boosting.adaboost_l1.rounds import AdaBoostL1
from dboost.boosting.adaboost_l1.simplex import minimise_quadratic
from dboost.boosting.rules import NormalisedEdges
from dboost.errors import UsageError
from tests.boosting import plain


def fitting(data, nu=1.0, constant=True, **settings):
    settings = {"penalty": NormalisedEdges(), "fit_intercept": False, "tol": 0.0, "max_rounds": 10, **settings}
    return plain.fitting(data, system=AdaBoostL1(nu, constant), **settings)


def separable(seed=0, m=60, n=8, weights=False):
    """Labels that a sum of few columns in [-1, 1] decides."""
    data = plain.make("exp", m=m, n=n, seed=seed, weights=weights, density=1.0)
    data.y[:] = np.where(data.X[:, :1] + data.X[:, 1:2] > 0, 1, -1)
    return data


def noisy(seed=0, m=80, n=8, weights=True):
    return plain.make("exp", m=m, n=n, seed=seed, weights=weights, density=0.8)


def signed(data, constant=True):
    """M = y h of all hypotheses scaled to max |h| = 1: the columns, the constant, and the negatives of all."""
    H = data.X / np.abs(data.X).max(axis=0)
    H = np.hstack([H, np.ones((len(H), 1))]) if constant else H
    M = data.y * H
    return np.hstack([M, -M])


def best_margin(data, constant=True):
    """theta* = max over normalised al >= 0 of min_i (M al)_i, by linear programming."""
    M = signed(data, constant)
    m, n = M.shape
    A = np.hstack([-M, np.ones((m, 1))])
    c = np.append(np.zeros(n), -1.0)
    bounds = [(0, None)] * n + [(None, None)]
    found = linprog(c, A_ub=A, b_ub=np.zeros(m), A_eq=[[1.0] * n + [0.0]], b_eq=[1.0], bounds=bounds)
    return -found.fun


def majority(seed, m=60):
    """Labels that three of six hypotheses in {-1, +1} vote for: the best margin is 1/3."""
    data = separable(seed=seed, m=m, n=6)
    data.X[:] = np.where(data.X > 0, 1.0, -1.0)
    data.y[:, 0] = np.sign(data.X[:, :3].sum(axis=1))
    return data


def test_it_stops_when_no_hypothesis_has_an_edge():
    data = noisy(seed=5, m=200)
    assert best_margin(data) == pytest.approx(0.0, abs=1e-9)
    result = fitting(data, max_rounds=3000, tol=5e-3).fit(0.0)
    last = result.history[-1]
    assert (result.stop_reason, last["step"]) == ("edge", "certificate")
    assert last["edge"] <= 5e-3
    # the budget has come near the l1 norm of the minimiser without a budget, and the loss to its minimum:
    # log(L / L*) is at most that norm times the largest edge
    free = plain.fitting(data, penalty="none", tol=1e-10).fit("auto")
    norm = np.abs(plain.dense(free, data.X.shape[1])[:, 0] * np.abs(data.X).max(axis=0)).sum() + abs(free.intercept[0])
    assert last["l1_norm"] == pytest.approx(norm, rel=0.15) and last["l1_norm"] <= norm
    assert 0.0 <= math.log(result.objective / free.objective) <= norm * last["edge"]


def test_a_hypothesis_that_is_never_wrong_ends_the_fit():
    data = separable(seed=2)
    data.X[:, 3] = 2.0 * data.y[:, 0]
    result = fitting(data, tol=1e-3).fit(0.0)
    assert (result.stop_reason, result.active.tolist()) == ("tol", [3])
    assert result.history[-1]["margin"] == pytest.approx(1.0) and np.isfinite(result.W).all()


def test_refusals():
    with pytest.raises(UsageError, match="nu=1.5"):
        fitting(noisy(), nu=1.5)
    with pytest.raises(UsageError, match="AdaBoostL1Classifier"):
        plain.fitting(noisy(), system=AdaBoostL1(), penalty="l1")


@pytest.mark.parametrize("n,rank", [(1, 1), (5, 3), (12, 12), (12, 3)])
def test_quadratic_programs_against_their_optimality(n, rank):
    rng = np.random.default_rng([n, rank])
    for case in range(20):
        B = rng.normal(size=(rank, n))
        H, g, r = B.T @ B, rng.normal(size=n), float(rng.uniform(0.1, 3.0))
        start = rng.dirichlet(np.ones(n + 1))[:n] * r * (rng.random(n) < 0.6)
        z = minimise_quadratic(g, H, start.copy(), r)
        assert z.min() >= 0.0 and z.sum() <= r * (1 + 1e-12)
        # optimal: no feasible point is lower along the gradient there
        gradient = g + H @ (z - start)
        gap = gradient @ z - min(0.0, r * gradient.min())
        assert gap <= 1e-7 * (1 + np.abs(g).max() * r), (case, gap)
