"""Norms of the rows of a table. Rows are short, and NumPy takes five times as long for them as reading them does."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dboost.compiled.arrays import Float64
from dboost.compiled.kept import njit
from dboost.compiled.vectors.lanes import longest_of, sizes_of

Array = NDArray[np.float64]


@njit(nogil=True, cache=True, error_model="numpy")
def _longest(Z: Float64, out: Float64) -> None:
    for j in range(Z.shape[0]):
        out[j] = longest_of(Z[j])


@njit(nogil=True, cache=True, error_model="numpy")
def absolute_entries(Z: Float64, out: Float64) -> None:
    for j in range(Z.shape[0]):
        out[j] = sizes_of(Z[j])


def largest_entries(Z: Array) -> Array:
    """max_r |z_r| of each row of Z (rows, k): 0 for k = 0, nan where a row has one."""
    if Z.shape[1] == 1:
        return np.abs(Z[:, 0])
    out = np.empty(Z.shape[0])
    _longest(np.ascontiguousarray(Z, np.float64), out)
    return out


def sums_of_entries(Z: Array) -> Array:
    """sum_r |z_r| of each row of Z (rows, k)."""
    if Z.shape[1] == 1:
        return np.abs(Z[:, 0])
    out = np.empty(Z.shape[0])
    absolute_entries(np.ascontiguousarray(Z, np.float64), out)
    return out
