"""Passes over examples: margins, loss and sums, block of rows by block of rows.

A partition enters as the cut of its active columns, stored by row (``columns.cut_rows``), with the active rows of W and
the intercept b. Margins of a few rows at a time are formed in the processor's cache and used there (``tiles``; passes
that are seldom take some thousand at a time); the loops over stored values know nothing of the loss (``vector``), those
over margins nothing of the data (``rows``), so that a loss costs the compilation of its own loops only. No m x k array
is stored unless it is the result.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.compiled.arrays import Float64, Int32, Int64, Values
from dboost.compiled.examples import loss_of_rows, tiles, trials
from dboost.compiled.examples.loss_of_rows import repair
from dboost.compiled.kept import njit
from dboost.compiled.vectors.room import room
from dboost.compiled.vectors.scaled_rows import bend, gather, padded, scatter

Array = NDArray[np.float64]

# Numbers of a block of margins: 512 KB of them, small beside the processor's cache and large beside a call.
_BLOCK = 65536


def _ready(W: Array, b: Array, m: int) -> tuple[Array, Array, Array]:
    """W and b at the width of the loops, and a tile for the margins of some of `m` examples."""
    W, start = padded(W), padded(b[None])[0]
    return W, start, tiles.tile(start.shape[0], m)


def _blocks(pointer: Any, slots: Any, values: Any, W: Array, b: Array) -> Iterator[tuple[int, Array]]:
    """Margins block by block, as (first example, F); F is overwritten by the next."""
    W, start = padded(W), padded(b[None])[0]
    m = pointer.shape[0] - 1
    most = max(1, min(m, _BLOCK // start.shape[0]))
    room = np.empty((most, start.shape[0]))
    for first in range(0, m, most):
        F = room[: min(most, m - first)]
        tiles.add_margins(pointer, slots, values, W, start, first, F)
        yield first, F


def margins(pointer: Any, slots: Any, values: Any, W: Array, b: Array) -> Array:
    """F = X_A W + b, shape (m, k)."""
    W, start = padded(W), padded(b[None])[0]
    F = np.empty((pointer.shape[0] - 1, start.shape[0]))
    tiles.add_margins(pointer, slots, values, W, start, 0, F)
    return np.ascontiguousarray(F[:, : b.shape[0]])


def loss_of_margins(F: Array, target: Any, weight: Array) -> float:
    """L at given margins (m, k), which may be overwritten."""
    return float(loss_of_rows.losses(F, 0, F.shape[1], target, weight))


def largest(pointer: Any, slots: Any, values: Any, W: Array, b: Array, target: Any, weight: Array) -> float:
    """max_i log |U_i|, -inf without examples of positive weight; for losses that are ``shifted``."""
    top = -np.inf
    for first, F in _blocks(pointer, slots, values, W, b):
        top = max(top, loss_of_rows.largest(F, first, b.shape[0], target, weight))
    return float(top)


def residuals(
    pointer: Any, slots: Any, values: Any, W: Array, b: Array, target: Any, weight: Array, total: Array
) -> tuple[Array, float]:
    """U, shape (m, ``width(k)``) with zeros beyond k, and L; adds the column sums of U to `total`."""
    W, start, room = _ready(W, b, weight.shape[0])
    U = np.zeros((weight.shape[0], start.shape[0]))
    return U, tiles.residuals(pointer, slots, values, W, start, 0, target, weight, room, b.shape[0], U, total)


def branches(
    pointer: Any, slots: Any, values: Any, W: Array, b: Array, target: Any, weight: Array, total: Array
) -> tuple[Array, Array, float]:
    """The pulls of the examples up and down, each (m, k), whose difference is U (``loss_rows.branch_row``), and L.

    Adds the column sums of U to `total`.
    """
    k = b.shape[0]
    plus, minus = np.empty((weight.shape[0], k)), np.empty((weight.shape[0], k))
    loss = 0.0
    for first, F in _blocks(pointer, slots, values, W, b):
        some = slice(first, first + F.shape[0])
        loss += loss_of_rows.branches(F, first, k, target, weight, plus[some], minus[some], total)
    return plus, minus, loss


def active_gradient(
    pointer: Any, slots: Any, values: Any, W: Array, b: Array, target: Any, weight: Array, G: Array, total: Array
) -> float:
    """Add G_A = X_A'U to `G` and the column sums of U to `total`; return L."""
    k = b.shape[0]
    W, start, room = _ready(W, b, weight.shape[0])
    U, sums = np.zeros_like(room), np.zeros((G.shape[0], start.shape[0]))
    loss = tiles.active_gradient(pointer, slots, values, W, start, target, weight, room, k, U, total, sums)
    G += sums[:, :k]
    return float(loss)


