"""Loops that take a number off some columns of a block by column: their moments about it, and the columns less it.

Where nothing is stored the value is zero, and less the number it is stored.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.compiled.arrays import Float64, Int32, Int64, Values
from dboost.compiled.kept import njit


@njit(nogil=True, cache=True)
def moments_about(
    indptr: Int64,
    rows: Int32,
    values: Values,
    weight: Float64,
    columns: Int64,
    centres: Float64,
    total: Float64,
    square: Float64,
    stored: Float64,
) -> None:
    """Per column c of `columns`: sum s (x - centre_c), sum s (x - centre_c)**2, and how many values are stored."""
    for c in range(columns.shape[0]):
        p, stop = indptr[columns[c]], indptr[columns[c] + 1]
        stored[c] = stop - p
        centre = centres[c]
        t = q = rest = 0.0
        for i in range(weight.shape[0]):
            if p < stop and rows[p] == i:
                d = np.float64(values[p]) - centre
                t += weight[i] * d
                q += weight[i] * d * d
                p += 1
            else:
                # the difference of two sums would lose small weights beside large ones
                rest += weight[i]
        t -= rest * centre
        q += rest * centre * centre
        total[c] = t
        square[c] = q


@njit(nogil=True, cache=True)
def _count(indptr: Int64, values: Values, m: int, place: Int64, centres: Float64, out: Int64) -> None:
    for j in range(indptr.shape[0] - 1):
        count = indptr[j + 1] - indptr[j]
        if place[j] >= 0:
            centre = centres[place[j]]
            same = 0
            for p in range(indptr[j], indptr[j + 1]):
                same += np.float64(values[p]) == centre
            # a centre of zero has no place here: what is not stored differs from every centre
            count = m - same
        out[j + 1] = out[j] + count


@njit(nogil=True, cache=True)
def _fill(
    indptr: Int64,
    rows: Int32,
    values: Values,
    m: int,
    place: Int64,
    centres: Float64,
    out: Int64,
    new_rows: Int32,
    new_values: Values,
) -> None:
    for j in range(indptr.shape[0] - 1):
        q = out[j]
        if place[j] < 0:
            for p in range(indptr[j], indptr[j + 1]):
                new_rows[q] = rows[p]
                new_values[q] = values[p]
                q += 1
            continue
        centre = centres[place[j]]
        p, stop = indptr[j], indptr[j + 1]
        for i in range(m):
            v = 0.0
            if p < stop and rows[p] == i:
                v = np.float64(values[p])
                p += 1
            if v != centre:
                new_rows[q] = i
                new_values[q] = v - centre
                q += 1


def less_centres(
    indptr: NDArray[np.int64],
    rows: NDArray[np.int32],
    values: NDArray[Any],
    m: int,
    columns: NDArray[np.int64],
    centres: NDArray[np.float64],
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[Any]]:
    """A block of m rows by column, where `columns` are less their centres, which are not zero.

    Differences are taken in float64. They are stored in float32 only where the block is and they are exact there, as
    those of values near a centre are that is a float32 itself.
    """
    place = np.full(indptr.shape[0] - 1, -1, np.int64)
    place[columns] = np.arange(columns.shape[0])
    out = np.zeros_like(indptr)
    _count(indptr, values, m, place, centres, out)
    new_rows = np.empty(out[-1], np.int32)
    new_values = np.empty(out[-1])
    _fill(indptr, rows, values, m, place, centres, out, new_rows, new_values)
    narrow = new_values.astype(values.dtype)
    return out, new_rows, narrow if np.array_equal(narrow, new_values) else new_values
