"""Block coordinate descent on the quadratic model of a Newton step (docs/math.md 8).

One block is one row of the step D: the row's model is majorised by its diagonal, and the penalised row problem is
solved exactly by ``compiled.solves.row_prox``. The curvature is that of sampled examples, kept as V = H z per example.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.compiled.arrays import Float32, Float64, Int8, Int32, Int64, Values
from dboost.compiled.kept import njit
from dboost.compiled.solves.row_prox import BOUND, diagonal_prox
from dboost.compiled.vectors.emit import INLINED
from dboost.compiled.vectors.new_arrays import new_arrays
from dboost.compiled.vectors.room import greater, lesser, room, zeros
from dboost.compiled.vectors.scaled_rows import gather, padded, push, scale, scatter

Array = NDArray[np.float64]

# Rows that hold at most this share of the stored values move the others by too little for another sweep of all of them
# (2026-11: a tenth of all rows, however many values they hold, took 1.3 times as long where these are common words).
_FEW = 1.0 / 30.0
# Values, each for all outputs, up to which a sweep of all rows costs next to nothing.
_LIGHT = 1_000_000
# Values of a column whose squares are summed in the precision of the curvature.
_RUN = 256
# Below it, half of the largest float32, no sum of squares has overflowed on the way.
_LARGEST = 1.7e38


def curvature_diagonal(
    columns: Any,
    rows: Any,
    values: NDArray[Any],
    selected: NDArray[np.int64],
    h: NDArray[Any],
    rank_one: Array,
    weight: Array,
    intercept: bool,
    out: Array,
    bound: NDArray[Any],
) -> None:
    """Diagonal of a bound on each row's model: sum_i x_ij**2 bound_i for the columns `selected`, the intercept last.

    `bound` is room of the shape and type of `h`, or `h` itself, which is then overwritten. For a softmax example
    diag(q) - q q' is bounded by diag(q) when no class holds more than half, else by 2 diag(q (1 - q)) (docs/math.md
    8, class-separable Newton); a diagonal Hessian is its own bound.
    """
    bound_curvature(h, rank_one, weight, bound)
    add_squares(columns, rows, values, selected, padded(bound), out)
    if intercept:
        out[selected.shape[0]] += bound[:, : out.shape[1]].sum(axis=0, dtype=np.float64)


def bound_curvature(h: NDArray[Any], rank_one: Array, weight: Array, bound: NDArray[Any]) -> None:
    """Fill `bound` with the diagonal that bounds the Hessian of every example; see ``curvature_diagonal``."""
    if rank_one.any():
        _bound_blocks(h, rank_one, weight, bound)
    else:
        bound[:] = h


@njit(nogil=True, cache=True, error_model="numpy")
def _bound_blocks(h: Float32, rank_one: Float64, weight: Float64, bound: Float32) -> None:
    k = h.shape[1]
    whole = h.dtype.type(1.0)
    for i in range(h.shape[0]):
        half = h.dtype.type(0.5 * weight[i])
        # counted, because the largest number of a row would be found one by one
        above = 0
        for r in range(k):
            above += h[i, r] > half
        if rank_one[i] == 0.0 or above == 0:
            for r in range(k):
                bound[i, r] = h[i, r]
        else:
            share = h.dtype.type(1.0 / weight[i])
            for r in range(k):
                bound[i, r] = (whole + whole) * h[i, r] * (whole - h[i, r] * share)


@njit(nogil=True, cache=True)
def add_squares(columns: Int64, rows: Int32, values: Values, selected: Int64, bound: Float32, out: Float64) -> None:
    """Add sum_i x_ij**2 bound_i to a row of `out` for every column j of `selected`."""
    # sums of so few numbers of the type of `bound` are exact enough, the sum of these is of float64
    k = out.shape[1]
    d, zero = room(bound.shape[1], bound.dtype), zeros(bound.shape[1], bound.dtype)
    squares = room(_RUN, bound.dtype)
    for c in range(selected.shape[0]):
        j = selected[c]
        for first in range(columns[j], columns[j + 1], _RUN):
            size = lesser(_RUN, columns[j + 1] - first)
            for p in range(size):
                x = values[first + p]
                squares[p] = x * x
            gather(rows[first : first + size], squares, 0, size, bound, zero, d)
            largest = d[0]
            for r in range(1, k):
                largest = greater(largest, d[r])
            if largest <= _LARGEST:
                for r in range(k):
                    out[c, r] += d[r]
                continue
            # squares of values beyond 1e19 are no float32: they are few, and summed one by one
            for p in range(first, first + size):
                x, i = np.float64(values[p]), rows[p]
                for r in range(k):
                    out[c, r] += x * x * np.float64(bound[i, r])


@njit(nogil=True, cache=True)
def curvature_blocks(
    pointer: Int64,
    slots: Int32,
    values: Values,
    h: Values,
    rank_one: Float64,
    place: Int64,
    first: int,
    every: int,
    intercept: bool,
    out: Values,
) -> None:
    """Add sum_i x_ij x_il (h_ir - r_i h_ir**2) to out[j, l, r], j <= l, for the slots with a place; the intercept last.

    Over the examples `first`, `first` + `every`, ... of a block stored by row, slots ascending; places ascend with
    them. `out` has shape (t, t, columns of h), and the type of h: it steers, nothing more. Of a softmax these are the
    blocks of its class-separable Hessian (docs/math.md 8).
    """
    t = out.shape[0]
    k = h.shape[1]
    blocks = out.reshape((t * t, k))
    where = room(t, np.int32)
    x = room(t, h.dtype)
    z = room(k, h.dtype)
    d = room(k, h.dtype)
    zero = h.dtype.type(0.0)
    for i in range(first, h.shape[0], every):
        count = 0
        for p in range(pointer[i], pointer[i + 1]):
            if place[slots[p]] >= 0:
                where[count] = place[slots[p]]
                x[count] = values[p]
                count += 1
        if intercept:
            where[count] = t - 1
            x[count] = 1.0
            count += 1
        share = h.dtype.type(rank_one[i])
        for r in range(k):
            # of a probability that is one, rounding may leave less than nothing
            d[r] = greater(h[i, r] - share * h[i, r] * h[i, r], zero)
        for p in range(count):
            scale(np.float64(x[p]), d, z)
            scatter(where, x, p, count, z, blocks, where[p] * t)


@njit(nogil=True, cache=True, error_model="numpy")
def entry_blocks(
    pointer: Int64,
    slots: Int32,
    values: Values,
    h: Values,
    rank_one: Float64,
    first: Int64,
    output: Int64,
    place: Int64,
    start: Int64,
    size: Int64,
    begin: int,
    every: int,
    intercept: bool,
    out: Float64,
) -> None:
    """Add sum_i x_ij x_il (h_ir - r_i h_ir**2) for the entries (j, r) and (l, r), j <= l, of every output r.

    Over the examples `begin`, `begin` + `every`, ... of a block stored by row, slots ascending. The entries of slot j
    are `first[j]` .. `first[j + 1]` - 1; `place` is where each stands among the entries of its output, and ascends with
    the slots; the intercept is the slot after the last. The block of output r has `size[r]` rows and begins at
    `start[r]` of `out`.
    """
    k = size.shape[0]
    base = room(k + 1, np.int64)
    base[0] = 0
    for r in range(k):
        base[r + 1] = base[r] + size[r]
    where = room(base[k], np.int64)
    x = room(base[k], np.float64)
    count = room(k, np.int64)
    last = first.shape[0] - 2
    for i in range(begin, h.shape[0], every):
        for r in range(k):
            count[r] = 0
        stop = pointer[i + 1] + (1 if intercept else 0)
        for p in range(pointer[i], stop):
            j, value = last, 1.0
            if p < pointer[i + 1]:
                j, value = np.int64(slots[p]), np.float64(values[p])
            for e in range(first[j], first[j + 1]):
                r = output[e]
                at = base[r] + count[r]
                where[at] = place[e]
                x[at] = value
                count[r] += 1
        for r in range(k):
            own = np.float64(h[i, r])
            curved = own - rank_one[i] * own * own
            # of a probability that is one, rounding may leave less than nothing
            if not curved > 0.0:
                continue
            for p in range(base[r], base[r] + count[r]):
                row = start[r] + where[p] * size[r]
                scaled = x[p] * curved
                for q in range(p, base[r] + count[r]):
                    out[row + where[q]] += scaled * x[q]


@njit(nogil=True, cache=True, **INLINED)
def _pull(
    columns: Int64, rows: Int32, values: Values, V: Float32, j: int, n_columns: int, zero: Float32, g: Float32
) -> None:
    """g = sum_i x_ij V_i."""
    if j < n_columns:
        gather(rows, values, columns[j], columns[j + 1], V, zero, g)
    else:
        # an assignment of all would bring along what its error needs: how numbers become texts
        for r in range(g.shape[0]):
            g[r] = zero[r]
        for i in range(V.shape[0]):
            v = V[i]
            for r in range(g.shape[0]):
                g[r] += v[r]


@njit(nogil=True, cache=True)
def _shuffle(order: Int64, state: np.uint64) -> np.uint64:
    """Shuffle `order` in place; returns the state of the generator (xorshift) after it, an unsigned 64-bit integer."""
    for i in range(order.shape[0] - 1, 0, -1):
        state ^= (state << np.uint64(13)) & np.uint64(0xFFFFFFFFFFFFFFFF)
        state ^= state >> np.uint64(7)
        state ^= (state << np.uint64(17)) & np.uint64(0xFFFFFFFFFFFFFFFF)
        j = np.int64(state % np.uint64(i + 1))
        t = order[i]
        order[i] = order[j]
        order[j] = t
    return state


def newton_descent(
    columns: Any,
    rows: Any,
    values: NDArray[Any],
    h: NDArray[np.float32],
    rank_one: Array,
    G: Array,
    W: Array,
    lam: Array,
    diagonal: Array,
    damping: Array,
    code: int,
    a: float,
    b: float,
    c: float,
    max_sweeps: int,
    seed: int,
    D: Array,
    settle: float,
    signs: NDArray[np.int8],
) -> int:
    """Minimise the sampled Newton model over the step D, by sweeps of exact row solves.

    Model: -<G, D> + 1/2 sum_i z_i' H_i z_i + 1/2 sum damping D**2 + sum_j lam_j omega(W_j + D_j), z = X D; `diagonal`
    bounds the rows' curvature from the examples, `damping` (a + 1, k) is what is added to it.
    The last row is the intercept's when W has one row more than there are columns; its lam is 0. `signs` has one for
    each row of W: where it is not 0, W + D has no entry of the other sign.

    Returns the number of sweeps. A row is solved again until it misses its optimality by no more than the share
    `settle` of its lam; a sweep of all rows then looks whether others have come to, and is the last where these hold a
    small share of many values. Rows that are visited together hold
    at most `max_sweeps` times the stored values.
    """
    single = padded(h, np.float32)
    # every row of W goes through it anew: on large pages
    V = new_arrays((single.size, np.float32))[0].reshape(single.shape)
    V[:] = 0.0
    model = (columns, rows, values, single, rank_one, G, W, lam, diagonal, damping, V)
    return int(_newton_descent(*model, code, a, b, c, max_sweeps, seed, D, settle, signs))


@njit(nogil=True, cache=True, error_model="numpy")
def _newton_descent(
    columns: Int64,
    rows: Int32,
    values: Values,
    h: Float32,
    rank_one: Float64,
    G: Float64,
    W: Float64,
    lam: Float64,
    diagonal: Float64,
    damping: Float64,
    V: Float32,
    code: int,
    a: float,
    b: float,
    c: float,
    max_sweeps: int,
    seed: int,
    D: Float64,
    settle: float,
    signs: Int8,
) -> int:
    n_columns = columns.shape[0] - 1
    n_rows, k = W.shape
    order = room(n_rows, np.int64)
    for j in range(n_rows):
        order[j] = j
    state = np.uint64(seed * 2 + 1)
    g, zero = room(h.shape[1], np.float32), zeros(h.shape[1], np.float32)
    z = room(k, np.float64)
    out = room(k, np.float64)
    work = room(4 * k + 8, np.float64)
    metric = room(k, np.float64)
    delta = zeros(h.shape[1], np.float32)
    n_everyone = h.shape[0] if n_rows > n_columns else 0
    # the intercept's column
    everyone = room(n_everyone, rows.dtype), room(n_everyone, values.dtype)
    for i in range(n_everyone):
        everyone[0][i] = i
        everyone[1][i] = 1.0
    sweeps = 0
    # the rows that the next sweep visits, unless it visits all
    again = room(n_rows, np.bool_)
    again[:] = True
    whole = True
    few = False
    budget = max_sweeps * columns[n_columns]
    while True:
        state = _shuffle(order, state)
        gain = 0.0
        calm = True
        for o in range(n_rows):
            j = order[o]
            if not whole and not again[j] and j < n_columns:
                continue
            if j < n_columns:
                budget -= columns[j + 1] - columns[j]
            _pull(columns, rows, values, V, j, n_columns, zero, g)
            largest = 0.0
            for r in range(k):
                metric[r] = diagonal[j, r] + damping[j, r]
                largest = greater(largest, metric[r])
            if not largest > 0.0:
                again[j] = False
                continue
            smallest = 1e-12 * largest
            for r in range(k):
                metric[r] = greater(metric[r], smallest)
                z[r] = W[j, r] + D[j, r] + (G[j, r] - g[r] - damping[j, r] * D[j, r]) / metric[r]
            if signs[j] != 0:
                # an entry that is drawn to the wrong sign is best at zero, and the others as without it
                for r in range(k):
                    z[r] = 0.0 if signs[j] * z[r] < 0.0 else z[r]
            if lam[j] == 0.0:
                for r in range(k):
                    out[r] = z[r]
            else:
                diagonal_prox(code, a, b, c, z, metric, lam[j], out, work)
            moved = False
            residual = 0.0
            for r in range(k):
                change = out[r] - W[j, r] - D[j, r]
                missed = metric[r] * abs(change)
                residual += missed if code == BOUND else missed * missed
                delta[r] = np.float32(change)
                if delta[r] != 0.0:
                    moved = True
                gain += metric[r] * change * change
                # exact zeros must stay exact: D is set so that W + D reproduces `out`
                D[j, r] = out[r] - W[j, r]
            # in the dual norm, or for entries one by one in a larger one
            most = settle * lam[j]
            again[j] = j < n_columns and residual > (most if code == BOUND else most * most)
            calm = calm and not again[j]
            if moved:
                # V = H z moves along with z += x_j delta; written once, since its code is large
                index, x, start, stop = everyone[0], everyone[1], 0, n_everyone
                if j < n_columns:
                    index, x, start, stop = rows, values, columns[j], columns[j + 1]
                push(index, x, start, stop, h, rank_one, delta, V)
        sweeps += 1
        if whole:
            left = 0
            for j in range(n_columns):
                left += columns[j + 1] - columns[j] if again[j] else 0
            few = k * columns[n_columns] > _LIGHT and left <= _FEW * columns[n_columns]
        # some of the rows alone may have nothing left to gain: the others are still to be visited, unless those that a
        # visit of all found were so few that they moved the others by little
        if (calm and (whole or few)) or (whole and gain == 0.0) or budget <= 0:
            break
        whole = calm
    return sweeps
