"""How far a step goes along a direction: the whole of it, or the best of a grid of shorter ones."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dboost.problem.iterate import Iterate
from dboost.problem.problem import Problem

Array = NDArray[np.float64]

SHORT = np.array([0.5, 0.25, 0.1, 0.03, 0.01])
"""Shorter steps where another kind of step stands ready, should none of these do."""
LONG = np.append(SHORT, [1e-3, 1e-4, 1e-6])
"""Shorter steps where nothing else stands ready."""

_ARMIJO = 1e-4
_ROUNDING = 1e-14


def line_search(
    problem: Problem,
    iterate: Iterate,
    lam: float,
    D: Array,
    d: Array,
    promised: float,
    *,
    grid: Array,
    rounding: float = _ROUNDING,
) -> tuple[Iterate, float] | None:
    """Go from `iterate` along (D, d) where the objective falls by a share of what was promised.

    One pass where the whole step does; two more where a shorter one is needed.

    `iterate`: where to begin, with its sums.
    `lam`: strength of the penalty, sum form.
    `D`, (a, k): direction of the active rows.
    `d`, (k,): direction of the intercept.
    `promised`: fall of the objective that the direction promises.
    `grid`: lengths tried below 1, ``SHORT`` or ``LONG``.
    `rounding`: relative error of the sums of the objective: the whole step may seem to rise by it, as near the optimum
    a fall is lost in it.
    Returns the model and the length of the step; None where no length does.
    """
    value = problem.objective(iterate, lam)
    full = problem.evaluate(iterate.active, iterate.W + D, iterate.intercept + d)
    if problem.objective(full, lam) <= value - _ARMIJO * promised + rounding * abs(value):
        return full, 1.0
    values = problem.losses_along(iterate, D, d, grid)
    bound = problem.objective.bound(iterate.active, lam)
    values += [bound.total(iterate.W + t * D) for t in grid]
    best = int(np.argmin(values))
    t = float(grid[best])
    if values[best] <= value - _ARMIJO * t * promised:
        shorter = problem.evaluate(iterate.active, iterate.W + t * D, iterate.intercept + t * d)
        if problem.objective(shorter, lam) < value:
            return shorter, t
    return None
