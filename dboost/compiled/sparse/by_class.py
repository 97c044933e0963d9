"""Scoring sums of a model without features: all examples of a class have one residual for each unit of weight.

Both take the CSC arrays of ``dboost.partition.Partition``, and write one row of the result for each column.
"""

from __future__ import annotations

import numpy as np

from dboost.compiled.arrays import Float64, Int32, Int64, Values
from dboost.compiled.kept import njit
from dboost.compiled.vectors.room import room, zeros
from dboost.compiled.vectors.scaled_rows import gather


@njit(nogil=True, cache=True, error_model="numpy")
def null_gradient(
    indptr: Int64,
    rows: Int32,
    values: Values,
    weight: Float64,
    code: Int32,
    p: Float64,
    candidates: Int64,
    out: Float64,
) -> None:
    """Rows of G = X'U for the columns in `candidates`, where U_i = weight_i (e_c - p), c = code_i: sums by class.

    One addition for each stored value, however many classes there are (``losses.base.Alike``).
    """
    for c in range(candidates.shape[0]):
        row = out[c]
        row[:] = 0.0
        total = 0.0
        for q in range(indptr[candidates[c]], indptr[candidates[c] + 1]):
            i = rows[q]
            x = weight[i] * values[q]
            row[code[i]] += x
            total += x
        for r in range(row.shape[0]):
            row[r] -= total * p[r]


@njit(nogil=True, cache=True)
def class_gradient(
    indptr: Int64,
    rows: Int32,
    values: Values,
    weight: Float64,
    code: Int32,
    residual: Float64,
    candidates: Int64,
    out: Float64,
) -> None:
    """Rows of G = X'U for the columns in `candidates`, where U_i = weight_i residual[code_i] (docs/math.md 0).

    `residual` (classes, width of ``vector.padded``) has a row per class and stays in the processor's cache; `weight`
    and `code` are (m,), `out` (len(candidates), k). A column with more values than there are classes is summed by class
    first: G_j = sum_c (sum of weight_i x_ij over the examples of c) residual_c.
    """
    n_classes, k = residual.shape[0], out.shape[1]
    every = room(n_classes, np.int64)
    for c in range(n_classes):
        every[c] = c
    label = room(n_classes, np.int64)
    amount = room(n_classes, np.float64)
    g, zero = room(residual.shape[1], np.float64), zeros(residual.shape[1], np.float64)
    for c in range(candidates.shape[0]):
        start, stop = indptr[candidates[c]], indptr[candidates[c] + 1]
        if stop - start > n_classes:
            amount[:] = 0.0
            for p in range(start, stop):
                i = rows[p]
                amount[code[i]] += weight[i] * values[p]
            gather(every, amount, 0, n_classes, residual, zero, g)
        else:
            for p in range(start, stop):
                i = rows[p]
                label[p - start] = code[i]
                amount[p - start] = weight[i] * values[p]
            gather(label, amount, 0, stop - start, residual, zero, g)
        for r in range(k):
            out[c, r] = g[r]
