"""Back from a model whose loss is no number, or far above that of no model: warm starts far from any optimum."""

from __future__ import annotations

import math

import numpy as np

from dboost.problem.iterate import Iterate
from dboost.problem.problem import Problem
from dboost.solvers.row_updates import RowwiseSteps

_SWEEPS = 20
# The loss over that of the null model from which a model is no start.
_LOST = 1e3
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
    return on_the_way(problem, at, lam)


def lost(problem: Problem, at: Iterate, null: Iterate) -> bool:
    """Whether a model is so much worse than none that steps from it would not find back.

    A loss that grows like e^f has a curvature as large as itself there, so that a Newton step lowers f by about one.
    What comes in units of its own finds back by itself (`brought_back`).
    """
    grows = not (math.isfinite(problem.loss.kappa) or problem.loss.shifted)
    return grows and at.active.size > 0 and not at.loss <= _LOST * null.loss


def on_the_way(problem: Problem, at: Iterate, lam: float) -> Iterate:
    """The best of some models between one and the null model, whose loss is a number."""
    null = problem.null()
    D, d = -at.W, null.intercept - at.intercept
    # the rows of the null model are those without penalty, which every model holds
    D[np.isin(at.active, null.active)] += null.W
    values = problem.losses_along(at, D, d, _STEPS)
    values += [problem.objective.penalty_value(at.active, at.W + t * D, lam) for t in _STEPS]
    t = float(_STEPS[int(np.argmin(values))])
    return problem.evaluate(at.active, at.W + t * D, at.intercept + t * d)
