"""Newton steps where the penalty is smooth: conjugate gradients with the curvature of all examples, and a line search.

No row vanishes on its own under ``l2_squared``, ``smooth_l1``, ``l2`` and without a penalty, so all rows move together
and there is no support to wait for. ``l2`` alone has a kink, at W = 0, which a step on the diagonal bound over all
rows leaves (docs/math.md 3).

The diagonal preconditions, until a solve takes more products than it would cost to form the curvature of every output
among the heaviest rows, which precondition from then on. Columns that pull on one another, as neighbouring pixels do,
need them: a solve of a hundred products then takes ten. A ridge of one output and few columns has all of its curvature
formed instead (``one_output.steps``), and comes here where such a step does not help.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dboost.problem.accelerators import Accelerators
from dboost.problem.iterate import Iterate
from dboost.problem.memory import Memory
from dboost.problem.problem import Problem
from dboost.problem.tuning import AllRows
from dboost.solvers.conjugate.class_blocks import grams
from dboost.solvers.conjugate.preconditioner import HeavyRows, products_to_form
from dboost.solvers.conjugate.settled_support import conjugate_step
from dboost.solvers.line_search import LONG, line_search
from dboost.solvers.newton.accuracy import Aim
from dboost.solvers.row_updates import RowwiseSteps
from dboost.solvers.step import Step

Array = NDArray[np.float64]

_MAX_PRODUCTS = 100


class SmoothSteps:
    """Steps on all rows of a model at once.

    `memory`: what earlier steps left.
    `accelerators`: those that the fit may take.
    Attribute `memory`: what the next steps need to know, whether blocks precondition.
    """

    def __init__(self, problem: Problem, memory: Memory, accelerators: Accelerators) -> None:
        self.problem = problem
        self.memory = memory
        self.accelerators = accelerators
        self._blocks: HeavyRows | None = None

    def step(self, iterate: Iterate, lam: float, aim: Aim) -> tuple[Iterate, Step]:
        """Take one step; the objective of the result is never above that of `iterate`.

        `iterate`: the model with its sums.
        `lam`: strength of the penalty.
        `aim`: how far a ridge is solved for; these steps are worth their passes at any strength.
        """
        problem = self.problem
        value = problem.objective(iterate, lam)
        # rows without penalty are not zero where the others are, and take no part in the kink
        charged = problem.objective.columns.weight[iterate.active] > 0.0
        if problem.penalty.threshold and not iterate.W[charged].any():
            return self._bound(iterate, lam, value)
        (diagonal, times), products = problem.diagonal_and_products(iterate), 0

        def product(V: Array, v: Array) -> tuple[Array, Array]:
            nonlocal products
            products += 1
            return times(V, v)

        forming = Forming.of(problem, iterate, diagonal, self.accelerators.tuning.all_rows)
        if self.memory.wide and self._blocks is None and self.accelerators.take("heavy_blocks"):
            self._blocks = forming.blocks(problem, iterate)
        limit, blocks = _MAX_PRODUCTS, self._blocks
        W, d, slope = conjugate_step(
            problem, iterate, lam, diagonal, product, limit, value, blocks, gap=aim.gap * value
        )
        if products > forming.products:
            # the next step begins with blocks, or with those of its own model where these have aged
            self.memory, self._blocks = replace(self.memory, wide=True), None
        if not slope > 0.0:
            return iterate, Step("conjugate", 0.0, 0.0)
        # a Newton step gains half of what the gradient promises along it
        promised = 0.5 * slope
        found = line_search(problem, iterate, lam, W - iterate.W, d, promised, grid=LONG)
        if found is None:
            return iterate, Step("conjugate", 0.0, promised)
        return found[0], Step("conjugate", found[1], promised)

    def _bound(self, iterate: Iterate, lam: float, value: float) -> tuple[Iterate, Step]:
        """Minimise the diagonal bound over all rows plus the penalty: it leaves zero whenever zero is not optimal."""
        template = RowwiseSteps(self.problem, iterate.active, "template", np.random.default_rng(0))
        moved = template.sweep(iterate, lam)
        gain = value - self.problem.objective(moved, lam)
        return (moved, Step("bound", 1.0, gain)) if gain > 0.0 else (iterate, Step("bound", 0.0, 0.0))


@dataclass(frozen=True)
class Forming:
    """How the blocks of the heaviest rows would be formed, and what that costs."""

    rows: NDArray[np.int64]  # (t,): Places of the heaviest rows, ascending.
    every: int  # Of how many examples one is looked at.
    whole: bool  # Whether these are all rows.
    products: float  # How many products with the curvature cost as much.

    @classmethod
    def of(cls, problem: Problem, iterate: Iterate, diagonal: Array, sizes: AllRows) -> Forming:
        """For the rows of a model, whose curvature has this diagonal (a or a + 1, k), the intercept last."""
        a, k, m = iterate.active.shape[0], problem.k, problem.n_rows
        most = max(1, int(min((sizes.numbers / k) ** (1 / 2), (3.0 * sizes.factors / k) ** (1 / 3))))
        rows = np.arange(a) if most >= a else np.sort(np.argpartition(-diagonal[:a].sum(axis=1), most - 1)[:most])
        intercept = int(problem.fit_intercept)
        held, stored = (
            problem.statistics.values(some, m) / m + intercept for some in (iterate.active[rows], iterate.active)
        )
        t = rows.shape[0] + intercept
        pairs = max(0.5 * k * held**2, 1.0)
        every = max(1, int(m // max(sizes.work / pairs, sizes.examples * t)))
        return cls(rows, every, rows.shape[0] == a, products_to_form(t, held, m / every, m * stored))

    def blocks(self, problem: Problem, iterate: Iterate) -> HeavyRows:
        """Those of a model; one pass."""
        (gram,) = grams(problem, iterate, [self.rows], problem.fit_intercept, self.every)
        return HeavyRows(self.rows, gram, self.whole)
