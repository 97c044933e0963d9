"""The columns of a quadratic model by row, which those that are added to it are multiplied with.

They are held in chunks as they came. A chunk that is not much smaller than the one before is put into one with it: so
there are few, and no value is moved more often than there are doublings. Which chunks there are changes no bit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.compiled.solves.columns_by_row import MOST_COLUMNS, ByRow, beside, products, turned
from dboost.problem.slices import equal_slices, parts_of

Array = NDArray[np.float64]
Rows = NDArray[np.int64]

# A chunk has at least so many values for each of the next one.
_FALLING = 2


class ColumnsByRow:
    """Columns of a block, by row.

    Parameters
    ----------
    m : int
        Number of examples.

    Attributes
    ----------
    count : int
        How many columns there are.
    """

    def __init__(self, m: int) -> None:
        self._m = m
        self._chunks: list[tuple[int, ByRow]] = []
        self.count = 0

    def append(self, indptr: Any, rows: Any, values: Any, places: Rows) -> None:
        """Hold the columns at `places` of a block by column, after those that are held."""
        if not places.size:
            return
        self.count += places.shape[0]
        assert self.count <= MOST_COLUMNS, "the quadratic model has no more rows than that"
        size, chunk = places.shape[0], turned(indptr, rows, values, places, self._m)
        while self._chunks and self._chunks[-1][1][1].shape[0] < _FALLING * chunk[1].shape[0]:
            shift, before = self._chunks.pop()
            size, chunk = shift + size, beside(before, chunk, shift)
        self._chunks.append((size, chunk))

    def products(
        self,
        indptr: Any,
        rows: Any,
        values: Any,
        places: Rows,
        h: Array,
        each: Callable[[Any, Any], list[Array]],
    ) -> Array:
        """X'diag(h) Z of the columns X at `places` of the block, which are none of those held, Z.

        Parameters
        ----------
        each : callable (function, parts)
            The function of every part of the examples, on threads.

        Returns
        -------
        float64 array, shape (places, count)
        """
        new = turned(indptr, rows, values, places, self._m)
        fresh = float(new[1].shape[0])
        held = float(sum(chunk[1].shape[0] for _, chunk in self._chunks))

        def part_of(part: slice) -> Array:
            sums = np.zeros((places.shape[0], self.count))
            first = 0
            for size, chunk in self._chunks:
                products(new, chunk, h, part.start, part.stop, sums[:, first : first + size])
                first += size
            return sums

        total, *others = each(part_of, equal_slices(self._m, parts_of(fresh * held / self._m)))
        for other in others:
            total += other
        return total
