"""Loops over the stored columns of a partition: scoring sums, statistics, cutting out the active columns.

All take the CSC arrays of ``dboost.partition.Partition``. Per-column loops write one row of the result each, in order
of the stored rows, so a range of columns gives the same bits as the whole.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.compiled.arrays import Float32, Float64, Int32, Int64, UInt8, Values
from dboost.compiled.kept import njit
from dboost.compiled.read_only import read_only
from dboost.compiled.sparse.transpose import turn
from dboost.compiled.vectors.room import greater, room, zeros
from dboost.compiled.vectors.scaled_rows import gather, padded


def column_gradient(
    indptr: Any, rows: Any, values: Any, residual: NDArray[Any], candidates: NDArray[np.int64], out: NDArray[Any]
) -> None:
    """Rows of G = X'U for the columns in `candidates`; `out` has shape (len(candidates), k), U k columns or more."""
    padded_column_gradient(indptr, rows, values, padded(residual), candidates, out)


@njit(nogil=True, cache=True)
def padded_column_gradient(
    indptr: Int64, rows: Int32, values: Values, residual: Values, candidates: Int64, out: Float64
) -> None:
    """As ``column_gradient``, on a table of its full width."""
    k = out.shape[1]
    g, zero = room(residual.shape[1], np.float64), zeros(residual.shape[1], np.float64)
    for c in range(candidates.shape[0]):
        j = candidates[c]
        gather(rows, values, indptr[j], indptr[j + 1], residual, zero, g)
        for r in range(k):
            out[c, r] = g[r]


@njit(nogil=True, cache=True)
def column_mu(
    indptr: Int64,
    rows: Int32,
    values: Values,
    plus: Float64,
    minus: Float64,
    candidates: Int64,
    mu_plus: Float64,
    mu_minus: Float64,
) -> None:
    """mu+ and mu- of the columns in `candidates` from the pulls of the examples (docs/math.md, eq. 1 and 2).

    mu+ = [X]_+'plus + [-X]_+'minus, and mu- with the two exchanged. Their difference is G, but mu- cannot be had from
    G and |X|'(plus + minus) when it is much smaller than mu+.
    """
    k = plus.shape[1]
    for c in range(candidates.shape[0]):
        j = candidates[c]
        up = mu_plus[c]
        down = mu_minus[c]
        for r in range(k):
            up[r] = 0.0
            down[r] = 0.0
        for p in range(indptr[j], indptr[j + 1]):
            v = np.float64(values[p])
            if v >= 0.0:
                with_it = plus[rows[p]]
                against = minus[rows[p]]
            else:
                v = -v
                with_it = minus[rows[p]]
                against = plus[rows[p]]
            for r in range(k):
                up[r] += v * with_it[r]
                down[r] += v * against[r]


@njit(nogil=True, cache=True)
def column_statistics(
    indptr: Int64,
    rows: Int32,
    values: Values,
    weight: Float64 | None,
    peak: Float64,
    total: Float64,
    absolute: Float64,
    square: Float64,
    residual: Float64 | None = None,
    G: Any = None,
) -> None:
    """Per column: max |x|, sum s x, sum s |x|, sum s x**2 (examples of weight zero count in none).

    Without weights all are one. With residuals (m,) of one output, also their sums <x, u>, in `G`: data are read once
    for both.
    """
    for j in range(indptr.shape[0] - 1):
        start, stop = np.uint64(indptr[j]), np.uint64(indptr[j + 1])
        # two sums of each, of every other value: one addition need not wait for the one before
        whole = stop - (stop - start) % np.uint64(2)
        a = t = b = q = c = u = d = r = g = e = 0.0
        s = z = 1.0
        for p in range(start, whole, np.uint64(2)):
            if weight is not None:
                s, z = weight[np.uint64(rows[p])], weight[np.uint64(rows[p + np.uint64(1)])]
            v, w = np.float64(values[p]), np.float64(values[p + np.uint64(1)])
            a = greater(a, abs(v) if s > 0.0 else 0.0)
            c = greater(c, abs(w) if z > 0.0 else 0.0)
            t += s * v
            u += z * w
            b += s * abs(v)
            d += z * abs(w)
            q += s * v * v
            r += z * w * w
            if residual is not None:
                g += v * residual[np.uint64(rows[p])]
                e += w * residual[np.uint64(rows[p + np.uint64(1)])]
        for p in range(whole, stop):
            if weight is not None:
                s = weight[np.uint64(rows[p])]
            v = np.float64(values[p])
            a = greater(a, abs(v) if s > 0.0 else 0.0)
            t += s * v
            b += s * abs(v)
            q += s * v * v
            if residual is not None:
                g += v * residual[np.uint64(rows[p])]
        if residual is not None:
            G[j] = g + e
        peak[j] = greater(a, c)
        total[j] = t + u
        absolute[j] = b + d
        square[j] = q + r


def cut_rows(indptr: Any, rows: Any, values: Any, active: NDArray[np.int64], n_rows: int) -> tuple[Any, Any, Any]:
    """The columns `active` as CSR over slots 0..a-1: (row pointer, slot of each value, values), slots ascending."""
    first, last = indptr[active], indptr[active + 1]
    return _turned(first, last, first, last, rows, values, n_rows)


