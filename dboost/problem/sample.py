"""Examples on the driver: all of them, or some, with the active columns only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.compiled.examples import fused
from dboost.compiled.solves import descent
from dboost.compiled.sparse import columns
from dboost.compiled.vectors.scaled_rows import width
from dboost.hypotheses.held_by_model import Cut
from dboost.passes import examples
from dboost.passes.point import joined_offsets, start_of
from dboost.problem.iterate import Iterate
from dboost.problem.problem import Problem
from dboost.problem.slices import equal_slices
from dboost.problem.tuning import Samples

Array = NDArray[np.float64]

MOST_NUMBERS = 12_000_000
"""Curvatures of examples that the driver holds at most."""
DEFAULT = Samples()
"""The sizes that were measured."""


@dataclass(frozen=True)
class Part:
    """Consecutive examples of a sample, worked on by one thread; cut by their number alone, for the bits' sake."""

    examples: slice
    by_row: Cut
    target: Any
    weight: Array
    offset: Array | None


@dataclass(frozen=True)
class Sample:
    """Rows of X_A by row and by column, with labels and weights that sum to the whole."""

    by_row: Cut
    by_column: Cut
    parts: tuple[Part, ...]
    weight: Array
    share: float  # Of all examples.

    @property
    def whole(self) -> bool:
        """Whether it has all of them."""
        return self.share >= 1.0

    def curvature(self, problem: Problem, iterate: Iterate) -> tuple[NDArray[np.float32], Array, Array]:
        """Hessian of every example at a model, and the diagonal of the row models.

        Returns `h`, (m, width(k)). `rank_one`, (m,): the Hessians are diag(h_i) - rho_i h_i h_i' (docs/math.md 8 (i)).
        `diagonal`, (a or a + 1, k): bounds the block of each row, the intercept last.
        """
        k, on_driver, m = problem.k, problem.engine.on_driver, self.weight.shape[0]
        h, rank_one = np.empty((m, width(k)), np.float32), np.empty(m)
        bound = np.empty_like(h)
        intercept = problem.fit_intercept

        def fill(part: Part) -> None:
            some = part.examples
            start = start_of(part.offset, iterate.intercept)
            fused.curvature(*part.by_row, iterate.W, start, part.target, part.weight, h[some], rank_one[some])
            descent.bound_curvature(h[some], rank_one[some], part.weight, bound[some])

        on_driver(fill, self.parts)
        a = iterate.active.shape[0]
        diagonal = np.zeros((a + (1 if intercept else 0), k))

        def square(some: slice) -> None:
            descent.add_squares(*self.by_column, np.arange(some.start, some.stop), bound, diagonal[some])

        on_driver(square, equal_slices(a, min(a, len(self.parts))))
        if intercept:
            diagonal[a] += bound[:, :k].sum(axis=0, dtype=np.float64)
        return h, rank_one, diagonal

    def of_all(self, diagonal: Array, square: Array) -> Array:
        """The diagonal of the curvature over all examples, from that over the sample.

        A column is as much more curved as its sum of squares is larger; one that the sample lacks is as curved as the
        others for its squares.

        `diagonal`, (a or a + 1, k): over the sample, the intercept last, which counts as it is. `square`, (a,): sum_i
        s_i x_ij**2 of each column over all examples.
        """
        a = square.shape[0]
        peak, total, absolute, seen = (np.zeros(a) for _ in range(4))
        columns.column_statistics(*self.by_column, self.weight, peak, total, absolute, seen)
        lacking = seen <= 0.0
        full = diagonal.copy()
        full[:a] *= np.divide(square, seen, out=np.zeros(a), where=~lacking)[:, None]
        most = max(float(seen.sum()), np.finfo(float).tiny)
        full[:a][lacking] = square[lacking, None] * (diagonal[:a].sum(axis=0) / most)
        return full

    @classmethod
    def drawn(
        cls, problem: Problem, active: NDArray[np.int64], share: float, seed: int, sizes: Samples = DEFAULT
    ) -> Sample:
        """One pass.

        `active`, (a,): the rows A of W. `share`: of the examples; all of them from 1 on. `seed`: decides which.
        `sizes`: in how many parts they are worked on.
        """
        parts = rows_of_some(problem, active, share, seed)
        by_row = pointer, slots, values = joined(parts)
        weight = np.concatenate([p[4] for p in parts])
        drawn = float(weight.sum())
        if share < 1.0 and drawn > 0.0:
            weight = weight * (problem.statistics.weight / drawn)
        labels, offset = np.concatenate([p[3] for p in parts]), joined_offsets(p[5] for p in parts)
        m = weight.shape[0]
        count = max(1, min(sizes.most_parts, m * problem.k // sizes.part))

        def part(examples: slice) -> Part:
            mine = (pointer[examples.start : examples.stop + 1], slots, values)
            own = None if offset is None else offset[examples]
            return Part(examples, mine, problem.loss.target(labels[examples]), weight[examples], own)

        return cls(
            by_row=by_row,
            by_column=columns.transpose(*by_row, active.shape[0]),
            parts=tuple(part(examples) for examples in equal_slices(m, count)),
            weight=weight,
            share=share,
        )


def rows_of_some(problem: Problem, active: NDArray[np.int64], share: float, seed: int) -> list[Any]:
    """Rows of X_A, labels, weights and offsets of a random share of the examples, in partition order; one pass."""
    sums = problem.runner.run(examples.sample_rows, problem.held(active), share, seed, name="sample")
    found: list[Any] = sums.parts["rows"]
    return found


def share_for(problem: Problem, active: NDArray[np.int64], gap: float, sizes: Samples) -> float:
    """Share of the examples that a step on some rows of W takes, at a model of this relative gap."""
    k, m = problem.k, problem.n_rows
    stored = problem.statistics.values(active, m)
    small = m * k <= (sizes.small if gap <= sizes.far else sizes.tiny) and stored * k <= sizes.small_sweep
    if small or m <= sizes.examples_per_row * active.shape[0]:
        wanted = float(m)
    else:
        # fewer tell the curvature of some rows of W where an example holds many of them
        for_a_row = min(sizes.examples_per_row, sizes.values_per_row * m / max(stored, 1.0))
        wanted = max(sizes.share * m, for_a_row * active.shape[0])
        # a sample of most examples saves little, and its steps never come to square what is left
        wanted = wanted if wanted < sizes.mostly * m else m
    return min(share_held(problem), wanted / m)


def share_held(problem: Problem) -> float:
    """The largest share of the examples whose curvature the driver holds."""
    return min(1.0, MOST_NUMBERS / (problem.n_rows * problem.k))


def joined(parts: Sequence[Any]) -> Cut:
    """The rows that the partitions gave, as one cut block; a part begins with (counts, slots, values)."""
    counts, slots, values = (np.concatenate([part[c] for part in parts]) for c in range(3))
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), slots, values.astype(np.float32)
