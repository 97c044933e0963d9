"""The weights of the hypotheses in U, all solved anew within the budget: Newton's method, a pass for each point.

    min J(al, b)  over al >= 0, sum al <= r, with J = L, or log L for the exponential loss, and b the intercept where
    it is free

Each step minimises the exact second-order model of J within the budget (``simplex``); a free intercept is eliminated
from it. All is in units of J's derivative: 1 for log L, and sum_i |U_i| for L, so that what would be edges are edges.
Does not cover: which hypotheses are in U (``ensemble``), or what the result certifies (``rounds``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dboost.boosting.adaboost_l1.ensemble import Ensemble, moments
from dboost.boosting.adaboost_l1.simplex import minimise_quadratic
from dboost.problem.iterate import Iterate
from dboost.problem.limits import Limits
from dboost.problem.problem import Problem

Array = NDArray[np.float64]

# The re-solve ends at this Frank-Wolfe gap over U, a share of L, or at what edges are rounded by times the budget.
_SOLVED = 1e-10
_ROUNDING = 1e-14
_MAX_STEPS = 100
_ENOUGH = 1e-4
_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class Solved:
    """The minimum within the budget."""

    weights: Array  # (u,): al, of a hypothesis and its negative at most one positive.
    intercept: float  # B where it is free; 0 where the constant is a hypothesis like others.
    margin: float  # Least normalised margin; NaN where labels are numbers.
    least: float  # Least positive weight s_i.
    pulls: float  # Sum_i |U_i|.


def pulls_at(problem: Problem, active: NDArray[np.int64], W: Array, intercept: Array) -> float:
    """sum_i |U_i| at a model; one pass."""
    at = Iterate.unsummed(active, W, intercept)
    return float(problem.own_pass(moments, at, name="resolve").add["units"].numbers["pulls"])


def solved(
    problem: Problem, chosen: Ensemble, start: Array, intercept: float | None, budget: float, limits: Limits
) -> Solved:
    """The best weights of the hypotheses of an ensemble within the budget.

    Parameters
    ----------
    start : float64 array, shape (u,)
        Weights within the budget.
    intercept : float or None
        Where a free intercept starts; None where there is none.
    """
    free = intercept is not None
    z, b = start, 0.0 if intercept is None else intercept
    now = _reached(problem, chosen, z, b)
    for _ in range(_MAX_STEPS):
        gap = budget * max(float(now.e.max(initial=0.0)), 0.0) - float((now.e * z).sum())
        tied = not free or abs(now.bias) <= _SOLVED
        if (tied and gap * now.share <= max(_SOLVED, _ROUNDING * budget * now.share)) or limits.reason(problem.passes):
            break
        e, H = now.e, now.H
        if free:
            e, H = e - now.across * (now.bias / now.along), H - now.across[:, None] * now.across / now.along
        # a quadratic of which the largest curvature is one, whatever the labels are measured in
        size = 1.0 if problem.loss.exponential else 1.0 / max(float(H.diagonal().max(initial=0.0)), _TINY)
        trial = size * minimise_quadratic(-e, size * H, z / size, budget / size)
        move = trial - z
        lift = (now.bias - float((now.across * move).sum())) / now.along if free else 0.0
        promised = float((now.e * move).sum()) + (now.bias * lift if free else 0.0)
        if not promised > 0.0:
            break
        length, halved = 1.0, 0
        found = _reached(problem, chosen, trial, b + lift)
        while not found.value <= now.value - _ENOUGH * promised * length * now.unit and halved < 40:
            length, halved = 0.5 * length, halved + 1
            found = _reached(problem, chosen, z + length * move, b + length * lift)
        if not found.value < now.value:
            break
        z = trial if halved == 0 else z + length * move
        b, now = b + length * lift, found
    z = chosen.netted(z)
    total = float(z.sum())
    margin = -now.worst / total if total > 0.0 else 0.0
    margin = margin if math.isfinite(margin) else math.nan
    return Solved(z, b, margin, now.least, now.pulls)


@dataclass(frozen=True)
class _Reached:
    """What a pass says of weights: J, its unit and the share of L that is, edges and Hessian in that unit.

    `bias`, `across` and `along` are the edge of the constant, and its entries of the Hessian.
    """

    value: float
    unit: float
    share: float
    e: Array
    H: Array
    bias: float
    across: Array
    along: float
    worst: float
    least: float
    pulls: float


def _reached(problem: Problem, chosen: Ensemble, z: Array, b: float) -> _Reached:
    model = chosen.model(z)
    at = Iterate.unsummed(chosen.active, model[:-1, None], model[-1:] + b)
    found = problem.own_pass(moments, at, name="resolve")
    units, ends = found.add["units"], found.peak["ends"]
    sums = units.numbers
    loss, pulls = sums["loss"], float(sums["pulls"])
    logarithm = problem.loss.exponential
    # without any residual all edges are zero, whatever the unit is
    unit = loss if logarithm else pulls or 1.0
    G, H = sums["G"] / unit, sums["H"] / unit
    if logarithm:
        H = H - G[:, None] * G
    scale, place = chosen.scale, chosen.place
    return _Reached(
        value=units.shift + math.log(loss) if logarithm else loss,
        unit=1.0 if logarithm else unit,
        share=1.0 if logarithm else unit / max(loss, _TINY),
        e=scale * G[place],
        H=scale[:, None] * H[np.ix_(place, place)] * scale,
        bias=float(G[-1]),
        across=scale * H[place, -1],
        along=max(float(H[-1, -1]), _TINY),
        worst=float(ends[0]),
        least=-float(ends[1]),
        pulls=pulls,
    )
