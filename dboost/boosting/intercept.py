"""The intercept alone, solved to rounding with the weights held.

A free intercept asks of a dual point that the residuals of each output sum to zero. Residuals that miss this are
repaired at a price that grows with the miss over the mass of the rarest class (``losses.base.Repair``), so a class of a
few examples can make a model that is optimal to 1e-9 look 1e-2 away. Newton's method in k numbers takes the miss to
rounding within a few passes, and lowers the objective.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dboost.boosting.problem import Problem

Array = NDArray[np.float64]

_MAX_STEPS = 4
_CONSTANT = 1e-13


def solve_intercept(problem: Problem, active: NDArray[np.int64], W: Array, intercept: Array, small: float) -> Array:
    """The intercept of a model, improved until no residual sum is above `small` times the mass of its output.

    Returns the best intercept seen: its loss is never above that of the one given.
    """
    mass = np.maximum(np.minimum(problem.statistics.mass, problem.statistics.total - problem.statistics.mass), 0.0)
    floor = np.where(mass > 0.0, mass, np.inf)
    best = intercept
    lowest = np.inf
    trial = intercept
    for _ in range(_MAX_STEPS):
        loss, bias, H = problem.intercept_sums(active, W, trial)
        if not loss <= lowest:
            break
        best, lowest = trial, loss
        if np.max(np.abs(bias) / floor, initial=0.0) <= small:
            break
        trial = trial + _newton(H, bias)
    return best


def _newton(H: Array, g: Array) -> Array:
    """H^+ g by conjugate gradients scaled by the diagonal: no BLAS, whose threads might change the bits."""
    scale = np.diag(H).copy()
    scale = np.maximum(scale, _CONSTANT * max(float(scale.max(initial=0.0)), np.finfo(float).tiny))
    x = np.zeros_like(g)
    residual = g.copy()
    z = residual / scale
    p = z.copy()
    rz = float(np.sum(residual * z))
    start = rz
    for _ in range(3 * g.shape[0]):
        if not rz > 1e-24 * start:
            break
        q = np.sum(H * p, axis=1)
        curvature = float(np.sum(p * q))
        if not curvature > 0.0:
            break
        x += (rz / curvature) * p
        residual -= (rz / curvature) * q
        z = residual / scale
        new = float(np.sum(residual * z))
        p = z + (new / rz) * p
        rz = new
    return x
