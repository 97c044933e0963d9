"""Loops that sum over all products of some parents with single columns, and name those that occur.

A child occurs where an example of positive weight has its parent and its column; the sums of all others are zero, and
of sparse columns these are nearly all. So the children of one parent are summed in a table with a row per column, which
stays in the processor's cache, and those that occur are taken out of it: what is written is as large as what was found
(Gustavson's product of sparse matrices). A child's terms are added in the order of the rows, in whatever shard it is.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.compiled.arrays import Bool, Float64, Int32, Int64
from dboost.compiled.kept import njit
from dboost.compiled.vectors.emit import INLINED
from dboost.compiled.vectors.scaled_rows import padded, scale, scatter, width

Array = NDArray[np.float64]
# Places, rows of sums, and largest absolute values of the children that occur.
Found = tuple[NDArray[np.int64], Array, Array]

# Columns that are looked through together for children that occur, 2**5: to look at as many flags takes about as long
# as to write one child of ten outputs.
_NEAR_BITS = 5


def children_gradient(
    parents: Any, first: NDArray[np.int64], offset: NDArray[np.int64], by_row: Any, weight: Array, theta: Array
) -> Found:
    """Sums of the products of parents with single columns, of those that occur.

    `parents`: Parents as CSC.
    `first`, `offset`: Per parent: the lowest column it is multiplied with, and the place of that child; last the number
    of children.
    `by_row`: The columns as CSR, slots ascending within a row.
    `weight`, `theta`: float64 arrays, shape (m,) and (m, k).
    Returns places, int64 array, shape (c,): Ascending.
    Returns sums, float64 array, shape (c, k + 2): h'theta, sum s h**2 and sum s h.
    Returns peak, float64 array, shape (c,): max |h|.
    """
    k = theta.shape[1]
    tables, found = _room(parents, first, offset, by_row, width(k), k)
    count = padded_children_gradient(parents, first, offset, by_row, weight, padded(theta), tables, found)
    return _cut_off(found, count)


def children_mu(
    parents: Any,
    first: NDArray[np.int64],
    offset: NDArray[np.int64],
    by_row: Any,
    weight: Array,
    plus: Array,
    minus: Array,
) -> Found:
    """As `children_gradient`, with the sums kept apart by sign; `sums` is (c, 2 k + 2).

    mu+ = [h]_+'plus + [-h]_+'minus comes first, then mu-, with the two exchanged.
    """
    k = plus.shape[1]
    tables, found = _room(parents, first, offset, by_row, 2 * k, 2 * k)
    count = _children_mu(parents, first, offset, by_row, weight, plus, minus, tables, found)
    return _cut_off(found, count)


def _room(
    parents: Any, first: NDArray[np.int64], offset: NDArray[np.int64], by_row: Any, columns: int, k: int
) -> tuple[tuple[Array, Array, Array], Found]:
    """Tables with a row for each single column, clear, and room for `k` sums of all children that may occur."""
    n_columns = int(first[0] + offset[1] - offset[0]) if first.shape[0] else 0
    tables = np.zeros((n_columns, columns)), np.zeros((n_columns, 2)), np.full(n_columns, -1.0)
    most = _most_found(parents, first, by_row, n_columns)
    return tables, (np.empty(most, np.int64), np.empty((most, k + 2)), np.empty(most))


def _cut_off(found: Found, count: int) -> Found:
    """What was found, without room for more: the rest of the room would be kept, and sent, with it."""
    places, sums, peak = found
    if count == places.shape[0]:
        return found
    return places[:count].copy(), sums[:count].copy(), peak[:count].copy()


@njit(nogil=True, cache=True, **INLINED)
def _first_slot(slots: Int32, start: int, stop: int, wanted: int) -> int:
    """First place in slots[start:stop], ascending, that holds at least `wanted`."""
    while start < stop:
        middle = (start + stop) // 2
        if slots[middle] < wanted:
            start = middle + 1
        else:
            stop = middle
    return start


@njit(nogil=True, cache=True)
def _most_found(
    parents: tuple[Int64, Int32, Float64], first: Int64, by_row: tuple[Int64, Int32, Float64], n_columns: int
) -> int:
    """How many children may occur: of each parent no more than products are formed, or than columns there are."""
    indptr, rows, _ = parents
    pointer, slots, _ = by_row
    most = 0
    for c in range(first.shape[0]):
        formed, every = 0, n_columns - first[c]
        for p in range(indptr[c], indptr[c + 1]):
            i = rows[p]
            formed += pointer[i + 1] - _first_slot(slots, pointer[i], pointer[i + 1], first[c])
            if formed >= every:
                break
        most += min(formed, every)
    return most


@njit(nogil=True, cache=True)
def _taken_out(
    first: int,
    place: int,
    near: Bool,
    tables: tuple[Float64, Float64, Float64],
    found: tuple[Int64, Float64, Float64],
    count: int,
) -> int:
    """Move the children of one parent that occur from the tables to what was found, and clear the tables."""
    sums, squares, peak = tables
    places, rows, most = found
    n_columns, k = peak.shape[0], rows.shape[1] - 2
    for block in range(first >> _NEAR_BITS, near.shape[0]):
        if not near[block]:
            continue
        near[block] = False
        for j in range(max(block << _NEAR_BITS, first), min((block + 1) << _NEAR_BITS, n_columns)):
            if peak[j] < 0.0:
                continue
            places[count] = place + j - first
            for r in range(k):
                rows[count, r] = sums[j, r]
            rows[count, k], rows[count, k + 1] = squares[j, 0], squares[j, 1]
            most[count] = peak[j]
            for r in range(sums.shape[1]):
                sums[j, r] = 0.0
            squares[j, 0] = squares[j, 1] = 0.0
            peak[j] = -1.0
            count += 1
    return count


@njit(nogil=True, cache=True, **INLINED)
def _noted(t: float, s: float, j: int, squares: Float64, peak: Float64, near: Bool) -> None:
    """Add a value t of child j in an example of weight s to all of its sums but those of Theta."""
    squares[j, 0] += s * t * t
    squares[j, 1] += s * t
    peak[j] = max(peak[j], abs(t))
    near[j >> _NEAR_BITS] = True


@njit(nogil=True, cache=True, error_model="numpy")
def padded_children_gradient(
    parents: tuple[Int64, Int32, Float64],
    first: Int64,
    offset: Int64,
    by_row: tuple[Int64, Int32, Float64],
    weight: Float64,
    theta: Float64,
    tables: tuple[Float64, Float64, Float64],
    found: tuple[Int64, Float64, Float64],
) -> int:
    """As ``children_gradient``, on tables of one width; how many were found."""
    indptr, rows, values = parents
    pointer, slots, entries = by_row
    sums, squares, peak = tables
    near = np.zeros((peak.shape[0] >> _NEAR_BITS) + 1, np.bool_)
    z = np.empty(theta.shape[1])
    count = 0
    for c in range(first.shape[0]):
        for p in range(indptr[c], indptr[c + 1]):
            i = rows[p]
            s = weight[i]
            if s <= 0.0:
                continue
            f = values[p]
            start, stop = _first_slot(slots, pointer[i], pointer[i + 1], first[c]), pointer[i + 1]
            scale(f, theta[i], z)
            scatter(slots, entries, start, stop, z, sums, 0)
            for q in range(start, stop):
                t, j = f * entries[q], slots[q]
                _noted(t, s, j, squares, peak, near)
        count = _taken_out(first[c], offset[c], near, tables, found, count)
    return count


@njit(nogil=True, cache=True, error_model="numpy")
def _children_mu(
    parents: tuple[Int64, Int32, Float64],
    first: Int64,
    offset: Int64,
    by_row: tuple[Int64, Int32, Float64],
    weight: Float64,
    plus: Float64,
    minus: Float64,
    tables: tuple[Float64, Float64, Float64],
    found: tuple[Int64, Float64, Float64],
) -> int:
    """As ``children_mu``, on tables of one width; how many were found."""
    indptr, rows, values = parents
    pointer, slots, entries = by_row
    sums, squares, peak = tables
    near = np.zeros((peak.shape[0] >> _NEAR_BITS) + 1, np.bool_)
    k = plus.shape[1]
    count = 0
    for c in range(first.shape[0]):
        for p in range(indptr[c], indptr[c + 1]):
            i = rows[p]
            s = weight[i]
            if s <= 0.0:
                continue
            f = values[p]
            for q in range(_first_slot(slots, pointer[i], pointer[i + 1], first[c]), pointer[i + 1]):
                t, j = f * entries[q], slots[q]
                up, down = (plus[i], minus[i]) if t > 0.0 else (minus[i], plus[i])
                size = abs(t)
                for r in range(k):
                    sums[j, r] += size * up[r]
                    sums[j, k + r] += size * down[r]
                _noted(t, s, j, squares, peak, near)
        count = _taken_out(first[c], offset[c], near, tables, found, count)
    return count


@njit(nogil=True, cache=True)
def merged(left: tuple[Int64, Float64, Float64], right: tuple[Int64, Float64, Float64]) -> Any:
    """What was found in two sets of rows: children of either, sums added, and the larger of the largest values."""
    a, b = left[0], right[0]
    i = j = both = 0
    while i < a.shape[0] and j < b.shape[0]:
        x, y = a[i], b[j]
        i += x <= y
        j += y <= x
        both += x == y
    count = a.shape[0] + b.shape[0] - both
    places, sums, peak = np.empty(count, np.int64), np.empty((count, left[1].shape[1])), np.empty(count)
    i = j = 0
    for c in range(count):
        mine = i < a.shape[0] and (j == b.shape[0] or a[i] <= b[j])
        other = j < b.shape[0] and (i == a.shape[0] or b[j] <= a[i])
        if mine and other:
            places[c] = a[i]
            for r in range(sums.shape[1]):
                sums[c, r] = left[1][i, r] + right[1][j, r]
            peak[c] = max(left[2][i], right[2][j])
        elif mine:
            places[c] = a[i]
            sums[c] = left[1][i]
            peak[c] = left[2][i]
        else:
            places[c] = b[j]
            sums[c] = right[1][j]
            peak[c] = right[2][j]
        i += mine
        j += other
    return places, sums, peak
