"""Accelerated proximal gradient steps: no table of the curvature, and no bound of it needed.

They solve for groups of columns, and for signs under penalties that have no face with signs. At a point y with its sums
the loss is bounded, in a metric M that is the same for all columns of a group, by

    L(y + d) <= L(y) - <G, d> + (B / 2) <d, M d>,                                                       (a)

whose minimiser with the penalty is one prox for each group. M_j = w_j**2 max_{i in g} (sum s x_i**2 / w_i**2), without
groups sum s x_j**2, for the intercept the sum of the weights. B is doubled until (a) holds, which makes the step one
that cannot fail; twice the largest curvature of an example times the number of columns is enough. By convexity

    <G(y) - G(y + d), d> <= (B / 2) <d, M d>                                                            (b)

implies (a), and tells it where the values of (a) differ by less than their rounding. The momentum is that of
docs/math.md 8 (iii).

Covers: the steps, for every loss. Does not cover: Newton's, which need fewer passes (``solvers.formed``).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dboost.penalties.bound import BoundGroups, BoundPenalty
from dboost.problem.iterate import Iterate
from dboost.problem.problem import Problem
from dboost.solvers.step import Step

Array = NDArray[np.float64]

# Share of the largest curvature of an example at which the search for B begins.
_FIRST = 0.125
_DOUBLINGS = 60
# Steps without a gain after which a model is as good as rounding allows.
_IDLE_STEPS = 50
# Relative error of the sums of a loss: (a) is believed where it holds by more.
_ROUNDING = 1e-13


@dataclass(frozen=True)
class _Metric:
    """M of the rows (a, 1) and of the intercept, and the penalty of the rows held."""

    rows: Array
    intercept: float
    penalty: BoundPenalty


def solve(
    problem: Problem, iterate: Iterate, lam: float, most: int, ended: Callable[[Iterate, Step], bool]
) -> tuple[Iterate, Step]:
    """Steps from a model that has its sums and whole groups, until `ended` says so of one, or none moves.

    `lam`: strength of the penalty, sum form.
    `most`: steps at most.
    `ended`: asked of each model that is better than the one before.
    Returns the best model, whose objective is not above that of `iterate`, and the last step; its length is 0 where the
    model did not move at all.
    """
    metric = _metric(problem, iterate, lam)
    value, bend, momentum = problem.objective(iterate, lam), _FIRST * problem.objective.curvature_constant, 1.0
    ahead, step, idle = iterate, Step("proximal", 0.0, 0.0), 0
    for _ in range(most):
        found = _step(problem, ahead, metric, bend)
        if found is None:
            break
        new, bend = found
        after = problem.objective(new, lam)
        if after > value + _ROUNDING * abs(value):
            if ahead is iterate:
                break
            ahead, momentum = iterate, 1.0
            continue
        # near the optimum a step gains less than the rounding of the objective, but still moves towards it
        idle = 0 if after < value else idle + 1
        D, d = new.W - iterate.W, new.intercept - iterate.intercept
        if idle >= _IDLE_STEPS or not (D.any() or d.any()):
            break
        then = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * momentum * momentum))
        share, momentum = (momentum - 1.0) / then, then
        if (
            float(np.sum((ahead.W - new.W) * metric.rows * D))
            + metric.intercept * float((ahead.intercept - new.intercept) @ d)
            > 0.0
        ):
            # the momentum leads away from the minimum (O'Donoghue & Candes 2015)
            share, momentum = 0.0, 1.0
        iterate, step, value = new, Step("proximal", 1.0 / bend, value - after), min(value, after)
        if ended(iterate, step):
            break
        ahead = iterate
        if share > 0.0:
            ahead = problem.evaluate(iterate.active, iterate.W + share * D, iterate.intercept + share * d)
    return iterate, step


def _metric(problem: Problem, iterate: Iterate, lam: float) -> _Metric:
    bound, rows = problem.objective.bound(iterate.active, lam), problem.statistics.square[iterate.active]
    if isinstance(bound, BoundGroups):
        # a row without penalty is a group of its own, whatever its weight
        weights = np.where(bound.weight > 0.0, bound.weight, 1.0)
        largest = np.zeros(bound.count)
        np.maximum.at(largest, bound.place, rows / weights**2)
        rows = weights**2 * largest[bound.place]
    return _Metric(rows[:, None], problem.statistics.weight, bound)


def _step(problem: Problem, y: Iterate, metric: _Metric, bend: float) -> tuple[Iterate, float] | None:
    """The minimiser of (a) plus the penalty from y, and B; None where no B is large enough, which is rounding."""
    for _ in range(_DOUBLINGS):
        W = metric.penalty.solve_quadratic(y.W, y.G, bend * metric.rows[:, 0])
        D, d = W - y.W, y.bias / (bend * metric.intercept)
        if not problem.fit_intercept:
            d = np.zeros_like(d)
        new = problem.evaluate(y.active, W, y.intercept + d)
        square = float(np.sum(metric.rows * D * D)) + metric.intercept * float(d @ d)
        bound = y.loss - float(np.sum(y.G * D)) - float(y.bias @ d) + 0.5 * bend * square
        turned = float(np.sum((y.G - new.G) * D)) + float((y.bias - new.bias) @ d)
        closed = new.loss <= bound - _ROUNDING * abs(y.loss) or turned <= 0.5 * bend * square
        if closed and math.isfinite(new.loss):
            return new, bend
        bend *= 2.0
    return None
