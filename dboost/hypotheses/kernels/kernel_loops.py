"""Loops for Gaussian kernels of rows: products with a few centres at once, kernel values, the perceptron.

Rows and centres come by row (CSR). Every inner product is one sum over the
columns in ascending order, whatever is computed beside it: terms that are zero do not change it. So the kernel of a
row and a centre has the same bits in any block of rows and beside any other centres, and the kernel of a row with
itself is exactly 1.

A squared distance is formed from the squares of both rows and their product, which a tile of centres shares. Where
that cancels nearly all digits, as for rows far from zero, the pair is gone through once more, difference by difference.
"""

from __future__ import annotations

import math

import numpy as np

from dboost.compiled.arrays import Float64, Int8, Int32, Int64, Values
from dboost.compiled.kept import njit

TILE = 64
"""Centres whose distances are formed together; their values at the columns of a row stay in the processor's cache."""

CANCELLED = 2.0**-20
"""A squared distance below this share of the squares it is the difference of has lost 20 of its 53 bits, and is formed
anew. With those left a kernel is right to nine digits; rows nearer to zero than that are spared the second look."""


@njit(nogil=True, cache=True)
def row_squares(pointer: Int64, values: Values, out: Float64) -> None:
    """||x||**2 of every row."""
    for i in range(pointer.shape[0] - 1):
        t = 0.0
        for p in range(pointer[i], pointer[i + 1]):
            v = np.float64(values[p])
            t += v * v
        out[i] = t


@njit(nogil=True, cache=True)
def spread_tile(
    pointer: Int64, slots: Int32, values: Values, start: int, stop: int, n_columns: int
) -> tuple[Int64, Float64]:
    """Centres start..stop - 1 as a dense block over the columns they use.

    Returns the place of each column in the block, -1 for columns that no centre uses, and the block (c, stop - start).
    """
    place = np.full(n_columns, -1, np.int64)
    for p in range(pointer[start], pointer[stop]):
        place[slots[p]] = 0
    c = 0
    for j in range(n_columns):
        if place[j] == 0:
            place[j] = c
            c += 1
    Z = np.zeros((c, stop - start))
    for s in range(start, stop):
        for p in range(pointer[s], pointer[s + 1]):
            Z[place[slots[p]], s - start] = np.float64(values[p])
    return place, Z


@njit(nogil=True, cache=True)
def squared_distance(product: float, xx: float, zz: float, cosine: bool) -> tuple[float, bool]:
    """||x - z||**2 from <x, z> and the squares of both, at least 0; with `cosine` after scaling both to length one.

    A zero row stays zero when it is scaled. Beside it comes whether so many digits cancelled that the distance is to
    be formed by `differences`.
    """
    if cosine:
        length = math.sqrt(xx) * math.sqrt(zz)
        unit = (1.0 if xx > 0.0 else 0.0) + (1.0 if zz > 0.0 else 0.0)
        d = max(unit - 2.0 * (product / length), 0.0) if length > 0.0 else unit
        return d, d < CANCELLED * unit
    d = max(xx + zz - 2.0 * product, 0.0)
    return d, d < CANCELLED * (xx + zz)


@njit(nogil=True, cache=True)
def differences(
    slots: Int32,
    values: Values,
    start: int,
    stop: int,
    other_slots: Int32,
    other_values: Values,
    other_start: int,
    other_stop: int,
    xx: float,
    zz: float,
    cosine: bool,
) -> float:
    """||x - z||**2 of entries start..stop - 1 and other_start..other_stop - 1 as a sum of squared differences.

    The differences of rows that are close to each other are exact, wherever they are; with `cosine` the rows are
    scaled to length one first.
    """
    x_scale = 1.0 / math.sqrt(xx) if cosine and xx > 0.0 else 1.0
    z_scale = 1.0 / math.sqrt(zz) if cosine and zz > 0.0 else 1.0
    total = 0.0
    p, q = start, other_start
    while p < stop and q < other_stop:
        j, k = slots[p], other_slots[q]
        d = 0.0
        if j <= k:
            d = np.float64(values[p]) * x_scale
            p += 1
        if k <= j:
            d -= np.float64(other_values[q]) * z_scale
            q += 1
        total += d * d
    while p < stop:
        d = np.float64(values[p]) * x_scale
        total += d * d
        p += 1
    while q < other_stop:
        d = np.float64(other_values[q]) * z_scale
        total += d * d
        q += 1
    return total


