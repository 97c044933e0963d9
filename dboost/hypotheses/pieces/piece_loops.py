"""Loops for pieces: sums over the rows within every radius of a centre, from one histogram over its distances."""

from __future__ import annotations

import numpy as np

from dboost.compiled.arrays import Float64, UInt8
from dboost.compiled.kept import njit

_ROWS = 128
"""Rows whose products are formed at a time, so that they stay in the processor's second cache."""


@njit(nogil=True, cache=True, fastmath={"contract"})
def histograms(bins: UInt8, X: Float64, left: Float64, right: Float64, out: Float64) -> None:
    """out[c, q, a, r] = sum over the rows i of bin q of [x_ia]_+ left[i, r] + [-x_ia]_+ right[i, r], and their prefix.

    `bins`: Uint8 array, shape (centres, m). Bins of the rows about every centre; the number of radii where a row is in
    none.
    `X`: float64 array, shape (m, d + 1). Rows, with a one at the end.
    `left`, `right`: float64 arrays, shape (m, k).
    `out`: float64 array, shape (centres, radii, (d + 1) * k). Cumulative over the radii on return.
    """
    k = left.shape[1]
    width = out.shape[2]
    n_radii = out.shape[1]
    products = np.empty((_ROWS, width))
    out[:] = 0.0
    for start in range(0, X.shape[0], _ROWS):
        stop = min(start + _ROWS, X.shape[0])
        for i in range(start, stop):
            for a in range(X.shape[1]):
                x = X[i, a]
                for r in range(k):
                    products[i - start, a * k + r] = x * left[i, r] if x >= 0.0 else -x * right[i, r]
        for c in range(bins.shape[0]):
            for i in range(start, stop):
                q = int(bins[c, i])
                if q < n_radii:
                    for t in range(width):
                        out[c, q, t] += products[i - start, t]
    for c in range(bins.shape[0]):
        for p in range(1, n_radii):
            for t in range(width):
                out[c, p, t] += out[c, p - 1, t]


@njit(nogil=True, cache=True)
def peaks(bins: UInt8, X: Float64, weight: Float64, out: Float64) -> None:
    """out[c, q, a] = max |x_ia| over the rows of positive weight within radius q of centre c."""
    out[:] = 0.0
    for c in range(bins.shape[0]):
        for i in range(X.shape[0]):
            q = int(bins[c, i])
            if q < out.shape[1] and weight[i] > 0.0:
                for a in range(X.shape[1]):
                    out[c, q, a] = max(out[c, q, a], abs(X[i, a]))
        for p in range(1, out.shape[1]):
            for a in range(X.shape[1]):
                out[c, p, a] = max(out[c, p, a], out[c, p - 1, a])
