"""The loss of each row of a block of margins: residuals, pulls, curvature, values along a line, dual values.

All take margins F of consecutive examples, example `first` being row 0, which they may overwrite. Columns of F beyond
the k outputs are padding. The loss enters through its target, whose type selects the row functions
(``loss_rows``); what these loops add up is the same however the examples are cut into blocks only if the cut
is the same, so ``fused`` fixes it.

Divisions do not raise: code that might leave a loop early counts the references to its arrays in every row, which took
as long as half the residuals.
"""

from __future__ import annotations

from typing import Any

from dboost.compiled.arrays import Float32, Float64
from dboost.compiled.examples.loss_rows import (
    branch_row,
    curvature_row,
    dual_row,
    loss_row,
    residual_rows,
    single_dual,
    single_rows,
    theta_row,
)
from dboost.compiled.kept import njit
from dboost.compiled.vectors.lanes import narrow_row

# Curvature below this share of an example's weight is dropped: in float32 it would become subnormal numbers, on which
# arithmetic is several times slower.
_NEGLIGIBLE = 1e-20


@njit(nogil=True, cache=True, error_model="numpy")
def losses(F: Float64, first: int, k: int, target: Any, weight: Float64) -> float:
    """Sum of the losses."""
    loss = 0.0
    for t in range(F.shape[0]):
        i = first + t
        if weight[i] > 0.0:
            loss += loss_row(target, i, F[t][:k], weight[i])
    return loss


@njit(nogil=True, cache=True, error_model="numpy")
def residuals(F: Float64, first: int, k: int, target: Any, weight: Float64, U: Float64, total: Float64) -> float:
    """Fill the rows of U; add their sum to `total` (k,); return the loss."""
    return residual_rows(target, F, first, k, weight, U, total)


@njit(nogil=True, cache=True, error_model="numpy")
def branches(
    F: Float64, first: int, k: int, target: Any, weight: Float64, plus: Float64, minus: Float64, total: Float64
) -> float:
    """Fill the pulls up and down; add the sum of their differences to `total` (k,); return the loss."""
    loss = 0.0
    for t in range(F.shape[0]):
        i = first + t
        if weight[i] <= 0.0:
            for r in range(k):
                plus[t, r] = 0.0
                minus[t, r] = 0.0
            continue
        loss += branch_row(target, i, F[t][:k], weight[i], plus[t], minus[t])
        for r in range(k):
            total[r] += plus[t, r] - minus[t, r]
    return loss


@njit(nogil=True, cache=True, error_model="numpy")
def repair(
    U: Float64, target: Any, weight: Float64, keep: Float64, mix: Float64, shift: Float64, prior: Float64
) -> None:
    """Overwrite the residuals of a block by the dual point that they are repaired to (``loss_rows.theta_row``)."""
    k = keep.shape[0]
    for i in range(weight.shape[0]):
        if weight[i] > 0.0:
            theta_row(target, i, U[i][:k], weight[i], keep, mix, shift, prior)


@njit(nogil=True, cache=True, error_model="numpy")
def curvature(F: Float64, first: int, k: int, target: Any, weight: Float64, h: Float64, rank_one: Float64) -> None:
    """Hessian of every example as diag(h_i) - r_i h_i h_i': fill the first k columns of `h`, and `rank_one`."""
    for t in range(F.shape[0]):
        i = first + t
        if weight[i] > 0.0:
            rank_one[t] = curvature_row(target, i, F[t][:k], weight[i], h[t][:k])
        else:
            rank_one[t] = 0.0
            for r in range(k):
                h[t, r] = 0.0


@njit(nogil=True, cache=True, error_model="numpy")
def narrow(h: Float64, k: int, first: int, weight: Float64, out: Float32) -> None:
    """Write the first k columns of `h` into whole rows of `out`, without what is negligible beside the weights."""
    for t in range(out.shape[0]):
        for r in range(k, out.shape[1]):
            out[t, r] = 0.0
        narrow_row(h[t][:k], _NEGLIGIBLE * weight[first + t], out[t])


@njit(nogil=True, cache=True, error_model="numpy")
def dual_values(
    F: Float64, first: int, target: Any, weight: Float64, scale: Float64, mix: Float64, shift: Float64, prior: Float64
) -> float:
    """sum_i s_i D_i at the repaired and scaled dual point (``loss_rows.dual_row``).

    `shift` has one row for all examples, or a row for each of those in F.
    """
    k = scale.shape[0]
    value = 0.0
    for t in range(F.shape[0]):
        i = first + t
        if weight[i] > 0.0:
            value += dual_row(target, i, F[t][:k], weight[i], scale, mix, shift[t if shift.shape[0] > 1 else 0], prior)
    return value


@njit(nogil=True, cache=True, error_model="numpy")
def single_state(target: Any, f: Float64, weight: Float64, u: Float64, h: Float64) -> float:
    """Loss of the margins `f` (m,) of one output; fill the residuals `u` and the curvature `h`, both (m,)."""
    return single_rows(target, 0, f, weight, u, h)


@njit(nogil=True, cache=True, error_model="numpy")
def single_dual_value(
    target: Any, f: Float64, weight: Float64, scale: float, mix: float, shift: float, prior: float
) -> float:
    """``dual_values`` of the margins `f` (m,) of one output, the arguments of the dual point being numbers."""
    return single_dual(target, f, weight, scale, mix, shift, prior)
