"""Exact line search for one output: a few passes, each with value, slope and curvature at several step lengths.

Scores are linear in the step, so that a partition forms its margins once and evaluates them at all steps (docs/math.md
0 and 7 I). Does not cover: which direction is searched (``coordinate``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.compiled.examples import loss_of_rows
from dboost.compiled.solves import one_output
from dboost.hypotheses.held_by_model import Held
from dboost.losses import get_loss
from dboost.partition import Partition, Sums
from dboost.passes import Point
from dboost.problem.iterate import Iterate
from dboost.problem.problem import Problem

Array = NDArray[np.float64]

# Steps evaluated in a pass.
_STEPS = 8
_PASSES = 60
# A Newton step from a slope this small, relative to that at the start, is exact but for rounding.
_SMALL = 1e-7
# An interval this short, relative to the step, leaves the root of its cubic exact but for rounding.
_NARROW = 1e-3


def margins(partition: Partition, memo: Any, held: Held, W: Array, intercept: Array) -> Array:
    """Scores (m,) of one output, formed column by column."""
    block, places = held.block(partition, memo)
    f = np.full(partition.n_rows, intercept[0])
    one_output.add_columns(block.indptr, block.rows, block.values, places, np.ascontiguousarray(W[:, 0]), f)
    return f


def line_sums(partition: Partition, memo: Any, point: Point, D: Array, d: Array, steps: Array) -> Sums:
    """L at (W + t D, b + t d), with its first and second derivative in t, for every t in `steps`.

    At a step where the loss overflows, value and slope are infinite, which is what a search needs to know of it.
    """
    f = margins(partition, memo, point.held, point.W, point.intercept)
    h = margins(partition, memo, point.held, D, d)
    loss, weight = get_loss(point.loss), partition.weight
    target = loss.target(partition.y)
    u, curvature = np.empty_like(f), np.empty_like(f)
    found = np.zeros((3, steps.shape[0]))
    with np.errstate(over="ignore"):
        for place, t in enumerate(steps.tolist()):
            value = float(loss_of_rows.single_state(target, f + t * h, weight, u, curvature))
            found[:, place] = value, -(u * h).sum(), (curvature * h * h).sum()
    return Sums(add={"value": found[0], "slope": found[1], "curvature": found[2]})


@dataclass(frozen=True)
class Direction:
    """A half-line of models, and what is minimised along it: L + linear * t for 0 <= t <= limit.

    `D`, `d`, (a, 1): change of W and of the intercept per unit of t.
    """

    D: Array
    d: Array
    slope: float  # Derivative at t = 0, below zero, in units of one.
    linear: float
    limit: float  # Finite.


@dataclass(frozen=True)
class _End:
    """A step with the derivative there, and the curvature where it is known."""

    t: float
    slope: float
    curvature: float = math.nan


def minimise(problem: Problem, iterate: Iterate, along: Direction, guess: float) -> float:
    """The minimiser t along a direction, but for rounding; two or three passes, more from a poor guess.

    A pass narrows the interval in which the slope changes its sign. Slope and curvature at both ends make a cubic,
    whose root is off by the fourth power of the interval's length.

    `guess`: a step of the right size.
    """
    low, high = _End(0.0, along.slope), _End(math.inf, math.inf)
    trial = guess * 2.0 ** np.arange(-2.0, _STEPS - 2.0)
    for _ in range(_PASSES):
        steps = np.unique(np.clip(trial, 0.0, min(high.t, along.limit)))
        steps = steps[(steps > low.t) & (steps < high.t)]
        if not steps.shape[0]:
            break
        sums = problem.own_pass(line_sums, iterate, along.D, along.d, steps, name="line")
        slopes, curvature = sums.add["slope"] + along.linear, sums.add["curvature"]
        falling = int(np.count_nonzero(slopes < 0.0))
        if falling:
            low = _End(*(float(array[falling - 1]) for array in (steps, slopes, curvature)))
        if falling < steps.shape[0]:
            high = _End(*(float(array[falling]) for array in (steps, slopes, curvature)))
        if low.t >= along.limit:
            return along.limit
        for end in (low, high):
            if abs(end.slope) <= _SMALL * abs(along.slope) and end.curvature > 0.0:
                return min(max(end.t - end.slope / end.curvature, low.t), high.t, along.limit)
        if math.isinf(high.t):
            # the curvature may vanish faster than the slope: doubling finds the other end, or the limit
            trial = low.t * 2.0 ** np.arange(1.0, _STEPS + 1.0)
            continue
        root, width = _root(low, high), high.t - low.t
        if width <= _NARROW * high.t:
            return root
        around = root + width * np.array([-3e-2, -3e-3, -3e-4, 3e-4, 3e-3, 3e-2])
        trial = np.concatenate([around, low.t + width * np.array([0.25, 0.75])])
    return low.t if math.isinf(high.t) else _root(low, high)


def _root(low: _End, high: _End) -> float:
    """Root of the cubic with the slopes and curvatures of both ends; the middle where they are not known."""
    width = high.t - low.t
    known = (low.slope, low.curvature, high.slope, high.curvature)
    if not all(math.isfinite(number) for number in known):
        return low.t + 0.5 * width
    left, right = 0.0, 1.0
    # sixty halvings are to rounding, whatever the cubic looks like
    for _ in range(60):
        x = 0.5 * (left + right)
        y = 1.0 - x
        value = (
            y * y * (1.0 + 2.0 * x) * low.slope
            + x * x * (3.0 - 2.0 * x) * high.slope
            + width * x * y * (y * low.curvature - x * high.curvature)
        )
        if value < 0.0:
            left = x
        else:
            right = x
    return low.t + 0.5 * (left + right) * width
