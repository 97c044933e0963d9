"""A few examples at a time: margins, what the loss makes of them, and sums, one after the other in the first cache.

Margins and residuals of a tile are in the processor's first cache from when they are formed until nobody needs them
any more, and a pass is one call of compiled code: between two of them a thread has to have the interpreter's lock, for
which threads that share a pass waited for one another.

What goes over stored values knows nothing of the loss, and what goes over margins nothing of the data; here they are
only called in turn. How long a tile is depends on the outputs and on the number of examples alone, for the bits' sake.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.compiled.arrays import Float32, Float64, Int32, Int64, Values
from dboost.compiled.examples import loss_of_rows
from dboost.compiled.kept import njit
from dboost.compiled.vectors.room import lesser
from dboost.compiled.vectors.scaled_rows import gather, scatter

Array = NDArray[np.float64]

_TILE = 1024
"""Numbers of a tile: its margins and residuals take half of a first cache of 32 KB."""
_LEAST = 8


def tile(wide: int, m: int) -> Array:
    """Room for the margins of a tile, or what is as large: some of `m` examples, `wide` numbers each."""
    return np.zeros((max(1, min(m, max(_LEAST, _TILE // wide))), wide))


@njit(nogil=True, cache=True)
def add_margins(pointer: Int64, slots: Int32, values: Values, W: Float64, b: Float64, first: int, F: Float64) -> None:
    """Margins of the examples from `first` on into the rows of F; W, b and F have the same width."""
    if b.shape[0] == 1:
        # one output: a call for each row would cost more than the row
        for t in range(F.shape[0]):
            f = b[0]
            for p in range(pointer[first + t], pointer[first + t + 1]):
                f += values[p] * W[slots[p], 0]
            F[t, 0] = f
        return
    for t in range(F.shape[0]):
        i = first + t
        gather(slots, values, pointer[i], pointer[i + 1], W, b, F[t])


@njit(nogil=True, cache=True)
def add_rows(pointer: Int64, slots: Int32, values: Values, first: int, U: Float64, G: Float64) -> None:
    """G += X'U over the examples from `first` on; U and G have the same width."""
    if U.shape[1] == 1:
        for t in range(U.shape[0]):
            u = U[t, 0]
            for p in range(pointer[first + t], pointer[first + t + 1]):
                G[slots[p], 0] += values[p] * u
        return
    for t in range(U.shape[0]):
        i = first + t
        scatter(slots, values, pointer[i], pointer[i + 1], U[t], G, 0)


@njit(nogil=True, cache=True)
def residuals(
    pointer: Int64,
    slots: Int32,
    values: Values,
    W: Float64,
    b: Float64,
    start: int,
    target: Any,
    weight: Float64,
    F: Float64,
    k: int,
    U: Float64,
    total: Float64,
) -> float:
    """Residuals of the examples from `start` on into the rows of U, added to `total` (k,); their loss. F is a tile."""
    loss = 0.0
    for first in range(0, U.shape[0], F.shape[0]):
        stop = lesser(first + F.shape[0], U.shape[0])
        some = F[: stop - first]
        add_margins(pointer, slots, values, W, b, start + first, some)
        loss += loss_of_rows.residuals(some, start + first, k, target, weight, U[first:stop], total)
    return loss


@njit(nogil=True, cache=True)
def active_gradient(
    pointer: Int64,
    slots: Int32,
    values: Values,
    W: Float64,
    b: Float64,
    target: Any,
    weight: Float64,
    F: Float64,
    k: int,
    U: Float64,
    total: Float64,
    G: Float64,
) -> float:
    """G += X'U and total += the column sums of U over all examples; their loss. F and U are tiles."""
    loss = 0.0
    m = weight.shape[0]
    for first in range(0, m, F.shape[0]):
        size = lesser(F.shape[0], m - first)
        some = U[:size]
        add_margins(pointer, slots, values, W, b, first, F[:size])
        loss += loss_of_rows.residuals(F[:size], first, k, target, weight, some, total)
        add_rows(pointer, slots, values, first, some, G)
    return loss


@njit(nogil=True, cache=True)
def curvature(
    pointer: Int64,
    slots: Int32,
    values: Values,
    W: Float64,
    b: Float64,
    target: Any,
    weight: Float64,
    F: Float64,
    k: int,
    h: Float32,
    rank_one: Float64,
) -> None:
    """Hessians of all examples, as ``rows.curvature`` fills them. F is a tile."""
    m = weight.shape[0]
    for first in range(0, m, F.shape[0]):
        stop = lesser(first + F.shape[0], m)
        some = F[: stop - first]
        add_margins(pointer, slots, values, W, b, first, some)
        loss_of_rows.curvature(some, first, k, target, weight, h[first:stop], rank_one[first:stop])


@njit(nogil=True, cache=True)
def dual_values(
    pointer: Int64,
    slots: Int32,
    values: Values,
    W: Float64,
    b: Float64,
    target: Any,
    weight: Float64,
    F: Float64,
    scale: Float64,
    mix: Float64,
    shift: Float64,
    prior: Float64,
) -> float:
    """sum_i s_i D_i of all examples, as ``rows.dual_values``. F is a tile."""
    m = weight.shape[0]
    value = 0.0
    for first in range(0, m, F.shape[0]):
        some = F[: lesser(F.shape[0], m - first)]
        add_margins(pointer, slots, values, W, b, first, some)
        value += loss_of_rows.dual_values(some, first, target, weight, scale, mix, shift, prior)
    return value
