"""Loops over the rows that are below thresholds: the stumps of a model as columns, from raw columns.

Covers: how many rows each stump has, and which. Does not cover: sums of all stumps (``histograms``).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from dboost.compiled.arrays import Float64, Int32, Int64, Values


@njit(nogil=True, cache=True)
def count_below(indptr: Int64, values: Values, n_rows: int, places: Int64, thresholds: Float64, counts: Int64) -> None:
    """Count the rows of every stump, those below its threshold in the column at its place; others are zeros."""
    for s in range(places.shape[0]):
        begin, end = indptr[places[s]], indptr[places[s] + 1]
        th, found = thresholds[s], 0
        for p in range(begin, end):
            found += np.float64(values[p]) < th
        counts[s] = found + (n_rows - (end - begin) if th > 0.0 else 0)


@njit(nogil=True, cache=True)
def rows_below(
    indptr: Int64,
    rows: Int32,
    values: Values,
    n_rows: int,
    places: Int64,
    thresholds: Float64,
    start: Int64,
    out: Int32,
) -> None:
    """Write the rows of every stump, ascending.

    Parameters
    ----------
    start : int64 array, shape (stumps + 1,)
        Where the rows of each stump lie.
    out : int32 array, shape (start[-1] + 1,)
        The last entry has no meaning: a row is written before it is known whether it counts.
    """
    for s in range(places.shape[0]):
        begin, end = indptr[places[s]], indptr[places[s] + 1]
        th, p = thresholds[s], start[s]
        if end - begin == n_rows or not th > 0.0:
            for q in range(begin, end):
                out[p] = rows[q]
                p += np.float64(values[q]) < th
            continue
        row = 0
        for q in range(begin, end):
            for absent in range(row, rows[q]):
                out[p] = absent
                p += 1
            row = rows[q] + 1
            out[p] = rows[q]
            p += np.float64(values[q]) < th
        for absent in range(row, n_rows):
            out[p] = absent
            p += 1
