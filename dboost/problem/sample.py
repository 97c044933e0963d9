"""Examples on the driver: all of them, or some, with the active columns only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.compiled.sparse import columns
from dboost.hypotheses.held_by_model import Cut
from dboost.problem.problem import Problem
from dboost.problem.slices import equal_slices

Array = NDArray[np.float64]

MOST_NUMBERS = 12_000_000
"""Curvatures of examples that the driver holds at most."""
# The sample is everything while the margins are at most this many numbers, and from a gap of `_FAR` on many more, if
# the values a sweep goes over, each for all outputs, are at most that many; or where each row asks for so many examples
# that most are taken. Columns with values enough ask for fewer.
_TINY = 100_000
_SMALL = 1_000_000
_FAR = 0.1
_SMALL_SWEEP = 10_000_000
_EXAMPLES_PER_ROW = 20
_VALUES_PER_ROW = 750
_SHARE = 0.1
_MOSTLY = 0.5
# Numbers of a part, and the most of them.
_PART = 100_000
_MOST_PARTS = 8


@dataclass(frozen=True)
class Part:
    """Consecutive examples of a sample, worked on by one thread; cut by their number alone, for the bits' sake."""

    examples: slice
    by_row: Cut
    target: Any
    weight: Array


@dataclass(frozen=True)
class Sample:
    """Rows of X_A by row and by column, with labels and weights that sum to the whole."""

    by_row: Cut
    by_column: Cut
    parts: tuple[Part, ...]
    weight: Array
    whole: bool

    def of_all(self, diagonal: Array, square: Array) -> Array:
        """The diagonal of the curvature over all examples, from that over the sample.

        A column is as much more curved as its sum of squares is larger; one that the sample lacks is as curved as the
        others for its squares.

        Parameters
        ----------
        diagonal : float64 array, shape (a or a + 1, k)
            Over the sample, the intercept last, which counts as it is.
        square : float64 array, shape (a,)
            sum_i s_i x_ij**2 of each column over all examples.
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
    def drawn(cls, problem: Problem, active: NDArray[np.int64], share: float, seed: int) -> Sample:
        """One pass.

        Parameters
        ----------
        problem : Problem
        active : int64 array, shape (a,)
            The rows A of W.
        share : float
            Of the examples; all of them from 1 on.
        seed : int
            Decides which.
        """
        parts = problem.sample(active, share, seed)
        by_row = pointer, slots, values = joined(parts)
        weight = np.concatenate([p[4] for p in parts])
        drawn = float(weight.sum())
        if share < 1.0 and drawn > 0.0:
            weight = weight * (problem.statistics.weight / drawn)
        labels = np.concatenate([p[3] for p in parts])
        m = weight.shape[0]
        count = max(1, min(_MOST_PARTS, m * problem.k // _PART))

        def part(examples: slice) -> Part:
            mine = (pointer[examples.start : examples.stop + 1], slots, values)
            return Part(examples, mine, problem.loss.target(labels[examples]), weight[examples])

        return cls(
            by_row=by_row,
            by_column=columns.transpose(*by_row, active.shape[0]),
            parts=tuple(part(examples) for examples in equal_slices(m, count)),
            weight=weight,
            whole=share >= 1.0,
        )


def share_for(problem: Problem, active: NDArray[np.int64], m: int, gap: float) -> float:
    """Share of m examples that a step on some rows of W takes, at a model of this relative gap."""
    k, stored = problem.k, problem.statistics.values(active, m)
    small = m * k <= (_SMALL if gap <= _FAR else _TINY) and stored * k <= _SMALL_SWEEP
    if small or m <= _EXAMPLES_PER_ROW * active.shape[0]:
        wanted = float(m)
    else:
        wanted = max(_SHARE * m, examples_for(problem, active, m))
        # a sample of most examples saves little, and its steps never come to square what is left
        wanted = wanted if wanted < _MOSTLY * m else m
    return min(1.0, wanted / m, MOST_NUMBERS / (m * k))


def examples_for(problem: Problem, active: NDArray[np.int64], m: int) -> float:
    """Examples, of m, that tell the curvature of some rows of W: fewer where an example holds many of them."""
    stored = problem.statistics.values(active, m)
    return min(_EXAMPLES_PER_ROW, _VALUES_PER_ROW * m / max(stored, 1.0)) * active.shape[0]


def joined(parts: Sequence[Any]) -> Cut:
    """The rows that the partitions gave, as one cut block; a part begins with (counts, slots, values)."""
    counts, slots, values = (np.concatenate([part[c] for part in parts]) for c in range(3))
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), slots, values.astype(np.float32)