def intercept_sums(
    pointer: Any, slots: Any, values: Any, W: Array, b: Array, target: Any, weight: Array, total: Array, H: Array
) -> float:
    """Add the column sums of U to `total` and the intercept's Hessian, sum_i H_i, to `H` (k, k); return L.

    An H of one row is given its diagonal alone.
    """
    loss = 0.0
    for first, F in _blocks(pointer, slots, values, W, b):
        loss += loss_of_rows.intercept_sums(F, first, b.shape[0], target, weight, total, H)
    return loss


def add_trials(
    pointer: Any,
    slots: Any,
    values: Any,
    W: Array,
    b: Array,
    target: Any,
    weight: Array,
    fresh: tuple[Any, Any, Any],
    u: Array,
    live: NDArray[np.bool_],
    change: Array,
    G: Array,
    H: Array,
) -> None:
    """Add what the models with one more column each, those of the cut `fresh`, say (``trials.add_trials``)."""
    for first, F in _blocks(pointer, slots, values, W, b):
        trials.add_trials(F, first, *fresh, u, live, target, weight, change, G, H)


def losses_along(
    pointer: Any,
    slots: Any,
    values: Any,
    W: Array,
    b: Array,
    D: Array,
    d: Array,
    steps: Array,
    target: Any,
    weight: Array,
    out: Array,
) -> None:
    """Add L(F + t (X_A D + d)) to `out[q]` for every t = steps[q] (the GRID pass of docs/math.md 0)."""
    cut = (pointer, slots, values)
    for (first, F), (_, Z) in zip(_blocks(*cut, W, b), _blocks(*cut, D, d), strict=True):
        loss_of_rows.losses_along(F, Z, first, b.shape[0], steps, target, weight, out)


def curvature(
    pointer: Any,
    slots: Any,
    values: Any,
    W: Array,
    b: Array,
    target: Any,
    weight: Array,
    h: NDArray[Any],
    rank_one: Array,
) -> None:
    """Hessian of every example as diag(h_i) - r_i h_i h_i': fill `h`, (m, k) or wider, and `rank_one` (m,)."""
    W, start, room = _ready(W, b, weight.shape[0])
    tiles.curvature(pointer, slots, values, W, start, target, weight, room, b.shape[0], h, rank_one)


def hessian_product(
    pointer: Any,
    slots: Any,
    values: Any,
    h: NDArray[Any],
    rank_one: Array,
    V: Array,
    v: Array,
    out: Array,
    total: Array,
) -> None:
    """Add X_A' H (X_A V + 1 v') to `out` and the intercept's part to `total`; computed in the precision of `h`."""
    h = padded(h)
    sums = np.zeros((V.shape[0], h.shape[1]), h.dtype)
    bias = np.zeros(h.shape[1])
    V, v_row = padded(V, h.dtype), padded(v[None], h.dtype)[0]
    padded_hessian_product(pointer, slots, values, h, rank_one, V, v_row, sums, bias)
    out += sums[:, : v.shape[0]]
    total += bias[: v.shape[0]]


@njit(nogil=True, cache=True)
def padded_hessian_product(
    pointer: Int64,
    slots: Int32,
    values: Values,
    h: Values,
    rank_one: Float64,
    V: Values,
    v: Values,
    out: Values,
    total: Float64,
) -> None:
    """As ``hessian_product``, on tables of one width and dtype; `total` is float64."""
    z = room(v.shape[0], v.dtype)
    for i in range(rank_one.shape[0]):
        gather(slots, values, pointer[i], pointer[i + 1], V, v, z)
        bend(h, i, rank_one[i], z, total)
        scatter(slots, values, pointer[i], pointer[i + 1], z, out, 0)


def dual_value(
    pointer: Any,
    slots: Any,
    values: Any,
    W: Array,
    b: Array,
    target: Any,
    weight: Array,
    scale: Array,
    mix: Array,
    shift: Array,
    prior: Array,
) -> float:
    """sum_i s_i D_i at the repaired and scaled dual point (``loss_rows.dual_row``)."""
    W, start, room = _ready(W, b, weight.shape[0])
    repair = (scale, mix, shift, prior)
    return float(tiles.dual_values(pointer, slots, values, W, start, target, weight, room, *repair))


__all__ = [
    "add_trials",
    "active_gradient",
    "branches",
    "curvature",
    "dual_value",
    "hessian_product",
    "intercept_sums",
    "largest",
    "loss_of_margins",
    "losses_along",
    "margins",
    "repair",
    "residuals",
]
