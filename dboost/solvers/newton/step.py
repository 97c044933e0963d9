"""The Newton step: a block of rows at once, with the exact curvature of the loss.

One step minimises, over the rows A and the intercept,

    -<G, D> + 1/2 sum_i z_i' H_i z_i + sum_j lam_j omega(W_j + D_j),     z = X_A D,

by block descent on the driver, row by row, on all examples or a random sample of them, and is accepted only if the
objective falls (docs/math.md 8; the step grid spends one more pass when the full step fails). Once the support has
settled the penalty is smooth along it, and conjugate gradients with the curvature of all examples take over. If no step
of the model helps, an upper bound of the loss is minimised instead, which cannot fail: that of all rows at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dboost.compiled.examples import fused
from dboost.compiled.solves import descent
from dboost.first_compile import beside
from dboost.penalties.capabilities import compiled_prox
from dboost.problem.accelerators import Accelerators
from dboost.problem.iterate import Iterate
from dboost.problem.memory import Memory
from dboost.problem.problem import Problem
from dboost.problem.sample import Part, Sample, share_for, share_held
from dboost.solvers.conjugate.entry_blocks import EntryBlocks
from dboost.solvers.conjugate.preconditioner import HeavyRows, Preconditioner
from dboost.solvers.conjugate.settled_support import Product, conjugate_step
from dboost.solvers.line_search import SHORT, line_search
from dboost.solvers.newton.accuracy import RESIDUAL, Aim
from dboost.solvers.newton.damping import growth
from dboost.solvers.row_updates import RowwiseSteps
from dboost.solvers.step import Step

Array = NDArray[np.float64]

_MAX_SWEEPS = 50
# Where conjugate gradients can follow, a long descent is better broken off; with one output a sweep is cheap.
_FEW_SWEEPS = 8
# A step gains slowly if it promises more than this share of what the last one of its kind did.
_FALL = 0.25
_MOST_PRODUCTS = 60
# So many are worth it near the end, where the step they lead to is the whole of what is left.
_NEAR_PRODUCTS = 30
_NEAR = 1e-2
# Bytes of curvatures beyond which a descent, which goes through them by column, costs more than such a solve.
_CACHE = 8_000_000
_LONGEST_WAIT = 8
_LONG = 0.5
# Of so many times as many examples a sample is drawn once a step on one was cut short where the loss of all examples
# bends so many times as much as that of the sample: 9 to 18 times where the sample lacks whole columns (pixels of the
# border), 2 to 3 in a first step of text, where more examples gain nothing and take 1.4 times as long (2026-11).
_MORE = 4.0
_MISLED = 5.0
_SETTLED_SHARE = 0.1
# Values, each for all outputs, up to which a product costs less than a step of descent.
_LIGHT = 1_000_000
# Curvatures of the examples up to which products are formed in float64, and solved for as usual: so few are often
# nearly singular, and closer solves would tell how weights round.
_EXACT = 100_000


class NewtonSteps:
    """Newton steps on a fixed set of rows.

    `active`: the rows A.
    `sample`: share of the examples whose curvature the block descent uses; "auto" chooses by size.
    `seed`: seed of the samples and of the order of the blocks.
    `memory`: what earlier steps left.
    `accelerators`: those that the fit may take; without any a step is a descent over all rows with the curvature of all
    examples, or, where that does not help, one-row updates.
    `gap`: relative gap of the model that is moved; infinite where it is not known.
    Attribute `sample`: the examples that were drawn.
    """

    def __init__(
        self,
        problem: Problem,
        active: NDArray[np.int64],
        sample: str | float,
        seed: int,
        memory: Memory,
        accelerators: Accelerators,
        gap: float = math.inf,
    ) -> None:
        self.problem = problem
        self.seed = seed
        self.memory = memory
        self.accelerators = accelerators
        self._products = _NEAR_PRODUCTS if gap <= _NEAR else 0
        self._heavy: HeavyRows | None = None
        self._costly = problem.statistics.values(active, problem.n_rows) * problem.k > _LIGHT
        self._active, self._asked, self._gap = active, sample, gap
        self.sample = self._drawn()

    def _drawn(self) -> Sample:
        """A sample, or all examples; one pass."""
        self._drawn_for = self.memory.misled
        return Sample.drawn(self.problem, self._active, self._share(), self._seed(), self.accelerators.tuning.samples)

    def _share(self) -> float:
        """Share of the examples that are drawn; as many as the driver holds where it is not to be less than all."""
        if self._asked != "auto":
            return float(self._asked)
        if not self.accelerators.on("sampled_curvature"):
            return share_held(self.problem)
        sizes = self.accelerators.tuning.samples
        share = share_for(self.problem, self._active, self._gap, sizes) * _MORE**self.memory.misled
        share = min(share, share_held(self.problem)) if share < sizes.mostly else share_held(self.problem)
        if share < 1.0:
            self.accelerators.take("sampled_curvature")
        return share

    def _seed(self) -> int:
        self.memory = replace(self.memory, draws=self.memory.draws + 1)
        return self.seed * 1_000_003 + self.memory.draws

    def step(self, iterate: Iterate, lam: float, aim: Aim) -> tuple[Iterate, Step]:
        """Take one step; the objective of the result is never above that of `iterate`.

        `iterate`: the model with its sums.
        `lam`: strength of the penalty.
        `aim`: what the step is for.
        """
        if self.memory.misled > self._drawn_for:
            self.sample = self._drawn()
        h, rank_one, diagonal = self.sample.curvature(self.problem, iterate)
        value = self.problem.objective(iterate, lam)
        memory = self.memory
        descends = (aim.near(self.sample.whole) or memory.falling) and h.nbytes <= _CACHE
        solves = self.accelerators.on("conjugate_gradients") and not descends
        if solves and memory.settled and memory.wait == 0 and self._few_enter(iterate, lam):
            rest = RESIDUAL if self.sample.whole and h.size <= _EXACT else aim.residual
            moved = self._conjugate(iterate, lam, h, rank_one, diagonal, rest)
            # a step that had to be cut short says no more than one that was refused: signs or ties change on the way
            refused = 0 if moved is not None and moved[1].length >= _LONG else memory.refused + 1
            self.memory = replace(self.memory, settled=False, refused=refused, wait=_wait(refused))
            if moved is not None:
                promised = moved[1].promised
                stalls = promised > _FALL * memory.promised > 0.0 and not refused
                products = min(2 * memory.products, _MOST_PRODUCTS) if stalls else memory.products
                self.memory = replace(self.memory, products=products, promised=promised, descended=0.0, falling=False)
                return moved
        D, d = self._descend(iterate, lam, h, rank_one, diagonal, aim)
        result, step = self._accept(iterate, lam, D, d, value)
        after = _support(result.W)
        changed = np.count_nonzero(_support(iterate.W) != after)
        settled = bool(step.length == 1.0 and changed <= _SETTLED_SHARE * max(1, int(np.count_nonzero(after))))
        gains = memory.descended == 0.0 or step.promised <= _FALL * memory.descended
        self.memory = replace(
            self.memory,
            settled=settled,
            wait=max(0, self.memory.wait - 1),
            descended=step.promised,
            falling=gains and self._costly and not self.sample.whole,
            misled=memory.misled + int(self._misled(iterate, h, rank_one, D, d, result, step)),
        )
        return result, step

    def _misled(
        self,
        iterate: Iterate,
        h: NDArray[np.float32],
        rank_one: Array,
        D: Array,
        d: Array,
        result: Iterate,
        step: Step,
    ) -> bool:
        """Whether a step of descent was cut short because the sample lacks curvature, and there is more to draw.

        A step far from the optimum may also be cut short by a loss that is no quadratic. What the loss bends by over
        the part that was taken, all examples tell; the sample has its own number for it.
        """
        if self._asked != "auto" or self.sample.share >= share_held(self.problem) or step.promised <= 0.0:
            return False
        if step.kind == "template":
            return True
        if step.length >= _LONG:
            return False
        t = step.length
        bent = result.loss - iterate.loss + t * (float(np.sum(iterate.G * D)) + float(iterate.bias @ d))
        V, v = self._sampled_product(iterate, h, rank_one)(D, d)
        return bent > _MISLED * 0.5 * t * t * (float(np.sum(D * V)) + float(d @ v))

    def _few_enter(self, iterate: Iterate, lam: float) -> bool:
        """Whether few rows at zero are to leave it, which conjugate gradients would keep there."""
        problem, support = self.problem, _support(iterate.W)
        zero = iterate.rows(np.flatnonzero(~support))
        leaving = problem.objective.bound(zero.active, lam).leaves_zero(zero.G)
        return int(np.count_nonzero(leaving)) <= _SETTLED_SHARE * max(1, int(np.count_nonzero(support)))

    def _damping(self, iterate: Iterate, lam: float, diagonal: Array) -> Array:
        """Curvature to add to the model of every entry: what the sample lacks, and what keeps a step from overshooting.

        A feature of few examples may have none of them in the sample: its model would be flat and its step unbounded.
        """
        if self.sample.whole:
            return growth(self.problem, iterate, lam, diagonal) + 1e-9 * diagonal
        full = self.sample.of_all(diagonal, self.problem.statistics.square[iterate.active])
        return growth(self.problem, iterate, lam, full) + np.maximum(full - diagonal, 0.0) + 1e-3 * full

    def _descend(
        self, iterate: Iterate, lam: float, h: NDArray[np.float32], rank_one: Array, diagonal: Array, aim: Aim
    ) -> tuple[Array, Array]:
        G, W, bound = self.problem.objective.with_intercept(iterate, lam)
        followed = self.problem.k > 1 and self.accelerators.on("conjugate_gradients")
        most = _FEW_SWEEPS if followed else _MAX_SWEEPS
        settle = aim.whole if self.sample.whole else aim.sampled
        damping = self._damping(iterate, lam, diagonal)
        D = np.zeros_like(W)
        model = (*self.sample.by_column, h, rank_one, G, W, bound.strength, diagonal, damping)
        beside.wait_for(descent._newton_descent)
        descent.newton_descent(*model, *compiled_prox(self.problem.penalty), most, self._seed(), D, settle, bound.signs)
        return self.problem.objective.split_intercept(D)

    def _promised(self, iterate: Iterate, lam: float, D: Array, d: Array) -> float:
        """Decrease of the linearised loss plus penalty along (D, d)."""
        bound = self.problem.objective.bound(iterate.active, lam)
        # row by row, so that near the optimum the promise is not lost in the difference of two large sums
        rows = np.sum(iterate.G * D, axis=1) + bound.strength * (bound.value(iterate.W) - bound.value(iterate.W + D))
        return max(0.0, float(np.sum(rows) + iterate.bias @ d))

    def _accept(self, iterate: Iterate, lam: float, D: Array, d: Array, value: float) -> tuple[Iterate, Step]:
        problem = self.problem
        if not (D.any() or d.any()):
            return iterate, Step("descent", 0.0, 0.0)
        promised = self._promised(iterate, lam, D, d)
        found = line_search(problem, iterate, lam, D, d, promised, grid=SHORT)
        if found is not None:
            return found[0], Step("descent", found[1], promised)
        # a step on an upper bound of the loss cannot raise the objective
        moved = RowwiseSteps(problem, iterate.active, "template", np.random.default_rng(self.seed)).sweep(iterate, lam)
        if problem.objective(moved, lam) < value:
            return moved, Step("template", 1.0, promised)
        return iterate, Step("template", 0.0, promised)

    def _conjugate(
        self, iterate: Iterate, lam: float, h: NDArray[np.float32], rank_one: Array, diagonal: Array, rest: float
    ) -> tuple[Iterate, Step] | None:
        problem = self.problem
        times = self._sampled_product(iterate, h, rank_one) if self.sample.whole else problem.curvature_at(iterate)

        def product(V: Array, v: Array) -> tuple[Array, Array]:
            self.accelerators.take("conjugate_gradients")
            return times(V, v)

        blocks, wider = self._blocks(iterate, h, rank_one, diagonal)
        limit = max(self.memory.products, self._products)
        W, d, promised = conjugate_step(problem, iterate, lam, diagonal, product, limit, None, blocks, wider, rest)
        if promised > 0.0:
            found = line_search(problem, iterate, lam, W - iterate.W, d, promised, grid=SHORT)
            if found is not None:
                return found[0], Step("conjugate", found[1], promised)
        return None

    def _blocks(
        self, iterate: Iterate, h: NDArray[np.float32], rank_one: Array, diagonal: Array
    ) -> tuple[Preconditioner | None, Callable[[], Preconditioner] | None]:
        """What preconditions conjugate gradients beside the diagonal, and what to go on with where they get nowhere."""
        by_row, intercept, each = self.sample.by_row, self.problem.fit_intercept, self.problem.engine.on_driver
        sizes = self.accelerators.tuning.blocks
        if not self.accelerators.take("heavy_blocks"):
            return None, None

        stored = self.problem.statistics.values(iterate.active, self.problem.n_rows)
        several = self.problem.k > 1 and self.problem.n_rows * self.problem.k > _EXACT
        if several and self.problem.penalty.entries is not None:
            # MNIST and arXiv abstracts of 172 classes under l1, to 1e-6, take half of the time that they take with
            # blocks of rows at 0.1 and 0.05 of the largest strength, and the same at 0.02 (2026-11); fewer numbers than
            # these were not measured, and keep what they had
            return EntryBlocks(by_row, h, rank_one, diagonal, intercept, stored, sizes), None

        def heavy() -> HeavyRows:
            many = stored if self.memory.wide else None
            return HeavyRows.of(by_row, h, rank_one, diagonal, intercept, many, each, sizes)

        def wider() -> HeavyRows:
            self.memory = replace(self.memory, wide=True)
            self._heavy = heavy()
            return self._heavy

        if self._heavy is None:
            # once for a set of rows, like the diagonal: it preconditions, nothing more
            self._heavy = heavy()
        return self._heavy, None if self.memory.wide or self._heavy.whole else wider

    def _sampled_product(self, iterate: Iterate, h: NDArray[np.floating], rank_one: Array) -> Product:
        """Products with the Hessian without a pass: the driver holds every example."""
        if h.size <= _EXACT:
            # so little that float64 costs nothing, and a fit does not depend on how weights round
            h = h.astype(np.float64)

        def product(V: Array, v: Array) -> tuple[Array, Array]:
            def of_part(part: Part) -> tuple[Array, Array]:
                out, total, some = np.zeros_like(V), np.zeros_like(v), part.examples
                fused.hessian_product(*part.by_row, h[some], rank_one[some], V, v, out, total)
                return out, total

            first, *others = self.problem.engine.on_driver(of_part, self.sample.parts)
            for out, total in others:
                first = first[0] + out, first[1] + total
            return first

        return product


def _wait(refused: int) -> int:
    """Steps of descent before the next of a kind of which so many in a row were refused, or cut short."""
    return min(2**refused, _LONGEST_WAIT) if refused else 0


def _support(W: Array) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = np.any(W != 0.0, axis=1)
    return found