@njit(nogil=True, cache=True)
def _cut_of_rows(
    pointer: Int64, index: Int32, values: Values, held: UInt8, place: Int32
) -> tuple[Int64, Int32, Float32]:
    m = pointer.shape[0] - 1
    total = np.int64(0)
    for p in range(index.shape[0]):
        total += held[np.uint64(index[p])]
    # one more place than there are values: each is written, and the next one over it where it does not belong
    slots = room(total + 1, np.int32)
    cut = room(total + 1, values.dtype)
    out = zeros(m + 1, np.int64)
    q = np.uint64(0)
    for i in range(m):
        for p in range(np.uint64(pointer[i]), np.uint64(pointer[i + 1])):
            slot = place[np.uint64(index[p])]
            slots[q] = slot
            cut[q] = values[p]
            q += np.uint64(slot >= 0)
        out[i + 1] = q
    return out, slots, cut


def cut_of_rows(
    pointer: Any, index: Any, values: Any, active: NDArray[np.int64], n_columns: int
) -> tuple[Any, Any, Any]:
    """As ``cut_rows``, to the bit, of a block that is stored by row, columns ascending; so must be `active`."""
    place = np.full(n_columns, -1, np.int32)
    place[active] = np.arange(active.shape[0], dtype=np.int32)
    # counted from a table that is a quarter as large, and stays in the nearest cache
    out, slots, cut = _cut_of_rows(pointer, index, values, (place >= 0).astype(np.uint8), place)
    return out, slots[:-1], cut[:-1]


def transpose(pointer: Any, slots: Any, values: Any, n_columns: int) -> tuple[Any, Any, Any]:
    """CSR to CSC of a cut block: (column pointer, row of each value, values), rows ascending."""
    # counted as one line, as each of them is short
    return _turned(pointer[:-1], pointer[1:], pointer[:1], pointer[-1:], slots, values, n_columns)


def _turned(first: Any, last: Any, begin: Any, end: Any, index: Any, values: Any, n: int) -> tuple[Any, Any, Any]:
    """Lines of a block, from `first` to `last`, put by the n places that they name: (pointer, line of each, values).

    The same values lie from `begin` to `end`.
    """
    pointer = np.zeros(n + 1, np.int64)
    _tally(begin, end, index, pointer[1:])
    np.cumsum(pointer, out=pointer)
    lines, out = np.empty(pointer[-1], np.int32), np.empty(pointer[-1], values.dtype)
    stored = read_only(first), read_only(last), read_only(index), read_only(values)
    turn(*stored, 0, pointer[:-1].copy(), lines, out)
    return pointer, lines, out


@njit(nogil=True, cache=True, error_model="numpy")
def _tally(first: Int64, last: Int64, index: Int32, counts: Int64) -> None:
    for j in range(first.shape[0]):
        for p in range(np.uint64(first[j]), np.uint64(last[j])):
            counts[np.uint64(index[p])] += 1


def take_rows(pointer: Any, slots: Any, values: Any, chosen: NDArray[np.int64]) -> tuple[Any, Any, Any]:
    """The rows `chosen` of a cut block, as a cut block; or columns of a block by column, which has the same form."""
    start = pointer[chosen]
    out = np.zeros(chosen.shape[0] + 1, np.int64)
    np.cumsum(pointer[chosen + 1] - start, out=out[1:])
    picked, taken = np.empty(out[-1], np.int32), np.empty(out[-1], values.dtype)
    _copy_rows(start, out, slots, values, picked, taken)
    return out, picked, taken


@njit(nogil=True, cache=True, error_model="numpy")
def _copy_rows(start: Int64, out: Int64, slots: Int32, values: Values, picked: Int32, taken: Values) -> None:
    for c in range(start.shape[0]):
        for q in range(out[c], out[c + 1]):
            p = np.uint64(start[c] + q - out[c])
            picked[q] = slots[p]
            taken[q] = values[p]


@njit(nogil=True, cache=True)
def row_lengths(pointer: Int64, values: Values, extra: float) -> Float64:
    """rho_i = `extra` + sum_j |x_ij| over the cut columns (docs/math.md 2; extra is 1 with an intercept)."""
    rho: Float64 = room(pointer.shape[0] - 1, np.float64)
    for i in range(rho.shape[0]):
        t = extra
        for p in range(pointer[i], pointer[i + 1]):
            t += abs(np.float64(values[p]))
        rho[i] = t
    return rho


@njit(nogil=True, cache=True)
def template_sums(
    pointer: Int64, slots: Int32, values: Values, weight: Float64, extra: float, peak: Float64, diagonal: Float64
) -> None:
    """Per slot: max of rho_i where x_ij != 0 (local template) and sum_i s_i |x_ij| rho_i (diagonal bound).

    The last slot is the intercept's, with x = 1, when `extra` is 1.
    """
    rho = row_lengths(pointer, values, extra)
    last = peak.shape[0] - 1
    for i in range(rho.shape[0]):
        if weight[i] <= 0.0:
            continue
        for p in range(pointer[i], pointer[i + 1]):
            v = abs(np.float64(values[p]))
            if v > 0.0:
                peak[slots[p]] = greater(peak[slots[p]], rho[i])
                diagonal[slots[p]] += weight[i] * v * rho[i]
        if extra > 0.0:
            peak[last] = greater(peak[last], rho[i])
            diagonal[last] += weight[i] * rho[i]
