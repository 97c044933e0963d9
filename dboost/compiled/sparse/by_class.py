"""Scoring sums of a model without features: all examples of a class have one residual for each unit of weight."""

from __future__ import annotations

from dboost.compiled.arrays import Float64, Int32, Int64, Values
from dboost.compiled.kept import njit


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
