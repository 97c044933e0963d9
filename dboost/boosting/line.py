"""Exact line search for one output: a few passes, each with value, slope and curvature at several step lengths.

Scores are linear in the step, so that a partition forms its margins once and evaluates them at all steps (math notes,
sections 0 and 7 I). Does not cover: which direction is searched (``coordinate``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.boosting.problem import Iterate, Problem
from dboost.compiled import fused, one_output, rows
from dboost.hypotheses.held import Held
from dboost.losses import get_loss
from dboost.partition import Partition, Sums
from dboost.passes import Point

Array = NDArray[np.float64]

# Steps evaluated in a pass.
_STEPS = 8
_PASSES = 60
# A Newton step from a slope this small, relative to that at the start, is exact but for rounding.
_SMALL = 1e-7


def margins(partition: Partition, memo: Any, held: Held, W: Array, intercept: Array) -> Array:
    """Scores (m,) of one output, formed column by column."""
    block, places = held.block(partition, memo)
    f = np.full(partition.n_rows, intercept[0])
    one_output.add_columns(block.indptr, block.rows, block.values, places, np.ascontiguousarray(W[:, 0]), f)
    return f


def line_sums(partition: Partition, memo: Any, point: Point, D: Array, d: Array, steps: Array) -> Sums:
    """L at (W + t D, b + t d), with its first and second derivative in t, for every t in `steps`.

    A loss that is ``shifted`` comes in units of its largest term at t = 0; at a step where it overflows, value and
    slope are infinite, which is what a search needs to know of it.
    """
    f = margins(partition, memo, point.held, point.W, point.intercept)
    h = margins(partition, memo, point.held, D, d)
    loss, weight = get_loss(point.loss), partition.weight
    target, shift = loss.target(partition.y), 0.0
    if loss.shifted:
        m = f.shape[0]
        one = np.arange(m + 1, dtype=np.int64), np.zeros(m, np.int32), f
        shift = fused.largest(*one, np.ones((1, 1)), np.zeros(1), target, weight)
        target = target._replace(shift=shift if shift > -np.inf else 0.0)
    u, curvature = np.empty_like(f), np.empty_like(f)
    found = np.zeros((3, steps.shape[0]))
    with np.errstate(over="ignore"):
        for place, t in enumerate(steps.tolist()):
            value = float(rows.single_state(target, f + t * h, weight, u, curvature))
            found[:, place] = value, -(u * h).sum(), (curvature * h * h).sum()
    return Sums(add={"value": found[0], "slope": found[1], "curvature": found[2]}, shift=shift)


@dataclass(frozen=True)
class Direction:
    """A half-line of models, and what is minimised along it: L + linear * t for 0 <= t <= limit.

    Parameters
    ----------
    D, d : float64 arrays, shape (a, 1) and (1,)
        Change of W and of the intercept per unit of t.
    slope : float
        Derivative at t = 0, below zero, in units of one.
    linear : float
    limit : float
        Finite.
    """

    D: Array
    d: Array
    slope: float
    linear: float
    limit: float


def minimise(problem: Problem, at: Iterate, along: Direction, guess: float) -> float:
    """The minimiser t along a direction, but for rounding.

    Parameters
    ----------
    guess : float
        A step of the right size.
    """
    low, high = 0.0, math.inf
    trial = guess * 2.0 ** np.arange(-2.0, _STEPS - 2.0)
    step = low
    for _ in range(_PASSES):
        steps = np.unique(np.clip(trial, 0.0, min(high, along.limit)))
        steps = steps[steps > low]
        if not steps.shape[0]:
            return step
        sums = problem.own_pass(line_sums, at, along.D, along.d, steps, name="line")
        unit = math.exp(min(sums.shift, 700.0)) if sums.shift else 1.0
        slopes = sums.add["slope"] * unit + along.linear
        curvature = sums.add["curvature"] * unit
        falling = slopes < 0.0
        if falling.any():
            low = float(steps[falling][-1])
        if not falling.all():
            high = float(steps[~falling][0])
        if low >= along.limit:
            return along.limit
        finite = np.where(np.isfinite(slopes) & (curvature > 0.0), np.abs(slopes), np.inf)
        nearest = int(np.argmin(finite))
        if not math.isfinite(finite[nearest]):
            trial = low + (min(high, along.limit) - low) * np.linspace(0.0, 1.0, _STEPS + 2)[1:-1]
            continue
        tried = float(steps[nearest])
        newton = tried - float(slopes[nearest] / curvature[nearest])
        step = min(max(newton, low), high, along.limit)
        if finite[nearest] <= _SMALL * abs(along.slope) or high - low <= 4.0 * np.spacing(high):
            return step
        if math.isinf(high):
            # the curvature may vanish faster than the slope: doubling finds the other end, or the limit
            trial = low * 2.0 ** np.arange(1.0, _STEPS + 1.0)
            continue
        width = min(abs(newton - tried), high - low)
        around = step + width * np.array([-0.1, -0.01, 0.0, 0.01, 0.1])
        trial = np.concatenate([around, low + (high - low) * np.array([0.25, 0.5, 0.75])])
        trial = trial[(trial > low) & (trial < high)]
    return step
