"""Newton steps of several outputs on a model whose curvature is formed: for few rows of dense columns.

Where columns pull on one another, as measurements of the same thing do, sweeps over the data and conjugate gradients
solve the model of a step slowly. With a few hundred entries in all its curvature is a small table, formed in the time
of a few of their passes, on which it is solved as exactly as it is worth (docs/math.md 8).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dboost.compiled.solves import formed_curvature
from dboost.compiled.sparse import columns
from dboost.compiled.vectors.scaled_rows import width
from dboost.first_compile import beside
from dboost.penalties.capabilities import compiled_prox
from dboost.problem.iterate import Iterate
from dboost.problem.problem import Problem
from dboost.problem.sample import Sample
from dboost.problem.slices import equal_slices, parts_of
from dboost.solvers.conjugate.preconditioner import HeavyRows
from dboost.solvers.conjugate.settled_support import conjugate_step

Array = NDArray[np.float64]

# Entries of the table at most, and how many times smaller it is than what a sweep over the data reads.
_MOST_ENTRIES = 640
_SMALLER = 8.0
# Products that an example's values may take, for each of them and each output: a few passes of a usual step.
_PRODUCTS = 120.0
# Examples whose Hessians are packed at a time.
_EXAMPLES = 512
# Sweeps before a solve by conjugate gradients.
_SWEEPS = 60
TURNS = 10
"""How often the two take turns at most."""
# Sweeps end where one gains no more than this share of the best.
_ENOUGH = 1e-3
SOLVED = 1e-2
"""Turns end where one gains no more than this share of all."""
# A solve takes so many products at most, and leaves this share of the gradient.
_PRODUCTS_OF_SOLVE = 60
_RESIDUAL = 0.01
_SHORTER = (1.0, 0.5, 0.25)


def pays(problem: Problem, sample: Sample, a: int) -> bool:
    """Whether the curvature among `a` rows is much smaller than the data and costs about what a few usual steps do."""
    k = problem.k
    if problem.loss.separable or not sample.whole or (a + problem.fit_intercept) * k > _MOST_ENTRIES:
        return False
    counts = np.diff(sample.by_row[0]) + problem.fit_intercept
    swept = float(counts.sum()) * k
    # pairs of values, and of outputs
    products = 0.25 * float(counts @ counts) * k * (k + 1)
    return _SMALLER * (a * k) ** 2 <= swept and products <= _PRODUCTS * swept


@dataclass(frozen=True)
class FormedModel:
    """The curvature of all examples among the entries of some rows of W and the intercept, the intercept last.

    Parameters
    ----------
    H : float64 array, shape (s k, s k)
        Entry (j, r) is number j k + r.
    curvature : float32 array, shape (m, width)
        What it was formed of: diagonals of the examples' Hessians.
    """

    H: Array
    curvature: NDArray[np.float32]

    @classmethod
    def of(cls, problem: Problem, sample: Sample, h: NDArray[np.float32], rank_one: Array, a: int) -> FormedModel:
        """Sum the Hessians of the examples, diag(h_i) - r_i h_i h_i', over all pairs of their columns."""
        k, intercept = problem.k, problem.fit_intercept
        s, w = a + intercept, width(k * (k + 1) // 2)
        pointer, slots, values = sample.by_row

        def part(examples: slice) -> Array:
            sums = np.zeros((s, s, w))
            packed = np.empty((min(_EXAMPLES, max(examples.stop - examples.start, 1)), w))
            for start in range(examples.start, examples.stop, _EXAMPLES):
                stop = min(start + _EXAMPLES, examples.stop)
                mine = packed[: stop - start]
                formed_curvature.pack(h[start:stop], rank_one[start:stop], k, mine)
                columns.class_grams(pointer[start : stop + 1], slots, values, mine, intercept, sums)
            return sums

        m = h.shape[0]
        parts = equal_slices(m, parts_of(float(slots.shape[0]) * w))
        sums, *others = problem.engine.on_driver(part, parts)
        for other in others:
            sums += other
        H = np.empty((s * k, s * k))
        formed_curvature.unpack(sums, k, H)
        return cls(H, h)

    def moved(self, h: NDArray[np.float32]) -> float:
        """How far the curvature of the examples is from the one that was formed, as a share of it."""
        total = float(self.curvature.sum(dtype=np.float64))
        return float(np.abs(h - self.curvature).sum(dtype=np.float64)) / total if total > 0.0 else np.inf

    def minimiser(
        self,
        problem: Problem,
        at: Iterate,
        lam: float,
        diagonal: Array,
        damping: Array,
        turns: int = TURNS,
        solved: float = SOLVED,
    ) -> tuple[Array, Array]:
        """Step of the rows (a, k) and the intercept (k,) to the minimum of the model, about.

        Sweeps find the support; conjugate gradients, preconditioned with the blocks of the outputs by themselves, do
        the rest where sweeps are slow.

        Parameters
        ----------
        at : Iterate
        lam : float
            Strength of the penalty, sum form.
        diagonal : float64 array, shape (s, k)
            Bounds each row's block.
        damping : float64 array, shape (s, k)
            Added to it.
        turns : int
            Turns of sweeps and conjugate gradients at most.
        solved : float
            They end where one gains no more than this share of all.
        """
        k = problem.k
        s = self.H.shape[0] // k
        entries = self.H.reshape(s, k, s, k)
        gram = np.stack([entries[:, r, :, r] for r in range(k)])
        heavy = HeavyRows(np.arange(s - problem.fit_intercept), gram, True)
        search = _Search(problem, self.H, *problem.objective.with_intercept(at, lam), diagonal, damping, heavy)
        return problem.objective.split_intercept(search.run(turns, solved))


@dataclass(frozen=True)
class _Search:
    """The way to the minimum of one model; a step D has the intercept as its last row where there is one."""

    problem: Problem
    H: Array
    G: Array
    W: Array
    strength: Array
    diagonal: Array
    damping: Array
    heavy: HeavyRows

    def run(self, turns: int, solved: float) -> Array:
        """The step to the minimum, about; `turns` and `solved` as for ``FormedModel.minimiser``."""
        beside.wait_for(formed_curvature.sweep_rows)
        D, pull = np.zeros_like(self.W), np.zeros(self.W.size)
        value = 0.0
        for _ in range(turns):
            model = (self.H, self.G, self.W, self.strength, self.diagonal, self.damping)
            formed_curvature.sweep_rows(*model, *compiled_prox(self.problem.penalty), _SWEEPS, _ENOUGH, D, pull)
            D, pull = self._conjugate(D, pull)
            before = value
            # A step that is too long for a number is none that falls, and the line search has the last word.
            with np.errstate(over="ignore", invalid="ignore"):
                value = self._value(D, pull)
            if not value < before - solved * abs(value):
                break
        return D

    def _pull(self, D: Array) -> Array:
        """H D, flat."""
        pull = np.empty(D.size)
        formed_curvature.times(self.H, D.reshape(-1), pull)
        return pull

    def _value(self, D: Array, pull: Array) -> float:
        """The model at D, less that at zero."""
        bent = np.sum(D * (0.5 * pull.reshape(D.shape) + 0.5 * self.damping * D - self.G))
        omega = self.problem.penalty.value(self.W + D) - self.problem.penalty.value(self.W)
        return float(bent) + float(np.sum(self.strength * omega))

    def _conjugate(self, D: Array, pull: Array) -> tuple[Array, Array]:
        """A step on the face of W + D, as long as the model falls along it; else where it was."""
        problem, k = self.problem, self.problem.k
        rest = self.G - pull.reshape(D.shape) - self.damping * D
        (rows, b), (G, bias) = problem.objective.split_intercept(self.W + D), problem.objective.split_intercept(rest)
        model = Iterate(np.arange(rows.shape[0]), rows, b, np.nan, G, bias)

        def product(V: Array, v: Array) -> tuple[Array, Array]:
            x = self._joined(V, v)
            return problem.objective.split_intercept(self._pull(x).reshape(-1, k) + self.damping * x)

        strength = self.strength[: rows.shape[0]]
        most = min(_PRODUCTS_OF_SOLVE, 2 * D.size)
        solve = (self.diagonal, product, most, None, self.heavy, None, _RESIDUAL)
        moved, d, slope = conjugate_step(problem, model, strength, *solve)
        if slope > 0.0:
            value = self._value(D, pull)
            # set so that W + D gives the rows that came back: exact zeros stay exact
            ends = self._joined(moved, b + d) - self.W
            for t in _SHORTER:
                new = ends if t == 1.0 else D + t * (ends - D)
                pulled = self._pull(new)
                if self._value(new, pulled) < value:
                    return new, pulled
        return D, pull

    def _joined(self, rows: Array, b: Array) -> Array:
        return np.vstack([rows, b]) if self.problem.fit_intercept else rows
