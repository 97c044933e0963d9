"""The best intercept of the model without features, by passes, for losses that have no formula for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from dboost.problem.problem import Problem

Array = NDArray[np.float64]

_MAX_PASSES = 200
_STEP = 4.0 * np.finfo(float).eps


def best_intercept(problem: Problem, start: Array) -> Array:
    """Minimise L(0, b) over b, output by output, by Newton's method inside a bracket.

    The sums of U fall as b rises, so their sign says on which side the optimum lies: a step that leaves the bracket is
    replaced by its middle, and while one side is open no step is more than twice as long as all before it. Ends when
    the step is below the rounding of b, or the sums are zero.

    Parameters
    ----------
    problem : Problem
        Its loss is separable over the outputs.
    start : float64 array, shape (k,)
        Where to begin.

    Returns
    -------
    float64 array, shape (k,)
    """
    none, rows = np.zeros(0, np.int64), np.zeros((0, problem.k))
    low, high = np.full(problem.k, -np.inf), np.full(problem.k, np.inf)
    reach = np.ones(problem.k)
    b = start.copy()
    for _ in range(_MAX_PASSES):
        at = problem.evaluate(none, rows, b)
        slope, curvature = at.bias, problem.curvature_at(at)(rows, np.ones(problem.k))[1]
        low, high = np.where(slope >= 0.0, b, low), np.where(slope <= 0.0, b, high)
        with np.errstate(divide="ignore", invalid="ignore"):
            step = np.clip(np.where(slope == 0.0, 0.0, slope / curvature), -reach, reach)
            middle = 0.5 * (low + high)
        moved = b + step
        outside = (moved < low) | (moved > high)
        moved = np.where(outside & np.isfinite(middle), middle, moved)
        reach = np.maximum(reach, 2.0 * np.abs(moved - start))
        done = np.abs(moved - b) <= _STEP * np.maximum(1e-300, np.abs(b))
        b = moved
        if done.all():
            break
    return b
