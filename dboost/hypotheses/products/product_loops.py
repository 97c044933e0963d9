"""Loops over monomials of stored columns: making the few that a model holds, and what scales the columns.

Covers: scaled columns, their products, and least and greatest values. Does not cover: sums over all products that
extend some (``children_loops``).

A block enters as CSC. Values are float64 here: a monomial multiplies scaled features, and its bits must not depend on
whether it was made for a fit or for a prediction.
"""

from __future__ import annotations

import numpy as np

from dboost.compiled.arrays import Float64, Int32, Int64, Values
from dboost.compiled.kept import njit


@njit(nogil=True, cache=True)
def scaled_columns(
    indptr: Int64, rows: Int32, values: Values, n_rows: int, letters: Int64, low: Float64, width: Float64
) -> tuple[Int64, Int32, Float64]:
    """The columns `letters` as (x - low) / width, zeros dropped: (indptr, rows, values), rows ascending.

    A column with low = 0 keeps its stored places; another one has a value in every row.
    """
    total = 0
    for c in range(letters.shape[0]):
        j = letters[c]
        total += n_rows if low[c] != 0.0 else indptr[j + 1] - indptr[j]
    out_ptr = np.zeros(letters.shape[0] + 1, np.int64)
    out_rows = np.empty(total, np.int32)
    out_values = np.empty(total)
    q = 0
    for c in range(letters.shape[0]):
        j = letters[c]
        if low[c] == 0.0:
            for p in range(indptr[j], indptr[j + 1]):
                out_rows[q] = rows[p]
                out_values[q] = np.float64(values[p]) / width[c]
                q += 1
        else:
            p = indptr[j]
            for i in range(n_rows):
                x = 0.0
                if p < indptr[j + 1] and rows[p] == i:
                    x = np.float64(values[p])
                    p += 1
                v = (x - low[c]) / width[c]
                if v != 0.0:
                    out_rows[q] = i
                    out_values[q] = v
                    q += 1
        out_ptr[c + 1] = q
    return out_ptr, out_rows[:q].copy(), out_values[:q].copy()


@njit(nogil=True, cache=True)
def monomials(
    indptr: Int64, rows: Int32, values: Values, n_rows: int, ends: Int64, letters: Int64
) -> tuple[Int64, Int32, Float64]:
    """Products of columns: monomial c is that of the columns letters[ends[c] : ends[c + 1]]; 1 for an empty range.

    Returns (indptr, rows, values); zeros that arise by underflow stay out.
    """
    count = ends.shape[0] - 1
    out_ptr = np.zeros(count + 1, np.int64)
    capacity = max(n_rows, 16)
    out_rows = np.empty(capacity, np.int32)
    out_values = np.empty(capacity)
    held_rows = np.empty(n_rows, np.int32)
    held = np.empty(n_rows)
    q = 0
    for c in range(count):
        start, stop = ends[c], ends[c + 1]
        if start == stop:
            size = n_rows
            for i in range(n_rows):
                held_rows[i] = i
                held[i] = 1.0
        else:
            j = letters[start]
            size = 0
            for p in range(indptr[j], indptr[j + 1]):
                held_rows[size] = rows[p]
                held[size] = values[p]
                size += 1
        for letter in range(start + 1, stop):
            j = letters[letter]
            p, end = indptr[j], indptr[j + 1]
            kept = 0
            for t in range(size):
                while p < end and rows[p] < held_rows[t]:
                    p += 1
                if p == end:
                    break
                if rows[p] == held_rows[t]:
                    held_rows[kept] = held_rows[t]
                    held[kept] = held[t] * values[p]
                    kept += 1
            size = kept
        if q + size > capacity:
            capacity = max(2 * capacity, q + size)
            more_rows = np.empty(capacity, np.int32)
            more_values = np.empty(capacity)
            more_rows[:q] = out_rows[:q]
            more_values[:q] = out_values[:q]
            out_rows, out_values = more_rows, more_values
        for t in range(size):
            if held[t] != 0.0:
                out_rows[q] = held_rows[t]
                out_values[q] = held[t]
                q += 1
        out_ptr[c + 1] = q
    return out_ptr, out_rows[:q].copy(), out_values[:q].copy()


@njit(nogil=True, cache=True)
def column_ranges(
    indptr: Int64, rows: Int32, values: Values, weight: Float64, n_live: int, low: Float64, high: Float64
) -> None:
    """Per column over the `n_live` rows of positive weight: least and greatest value, zeros included."""
    for j in range(indptr.shape[0] - 1):
        a, b = np.inf, -np.inf
        seen = 0
        for p in range(indptr[j], indptr[j + 1]):
            if weight[rows[p]] > 0.0:
                v = np.float64(values[p])
                a = min(a, v)
                b = max(b, v)
                seen += 1
        if seen < n_live:
            a = min(a, 0.0)
            b = max(b, 0.0)
        low[j] = a
        high[j] = b


@njit(nogil=True, cache=True)
def values_between(
    indptr: Int64,
    rows: Int32,
    values: Values,
    weight: Float64,
    n_live: int,
    low: Float64,
    high: Float64,
    between: Float64,
) -> None:
    """Whether a column has a value strictly between `low` and `high` in a row of positive weight: 1.0 or 0.0."""
    for j in range(indptr.shape[0] - 1):
        between[j] = 0.0
        seen = 0
        for p in range(indptr[j], indptr[j + 1]):
            if weight[rows[p]] > 0.0:
                seen += 1
                v = np.float64(values[p])
                if low[j] < v and v < high[j]:
                    between[j] = 1.0
                    break
        if seen < n_live and low[j] < 0.0 and 0.0 < high[j]:
            between[j] = 1.0


@njit(nogil=True, cache=True)
def products_formed(indptr: Int64, rows: Int32, n_rows: int, formed: Float64) -> None:
    """Per column: how many values are stored in the rows where it has one, itself included."""
    in_row = np.zeros(n_rows)
    for p in range(indptr[0], indptr[-1]):
        in_row[rows[p]] += 1.0
    for j in range(indptr.shape[0] - 1):
        formed[j] = 0.0
        for p in range(indptr[j], indptr[j + 1]):
            formed[j] += in_row[rows[p]]
