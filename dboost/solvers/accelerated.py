"""Nesterov's accelerated gradient method for the fully corrective step: the way in which ShareBoost's paper solves it.

Shalev-Shwartz, Wexler & Shashua (2011), section 2.1, name the method for step 6 and leave its constants open. Here the
objective P is bounded at a point y, in the metric M of the columns' lengths (an entry of row j has M_j = S_j, the
intercept the sum of the example weights), by

    P(y + d) <= P(y) + <grad P(y), d> + (B / 2) <d, M d>,                                               (a)

whose minimiser d = -grad P(y) / (B M) is the step. B is doubled until (a) holds. The momentum is that of docs/math.md
8 (iii), and starts anew where the objective would rise, so that it never does.

Does not cover: Newton's method for the same minimum, which needs fewer passes (``dboost.solvers.corrective``).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dboost.problem.iterate import Iterate
from dboost.problem.limits import UNLIMITED, Limits
from dboost.problem.problem import Problem
from dboost.solvers.corrective import CorrectedModel, Free, left_over, residual

Array = NDArray[np.float64]

# Steps of one call: on features that separate the classes there is no minimum without a penalty, and no other end. What
# is left of the gradient then is in the record of the round.
MAX_STEPS = 5000
# Share of the largest curvature of an example at which the search for B begins: B is at most the number of columns
# times that curvature, and at least a share that only a search can tell.
_FIRST = 0.125
_DOUBLINGS = 60
# Relative error of the sums of an objective: (a) is believed where it fails by no more.
_ROUNDING = 1e-13


def solve_accelerated(
    problem: Problem, iterate: Iterate, lam: float, free: Free, tol: float, limits: Limits = UNLIMITED
) -> CorrectedModel:
    """Minimise loss plus penalty over the free rows; parameters and result as for ``corrective.solve``.

    A step is two passes, and one more for each doubling of B.
    """
    inverse = 1.0 / np.where(free.scale > 0.0, free.scale, 1.0) ** 2
    metric = inverse[:, None], 1.0 / problem.statistics.weight
    value, rest = problem.objective(iterate, lam), left_over(problem, iterate, lam, free)
    bend, momentum, steps = _FIRST * problem.loss.kappa, 1.0, 0
    ahead, cut, length = iterate, False, 0.0
    while steps < MAX_STEPS and rest > tol:
        if limits.reason(problem.passes):
            cut = True
            break
        found = _step(problem, ahead, lam, free, metric, bend)
        if found is None:
            break
        new, after, bend = found
        steps += 1
        if after > value or (ahead is iterate and not after < value):
            if ahead is iterate:
                # a step without momentum falls but for rounding: there is nothing left to gain
                break
            ahead, momentum = iterate, 1.0
            continue
        then = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * momentum * momentum))
        share = (momentum - 1.0) / then
        before, iterate, value, momentum, length = iterate, new, after, then, 1.0 / bend
        rest = left_over(problem, iterate, lam, free)
        ahead = iterate
        if share > 0.0 and rest > tol:
            W = iterate.W + share * (iterate.W - before.W)
            ahead = problem.evaluate(
                iterate.active, W, iterate.intercept + share * (iterate.intercept - before.intercept)
            )
    return CorrectedModel(iterate, steps, rest, length, cut)


def _step(
    problem: Problem, y: Iterate, lam: float, free: Free, inverse: tuple[Array, float], bend: float
) -> tuple[Iterate, float, float] | None:
    """The minimiser of (a) from y, the objective there, and B; None where no B is large enough, which is rounding."""
    value = problem.objective(y, lam)
    R, r = residual(problem, y, lam, free)
    promised = 0.5 * float(np.sum(R * R * inverse[0]) + np.sum(r * r) * inverse[1])
    for _ in range(_DOUBLINGS):
        D, d = R * inverse[0] / bend, r * inverse[1] / bend
        new = problem.evaluate(y.active, y.W + D, y.intercept + d)
        after = problem.objective(new, lam)
        if after <= value - promised / bend + _ROUNDING * abs(value):
            return new, after, bend
        bend *= 2.0
    return None
