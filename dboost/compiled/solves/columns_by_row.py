"""Columns by row, for the products of new columns with those that are held.

A block by column has to be turned for every such product. Turned once, the columns held are read where a new one has an
entry only.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.compiled.arrays import Float64, Int32, Int64, Values
from dboost.compiled.kept import njit

# Where each row begins, which columns it has, its values.
ByRow = tuple[NDArray[np.int64], NDArray[np.int16], NDArray[Any]]
MOST_COLUMNS = 2**15 - 1
"""Places of columns are int16: there are many more values than rows."""


@njit(nogil=True, cache=True, error_model="numpy")
def turned(indptr: Int64, rows: Int32, values: Values, places: Int64, m: int) -> ByRow:
    """The columns at `places` (MOST_COLUMNS at most) of a block of m rows by column, by row."""
    pointer = np.zeros(m + 1, np.int64)
    for c in range(places.shape[0]):
        for p in range(np.uint64(indptr[places[c]]), np.uint64(indptr[places[c] + 1])):
            pointer[np.uint64(rows[p]) + np.uint64(1)] += 1
    for end in range(1, m + 1):
        pointer[end] += pointer[end - 1]
    slots = np.empty(pointer[m], np.int16)
    x = np.empty(pointer[m], values.dtype)
    for c in range(places.shape[0]):
        for p in range(np.uint64(indptr[places[c]]), np.uint64(indptr[places[c] + 1])):
            # the place of each row's next value is kept where the row begins, and brought back below
            i = np.uint64(rows[p])
            q = np.uint64(pointer[i])
            slots[q] = c
            x[q] = values[p]
            pointer[i] += 1
    for end in range(m, 0, -1):
        pointer[end] = pointer[end - 1]
    pointer[0] = 0
    return pointer, slots, x


@njit(nogil=True, cache=True, error_model="numpy")
def beside(left: ByRow, right: ByRow, shift: int) -> ByRow:
    """The columns of `right` after those of `left`, which are `shift`."""
    (begin, slots, x), (begin_right, slots_right, x_right) = left, right
    m = begin.shape[0] - 1
    pointer = begin + begin_right
    all_slots, all_x = np.empty(pointer[m], np.int16), np.empty(pointer[m], x.dtype)
    for i in range(m):
        q = np.uint64(pointer[i])
        for p in range(np.uint64(begin[i]), np.uint64(begin[i + 1])):
            all_slots[q], all_x[q] = slots[p], x[p]
            q += np.uint64(1)
        for p in range(np.uint64(begin_right[i]), np.uint64(begin_right[i + 1])):
            all_slots[q], all_x[q] = slots_right[p] + shift, x_right[p]
            q += np.uint64(1)
    return pointer, all_slots, all_x


@njit(nogil=True, cache=True, error_model="numpy")
def products(new: ByRow, held: ByRow, h: Float64, start: int, stop: int, sums: Float64) -> None:
    """Add X'diag(h) Z to `sums`, X the columns `new` and Z those `held`, over the rows start..stop - 1."""
    (begin, slots, x), (begin_held, slots_held, x_held) = new, held
    one = np.uint64(1)
    for row in range(start, stop):
        i = np.uint64(row)
        first, end = np.uint64(begin_held[i]), np.uint64(begin_held[i + one])
        p, last = np.uint64(begin[i]), np.uint64(begin[i + one])
        while p + one < last:
            a, b = np.uint64(slots[p]), np.uint64(slots[p + one])
            t, u = h[i] * x[p], h[i] * x[p + one]
            for q in range(first, end):
                r = np.uint64(slots_held[q])
                sums[a, r] += t * x_held[q]
                sums[b, r] += u * x_held[q]
            p += one + one
        if p < last:
            a = np.uint64(slots[p])
            t = h[i] * x[p]
            for q in range(first, end):
                sums[a, np.uint64(slots_held[q])] += t * x_held[q]
