"""What keeps a Newton step from overshooting where the loss grows like an exponential."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dboost.problem.iterate import Iterate
from dboost.problem.problem import Problem

Array = NDArray[np.float64]
# u of a step down above which an example is more likely wrong than right.
_NEAR_ONE = 2.0


def growth(problem: Problem, iterate: Iterate, lam: float, diagonal: Array) -> Array:
    """Curvature that turns a Newton step of an entry into the step of an exponential.

    Where a class is rare its probability, and with it the curvature A, grows like exp(x d) along the step d: Newton
    goes to g/A, but g = (A/x)(exp(x d) - 1) is solved by d = log1p(u)/x with u = g x/A. A u/log1p(u) in place of A
    gives that step. Where an example's probability is near one for the wrong class, its curvature grows like exp(-x d)
    along the way down, and the same holds. With one example u is 1 over the probability of the right class: below 2 a
    step down is short by itself, and stays Newton's. g is the gradient net of the penalty, so the damping vanishes at
    the optimum. Losses of labels that have a unit need none (``Loss.growing``): with it, steps towards labels of 1e6
    would be 14 long.
    """
    if not problem.loss.growing:
        return np.zeros_like(diagonal)
    G, W, bound = problem.objective.with_intercept(iterate, lam)
    D = diagonal.max(axis=1, initial=0.0)
    stats = problem.statistics
    size = stats.square[iterate.active] / np.maximum(stats.absolute[iterate.active], np.finfo(float).tiny)
    size = np.append(size, 1.0)[: W.shape[0], None]
    with np.errstate(over="ignore", invalid="ignore"):
        # an entry almost or wholly without curvature is as far as a number can be from where the loss bends
        net = D[:, None] * (bound.solve_quadratic(W, G, D) - W)
        u = np.minimum(np.abs(net) * size / np.maximum(diagonal, np.finfo(float).tiny), np.finfo(float).max)
        u = np.where((net > 0.0) | (u > _NEAR_ONE), u, 0.0)
        ratio = np.where(u > 1e-8, u / np.log1p(u), 1.0 + 0.5 * u)
    return np.where(D[:, None] > 0.0, diagonal * (ratio - 1.0), 0.0)
