"""The best intercept of the model without features, by passes, for losses that have no formula for it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_MAX_PASSES = 200
_STEP = 4.0 * np.finfo(float).eps


def best_intercept(slope_at: Callable[[Array], tuple[Array, Array]], start: Array) -> Array:
    """Minimise L(0, b) over b, output by output, by Newton's method inside a bracket.

    The sums of U fall as b rises, so their sign says on which side the optimum lies: a step that leaves the bracket is
    replaced by its middle, and while one side is open no step is more than twice as long as all before it. Ends when
    the step is below the rounding of b, or the sums are zero.

    Parameters
    ----------
    slope_at : callable
        The column sums of U at an intercept (k,) and minus their slope, both (k,), of a loss that is separable over the
        outputs.
    start : float64 array, shape (k,)
        Where to begin.

    Returns
    -------
    float64 array, shape (k,)
    """
    low, high = np.full_like(start, -np.inf), np.full_like(start, np.inf)
    reach = np.ones_like(start)
    b = start.copy()
    for _ in range(_MAX_PASSES):
        slope, curvature = slope_at(b)
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
