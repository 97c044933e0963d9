"""Coordinate descent over single entries of W, on the model of a Newton step (docs/math.md 8).

Where a penalty ties no entries and most of them are zero, a sweep over rows moves k numbers for each stored value while
one or two classes of the row move at all. Here an entry (j, r) costs one number for each value of its column: with
z = X D and H_i = diag(h_i) - rho_i h_i h_i' its model has

    gradient = sum_i x_ij h_ir (z_ir - t_i),   curvature = sum_i x_ij**2 h_ir (1 - rho_i h_ir),   t_i = rho_i h_i'z_i,

and a step d of it moves z_ir by x_ij d and t_i by rho_i h_ir x_ij d. With x_ij / sqrt(rho_i) for x_ij and rho_i h_ir
for h_ir, rho is one: a value then costs two places of memory. The numbers of a class lie together, as pairs
(h_ir, z_ir), so that they stay in the processor's cache while the entries of the class are visited. Where rho is zero,
as for one logistic loss a label, t is zero and not looked at: `tied` is false.

Columns come as (columns, rows, values) with values scaled so (``scale_values``), the intercept's as one more of them.
Does not cover: which entries may move, and when to look at the others (``solvers.newton.entrywise``); what is solved
again, and which classes side by side (``solvers.newton.entry_sweeps``).
"""

from __future__ import annotations

import numpy as np

from dboost.compiled.arrays import Bool, Float32, Float64, Int32, Int64, Values
from dboost.compiled.kept import njit
from dboost.compiled.solves.order import shuffle
from dboost.compiled.vectors.emit import INLINED
from dboost.compiled.vectors.scaled_rows import gather

# Examples whose rows stay in the cache while they are written class by class.
_TILE = 32


@njit(nogil=True, cache=True)
def scale_values(rows: Int32, values: Values, size: Float64) -> Float32:
    """x_ij size_i, in single precision."""
    out = np.empty(values.shape[0], np.float32)
    for p in range(values.shape[0]):
        out[p] = values[p] * size[rows[p]]
    return out


@njit(nogil=True, cache=True)
def pair_up(h: Float32, unit: Float64, start: int, stop: int, pairs: Float32) -> None:
    """Fill pairs[r] with (h_ir unit_i, 0) for the classes r in start..stop - 1."""
    for i in range(h.shape[0]):
        for r in range(start, stop):
            pairs[r, i, 0] = h[i, r] * unit[i]
            pairs[r, i, 1] = 0.0


@njit(nogil=True, cache=True)
def curvatures(
    columns: Int64,
    rows: Int32,
    values: Values,
    pairs: Float32,
    tied: bool,
    entry_rows: Int64,
    classes: Int64,
    start: int,
    stop: int,
    out: Float64,
) -> None:
    """sum_i x_ij**2 h_ir (1 - h_ir), or sum_i x_ij**2 h_ir, of the entries start..stop - 1."""
    part = 1.0 if tied else 0.0
    for e in range(start, stop):
        j, pair = entry_rows[e], pairs[classes[e]]
        total = 0.0
        for p in range(columns[j], columns[j + 1]):
            x, h = np.float64(values[p]), np.float64(pair[rows[p], 0])
            total += x * x * h * (1.0 - part * h)
        out[e] = total


@njit(nogil=True, cache=True, **INLINED)
def _pull(rows: Int32, values: Values, start: int, stop: int, pair: Float32, t: Float32, tied: bool) -> float:
    """sum_i x_ij h_ir (z_ir - t_i)."""
    # several sums side by side: an addition takes four cycles, and two can start in each
    a = b = c = d = 0.0
    even = stop - (stop - start) % 4
    if tied:
        for p in range(start, even, 4):
            i0, i1, i2, i3 = rows[p], rows[p + 1], rows[p + 2], rows[p + 3]
            a += np.float64(values[p] * pair[i0, 0] * (pair[i0, 1] - t[i0]))
            b += np.float64(values[p + 1] * pair[i1, 0] * (pair[i1, 1] - t[i1]))
            c += np.float64(values[p + 2] * pair[i2, 0] * (pair[i2, 1] - t[i2]))
            d += np.float64(values[p + 3] * pair[i3, 0] * (pair[i3, 1] - t[i3]))
        for p in range(even, stop):
            i = rows[p]
            a += np.float64(values[p] * pair[i, 0] * (pair[i, 1] - t[i]))
    else:
        for p in range(start, stop):
            i = rows[p]
            a += np.float64(values[p] * pair[i, 0] * pair[i, 1])
    return (a + b) + (c + d)


@njit(nogil=True, cache=True, **INLINED)
def _push(
    rows: Int32, values: Values, start: int, stop: int, pair: Float32, t: Float32, tied: bool, step: float
) -> None:
    """z_ir += x_ij step, t_i += h_ir x_ij step."""
    moved = t.dtype.type(step)
    if tied:
        for p in range(start, stop):
            i = rows[p]
            x = values[p] * moved
            pair[i, 1] += x
            t[i] += pair[i, 0] * x
    else:
        for p in range(start, stop):
            pair[rows[p], 1] += values[p] * moved


