"""How far sums over the examples may be off, so that a certificate can pay for it.

A sum of n float64 numbers t_i is off by no more than 4 sqrt(n) u sum |t_i| but for odds that never come, u = 2**-53
(Higham & Mary 2019, "A new approach to probabilistic rounding error analysis": rounding errors cancel like random
ones; the bound that needs no odds has n in place of 4 sqrt(n)). The sizes of the terms are bounded by what every pass
tells: for a loss of curvature kappa at most, sum_i s_i ||u_i||**2 <= 2 kappa L, and one without such a bound says
itself what its residuals sum to (``Loss.pulls``).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dboost.problem.iterate import Iterate
from dboost.problem.problem import Problem

Array = NDArray[np.float64]

UNIT = 2.0**-53
"""What float64 rounds a number by at most, as a share of it."""
_ODDS = 4.0


def share_of_sum(n_rows: int) -> float:
    """What a sum over so many examples is off by at most, as a share of the sum of the sizes of its terms."""
    return _ODDS * math.sqrt(max(n_rows, 1)) * UNIT


def of_norms(problem: Problem, iterate: Iterate, columns: NDArray[np.int64]) -> Array:
    """What the dual norms ||X_j'U||_* of columns at a model are off by at most, shape (c,).

    Zero for hypotheses that are not stored: nothing is known of the size of those that are not held.
    """
    if not problem.screens:
        return np.zeros(columns.shape[0])
    stats = problem.statistics
    lengths = _lengths(problem, iterate, stats.square[columns], stats.peak[columns])
    return share_of_sum(problem.n_rows) * problem.penalty.dual_radius(problem.k) * lengths


def of_intercept(problem: Problem, iterate: Iterate) -> float:
    """What the sums of the residuals themselves are off by at most: those of a column of ones."""
    ones = _lengths(problem, iterate, np.array([problem.statistics.weight]), np.ones(1))
    return float(share_of_sum(problem.n_rows) * ones[0])


def of_objective(problem: Problem, iterate: Iterate, lam: float) -> float:
    """What the objective at a model and the dual value of its residuals are off by at most, together.

    Sums of terms of one sign are off by a share of themselves. Margins are sums over the rows of W, whose errors
    the residuals carry on; so are offsets, whose products with the residuals are in the dual value. In the dual
    value of a squared loss labels are multiplied by residuals. That of a probability q needs 1 - q, which is off by
    the unit whatever is left of it.
    """
    stats, loss = problem.statistics, iterate.loss
    square, peak = stats.square[iterate.active], stats.peak[iterate.active]
    labels = problem.loss.terms(loss, stats.at_zero, stats.mass, stats.total, iterate.bias)
    terms = loss + problem.objective.bound(iterate.active, lam).total(iterate.W) + labels
    terms += float(np.sum(np.sqrt(np.sum(iterate.W**2, axis=1)) * _lengths(problem, iterate, square, peak)))
    fixed = problem.objective.columns.offset
    if fixed.size:
        terms += float(np.sum(_lengths(problem, iterate, stats.square[fixed], stats.peak[fixed])))
    ones = _lengths(problem, iterate, np.array([stats.weight]), np.ones(1))
    terms += float(np.sqrt(np.sum(iterate.intercept**2)) * ones[0])
    single = 2.0 * UNIT * stats.weight * problem.k if problem.loss.probabilities else 0.0
    return share_of_sum(problem.n_rows + iterate.active.shape[0]) * terms + single


def _lengths(problem: Problem, iterate: Iterate, square: Array, peak: Array) -> Array:
    """Bounds on ||sum_i |x_ij| |u_i| ||_2 of columns from sum_i s_i x_ij**2 and max_i |x_ij|."""
    kappa, stats = problem.loss.kappa, problem.statistics
    if math.isfinite(kappa):
        found: Array = np.sqrt(2.0 * kappa * iterate.loss) * np.sqrt(square)
        return found
    return problem.loss.pulls(iterate.loss, stats.mass, stats.total, iterate.bias) * peak
