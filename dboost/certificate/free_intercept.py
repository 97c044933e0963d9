"""The intercept alone, solved to rounding with the weights held.

A free intercept asks of a dual point that the residuals of each output sum to zero. Residuals that miss this are
repaired at a price that grows with the miss over the mass of the rarest class (``losses.base.Repair``), so a class of a
few examples can make a model that is optimal to 1e-9 look 1e-2 away. Newton's method in k numbers takes the miss to
rounding within a few passes, and lowers the objective.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dboost import passes
from dboost.compiled.solves.conjugate_gradients import conjugate_gradients
from dboost.problem.problem import Problem

Array = NDArray[np.float64]

_MAX_STEPS = 4
# A Newton step from a miss of e leaves at most about this times e**2.
_SQUARED = 100.0
_FLAT = 1e-12
_ENOUGH = 1e-20
# Sums of the loss carry about this relative error.
_ROUNDING = 1e-14


def solve_intercept(problem: Problem, active: NDArray[np.int64], W: Array, intercept: Array, small: float) -> Array:
    """The intercept of a model, improved until no residual sum is above `small` times the mass of its output.

    Returns the best intercept seen: but for rounding its loss is not above that of the one given. The step from a miss
    whose square is small enough is taken without a pass to confirm it.
    """
    stats = problem.statistics
    rarer = np.minimum(stats.mass, stats.total - stats.mass)
    mass = np.where(rarer > 0.0, rarer, np.inf)
    best, lowest, least = intercept, np.inf, np.inf
    trial = intercept
    for _ in range(_MAX_STEPS):
        sums = problem.runner.run(passes.intercept_sums, problem.point(active, W, trial), name="intercept").add
        loss, bias, H = sums["loss"], sums["bias"], sums["H"]
        miss = float(np.max(np.abs(bias) / mass, initial=0.0))
        # near the optimum the loss is flat to rounding, and the gradient alone tells better from worse
        rounding = _ROUNDING * abs(lowest) if np.isfinite(lowest) else 0.0
        if not (loss < lowest - rounding or (loss <= lowest + rounding and miss < least)):
            break
        best, lowest, least = trial, loss, miss
        if miss <= small:
            break
        trial = trial + _newton(H, bias)
        if _SQUARED * miss * miss <= small:
            # the step squares the miss: another pass would only confirm it
            return trial
    return best


def _newton(H: Array, g: Array) -> Array:
    """H^+ g by conjugate gradients scaled by the diagonal: no BLAS, whose threads might change the bits."""
    scale = np.diag(H).copy()
    scale = np.maximum(scale, _FLAT * max(float(scale.max(initial=0.0)), np.finfo(float).tiny))

    def curved(p: Array, curvature: float, left: float) -> bool:
        # a common shift of all classes changes nothing: what is left of it in the residual is rounding
        return curvature > _FLAT * float(np.sum(scale * p * p))

    found = conjugate_gradients(
        g,
        lambda p: np.asarray(np.sum(H * p, axis=1)),
        lambda residual: residual / scale,
        limit=3 * g.shape[0],
        least=lambda start: _ENOUGH * start,
        curved=curved,
    )
    return found.x