@njit(nogil=True, cache=True, error_model="numpy")
def visit_entries(
    columns: Int64,
    rows: Int32,
    values: Values,
    pairs: Float32,
    t: Float32,
    tied: bool,
    G: Float64,
    W: Float64,
    lam: Float64,
    damping: Float64,
    entry_rows: Int64,
    bounds: Int64,
    curvature: Float64,
    classes: Int64,
    visited: Bool,
    settle: float,
    seed: int,
    again: Bool,
    D: Float64,
) -> tuple[int, float]:
    """Minimise the model over one entry after another: those of some classes, in random order.

    Entries bounds[r]..bounds[r + 1] - 1 are those of class r. Of these the ones that `visited` names are solved, and
    `again` gets those that missed their optimality by more than `settle` times their lam. Returns how many stored
    values were looked at, and what was gained (twice, and of the squares alone).
    """
    state = np.uint64(seed * 2 + 1)
    looked, gain = 0, 0.0
    for r in classes:
        pair = pairs[r]
        mine = np.arange(bounds[r], bounds[r + 1])
        state = shuffle(mine, state)
        for e in mine:
            if not visited[e]:
                continue
            j = entry_rows[e]
            start, stop = columns[j], columns[j + 1]
            looked += stop - start
            metric = curvature[e] + damping[j, r]
            if not metric > 0.0:
                again[e] = False
                continue
            now = W[j, r] + D[j, r]
            g = G[j, r] - _pull(rows, values, start, stop, pair, t, tied) - damping[j, r] * D[j, r]
            v = metric * now + g
            size = abs(v) - lam[j]
            new = np.copysign(size, v) / metric if size > 0.0 else 0.0
            change = new - now
            again[e] = lam[j] > 0.0 and metric * abs(change) > settle * lam[j]
            gain += metric * change * change
            # exact zeros must stay exact: D is set so that W + D reproduces `new`
            D[j, r] = new - W[j, r]
            if change != 0.0:
                _push(rows, values, start, stop, pair, t, tied, change)
    return looked, gain


@njit(nogil=True, cache=True)
def merge(first: Float32, second: Float32, base: Float32) -> None:
    """What two groups of classes made of one t, side by side: all three become base + its change in either."""
    for i in range(base.shape[0]):
        both = first[i] + (second[i] - base[i])
        first[i] = both
        second[i] = both
        base[i] = both


@njit(nogil=True, cache=True)
def push_entries(
    columns: Int64,
    rows: Int32,
    values: Values,
    pairs: Float32,
    t: Float32,
    tied: bool,
    entry_rows: Int64,
    bounds: Int64,
    first: int,
    last: int,
    V: Values,
) -> None:
    """z = X V in the pairs of the classes first..last - 1, for V zero but at the entries; add their share to t."""
    for r in range(first, last):
        pair = pairs[r]
        for i in range(t.shape[0]):
            pair[i, 1] = 0.0
        for e in range(bounds[r], bounds[r + 1]):
            j = entry_rows[e]
            if V[j, r] != 0.0:
                _push(rows, values, columns[j], columns[j + 1], pair, t, tied, V[j, r])


@njit(nogil=True, cache=True)
def pull_entries(
    columns: Int64,
    rows: Int32,
    values: Values,
    pairs: Float32,
    t: Float32,
    tied: bool,
    entry_rows: Int64,
    bounds: Int64,
    first: int,
    last: int,
    out: Float64,
) -> None:
    """(X'H z)_jr at the entries of the classes first..last - 1."""
    for r in range(first, last):
        for e in range(bounds[r], bounds[r + 1]):
            j = entry_rows[e]
            out[j, r] = _pull(rows, values, columns[j], columns[j + 1], pairs[r], t, tied)


@njit(nogil=True, cache=True)
def spread(pairs: Float32, t: Float32, start: int, stop: int, V: Values) -> None:
    """V_ir = h_ir (z_ir - t_i), that is V = H z, for the examples start..stop - 1."""
    for first in range(start, stop, _TILE):
        for r in range(pairs.shape[0]):
            pair = pairs[r]
            for i in range(first, min(first + _TILE, stop)):
                V[i, r] = pair[i, 0] * (pair[i, 1] - t[i])


@njit(nogil=True, cache=True)
def add_violators(
    columns: Int64,
    rows: Int32,
    values: Values,
    V: Values,
    start: int,
    stop: int,
    G: Float64,
    lam: Float64,
    settle: float,
    inside: Bool,
) -> int:
    """Mark the entries of the rows start..stop - 1 whose zero is no longer optimal by `settle` times their lam."""
    g, zero = np.empty(V.shape[1], V.dtype), np.zeros(V.shape[1], V.dtype)
    found = 0
    for j in range(start, stop):
        gather(rows, values, columns[j], columns[j + 1], V, zero, g)
        for r in range(G.shape[1]):
            if not inside[j, r] and abs(G[j, r] - g[r]) > (1.0 + settle) * lam[j]:
                inside[j, r] = True
                found += 1
    return found
