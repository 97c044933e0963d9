"""Loops for stumps: distinct values, codes of values among thresholds, and sums of examples below every threshold.

All take the CSC arrays of ``dboost.partition.Partition``. Every column is worked on by itself, in the order of its
rows, so a range of columns gives the same bits as the whole.

Codes lie column by column, those of column j in `at[j]` .. `at[j + 1]`: of each example where that many are stored
that their rows take longer to read than the few zeros to add (``code_places``), else of the stored ones in their order.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dboost.compiled.arrays import Float64, Int32, Int64, UInt8, Values
from dboost.compiled.kept import njit
from dboost.compiled.vectors.scaled_rows import add, padded


@njit(nogil=True, cache=True)
def merge_runs(
    start_a: Int64,
    a: Float64,
    count_a: Int64,
    start_b: Int64,
    b: Float64,
    count_b: Int64,
    start: Int64,
    values: Float64,
    counts: Int64,
) -> int:
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


def code_places(indptr: NDArray[np.int64], m: int) -> NDArray[np.int64]:
    """Where the codes of each of n columns of m examples lie, (n + 1,)."""
    stored = np.diff(indptr)
    return np.concatenate([[0], np.cumsum(np.where(2 * stored >= m, m, stored))])


@njit(nogil=True, cache=True)
def encode(
    indptr: Int64,
    rows: Int32,
    values: Values,
    m: int,
    start: Int64,
    thresholds: Float64,
    zero: Int64,
    at: Int64,
    codes: Values,
) -> None:
    """Fill the codes of m examples: how many of the column's thresholds are at most the value.

    `zero`: int64 array, shape (n,). Code of the value 0, which examples that are not stored have.
    """
    for j in range(indptr.shape[0] - 1):
        mine = thresholds[start[j] : start[j + 1]]
        count = mine.shape[0]
        filled = at[j + 1] - at[j] == m
        if filled and indptr[j + 1] - indptr[j] < m:
            codes[at[j] : at[j + 1]] = zero[j]
        for p in range(indptr[j], indptr[j + 1]):
            v = np.float64(values[p])
            # halving without a branch: which half a value is in cannot be foreseen
            low, left = 0, count
            while left > 1:
                half = left // 2
                low += half * (mine[low + half - 1] <= v)
                left -= half
            place = at[j] + (rows[p] if filled else p - indptr[j])
            codes[place] = low + (left > 0 and mine[low] <= v)


@njit(nogil=True, cache=True)
def thin_runs(
    start: Int64, values: Values, counts: Int64, most: int, new_start: Int64, kept: Float64, kept_counts: Int64
) -> int:
    """Thin out the columns with more than `most` values: a kept value stands for those since the one before it.

    What is kept are the last values of steps of the root of the share of rows up to a value (``distinct.cuts``). The
    last three arguments are written; returns how many values are kept.
    """
    filled = 0
    for j in range(start.shape[0] - 1):
        new_start[j] = filled
        if start[j + 1] - start[j] <= most:
            for p in range(start[j], start[j + 1]):
                kept[filled] = values[p]
                kept_counts[filled] = counts[p]
                filled += 1
            continue
        total = 0
        for p in range(start[j], start[j + 1]):
            total += counts[p]
        below, gathered = 0, 0
        for p in range(start[j], start[j + 1]):
            below += counts[p]
            gathered += counts[p]
            step = np.floor(most * np.sqrt(below / total))
            ahead = most + 1.0
            if p + 1 < start[j + 1]:
                ahead = np.floor(most * np.sqrt((below + counts[p + 1]) / total))
            if ahead > step:
                kept[filled] = values[p]
                kept_counts[filled] = gathered
                filled += 1
                gathered = 0
    new_start[-1] = filled
    return filled


@njit(nogil=True, cache=True)
def add_steps(rows: Int32, codes: Values, zero: int, table: Float64, f: Float64) -> None:
    """f += table[code] of every example, from the codes of one column; its rows are read where not all have one."""
    if codes.shape[0] == f.shape[0]:
        for i in range(f.shape[0]):
            f[i] += table[np.uint64(codes[i])]
        return
    rest = table[zero]
    for i in range(f.shape[0]):
        f[i] += rest
    for p in range(codes.shape[0]):
        f[np.uint64(rows[p])] += table[np.uint64(codes[p])] - rest


def sums_below(
    indptr: Int64,
    rows: Int32,
    at: Int64,
    codes: Values,
    start: Int64,
    zero: Int64,
    first: int,
    last: int,
    U: Float64,
    total: Float64,
    out: Float64,
) -> None:
    """Sums of U over the examples below every threshold of the columns first..last - 1.

    `start`: int64 array, shape (n + 1,). Where the thresholds of each column lie.
    `U`: float64 array, shape (m, k).
    `total`: float64 array, shape (k,). Column sums of U.
    `out`: float64 array, shape (thresholds of these columns, k). Overwritten.
    """
    if U.shape[1] == 1:
        u = np.ascontiguousarray(U).reshape(-1)
        _sums_of_one(indptr, rows, at, codes, start, zero, first, last, u, total[0], out.reshape(-1))
    else:
        sums_of_many(indptr, rows, at, codes, start, zero, first, last, padded(U), total, out)


@njit(nogil=True, cache=True)
def _sums_of_one(
    indptr: Int64,
    rows: Int32,
    at: Int64,
    codes: Values,
    start: Int64,
    zero: Int64,
    first: int,
    last: int,
    u: Float64,
    total: float,
    out: Float64,
) -> None:
    m = u.shape[0]
    most = 1
    for j in range(first, last):
        most = max(most, start[j + 1] - start[j] + 1)
    # four sums of each code: examples that follow each other often have the same one, and would wait for its sum
    h = np.empty(4 * most)
    one, two, three, four = h[:most], h[most : 2 * most], h[2 * most : 3 * most], h[3 * most :]
    for j in range(first, last):
        offset, count = start[j] - start[first], start[j + 1] - start[j]
        if count == 0:
            continue
        mine, theirs = codes[at[j] : at[j + 1]], rows[indptr[j] :]
        h[:] = 0.0
        if mine.shape[0] == m:
            whole = m - m % 4
            for i in range(0, whole, 4):
                one[np.uint64(mine[i])] += u[i]
                two[np.uint64(mine[i + 1])] += u[i + 1]
                three[np.uint64(mine[i + 2])] += u[i + 2]
                four[np.uint64(mine[i + 3])] += u[i + 3]
            for i in range(whole, m):
                one[np.uint64(mine[i])] += u[i]
            for code in range(count + 1):
                one[code] = (one[code] + two[code]) + (three[code] + four[code])
        else:
            # An index that may be negative counts from the end, which is asked of each value; an unsigned one is not.
            for p in range(np.uint64(mine.shape[0])):
                one[np.uint64(mine[p])] += u[np.uint64(theirs[p])]
            # examples that are not stored are the rest
            one[zero[j]] += total - one[: count + 1].sum()
        below = 0.0
        for code in range(count):
            below += one[code]
            out[offset + code] = below


@njit(nogil=True, cache=True)
def sums_of_many(
    indptr: Int64,
    rows: Int32,
    at: Int64,
    codes: Values,
    start: Int64,
    zero: Int64,
    first: int,
    last: int,
    U: Float64,
    total: Float64,
    out: Float64,
) -> None:
    m, k = U.shape[0], out.shape[1]
    most = 0
    for j in range(first, last):
        most = max(most, start[j + 1] - start[j])
    # one more than there are thresholds: what lies above all of them
    h = np.empty((most + 1, U.shape[1]))
    for j in range(first, last):
        offset, count = start[j] - start[first], start[j + 1] - start[j]
        if count == 0:
            continue
        begin, stored = at[j], at[j + 1] - at[j]
        h[: count + 1] = 0.0
        if stored == m:
            for i in range(m):
                add(U, i, h, codes[begin + i])
        else:
            for p in range(stored):
                add(U, rows[indptr[j] + p], h, codes[begin + p])
            # examples that are not stored are the rest
            for r in range(k):
                rest = total[r]
                for code in range(count + 1):
                    rest -= h[code, r]
                h[zero[j], r] += rest
        for code in range(count):
            if code > 0:
                add(h, code - 1, h, code)
            for r in range(k):
                out[offset + code, r] = h[code, r]


@njit(nogil=True, cache=True)
def split_sums_of_one(
    indptr: Int64,
    rows: Int32,
    at: Int64,
    codes: Values,
    start: Int64,
    zero: Int64,
    first: int,
    last: int,
    size: Float64,
    negative: UInt8,
    bins: Float64,
) -> None:
    """Add the sums of [u]_+ and of [-u]_+ inside every bin of the columns first..last - 1, in one sweep.

    An example is added to the place of its code and its sign. Four columns with a code for each are swept together:
    their sums do not wait for each other, and a column has the same bits beside any others.

    `size`: float64 array, shape (m,). |u|.
    `negative`: Uint8 array, shape (m,). Whether u < 0.
    `bins`: float64 array, shape (bins of these columns + 1, 2). Zeros but for the last, the sums over all examples.
    """
    m, flat = size.shape[0], bins.reshape(-1)
    two = np.uint64(2)
    j = first
    while j < last:
        begin = at[j]
        place = 2 * (start[j] - start[first] + j - first)
        one = flat[place:]
        together = 0
        while together < 4 and j + together < last and at[j + together + 1] - at[j + together] == m:
            together += 1
        if together == 4:
            second = flat[2 * (start[j + 1] - start[first] + j + 1 - first) :]
            third = flat[2 * (start[j + 2] - start[first] + j + 2 - first) :]
            fourth = flat[2 * (start[j + 3] - start[first] + j + 3 - first) :]
            a, b = codes[begin : begin + m], codes[begin + m : begin + 2 * m]
            c, d = codes[begin + 2 * m : begin + 3 * m], codes[begin + 3 * m : begin + 4 * m]
            for i in range(m):
                x, s = size[i], np.uint64(negative[i])
                one[two * np.uint64(a[i]) + s] += x
                second[two * np.uint64(b[i]) + s] += x
                third[two * np.uint64(c[i]) + s] += x
                fourth[two * np.uint64(d[i]) + s] += x
            j += 4
            continue
        if together:
            a = codes[begin : begin + m]
            for i in range(m):
                one[two * np.uint64(a[i]) + np.uint64(negative[i])] += size[i]
        else:
            mine, theirs = codes[begin : at[j + 1]], rows[indptr[j] :]
            for p in range(np.uint64(mine.shape[0])):
                row = np.uint64(theirs[p])
                one[two * np.uint64(mine[p]) + np.uint64(negative[row])] += size[row]
            # examples that are not stored are the rest
            up, down = bins[-1, 0], bins[-1, 1]
            for code in range(start[j + 1] - start[j] + 1):
                up -= one[2 * code]
                down -= one[2 * code + 1]
            one[2 * zero[j]] += up
            one[2 * zero[j] + 1] += down
        j += 1


@njit(nogil=True, cache=True)
def below_ends(start: Int64, first: int, last: int, bins: Float64, below: Float64) -> None:
    """Fill `below` with the sums over all bins of a column up to each of its thresholds, columns first..last - 1."""
    for j in range(first, last):
        place = start[j] - start[first]
        for r in range(bins.shape[1]):
            total = 0.0
            for code in range(start[j + 1] - start[j]):
                total += bins[place + j - first + code, r]
                below[place + code, r] = total


@njit(nogil=True, cache=True)
def running_sums(number: Int64, sums: Float64) -> None:
    """Add to each row of `sums` those before it of the same number; equal numbers follow each other."""
    for i in range(1, number.shape[0]):
        if number[i] == number[i - 1]:
            for r in range(sums.shape[1]):
                sums[i, r] += sums[i - 1, r]


@njit(nogil=True, cache=True)
def bin_ranges(
    indptr: Int64,
    rows: Int32,
    values: Values,
    weight: Float64,
    n_live: int,
    at: Int64,
    codes: Values,
    start: Int64,
    zero: Int64,
    least: Float64,
    most: Float64,
    counts: Int64,
    masses: Float64,
) -> None:
    """Least and largest value of every bin of every column, the number of rows in it and their weight.

    Bin b of column j lies at start[j] + j + b. Rows of weight zero count for nothing; `least` and `most` come in as
    infinity and minus infinity, `counts` and `masses` as 0.
    """
    total = weight.sum()
    for j in range(indptr.shape[0] - 1):
        seen, mass = 0, 0.0
        filled = at[j + 1] - at[j] == weight.shape[0]
        for p in range(indptr[j], indptr[j + 1]):
            if weight[rows[p]] > 0.0:
                v = np.float64(values[p])
                place = start[j] + j + codes[at[j] + (rows[p] if filled else p - indptr[j])]
                least[place] = min(least[place], v)
                most[place] = max(most[place], v)
                counts[place] += 1
                masses[place] += weight[rows[p]]
                seen += 1
                mass += weight[rows[p]]
        if seen < n_live:
            place = start[j] + j + zero[j]
            least[place] = min(least[place], 0.0)
            most[place] = max(most[place], 0.0)
            counts[place] += n_live - seen
            masses[place] += max(total - mass, 0.0)
