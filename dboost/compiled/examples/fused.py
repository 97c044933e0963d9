"""Passes over examples: margins, loss and sums, block of rows by block of rows.

A partition enters as the cut of its active columns, stored by row (``columns.cut_rows``), with the active rows of W and
the intercept b, (k,), or (m, k) where every example begins at a score of its own. Margins of some examples at a time
are formed in the processor's cache and used there; the loops over stored values know nothing of the loss (``margins``),
those over margins nothing of the data (``loss_of_rows``), so that a loss costs the compilation of its own loops only.
No m x k array is stored unless it is the result.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.compiled.arrays import Float64, Int32, Int64, Values
from dboost.compiled.examples import loss_of_rows
from dboost.compiled.examples import margins as margin_loops
from dboost.compiled.examples.loss_of_rows import repair as repair
from dboost.compiled.examples.loss_rows import TWO_BRANCHED
from dboost.compiled.kept import njit
from dboost.compiled.vectors.room import room
from dboost.compiled.vectors.scaled_rows import bend, gather, padded, scatter, width

Array = NDArray[np.float64]

# Numbers of a block of margins: 128 KB of them, which stay in the processor's second cache, and large beside a call.
_BLOCK = 16384


def _blocks(pointer: Any, slots: Any, values: Any, W: Array, b: Array) -> Iterator[tuple[slice, Array]]:
    """Margins block by block, as (examples, F); F is overwritten by the next."""
    W, start = padded(W), padded(np.atleast_2d(b))
    m = pointer.shape[0] - 1
    most = max(1, min(m, _BLOCK // start.shape[1]))
    F = np.empty((most, start.shape[1]))
    for first in range(0, m, most):
        some = F[: min(most, m - first)]
        margin_loops.add_margins(pointer, slots, values, W, start, first, some)
        yield slice(first, first + some.shape[0]), some


def margins(pointer: Any, slots: Any, values: Any, W: Array, b: Array) -> Array:
    """F = X_A W + b, shape (m, k)."""
    W, start = padded(W), padded(np.atleast_2d(b))
    F = np.empty((pointer.shape[0] - 1, start.shape[1]))
    margin_loops.add_margins(pointer, slots, values, W, start, 0, F)
    return np.ascontiguousarray(F[:, : b.shape[-1]])


def loss_of_margins(F: Array, target: Any, weight: Array, first: int = 0) -> float:
    """L at given margins (m, k), which may be overwritten, of the examples from `first` on."""
    return float(loss_of_rows.losses(F, first, F.shape[1], target, weight))


def residuals(
    pointer: Any, slots: Any, values: Any, W: Array, b: Array, target: Any, weight: Array, total: Array
) -> tuple[Array, float]:
    """U, shape (m, ``width(k)``) with zeros beyond k, and L; adds the column sums of U to `total`."""
    k = total.shape[0]
    U, loss = np.zeros((weight.shape[0], width(k))), 0.0
    for some, F in _blocks(pointer, slots, values, W, b):
        loss += loss_of_rows.residuals(F, some.start, k, target, weight, U[some], total)
    return U, loss


def blocks_of_residuals(
    pointer: Any, slots: Any, values: Any, W: Array, b: Array, target: Any, weight: Array, total: Array
) -> Iterator[tuple[slice, Array, float]]:
    """`residuals` block by block, as (examples, U, their loss); U is overwritten by the next."""
    k = total.shape[0]
    held = np.zeros((0, width(k)))
    for some, F in _blocks(pointer, slots, values, W, b):
        if held.shape[0] < F.shape[0]:
            held = np.zeros_like(F)
        U = held[: F.shape[0]]
        yield some, U, loss_of_rows.residuals(F, some.start, k, target, weight, U, total)


def branches(
    pointer: Any, slots: Any, values: Any, W: Array, b: Array, target: Any, weight: Array, total: Array
) -> tuple[Array, Array, float]:
    """The pulls of the examples up and down, each (m, k), whose difference is U (``loss_rows.branch_row``), and L.

    Adds the column sums of U to `total`. A loss that pulls each example one way has them from its residuals.
    """
    k = total.shape[0]
    if type(target) not in TWO_BRANCHED:
        U, loss = residuals(pointer, slots, values, W, b, target, weight, total)
        U = U[:, :k]
        return np.maximum(U, 0.0), np.maximum(-U, 0.0), loss
    plus, minus = np.empty((weight.shape[0], k)), np.empty((weight.shape[0], k))
    loss = 0.0
    for some, F in _blocks(pointer, slots, values, W, b):
        loss += loss_of_rows.branches(F, some.start, k, target, weight, plus[some], minus[some], total)
    return plus, minus, loss


def active_gradient(
    pointer: Any, slots: Any, values: Any, W: Array, b: Array, target: Any, weight: Array, G: Array, total: Array
) -> float:
    """Add G_A = X_A'U to `G`, which has the ``width`` of its outputs, and the column sums of U to `total`; return L."""
    whole = 0.0
    for some, U, loss in blocks_of_residuals(pointer, slots, values, W, b, target, weight, total):
        # the loop would write beyond the end of narrower rows
        assert G.shape[1] == U.shape[1], f"G has {G.shape[1]} outputs to a row, expected {U.shape[1]}"
        margin_loops.add_rows(pointer, slots, values, some.start, U, G)
        whole += loss
    return whole


