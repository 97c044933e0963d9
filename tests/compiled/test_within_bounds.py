"""Quadratic functions of entries that have signs: against SciPy, where columns add up, and with solves that miss.

Covers: ``compiled.solves.within_bounds``. Does not cover: the Newton steps that ask for it (tests/boosting).
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from dboost.compiled.solves.positive import solve_positive
from dboost.compiled.solves.within_bounds import held_at_zero, within_bounds


def least(A, right, start, signs, allowed=1e-12, **more):
    """The place, by factored solves."""

    def solved(residual, moving):
        few, d = np.flatnonzero(moving), np.zeros_like(residual)
        d[few] = solve_positive(A[np.ix_(few, few)], residual[few], 1e-12)
        return d

    size = np.full(right.size, allowed * max(1.0, float(np.abs(right).max())))
    return within_bounds(right, lambda d: np.sum(A * d, axis=1), solved, start, signs, size, **more)


@pytest.mark.parametrize("seed", range(30))
def test_it_is_the_least_of_scipy(seed):
    """Also where some columns are the same, one is zero, and the start is anywhere that its signs allow."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 40))
    X = rng.normal(size=(n + 10, n)) + rng.normal(size=(n + 10, 1)) * rng.integers(0, 3)
    if n > 4:
        X[:, 1], X[:, 2], X[:, 3] = X[:, 0], 0.0, X[:, 4] + X[:, 0]
    y, signs = rng.normal(size=n + 10), rng.integers(-1, 2, n).astype(np.int8)
    start = rng.normal(size=n) * (rng.random(n) < 0.5)
    start = np.where(signs * start < 0.0, 0.0, start)
    A, right = X.T @ X, X.T @ (y - X @ start)
    found = least(A, right, start, signs)
    assert np.all(signs * found >= 0.0)
    residual = X.T @ (y - X @ found)
    free = ~held_at_zero(found, signs)
    scale = 1e-9 * np.abs(A).max()
    assert np.abs(residual[free]).max(initial=0.0) <= scale and np.max(signs * residual * ~free, initial=0.0) <= scale
    bounds = np.where(signs > 0, 0.0, -np.inf), np.where(signs < 0, 0.0, np.inf)
    best = lsq_linear(X, y, bounds, method="bvls", tol=1e-14, max_iter=10_000)
    assert 0.5 * np.sum((y - X @ found) ** 2) <= best.cost + 1e-9 * max(best.cost, 1.0)


def test_solves_that_are_off_end_too():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 20)) + 3.0 * rng.normal(size=(40, 1))
    A, y, signs = X.T @ X, rng.normal(size=40), np.ones(20, np.int8)

    def solved(residual, moving):
        few, d = np.flatnonzero(moving), np.zeros(20)
        d[few] = np.linalg.solve(A[np.ix_(few, few)], residual[few]) * (1.0 + 1e-6 * rng.normal(size=few.size))
        return d

    allowed = np.full(20, 1e-4 * np.abs(X.T @ y).max())
    found = within_bounds(X.T @ y, lambda d: A @ d, solved, np.zeros(20), signs, allowed)
    best = lsq_linear(X, y, (0.0, np.inf), method="bvls", tol=1e-14).cost
    assert np.all(found >= 0.0) and 0.5 * np.sum((y - X @ found) ** 2) <= best * (1.0 + 1e-4)
