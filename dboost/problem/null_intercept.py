"""The best intercept of the model without features, by passes, for losses that have no formula for it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_HALF = 0.5
# A Newton step that leaves no more than this share of the sum is followed by another one.
_NEXT_TO_NOTHING = 0.05
_MAX_PASSES = 200
_STEP = 4.0 * np.finfo(float).eps
_SHORTEST = 1e-6


def best_joint_intercept(sums_at: Callable[[Array], tuple[float, Array, Array]], start: Array) -> Array:
    """Minimise L(0, b) over b where the outputs are not separable, by Newton's method with halved steps.

    A common shift of all outputs changes nothing: the Hessian has no curvature along it and is given some. Ends when no
    step lowers the loss, or the sums are below the rounding of their terms, or the step is below that of b.

    `sums_at`: the loss, the column sums of U and the Hessian of L at an intercept: float, (k,) and (k, k). `start`,
    (k,): where to begin. Returns (k,). Its mean is that of `start`.
    """
    b = start.copy()
    value, slope, H = sums_at(b)
    for _ in range(_MAX_PASSES):
        step = _solved(H, slope)
        if np.abs(step).max() <= _STEP * max(1.0, float(np.abs(b).max())):
            break
        size, rounding = 1.0, _STEP * abs(value)
        moved, next_slope, next_H = sums_at(b + step)
        # next to the optimum the loss is flat to rounding, and the slope alone tells better from worse
        while not (
            moved < value - rounding or (moved <= value + rounding and np.abs(next_slope).max() < np.abs(slope).max())
        ):
            size *= 0.5
            if size < _SHORTEST:
                return b
            moved, next_slope, next_H = sums_at(b + size * step)
        b, value, slope, H = b + size * step, moved, next_slope, next_H
    return b


def _solved(H: Array, g: Array) -> Array:
    """The step to the minimiser of the quadratic model, its entries summing to zero.

    By elimination in one fixed order: the threads of a BLAS might change its bits.
    """
    k = g.shape[0]
    scale = np.maximum(np.diag(H), np.finfo(float).tiny)
    root = np.sqrt(scale)
    # in units of the roots of the curvatures, of which one may be 1e-12 of another
    A = np.hstack([H / np.outer(root, root) + np.outer(root, root) / scale.sum(), (g / root)[:, None]])
    for j in range(k):
        pivot = j + int(np.argmax(np.abs(A[j:, j])))
        A[[j, pivot]] = A[[pivot, j]]
        A[j] /= A[j, j]
        others = np.arange(k) != j
        A[others] -= A[others, j][:, None] * A[j]
    step = A[:, k] / root
    return np.asarray(step - step.mean())


def best_intercept(slope_at: Callable[[Array], tuple[Array, Array]], start: Array) -> Array:
    """Minimise L(0, b) over b, output by output, by Newton's method inside a bracket.

    The sums of U fall as b rises, so their sign says on which side the optimum lies. Newton's steps are taken as long
    as each leaves next to nothing of the sum. They leave more where a loss bends less than its curvature says
    (``real.FAR``), and are too long where it says less than the loss will bend: between two sums of different signs the
    root of the line through them is then the next (Anderson & Bjorck's false position), and every third time the middle
    if the bracket has not become half as wide. While one side is open no step is more than twice as long as all before
    it. Ends when the step is below the rounding of b, or the sums below that of the largest there were.

    `slope_at`: the column sums of U at an intercept (k,) and minus their slope, both (k,), of a loss that is separable
    over the outputs. `start`, (k,): where to begin. Returns (k,).
    """
    b, reach, largest = start.copy(), np.ones_like(start), np.zeros_like(start)
    low, high = np.full_like(start, -np.inf), np.full_like(start, np.inf)
    above, below = np.full_like(start, np.inf), np.full_like(start, -np.inf)
    before, last, width = np.full_like(start, np.inf), np.zeros_like(start), np.full_like(start, np.inf)
    done = np.zeros(start.shape, np.bool_)
    for trial in range(1, _MAX_PASSES + 1):
        slope, curvature = slope_at(b)
        with np.errstate(divide="ignore", invalid="ignore"):
            # Anderson and Bjorck: the sum at an end that was kept twice shrinks, so that this end moves too.
            share = 1.0 - slope / before
            share = np.where(slope * before > 0.0, np.where(share > 0.0, share, 0.5), 1.0)
            low, above = np.where(slope >= 0.0, b, low), np.where(slope >= 0.0, slope, share * above)
            high, below = np.where(slope <= 0.0, b, high), np.where(slope <= 0.0, slope, share * below)
            newton = np.where(slope == 0.0, 0.0, slope / curvature)
            secant = np.where(slope * before > 0.0, np.copysign(slope * last / (before - slope), slope), 0.0)
            good = np.abs(slope) <= _NEXT_TO_NOTHING * np.abs(before)
            step = np.where(good | (np.abs(newton) > np.abs(secant)), newton, secant)
            moved = b + np.clip(step, -reach, reach)
            closed = np.isfinite(low) & np.isfinite(high) & (slope != 0.0)
            line = low + (high - low) * (above / (above - below))
            inside = (b + newton > low) & (b + newton < high)
            moved = np.where(closed, np.where(good & inside, b + newton, line), moved)
            if trial % 3 == 0:
                stuck = closed & ~good & (high - low > _HALF * width)
                moved = np.where(stuck, low + _HALF * (high - low), moved)
                width = np.where(closed, high - low, width)
        largest = np.maximum(largest, np.abs(slope))
        settled = np.abs(slope) <= _STEP * largest
        # an output that is done waits for the others: what is left of its sum is rounding, and so would its steps be
        moved = np.where(done | (settled & ~good), b, moved)
        before, last = slope, moved - b
        reach = np.maximum(reach, 2.0 * np.abs(moved - start))
        done |= settled | (np.abs(last) <= _STEP * np.maximum(1e-300, np.abs(b)))
        b = moved
        if done.all():
            break
    return b
