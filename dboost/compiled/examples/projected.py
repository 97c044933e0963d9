"""Curvature among some rows of W, example by example.

Covers: the sum over examples. Does not cover: which rows (``dboost.problem.free_rows``), or the curvature of an example
(``fused.hessians``).
"""

from __future__ import annotations

import numpy as np

from dboost.compiled.arrays import Float64, Int32, Int64, Values
from dboost.compiled.kept import njit


@njit(nogil=True, cache=True, error_model="numpy")
def add_curvature(
    pointer: Int64,
    slots: Int32,
    values: Values,
    place: Int64,
    bias: int,
    h: Float64,
    rank_one: Float64,
    H: Float64,
) -> None:
    """Add X_F'H X_F to H, symmetric, from the curvature diag(h_i) - r_i h_i h_i' of every example.

    Entry (j, r) of the columns F lies at j k + r, those of the intercept (a column of ones) last. `place` (a,) is the
    place of each column of the cut in F, -1 for the others; `bias` is 1 with an intercept, else 0.
    """
    k = h.shape[1]
    most = H.shape[0] // k
    at, x = np.empty(most, np.int64), np.empty(most)
    block = np.empty((k, k))
    for i in range(h.shape[0]):
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
            for q in range(k):
                block[r, q] = -rank_one[i] * h[i, r] * h[i, q]
            block[r, r] += h[i, r]
        for a in range(count):
            for c in range(count):
                if at[c] > at[a]:
                    continue
                both, column = x[a] * x[c], at[c] * k
                for r in range(k):
                    row = H[at[a] * k + r]
                    if rank_one[i] != 0.0:
                        for q in range(k):
                            row[column + q] += both * block[r, q]
                    else:
                        row[column + r] += both * block[r, r]
    # only blocks on and below the diagonal were summed
    for j in range(H.shape[0]):
        for q in range(j):
            H[q, j] = H[j, q]
