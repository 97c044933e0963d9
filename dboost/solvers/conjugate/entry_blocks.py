"""A preconditioner for conjugate gradients over single entries of W: the curvature among those of each output.

Where a penalty ties no entries an output has few of them that are not zero, however many rows there are, so that the
curvature among all of an output's entries is formed from some examples, and factored, at the price of a few products
with the Hessian. It leaves out how outputs pull on one another, -q_ir q_is between r and s (docs/math.md 8 (i)), which
is little where many share what an example is undecided about.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dboost.compiled.solves import descent
from dboost.compiled.solves.positive import solve_blocks
from dboost.hypotheses.held_by_model import Cut
from dboost.penalties import Face
from dboost.problem.tuning import Blocks
from dboost.solvers.conjugate.preconditioner import (
    DEFAULT,
    SEEN,
    Each,
    block_of,
    factored,
    in_turn,
    products_to_form,
    summed,
)

Array = NDArray[np.float64]
Places = NDArray[np.int64]


@dataclass(frozen=True)
class EntryBlocks:
    """Examples from which the curvature among the free entries of a face is formed, output by output."""

    cut: Cut  # The examples, by row.
    # h, rank_one: Their Hessians, diag(h_i) - r_i h_i h_i'.
    h: NDArray[np.floating]
    rank_one: Array
    diagonal: Array  # (a or a + 1, k): Of the curvature, the intercept last; it says which entries are heavy.
    intercept: bool
    stored: float  # Values that a product with the curvature goes over.
    sizes: Blocks = DEFAULT

    def solver(
        self, face: Face, scale: Array, penalty: Array, shifts: bool = False, each: Each = in_turn
    ) -> Callable[[Array], Array]:
        """The preconditioner on a face of the penalty, as ``HeavyRows.solver``.

        A shift of all outputs needs no care: a penalty that ties no entries is not curved along one.
        """
        coordinates = face.places()
        free = coordinates >= 0
        met = np.bincount(self.cut[1], minlength=free.shape[0]) / max(self.h.shape[0], 1)
        held = self._heaviest(free, met)
        if self.intercept:
            held = np.vstack([held, np.ones(held.shape[1], np.bool_)])
            coordinates = np.vstack([coordinates, face.dim + np.arange(held.shape[1])])
            met = np.append(met, 1.0)
        least, share = np.append(SEEN * scale, 0.0), np.zeros(scale.shape[0] + 1)
        share[: face.dim] = penalty
        grams = self._grams(held, met, each)

        def block(r: int) -> tuple[Places, Array]:
            places, matrix = block_of(coordinates[None, held[:, r], r], grams[r][None], share, least)
            factored(matrix, in_turn)
            return places, matrix

        blocks = each(block, range(len(grams)))

        def apply(r: Array) -> Array:
            z = r / scale
            for places, factors in blocks:
                solve_blocks(factors, places, r, z)
            return z

        return apply

    def _heaviest(self, free: NDArray[np.bool_], met: Array) -> NDArray[np.bool_]:
        """The free entries (a, k); where blocks of them all cost too much, of each output the most curved.

        `met`, (a,): values of each row that an example has.
        """
        count = np.count_nonzero(free, axis=0)
        most = int(count.max(initial=0))
        order = np.argsort(np.where(free, -self.diagonal[: free.shape[0]], np.inf), axis=0, kind="stable")
        # values of an example in the heaviest entries of each output
        within = np.cumsum(np.take_along_axis(np.where(free, met[:, None], 0.0), order, axis=0), axis=0)
        while most > self.sizes.heavy and not self._affordable(np.minimum(count, most), within):
            most -= max(1, most // 16)
        held = np.zeros_like(free)
        np.put_along_axis(held, order[:most], True, axis=0)
        return held & free

    def _affordable(self, count: Places, within: Array) -> bool:
        """Whether blocks of so many entries of each output (k,) have room, and cost no more products than they spare.

        `within`, (a, k): values that an example has in the first entries of each output.
        """
        if float(np.sum(count.astype(np.float64) ** 2)) > self.sizes.wide:
            return False
        examples = min(self.sizes.looked_at(int(count.max(initial=0))), self.h.shape[0])
        cost = 0.0
        for r in np.flatnonzero(count):
            cost += products_to_form(int(count[r]), float(within[count[r] - 1, r]), examples, self.stored)
        return cost <= self.sizes.products * len(count)

    def _grams(self, held: NDArray[np.bool_], met: Array, each: Each) -> list[Array]:
        """Curvature among the entries of each output that are held, their upper triangles; the intercept last."""
        count = np.count_nonzero(held, axis=0)
        end = np.cumsum(count**2)
        place = np.cumsum(held, axis=0) - 1
        first = np.append(0, np.cumsum(np.count_nonzero(held, axis=1)))
        output = np.nonzero(held)[1]
        layout = (first, output, place[held], end - count**2, count)
        pairs = float(np.sum((met @ held) ** 2))

        def add(start: int, every: int, sums: Array) -> None:
            descent.entry_blocks(*self.cut, self.h, self.rank_one, *layout, start, every, self.intercept, sums)

        enough = self.sizes.looked_at(int(count.max(initial=0)))
        sums = summed(add, np.zeros(int(end[-1])), self.h.shape[0], enough, pairs, each)
        return [sums[stop - n * n : stop].reshape(n, n) for stop, n in zip(end, count, strict=True)]