@njit(nogil=True, cache=True)
def tile_distances(
    pointer: Int64,
    slots: Int32,
    values: Values,
    xx: Float64,
    centre_pointer: Int64,
    centre_slots: Int32,
    centre_values: Values,
    first: int,
    place: Int64,
    Z: Float64,
    zz: Float64,
    cosine: bool,
    out: Float64,
) -> None:
    """Squared distances of all rows to the centres of a tile; one row of `out` (t, m) per centre.

    `centre_pointer`, `centre_slots`, `centre_values`: All centres by row.
    `first`: The first centre of the tile.
    `place`, `Z`: ``spread_tile`` of the tile.
    """
    t = Z.shape[1]
    longest = 0
    for i in range(pointer.shape[0] - 1):
        longest = max(longest, pointer[i + 1] - pointer[i])
    products = np.empty(t)
    places = np.empty(longest, np.int64)
    v = np.empty(longest)
    for i in range(pointer.shape[0] - 1):
        n = 0
        for p in range(pointer[i], pointer[i + 1]):
            c = place[slots[p]]
            if c >= 0:
                places[n] = c
                v[n] = np.float64(values[p])
                n += 1
        products[:] = 0.0
        # Four terms per turn, added in their order: the sums leave the registers a quarter as often.
        q = 0
        while q + 4 <= n:
            v0, v1, v2, v3 = v[q], v[q + 1], v[q + 2], v[q + 3]
            z0, z1, z2, z3 = Z[places[q]], Z[places[q + 1]], Z[places[q + 2]], Z[places[q + 3]]
            for s in range(t):
                products[s] = (((products[s] + v0 * z0[s]) + v1 * z1[s]) + v2 * z2[s]) + v3 * z3[s]
            q += 4
        while q < n:
            v0, z0 = v[q], Z[places[q]]
            for s in range(t):
                products[s] += v0 * z0[s]
            q += 1
        for s in range(t):
            d, cancelled = squared_distance(products[s], xx[i], zz[s], cosine)
            if cancelled:
                start, stop = centre_pointer[first + s], centre_pointer[first + s + 1]
                ends = pointer[i], pointer[i + 1]
                d = differences(slots, values, *ends, centre_slots, centre_values, start, stop, xx[i], zz[s], cosine)
            out[s, i] = d


@njit(nogil=True, cache=True)
def exponentiate(distances: Float64, gamma: float) -> None:
    """exp(-gamma * distance), in place."""
    for t in range(distances.shape[0]):
        for i in range(distances.shape[1]):
            distances[t, i] = math.exp(-gamma * distances[t, i])


@njit(nogil=True, cache=True)
def block_sums(K: Float64, residual: Float64, out: Float64) -> None:
    """out[s, r] = sum_i K[s, i] residual[i, r], rows in order; K has shape (s, m)."""
    out[:] = 0.0
    for s in range(K.shape[0]):
        for i in range(K.shape[1]):
            h = K[s, i]
            for r in range(residual.shape[1]):
                out[s, r] += h * residual[i, r]


@njit(nogil=True, cache=True)
def block_statistics(K: Float64, weight: Float64, square: Float64, total: Float64, peak: Float64) -> None:
    """Per hypothesis: sum s h**2, sum s h, max h over examples of positive weight (a kernel is never negative)."""
    for s in range(K.shape[0]):
        q = 0.0
        t = 0.0
        a = 0.0
        for i in range(K.shape[1]):
            if weight[i] > 0.0:
                h = K[s, i]
                q += weight[i] * h * h
                t += weight[i] * h
                a = max(a, h)
        square[s] = q
        total[s] = t
        peak[s] = a


@njit(nogil=True, cache=True)
def sparse_columns(K: Float64) -> tuple[Int64, Int32, Float64]:
    """The rows of K (s, m) as CSC columns without zeros: (indptr, rows, values)."""
    indptr = np.zeros(K.shape[0] + 1, np.int64)
    for s in range(K.shape[0]):
        n = 0
        for i in range(K.shape[1]):
            n += K[s, i] != 0.0
        indptr[s + 1] = indptr[s] + n
    rows = np.empty(indptr[-1], np.int32)
    values = np.empty(indptr[-1])
    q = 0
    for s in range(K.shape[0]):
        for i in range(K.shape[1]):
            if K[s, i] != 0.0:
                rows[q] = i
                values[q] = K[s, i]
                q += 1
    return indptr, rows, values


