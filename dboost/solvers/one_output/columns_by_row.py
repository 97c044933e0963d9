"""The columns of a quadratic model by row, which those that are added to it are multiplied with.

They are cut in chunks, as they came. A chunk that is not much larger than the one after it is cut again together with
that: so there are few, and no column is cut more often than there are doublings. Which chunks there are changes no bit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.compiled.solves.quadratic import ByRow, add_products
from dboost.compiled.sparse.columns import cut_rows
from dboost.problem.slices import equal_slices, parts_of

Array = NDArray[np.float64]
Rows = NDArray[np.int64]

# A chunk has at least so many values for each of the next one.
_FALLING = 2


class ColumnsByRow:
    """Columns of a block, by row.

    `m`: number of examples.
    """

    def __init__(self, m: int) -> None:
        self._m = m
        # the place of the first column of each chunk, and the chunk
        self._chunks: list[tuple[int, ByRow]] = []
        self._count = 0

    def hold(self, indptr: Any, rows: Any, values: Any, places: Rows) -> None:
        """Hold the columns at `places` (s,) of a block by column, of which the first ones are those held already."""
        first, count = self._count, places.shape[0]
        if first == count:
            return
        sizes = indptr[places + 1] - indptr[places]
        while self._chunks and self._chunks[-1][1][1].shape[0] < _FALLING * int(np.sum(sizes[first:])):
            first, _ = self._chunks.pop()
        self._chunks.append((first, cut_rows(indptr, rows, values, places[first:], self._m)))
        self._count = count

    def products(
        self,
        indptr: Any,
        rows: Any,
        values: Any,
        places: Rows,
        h: Array,
        each: Callable[[Any, Any], list[Array]],
    ) -> Array:
        """X' diag(h) Z of the columns X at `places` of a block by column, which are none of those held, Z.

        `indptr`, `rows`, `values`: the block.
        `places`: (t,).
        `h`: (m,).
        `each`: the function of every part of the examples, on threads.
        Returns (t, s).
        """
        new = cut_rows(indptr, rows, values, places, self._m)
        held = sum(chunk[1].shape[0] for _, chunk in self._chunks)

        def part_of(part: slice) -> Array:
            sums = np.zeros((places.shape[0], self._count))
            for first, chunk in self._chunks:
                add_products(new, chunk, h, part.start, part.stop, sums[:, first:])
            return sums

        total, *others = each(part_of, equal_slices(self._m, parts_of(new[1].shape[0] * held / self._m)))
        for other in others:
            total += other
        return total