def intercept_sums(
    pointer: Any, slots: Any, values: Any, W: Array, b: Array, target: Any, weight: Array, total: Array, H: Array
) -> float:
    """Add the column sums of U to `total` and the intercept's Hessian, sum_i H_i, to `H` (k, k); return L."""
    k, whole = total.shape[0], 0.0
    for some, F in _blocks(pointer, slots, values, W, b):
        h, rank_one = hessians(F, some.start, k, target, weight)
        whole += loss_of_rows.residuals(F, some.start, k, target, weight, np.zeros_like(F), total)
        H[np.diag_indices(k)] += h.sum(axis=0)
        if rank_one.any():
            # not by BLAS, whose threads may change the bits
            H -= np.einsum("ir,is->rs", rank_one[:, None] * h, h)
    return whole


def hessians(F: Array, first: int, k: int, target: Any, weight: Array) -> tuple[Array, Array]:
    """h (m, k) and r (m,) of the Hessians diag(h_i) - r_i h_i h_i' at margins F, which stay as they are."""
    h, rank_one = np.empty((F.shape[0], k)), np.empty(F.shape[0])
    loss_of_rows.curvature(F.copy(), first, k, target, weight, h, rank_one)
    return h, rank_one


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
    trial = np.empty((0, width(b.shape[-1])))
    for (some, F), (_, Z) in zip(_blocks(*cut, W, b), _blocks(*cut, D, d), strict=True):
        trial = np.empty_like(F) if trial.shape[0] < F.shape[0] else trial[: F.shape[0]]
        for q, t in enumerate(steps.tolist()):
            np.add(F, np.multiply(Z, t, out=trial), out=trial)
            out[q] += loss_of_rows.losses(trial, some.start, b.shape[-1], target, weight)


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
    k = b.shape[-1]
    held = np.empty((0, k))
    for some, F in _blocks(pointer, slots, values, W, b):
        if held.shape[0] < F.shape[0]:
            held = np.empty_like(F)
        loss_of_rows.curvature(F, some.start, k, target, weight, held[: F.shape[0]], rank_one[some])
        loss_of_rows.narrow(held[: F.shape[0]], k, some.start, weight, h[some])


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
    sums, bias = hessian_sums(pointer, slots, values, h, rank_one, V, v)
    out += sums
    total += bias


def hessian_sums(
    pointer: Any, slots: Any, values: Any, h: NDArray[Any], rank_one: Array, V: NDArray[Any], v: Array
) -> tuple[NDArray[Any], Array]:
    """What `hessian_product` adds, in the precision of `h`; V may be padded to the width of `h` already."""
    h = padded(h)
    sums = np.zeros((V.shape[0], h.shape[1]), h.dtype)
    bias = np.zeros(h.shape[1])
    V, v_row = padded(V, h.dtype), padded(v[None], h.dtype)[0]
    padded_hessian_product(pointer, slots, values, h, rank_one, V, v_row, sums, bias)
    return sums[:, : v.shape[0]], bias[: v.shape[0]]


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
    """sum_i s_i D_i at the repaired and scaled dual point (``loss_rows.dual_row``); `shift` is (k,), or (m, k)."""
    value, shift = 0.0, np.atleast_2d(shift)
    for some, F in _blocks(pointer, slots, values, W, b):
        own = shift[some] if shift.shape[0] > 1 else shift
        value += loss_of_rows.dual_values(F, some.start, target, weight, scale, mix, own, prior)
    return float(value)
