"""Newton steps where the penalty is smooth: conjugate gradients with the curvature of all examples, and a line search.

No row vanishes on its own under ``l2_squared``, ``smooth_l1``, ``l2`` and without a penalty, so all rows move together
and there is no support to wait for. ``l2`` alone has a kink, at W = 0, which a step on the diagonal bound over all
rows leaves (docs/math.md 3).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dboost import passes
from dboost.problem.iterate import Iterate
from dboost.problem.memory import Memory
from dboost.problem.problem import Problem
from dboost.solvers.conjugate.settled_support import conjugate_step
from dboost.solvers.line_search import LONG, line_search
from dboost.solvers.newton.accuracy import Aim
from dboost.solvers.row_updates import RowwiseSteps
from dboost.solvers.step import Step

Array = NDArray[np.float64]

_MAX_PRODUCTS = 100


class SmoothSteps:
    """Steps on all rows of a model at once.

    Parameters
    ----------
    problem : Problem
        The problem.
    memory : Memory
        What earlier steps left; kept as it is.
    """

    def __init__(self, problem: Problem, memory: Memory) -> None:
        self.problem = problem
        self.memory = memory

    def step(self, at: Iterate, lam: float, aim: Aim) -> tuple[Iterate, Step]:
        """Take one step; the objective of the result is never above that of `at`.

        Parameters
        ----------
        at : Iterate
            The model with its sums.
        lam : float
            Strength of the penalty.
        aim : Aim
            Not needed: these steps are worth their passes at any strength.
        """
        problem = self.problem
        value = problem.objective(at, lam)
        if problem.penalty.threshold and not at.W.any():
            return self._bound(at, lam, value)
        strength = lam * problem.lam_weight[at.active]
        sums = problem.own_pass(passes.curvature_diagonal, at, problem.fit_intercept, name="diagonal")
        diagonal = sums.add["diagonal"]
        product = problem.curvature_at(at)
        W, d, slope = conjugate_step(problem, at, strength, diagonal, product, _MAX_PRODUCTS, value)
        if not slope > 0.0:
            return at, Step("conjugate", 0.0, 0.0)
        # a Newton step gains half of what the gradient promises along it
        promised = 0.5 * slope
        found = line_search(problem, at, lam, W - at.W, d, promised, grid=LONG)
        if found is None:
            return at, Step("conjugate", 0.0, promised)
        return found[0], Step("conjugate", found[1], promised)

    def _bound(self, at: Iterate, lam: float, value: float) -> tuple[Iterate, Step]:
        """Minimise the diagonal bound over all rows plus the penalty: it leaves zero whenever zero is not optimal."""
        template = RowwiseSteps(self.problem, at.active, "template", np.random.default_rng(0))
        moved = template.sweep(at, lam)
        gain = value - self.problem.objective(moved, lam)
        return (moved, Step("bound", 1.0, gain)) if gain > 0.0 else (at, Step("bound", 0.0, 0.0))
