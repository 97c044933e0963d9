"""Back from a model whose loss is no number: warm starts of the exponential loss far from any optimum."""

from __future__ import annotations

import numpy as np

from dboost.problem.iterate import Iterate
from dboost.problem.problem import Problem
from dboost.solvers.row_updates import RowwiseSteps

_SWEEPS = 20
_STEPS = np.array([0.5, 0.75, 0.9, 0.97, 0.99, 1.0])


def brought_back(problem: Problem, at: Iterate, lam: float, seed: int) -> Iterate:
    """A model whose loss is a number, from one whose loss is too large for one; the objective falls.

    Steps on the exponential bound, solved in logarithms. If they do not suffice, the best of some points on the way
    to the null model, the last of them: the objective is convex and the null model's is a number.
    """
    steps = RowwiseSteps(problem, at.active, "template", np.random.default_rng(seed))
    for _ in range(_SWEEPS):
        at = steps.sweep(at, lam)
        if at.shift == 0.0:
            return at
    D, d = -at.W, problem.null().intercept - at.intercept
    values = problem.losses_along(at, D, d, _STEPS)
    values += [problem.penalty_value(at.active, at.W + t * D, lam) for t in _STEPS]
    t = float(_STEPS[int(np.argmin(values))])
    return problem.evaluate(at.active, at.W + t * D, at.intercept + t * d)
