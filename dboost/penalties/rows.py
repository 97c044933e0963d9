"""Row-wise arithmetic shared by the penalties: broadcasting a per-row number, norms, the soft threshold.

Covers: functions of (rows, k) float64 arrays. Does not cover: anything that knows which penalty is meant.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.float64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
IntArray: TypeAlias = npt.NDArray[np.int64]

_SAFE_SQUARES = (1e-280, 1e280)


def per_row(value: npt.ArrayLike, rows: int) -> FloatArray:
    """Broadcast a scalar or a (rows,) array to a float64 array (rows,), not to be changed."""
    given = np.asarray(value, dtype=np.float64)
    # broadcasting what has the shape already would cost more than most of what is done with it
    return given if given.shape == (rows,) else np.broadcast_to(given, (rows,))


def in_strengths(norms: FloatArray, weights: FloatArray) -> FloatArray:
    """norms / weights, (rows,); 0 for a row without penalty, whose sums a dual point does not have at all."""
    if weights.all():
        return norms / weights
    return np.where(weights > 0.0, norms / np.where(weights > 0.0, weights, 1.0), 0.0)


def sums_by(values: FloatArray, place: IntArray, count: int) -> FloatArray:
    """Sums of values (rows,) by the group of each row, (count,)."""
    return np.bincount(place, weights=values, minlength=count).astype(np.float64, copy=False)


def norm2(Z: FloatArray) -> FloatArray:
    """Euclidean norm of each row of Z (rows, k), without overflow or underflow of the squares."""
    squares = np.einsum("ij,ij->i", Z, Z)
    norms: FloatArray = np.sqrt(squares)
    if Z.shape[1] == 0:
        return norms
    # Squares of entries beyond about 1e+-140 leave the range of float64; only such rows pay for a rescaling.
    odd = np.flatnonzero((squares < _SAFE_SQUARES[0]) | ~(squares < _SAFE_SQUARES[1]))
    if odd.size:
        top = np.abs(Z[odd]).max(axis=1)
        divisor = np.where((top > 0) & np.isfinite(top), top, 1.0)
        scaled = Z[odd] / divisor[:, None]
        norms[odd] = divisor * np.sqrt(np.einsum("ij,ij->i", scaled, scaled))
    return norms


def soft_threshold(Z: FloatArray, t: FloatArray) -> FloatArray:
    """sign(z) [|z| - t]_+ for each entry of Z (rows, k), with t (rows,)."""
    shrunk: FloatArray = np.copysign(np.maximum(np.abs(Z) - t[:, None], 0.0), Z)
    # copysign would leave -0.0, which counts as zero everywhere but prints as a negative weight.
    return shrunk + 0.0
