"""Loops for a single output: margins, sums of columns and coordinate descent, with numbers in place of rows of numbers.

With one output a call for each row or column of a table costs more than the row. Everything here is stored by column,
so that a model needs no cut by row of its columns, and arrays of examples have one dimension.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.compiled.arrays import Float32, Float64, Int8, Int32, Int64, Values
from dboost.compiled.kept import njit
from dboost.compiled.vectors.emit import INLINED
from dboost.compiled.vectors.room import room, zeros
from dboost.compiled.vectors.spans import span_curvature, span_product

# Sweeps over few coordinates that follow on one over all that are not zero.
_PARTS = 3


@njit(nogil=True, cache=True)
def add_columns(indptr: Int64, rows: Int32, values: Values, places: Int64, w: Float64, f: Float64) -> None:
    """f += sum_c w[c] x_c over the columns x_c at `places`, in their order.

    A column without gaps is in order, so that none of its rows need be read. Four of these that follow each other are
    added while f is at hand.
    """
    m, c = f.shape[0], 0
    while c < places.shape[0]:
        j, together = places[c], 0
        while together < 4 and c + together < places.shape[0] and w[c + together] != 0.0:
            k = places[c + together]
            if indptr[k + 1] - indptr[k] != m:
                break
            together += 1
        start, stop, x = np.uint64(indptr[j]), np.uint64(indptr[j + 1]), w[c]
        if together == 4:
            second, third = values[indptr[places[c + 1]] :], values[indptr[places[c + 2]] :]
            first, fourth = values[indptr[j] :], values[indptr[places[c + 3]] :]
            y, z, last = w[c + 1], w[c + 2], w[c + 3]
            for i in range(m):
                f[i] = f[i] + first[i] * x + second[i] * y + third[i] * z + fourth[i] * last
            c += 4
            continue
        if together:
            for i in range(m):
                f[i] += values[start + np.uint64(i)] * x
        elif x != 0.0:
            for p in range(start, stop):
                f[np.uint64(rows[p])] += values[p] * x
        c += 1


def round_columns(indptr: Any, values: NDArray[Any], places: NDArray[np.int64], out: NDArray[np.float32]) -> None:
    """Write the values of some columns to the same places of `out`, in its type."""
    for start, stop in zip(indptr[places].tolist(), indptr[places + 1].tolist(), strict=True):
        out[start:stop] = values[start:stop]


@njit(nogil=True, cache=True, error_model="numpy")
def column_sums(indptr: Int64, rows: Int32, values: Values, places: Int64, u: Float64, out: Float64) -> None:
    """out[c] = <x_c, u> for the columns x_c at `places`."""
    for c in range(places.shape[0]):
        j = places[c]
        start, stop = np.uint64(indptr[j]), np.uint64(indptr[j + 1])
        out[c] = _inner(rows, values, start, stop, u)


@njit(nogil=True, cache=True, error_model="numpy")
def column_curvature(
    indptr: Int64, rows: Int32, values: Values, places: Int64, u: Float64, h: Float64, G: Float64, diagonal: Float64
) -> None:
    """G[c] = <x_c, u> and diagonal[c] = sum_i h_i x_ic**2 for the columns x_c at `places`."""
    for c in range(places.shape[0]):
        a = b = d = e = 0.0
        j = places[c]
        if indptr[j + 1] - indptr[j] == u.shape[0]:
            G[c], diagonal[c] = span_curvature(values, indptr[j], u, h)
            continue
        start, stop = np.uint64(indptr[j]), np.uint64(indptr[j + 1])
        whole = stop - (stop - start) % np.uint64(2)
        for p in range(start, whole, np.uint64(2)):
            i, k = np.uint64(rows[p]), np.uint64(rows[p + np.uint64(1)])
            x, y = np.float64(values[p]), np.float64(values[p + np.uint64(1)])
            a += x * u[i]
            b += y * u[k]
            d += x * x * h[i]
            e += y * y * h[k]
        for p in range(whole, stop):
            i = np.uint64(rows[p])
            x = np.float64(values[p])
            a += x * u[i]
            d += x * x * h[i]
        G[c] = a + b
        diagonal[c] = d + e


@njit(nogil=True, cache=True, **INLINED)
def _inner(rows: Int32, values: Values, start: np.uint64, stop: np.uint64, v: Values) -> float:
    if stop - start == np.uint64(v.shape[0]):
        dense: float = span_product(values, np.int64(start), v)
        return dense
    a = b = c = d = v.dtype.type(0)
    one, two, three, four = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
    p = start
    # most columns of text have few values: a loop whose end is found on the way costs them less than one counted before
    while p + four <= stop:
        a += values[p] * v[np.uint64(rows[p])]
        b += values[p + one] * v[np.uint64(rows[p + one])]
        c += values[p + two] * v[np.uint64(rows[p + two])]
        d += values[p + three] * v[np.uint64(rows[p + three])]
        p += four
    while p < stop:
        a += values[p] * v[np.uint64(rows[p])]
        p += one
    found: float = (a + b) + (c + d)
    return found


@njit(nogil=True, cache=True, inline="always")
def shrunk(z: float, strength: float, metric: float) -> float:
    """The minimiser of metric x**2 / 2 - z x + strength |x|: soft thresholding (docs/math.md 4)."""
    size = abs(z) - strength
    return (size if z > 0.0 else -size) / metric if size > 0.0 else 0.0


@njit(nogil=True, cache=True)
def place_columns(
    indptr: Int64,
    rows: Int32,
    values: Values,
    places: Int64,
    first: int,
    fill: Int64,
    out_rows: Int32,
    out_values: Values,
    out_single: Float32,
) -> None:
    """Append columns of one block to those of all, at `fill`, which moves along; its examples start at `first`."""
    for c in range(fill.shape[0]):
        start, stop = indptr[places[c]], indptr[places[c] + 1]
        shift = fill[c] - start
        for p in range(np.uint64(start), np.uint64(stop)):
            q = np.uint64(shift + np.int64(p))
            out_rows[q] = rows[p] + first
            out_values[q] = values[p]
            out_single[q] = values[p]
        fill[c] = shift + stop


@njit(nogil=True, cache=True, inline="always")
def _half(gains: Float64) -> float:
    """About the largest number for which what is no less makes half of all gains together."""
    total = largest = 0.0
    for j in range(gains.shape[0]):
        total += gains[j]
        if gains[j] > largest:
            largest = gains[j]
    least, found = largest, 0.0
    while found < 0.5 * total:
        least *= 0.25
        found = 0.0
        for j in range(gains.shape[0]):
            if gains[j] >= least:
                found += gains[j]
    return least


@njit(nogil=True, cache=True, error_model="numpy")
def descend(
    indptr: Int64,
    rows: Int32,
    values: Values,
    places: Int64,
    h: Float32,
    G: Float64,
    W: Float64,
    strength: Float64,
    diagonal: Float64,
    damping: Float64,
    intercept: bool,
    max_sweeps: int,
    enough: float,
    seed: int,
    new: Float64,
    signs: Int8,
) -> int:
    """Minimise the Newton model of ``descent.newton_descent`` for one output; `new` becomes W + D, exact zeros as such.

    The coordinates are visited in random order, with V = H X D kept per example. The first and the last sweep visit
    every coordinate, and of those between one visits those that are not zero and is followed by `_PARTS` which visit
    those alone that gained most when they were visited last: half of the gain is mostly that of a tenth of the columns.
    Sweeping ends when one over all that are not zero gains less than `enough` times the first, or as many values were
    visited as `max_sweeps` over every coordinate visit. With `intercept` the last coordinate is the intercept's. Where
    `signs`, one for each coordinate, is not 0, the coordinate has no other sign. Returns the number of values visited.
    """
    n = W.shape[0]
    m = h.shape[0]
    V = zeros(m, np.float32)
    order = room(n, np.int64)
    gains = zeros(n, np.float64)
    draw = np.uint64(seed * 2 + 1)
    stored = m if intercept else 0
    for j in range(places.shape[0]):
        stored += indptr[places[j] + 1] - indptr[places[j]]
    first = 0.0
    last_round = max_sweeps == 1
    sweeps = 0
    visited = 0
    parts = 0
    while True:
        full = sweeps == 0 or last_round
        part = not full and parts > 0
        gain = 0.0
        count = n
        if full:
            for j in range(n):
                order[j] = j
        else:
            least = _half(gains) if part else 0.0
            count = 0
            for j in range(n):
                if gains[j] >= least if part else (new[j] != 0.0 or W[j] != 0.0):
                    order[count] = j
                    count += 1
        for o in range(count):
            # xorshift: the order is a function of the seed alone
            draw ^= draw << np.uint64(13)
            draw ^= draw >> np.uint64(7)
            draw ^= draw << np.uint64(17)
            q = o + np.int64(draw % np.uint64(count - o))
            j = order[q]
            order[q] = order[o]
            metric = diagonal[j] + damping[j]
            if not metric > 0.0:
                continue
            bias = intercept and j == n - 1
            start, stop = np.uint64(0), np.uint64(0)
            gains[j] = 0.0
            if bias:
                visited += m
                g = 0.0
                for i in range(m):
                    g += V[i]
            else:
                start, stop = np.uint64(indptr[places[j]]), np.uint64(indptr[places[j] + 1])
                visited += indptr[places[j] + 1] - indptr[places[j]]
                g = np.float64(_inner(rows, values, start, stop, V))
            held = new[j]
            z = metric * held + (G[j] - g - damping[j] * (held - W[j]))
            out = shrunk(z, strength[j], metric)
            if signs[j] * out < 0.0:
                out = 0.0
            change = out - held
            if change == 0.0:
                continue
            new[j] = out
            gains[j] = metric * change * change
            gain += gains[j]
            step = np.float32(change)
            if bias:
                for i in range(m):
                    V[i] += h[i] * step
            elif stop - start == np.uint64(m):
                for i in range(m):
                    V[i] += h[i] * (values[start + np.uint64(i)] * step)
            else:
                for p in range(start, stop):
                    r = np.uint64(rows[p])
                    V[r] += h[r] * (values[p] * step)
        sweeps += 1
        if last_round or (gain == 0.0 and not part):
            break
        if sweeps == 1:
            first = gain
        if part:
            # what is on record of the others is old: that little is left is for a sweep over all of them to say
            recorded = 0.0
            for j in range(n):
                recorded += gains[j]
            parts = parts - 1 if recorded > enough * first else 0
        elif sweeps > 1:
            parts = _PARTS
            last_round = gain <= enough * first
        last_round = last_round or visited >= (max_sweeps - 1) * stored
    return visited
