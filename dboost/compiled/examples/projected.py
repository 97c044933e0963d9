"""Residuals less what a step of rows without penalty would take off them, example by example.

Covers: U_i - H_i z_i, z_i being the scores of the step, the dual value there, and the curvature among such rows. Does
not cover: which step (``dboost.problem.free_rows``), or whether this is a dual point (``losses.base.Loss.kept``).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dboost.compiled.arrays import Float64, Int32, Int64, Values
from dboost.compiled.examples.loss_rows import curvature_row, dual_row, residual_row
from dboost.compiled.kept import njit


@njit(nogil=True, cache=True, error_model="numpy")
def residuals(
    F: Float64, Z: Float64, target: Any, weight: Float64, U: Float64, pull: Float64, far: Float64, moved: Float64
) -> None:
    """Fill U (m, k or wider) by U_i - H_i Z_i and `pull` (m, k) by H_i Z_i for an example of weight one.

    `far` and `moved` (k,) become the largest |Z| that is curved, and the largest |pull|, where these are larger.
    """
    k = F.shape[1]
    f, h = np.empty(k), np.empty(k)
    for i in range(weight.shape[0]):
        if weight[i] <= 0.0:
            for r in range(k):
                pull[i, r] = 0.0
            continue
        for r in range(k):
            f[r] = F[i, r]
        rank_one = curvature_row(target, i, f, weight[i], h)
        for r in range(k):
            f[r] = F[i, r]
        residual_row(target, i, f, weight[i], U[i][:k])
        common = 0.0
        if rank_one != 0.0:
            for r in range(k):
                common += h[r] * Z[i, r]
            common *= rank_one
        for r in range(k):
            bent = h[r] * (Z[i, r] - common)
            U[i, r] -= bent
            pull[i, r] = bent / weight[i]
            if h[r] > 0.0:
                far[r] = max(far[r], abs(Z[i, r]))
            moved[r] = max(moved[r], abs(pull[i, r]))


@njit(nogil=True, cache=True, error_model="numpy")
def dual_values(
    F: Float64, target: Any, weight: Float64, scale: Float64, mix: Float64, shift: Float64, prior: Float64
) -> float:
    """sum_i s_i D_i where every example has a `shift` of its own, (m, k); the rest as for ``loss_rows.dual_row``."""
    value = 0.0
    for i in range(weight.shape[0]):
        if weight[i] > 0.0:
            value += dual_row(target, i, F[i], weight[i], scale, mix, shift[i], prior)
    return value


@njit(nogil=True, cache=True, error_model="numpy")
def add_curvature(
    pointer: Int64,
    slots: Int32,
    values: Values,
    place: Int64,
    bias: int,
    F: Float64,
    target: Any,
    weight: Float64,
    H: Float64,
) -> None:
    """Add X_F'H X_F to H, symmetric: entry (j, r) of the columns F at j k + r, the intercept's (a column of ones) last.

    `place` (a,) is that of each column of the cut in F, -1 for the others; `bias` is 1 with an intercept, else 0.
    """
    k = F.shape[1]
    most = H.shape[0] // k
    at, x = np.empty(most, np.int64), np.empty(most)
    f, h, block = np.empty(k), np.empty(k), np.empty((k, k))
    for i in range(weight.shape[0]):
        if weight[i] <= 0.0:
            continue
        count = 0
        for p in range(pointer[i], pointer[i + 1]):
            if place[slots[p]] >= 0:
                at[count], x[count] = place[slots[p]], values[p]
                count += 1
        if bias:
            at[count], x[count] = most - 1, 1.0
            count += 1
        if count == 0:
            continue
        for r in range(k):
            f[r] = F[i, r]
        rank_one = curvature_row(target, i, f, weight[i], h)
        for r in range(k):
            for q in range(k):
                block[r, q] = -rank_one * h[r] * h[q]
            block[r, r] += h[r]
        for a in range(count):
            for c in range(count):
                if at[c] > at[a]:
                    continue
                both, column = x[a] * x[c], at[c] * k
                for r in range(k):
                    row = H[at[a] * k + r]
                    if rank_one != 0.0:
                        for q in range(k):
                            row[column + q] += both * block[r, q]
                    else:
                        row[column + r] += both * block[r, r]
    # only blocks on and below the diagonal were summed
    for j in range(H.shape[0]):
        for q in range(j):
            H[q, j] = H[j, q]
