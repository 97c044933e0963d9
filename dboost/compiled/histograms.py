"""Loops for stumps: distinct values, codes of values among thresholds, and sums of examples below every threshold.

All take the CSC arrays of ``dboost.partition.Partition``. Every column is worked on by itself, in the order of its
stored rows, so a range of columns gives the same bits as the whole.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def merge_runs(start_a, a, count_a, start_b, b, count_b, start, values, counts):
    """Merge two lists of ascending values with their counts, column by column; equal values become one.

    `values` and `counts` have room for both lists; returns how many entries they hold, `start` where each column's lie.
    """
    filled = 0
    for j in range(start_a.shape[0] - 1):
        start[j] = filled
        p, q = start_a[j], start_b[j]
        while p < start_a[j + 1] or q < start_b[j + 1]:
            if q == start_b[j + 1] or (p < start_a[j + 1] and a[p] <= b[q]):
                values[filled] = a[p]
                counts[filled] = count_a[p]
                if q < start_b[j + 1] and a[p] == b[q]:
                    counts[filled] += count_b[q]
                    q += 1
                p += 1
            else:
                values[filled] = b[q]
                counts[filled] = count_b[q]
                q += 1
            filled += 1
    start[-1] = filled
    return filled


@njit(nogil=True, cache=True)
def encode(indptr, values, start, thresholds, codes):
    """Codes of the stored values: how many of the column's thresholds are at most the value."""
    for j in range(indptr.shape[0] - 1):
        first, last = start[j], start[j + 1]
        for p in range(indptr[j], indptr[j + 1]):
            v = np.float64(values[p])
            low, high = first, last
            while low < high:
                middle = (low + high) // 2
                if thresholds[middle] <= v:
                    low = middle + 1
                else:
                    high = middle
            codes[p] = low - first


@njit(nogil=True, cache=True)
def sums_below(indptr, rows, codes, start, zero, first, last, U, total, out):
    """Sums of U over the examples below every threshold of the columns first..last - 1.

    Parameters
    ----------
    start : int64 array, shape (n + 1,)
        Where the thresholds of each column lie.
    zero : int64 array, shape (n,)
        Code of the value 0, which examples that are not stored have.
    U : float64 array, shape (m, k)
    total : float64 array, shape (k,)
        Column sums of U.
    out : float64 array, shape (thresholds of these columns, k)
        Overwritten.
    """
    m, k = U.shape
    stored = np.empty(k)
    for j in range(first, last):
        offset, count = start[j] - start[first], start[j + 1] - start[j]
        if count == 0:
            continue
        out[offset : offset + count] = 0.0
        full = indptr[j + 1] - indptr[j] == m
        stored[:] = 0.0
        for p in range(indptr[j], indptr[j + 1]):
            i = p - indptr[j] if full else rows[p]
            code = codes[p]
            if code < count:
                for r in range(k):
                    out[offset + code, r] += U[i, r]
            elif not full:
                for r in range(k):
                    stored[r] += U[i, r]
        if not full and zero[j] < count:
            for code in range(count):
                for r in range(k):
                    stored[r] += out[offset + code, r]
            for r in range(k):
                out[offset + zero[j], r] += total[r] - stored[r]
        for code in range(1, count):
            for r in range(k):
                out[offset + code, r] += out[offset + code - 1, r]


@njit(nogil=True, cache=True)
def bin_ranges(indptr, rows, values, weight, n_live, start, above, least, most, counts):
    """Least and largest value of every bin of every column, and the number of rows in it.

    Bins of column j end below ``above[start[j] : start[j + 1]]``, and lie at start[j] + j. Rows of weight zero count
    for nothing; `least`, `most` and `counts` come in as infinity, minus infinity and 0.
    """
    for j in range(indptr.shape[0] - 1):
        seen = 0
        for p in range(indptr[j], indptr[j + 1] + 1):
            if p < indptr[j + 1]:
                if weight[rows[p]] <= 0.0:
                    continue
                v = np.float64(values[p])
                number = 1
                seen += 1
            else:
                # rows that are not stored
                v = np.float64(0.0)
                number = n_live - seen
                if number == 0:
                    continue
            low, high = start[j], start[j + 1]
            while low < high:
                middle = (low + high) // 2
                if above[middle] <= v:
                    low = middle + 1
                else:
                    high = middle
            place = low + j
            least[place] = min(least[place], v)
            most[place] = max(most[place], v)
            counts[place] += number