@njit(nogil=True, cache=True)
def add_scores(K: Float64, steps: Int64, outputs: Int32, signs: Int8, first: int, F: Float64) -> None:
    """F[i, r] += sign_sr K[s, i] for the centres first, first + 1, ... of a tile, in that order.

    The steps of centre s are entries steps[s] .. steps[s + 1] - 1 of `outputs` and `signs`.
    """
    for t in range(K.shape[0]):
        for q in range(steps[first + t], steps[first + t + 1]):
            r = outputs[q]
            sign = np.float64(signs[q])
            for i in range(K.shape[1]):
                F[i, r] += sign * K[t, i]


@njit(nogil=True, cache=True)
def mistake_of_class(F: Float64, i: int, y: int, outputs: Int32, signs: Int8) -> int:
    """The perceptron's step for a class code: +1 for the class, -1 for the first best other one, if that ties or wins.

    Returns the number of entries written to `outputs` and `signs`; 0 when the row is classified rightly.
    """
    best = -1
    for r in range(F.shape[1]):
        if r != y and (best < 0 or F[i, r] > F[i, best]):
            best = r
    if F[i, y] > F[i, best]:
        return 0
    outputs[0] = y
    signs[0] = 1
    outputs[1] = best
    signs[1] = -1
    return 2


@njit(nogil=True, cache=True)
def mistake_of_signs(F: Float64, i: int, y: Int8, outputs: Int32, signs: Int8) -> int:
    """The perceptron's step for signs: y_r for every observed task r with y_r F_r <= 0."""
    n = 0
    for r in range(y.shape[1]):
        if y[i, r] != 0 and y[i, r] * F[i, r] <= 0.0:
            outputs[n] = r
            signs[n] = y[i, r]
            n += 1
    return n


@njit(nogil=True, cache=True)
def perceptron(
    indptr: Int64,
    rows: Int32,
    values: Values,
    pointer: Int64,
    slots: Int32,
    cut: Values,
    xx: Float64,
    coded: bool,
    codes: Int32,
    tasks: Int8,
    F: Float64,
    gamma: float,
    cosine: bool,
    limit: int,
    picks: Int64,
    steps: Int64,
) -> tuple[int, Int32, Int8]:
    """Visit the rows of one block in order and keep the mistakes; return their number, outputs and signs.

    `indptr`, `rows`, `values`: The block by column.
    `pointer`, `slots`, `cut`: The same by row.
    `xx`: float64 array, shape (m,). Squares of the rows.
    `coded`: Labels are class codes in `codes` (m,); otherwise signs in `tasks` (m, k).
    `F`: float64 array, shape (m, k). Scores by the centres found before this block; on return by all.
    `limit`: Mistakes kept at most.
    `picks`: int64 array, shape (m,). Receives the rows kept.
    `steps`: int64 array, shape (m + 1,). Receives the end of each one's steps.
    """
    m, k = F.shape
    ahead = indptr[:-1].copy()
    products = np.zeros(m)
    size = max(2, k)
    outputs = np.empty(4 * size, np.int32)
    signs = np.empty(4 * size, np.int8)
    n = 0
    filled = 0
    steps[0] = 0
    for i in range(m):
        if n >= limit:
            break
        if filled + size > outputs.shape[0]:
            more_outputs = np.empty(2 * outputs.shape[0], np.int32)
            more_outputs[:filled] = outputs[:filled]
            outputs = more_outputs
            more_signs = np.empty(2 * signs.shape[0], np.int8)
            more_signs[:filled] = signs[:filled]
            signs = more_signs
        if coded:
            found = mistake_of_class(F, i, codes[i], outputs[filled:], signs[filled:])
        else:
            found = mistake_of_signs(F, i, tasks, outputs[filled:], signs[filled:])
        if found == 0:
            continue
        # Only rows that are still to come need the new centre: each column is entered behind row i.
        products[i + 1 :] = 0.0
        for q in range(pointer[i], pointer[i + 1]):
            j = slots[q]
            z = np.float64(cut[q])
            while ahead[j] < indptr[j + 1] and rows[ahead[j]] <= i:
                ahead[j] += 1
            for p in range(ahead[j], indptr[j + 1]):
                products[rows[p]] += z * np.float64(values[p])
        for t in range(i + 1, m):
            d, cancelled = squared_distance(products[t], xx[t], xx[i], cosine)
            if cancelled:
                ends = pointer[t], pointer[t + 1]
                own = pointer[i], pointer[i + 1]
                d = differences(slots, cut, *ends, slots, cut, *own, xx[t], xx[i], cosine)
            h = math.exp(-gamma * d)
            for q in range(filled, filled + found):
                F[t, outputs[q]] += np.float64(signs[q]) * h
        picks[n] = i
        filled += found
        n += 1
        steps[n] = filled
    return n, outputs[:filled].copy(), signs[:filled].copy()
