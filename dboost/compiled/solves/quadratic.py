"""A quadratic model of one output: the curvature among columns, and coordinate descent on it.

Once the curvature among a few hundred columns is known, a sweep over them reads that alone, whatever the number of
examples.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.compiled.arrays import Float64, Int32, Int64, Values
from dboost.compiled.kept import njit
from dboost.compiled.solves.one_output import shrunk
from dboost.compiled.vectors.emit import INLINED
from dboost.compiled.vectors.room import greater, lesser, room, zeros

Array = NDArray[np.float64]
# Where each row begins, the column of each value, the values.
ByRow = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[Any]]

# Rows that are turned at once.
_ROWS = 512


def gram(
    indptr: Any,
    rows: Any,
    values: Any,
    places: NDArray[np.int64],
    h: Array,
    intercept: bool,
    parts: Sequence[slice] = (),
    each: Callable[[Any, Any], list[Array]] | None = None,
) -> Array:
    """X' diag(h) X of the columns at `places`, with the intercept's column of ones last.

    `indptr`, `rows`, `values`: a block by column, rows ascending.
    `places`: (s,).
    `h`: (m,).
    `parts`: the examples in parts that are summed on their own, and then added; all in one without.
    `each`: the function of every part, on threads.
    Returns (s, s) or (s + 1, s + 1).
    """
    s, extra = places.shape[0], int(intercept)
    # the fullest columns first, so that most products fall in one corner of the sums
    order = np.argsort(indptr[places] - indptr[places + 1], kind="stable")
    block = (indptr, rows, values, places[order], h, intercept)
    if each is None or len(parts) < 2:
        sums = _gram(*block, 0, h.shape[0])
    else:
        sums, *others = each(lambda part: _gram(*block, part.start, part.stop), parts)
        for other in others:
            sums += other
    sums += np.triu(sums, 1).T
    back = np.arange(s + extra)
    back[order] = np.arange(s)
    return np.asarray(sums[np.ix_(back, back)])


@njit(nogil=True, cache=True, error_model="numpy")
def _gram(
    indptr: Int64,
    rows: Int32,
    values: Values,
    places: Int64,
    h: Float64,
    intercept: bool,
    first: int,
    stop: int,
) -> Float64:
    """The upper triangle of ``gram`` over the examples first..stop - 1.

    A few rows at a time are turned to rows, so that they are still in the processor's cache when their products are
    formed.
    """
    s = places.shape[0]
    extra = 1 if intercept else 0
    sums: Float64 = zeros((s + extra) * (s + extra), np.float64).reshape((s + extra, s + extra))
    now = room(s, np.int64)
    for c in range(s):
        start, end = indptr[places[c]], indptr[places[c] + 1]
        # the first value of an example from `first` on, by halves
        while start < end:
            half = (start + end) // 2
            if rows[half] < first:
                start = half + 1
            else:
                end = half
        now[c] = start
    then = room(s, np.int64)
    pointer = room(_ROWS + 1, np.int64)
    slots = room(_ROWS * (s + extra), np.int32)
    x = room(_ROWS * (s + extra), np.float64)
    for top in range(first, stop, _ROWS):
        size = lesser(_ROWS, stop - top)
        whole = True
        for c in range(s):
            end = now[c] + size
            whole &= end <= indptr[places[c] + 1] and rows[end - 1] == top + size - 1
        if whole:
            # every column has a value for each of these examples
            for c in range(s):
                for i in range(size):
                    x[i * (s + extra) + c] = values[now[c] + i]
                now[c] += size
            if intercept:
                for i in range(size):
                    x[i * (s + 1) + s] = 1.0
            _add_whole_rows(x, h, top, size, s + extra, sums)
            continue
        pointer[:] = 0
        for c in range(s):
            p, end = now[c], indptr[places[c] + 1]
            while p < end and rows[p] < top + size:
                pointer[rows[p] - top + 1] += 1
                p += 1
            then[c] = p
        for i in range(size):
            pointer[i + 1] += pointer[i] + extra
        for c in range(s):
            for p in range(now[c], then[c]):
                # the place of each row's next value is kept where its first will be
                i = rows[p] - top
                q = pointer[i]
                slots[q] = c
                x[q] = values[p]
                pointer[i] = q + 1
            now[c] = then[c]
        for i in range(size - 1, -1, -1):
            if intercept:
                slots[pointer[i]] = s
                x[pointer[i]] = 1.0
                pointer[i] += 1
            pointer[i + 1] = pointer[i]
        pointer[0] = 0
        for i in range(size):
            _add_products(slots, x, np.uint64(pointer[i]), np.uint64(pointer[i + 1]), h[top + i], sums)
    return sums


@njit(nogil=True, cache=True, error_model="numpy")
def _add_whole_rows(x: Float64, h: Float64, start: int, m: int, width: int, sums: Float64) -> None:
    """As ``_add_products`` of rows without zeros, to the bit, four rows at a time while a sum is at hand."""
    fours = m - m % 4
    for top in range(0, fours, 4):
        a, b = np.uint64(top * width), np.uint64((top + 1) * width)
        c, d = np.uint64((top + 2) * width), np.uint64((top + 3) * width)
        for i in range(np.uint64(width)):
            t, u = h[start + top] * x[a + i], h[start + top + 1] * x[b + i]
            v, w = h[start + top + 2] * x[c + i], h[start + top + 3] * x[d + i]
            line = sums[i]
            for j in range(i, np.uint64(width)):
                line[j] = line[j] + t * x[a + j] + u * x[b + j] + v * x[c + j] + w * x[d + j]
    for top in range(fours, m):
        a = np.uint64(top * width)
        for i in range(np.uint64(width)):
            t = h[start + top] * x[a + i]
            for j in range(i, np.uint64(width)):
                sums[i, j] += t * x[a + j]


@njit(nogil=True, cache=True, **INLINED)
def _add_products(slots: Int32, x: Float64, start: np.uint64, stop: np.uint64, h: float, sums: Float64) -> None:
    """Add h x_p x_q for p <= q of one row, two rows of `sums` at a time."""
    one, two = np.uint64(1), np.uint64(2)
    p = start
    while p + one < stop:
        i, j = np.uint64(slots[p]), np.uint64(slots[p + one])
        t, u = h * x[p], h * x[p + one]
        sums[i, i] += t * x[p]
        sums[i, j] += t * x[p + one]
        sums[j, j] += u * x[p + one]
        for q in range(p + two, stop):
            r = np.uint64(slots[q])
            sums[i, r] += t * x[q]
            sums[j, r] += u * x[q]
        p += two
    if p < stop:
        i = np.uint64(slots[p])
        sums[i, i] += h * x[p] * x[p]


@njit(nogil=True, cache=True, error_model="numpy")
def add_products(new: ByRow, held: ByRow, h: Float64, first: int, stop: int, sums: Float64) -> None:
    """Add X' diag(h) Z to `sums`, over the examples first..stop - 1.

    `new`, `held`: the columns X and Z by row, as ``sparse.columns.cut_rows`` gives them. `h`: (m,). `sums`: (columns of
    X, columns of Z).
    """
    (begin, slots, x), (begin_held, slots_held, x_held) = new, held
    one = np.uint64(1)
    for row in range(first, stop):
        i = np.uint64(row)
        start, end = np.uint64(begin_held[i]), np.uint64(begin_held[i + one])
        p, last = np.uint64(begin[i]), np.uint64(begin[i + one])
        # two rows of `sums` at a time, so that Z is read for both
        while p + one < last:
            a, b = np.uint64(slots[p]), np.uint64(slots[p + one])
            t, u = h[i] * x[p], h[i] * x[p + one]
            for q in range(start, end):
                r = np.uint64(slots_held[q])
                sums[a, r] += t * x_held[q]
                sums[b, r] += u * x_held[q]
            p += one + one
        if p < last:
            a = np.uint64(slots[p])
            t = h[i] * x[p]
            for q in range(start, end):
                sums[a, np.uint64(slots_held[q])] += t * x_held[q]


@njit(nogil=True, cache=True, error_model="numpy")
def minimise(
    H: Float64,
    slots: Int64,
    G: Float64,
    strength: Float64,
    ridge: float,
    max_sweeps: int,
    enough: float,
    W: Float64,
    pull: Float64,
) -> float:
    """Minimise -G'D + D'HD/2 + strength |W + D|_1 by coordinate descent; W becomes W + D, exact zeros as such.

    This is the model of a Newton step (docs/math.md 8). Sweeps over the entries that are not zero follow a sweep
    over all, until one gains at most `enough` times what the best did; then all are visited again. A direction along
    which the curvature vanishes is left alone.

    `H`, (room, room): symmetric; its first rows and columns are filled, as many as `pull` has entries.
    `slots`, (n,): which row of H each entry is.
    `G`, `strength`: (n,).
    `ridge`: share that is added to the diagonal of H in the length of each move; it does not change where they end.
    `W`: (n,).
    `pull`, (size,): becomes H D.
    Returns what the last sweep gained, as a share of the most that one did.
    """
    size = pull.shape[0]
    pull[:] = 0.0
    first = gain = 0.0
    full = True
    for _ in range(max_sweeps):
        gain = 0.0
        for c in range(slots.shape[0]):
            held = W[c]
            if held == 0.0 and not full:
                continue
            j = slots[c]
            metric = H[j, j] * (1.0 + ridge)
            if not metric > 0.0:
                continue
            z = metric * held + G[c] - pull[j]
            out = shrunk(z, strength[c], metric)
            change = out - held
            if change == 0.0:
                continue
            W[c] = out
            gain += metric * change * change
            row = H[j]
            for t in range(size):
                pull[t] += row[t] * change
        first = greater(first, gain)
        small = gain <= enough * first
        if small and full:
            break
        full = small
    return gain / first if first > 0.0 else 0.0
