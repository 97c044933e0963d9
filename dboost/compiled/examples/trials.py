"""Sums of a model with one more column, for each of several: ShareBoost's trials of rows (paper, section 3.1)."""

from __future__ import annotations

from typing import Any

import numpy as np

from dboost.compiled.arrays import Bool, Float64, Int32, Int64, Values
from dboost.compiled.examples.loss_rows import curvature_row, loss_row, residual_row
from dboost.compiled.kept import njit


@njit(nogil=True, cache=True)
def add_trials(
    F: Float64,
    first: int,
    pointer: Int64,
    slots: Int32,
    values: Values,
    u: Float64,
    live: Bool,
    target: Any,
    weight: Float64,
    change: Float64,
    G: Float64,
    H: Float64,
) -> None:
    """Add what examples say of the models F + x_c u_c', one for each column c.

    Parameters
    ----------
    F : float64 array, shape (b, k or wider)
        Margins of the examples from `first` on.
    pointer, slots, values
        The columns by row, of all examples.
    u : float64 array, shape (c, k)
        The row of W of each column.
    live : bool array, shape (c,)
        Columns that are asked for.
    change : float64 array, shape (c,)
        Loss at F + x_c u_c' less that at F.
    G : float64 array, shape (c, k)
        Minus the gradient in u_c.
    H : float64 array, shape (c, k, k)
        The Hessian in u_c.
    """
    k = u.shape[1]
    trial, again, pull, h = np.empty(k), np.empty(k), np.empty(k), np.empty(k)
    for t in range(F.shape[0]):
        i = first + t
        if weight[i] <= 0.0 or pointer[i] == pointer[i + 1]:
            continue
        for r in range(k):
            trial[r] = F[t, r]
        before = loss_row(target, i, trial, weight[i])
        for p in range(pointer[i], pointer[i + 1]):
            c, x = slots[p], values[p]
            if not live[c]:
                continue
            for r in range(k):
                trial[r] = again[r] = F[t, r] + x * u[c, r]
            change[c] += residual_row(target, i, trial, weight[i], pull) - before
            rank_one = curvature_row(target, i, again, weight[i], h)
            square = x * x
            for r in range(k):
                G[c, r] += x * pull[r]
                H[c, r, r] += square * h[r]
            if rank_one != 0.0:
                for r in range(k):
                    lower = square * rank_one * h[r]
                    row = H[c, r]
                    for q in range(k):
                        row[q] -= lower * h[q]
