"""A hash of every row of a partition: of what it holds, not of where it lies.

The columns of a partition ascend, so each row is hashed in the order of its columns, whatever the partition.
"""

from __future__ import annotations

import numpy as np

from dboost.compiled.arrays import Float64, Int32, Int64, UInt64, Values
from dboost.compiled.kept import njit
from dboost.compiled.vectors.exponential import float_bits


@njit(nogil=True, cache=True)
def _mix(h: np.uint64) -> np.uint64:
    # The finaliser of splitmix64 (Steele, Lea & Flood 2014): every input bit reaches every output bit.
    h ^= h >> np.uint64(30)
    h *= np.uint64(0xBF58476D1CE4E5B9)
    h ^= h >> np.uint64(27)
    h *= np.uint64(0x94D049BB133111EB)
    return h ^ (h >> np.uint64(31))


@njit(nogil=True, cache=True)
def hash_rows(indptr: Int64, rows: Int32, values: Values, labels: Float64, seed: int, out: UInt64) -> None:
    """Fill `out`, uint64 (m,), with a hash of each row's stored values (column, value as float64), label and the seed.

    Parameters
    ----------
    labels : float64 array, shape (m, c)
        What stands for the label.
    """
    start = _mix(np.uint64(seed) + np.uint64(0x9E3779B97F4A7C15))
    for i in range(out.shape[0]):
        out[i] = start
    for j in range(indptr.shape[0] - 1):
        column = _mix(np.uint64(j) + np.uint64(1))
        for p in range(indptr[j], indptr[j + 1]):
            i = rows[p]
            out[i] = _mix(out[i] ^ (column + np.uint64(float_bits(np.float64(values[p])))))
    for i in range(out.shape[0]):
        for c in range(labels.shape[1]):
            out[i] = _mix(out[i] ^ np.uint64(float_bits(labels[i, c])))
