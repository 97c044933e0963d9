"""The quadratic model of a Newton step of several outputs, its curvature formed among all entries of some rows of W.

Entry (j, r) of s rows and k outputs is number j k + r. Sweeps then read the table of these entries, whatever the
number of examples.
"""

from __future__ import annotations

import numpy as np

from dboost.compiled.arrays import Float32, Float64
from dboost.compiled.kept import njit
from dboost.compiled.solves.row_prox import diagonal_prox
from dboost.compiled.vectors.room import greater, room


@njit(nogil=True, cache=True, error_model="numpy")
def pack(h: Float32, rank_one: Float64, k: int, packed: Float64) -> None:
    """Fill a row of `packed` with the upper triangle of diag(h_i) - rank_one_i h_i h_i' for every example, row by row.

    Its columns beyond k (k + 1) / 2 become zero (docs/math.md 8 (i)).
    """
    for i in range(h.shape[0]):
        t = 0
        for r in range(k):
            scaled = rank_one[i] * h[i, r]
            packed[i, t] = h[i, r] - scaled * h[i, r]
            for u in range(r + 1, k):
                packed[i, t + u - r] = -scaled * h[i, u]
            t += k - r
        packed[i, t:] = 0.0


@njit(nogil=True, cache=True)
def unpack(sums: Float64, k: int, H: Float64) -> None:
    """Fill the symmetric H (s k, s k) from the sums (s, s, w) of packed triangles, known for pairs j <= l of rows."""
    s = sums.shape[0]
    for j in range(s):
        for m in range(j, s):
            t = 0
            for r in range(k):
                for u in range(r, k):
                    x = sums[j, m, t]
                    H[j * k + r, m * k + u] = H[j * k + u, m * k + r] = x
                    H[m * k + u, j * k + r] = H[m * k + r, j * k + u] = x
                    t += 1


@njit(nogil=True, cache=True, error_model="numpy")
def sweep_rows(
    H: Float64,
    G: Float64,
    W: Float64,
    strength: Float64,
    diagonal: Float64,
    damping: Float64,
    code: int,
    a: float,
    b: float,
    max_sweeps: int,
    enough: float,
    D: Float64,
    pull: Float64,
) -> None:
    """Minimise -<G, D> + D'HD/2 + damping D**2/2 + sum_j strength_j omega(W_j + D_j) by exact row solves.

    This is the model of a Newton step (docs/math.md 8); each row's is bounded by its diagonal. Sweeps over the
    rows that are not zero follow a sweep over all, until one gains at most `enough` times what the best did; then all
    are visited again.

    Parameters
    ----------
    H : float64 array, shape (s k, s k)
    G, W : float64 array, shape (s, k)
    strength : float64 array, shape (s,)
        0 for a row without penalty.
    diagonal, damping : float64 array, shape (s, k)
        A diagonal that bounds each row's block of H, and what is added to it.
    code, a, b
        The penalty (``diagonal_prox``).
    max_sweeps : int
    enough : float
    D : float64 array, shape (s, k)
        Where it begins, and ends.
    pull : float64 array, shape (s k,)
        H D, of the beginning and then of the end.
    """
    s, k = W.shape
    z, out, metric = room(k, np.float64), room(k, np.float64), room(k, np.float64)
    delta, work = room(k, np.float64), room(4 * k + 8, np.float64)
    most = 0.0
    full = True
    for _ in range(max_sweeps):
        gain = 0.0
        for j in range(s):
            if not full:
                still = strength[j] > 0.0
                for r in range(k):
                    still = still and W[j, r] + D[j, r] == 0.0
                if still:
                    continue
            largest = 0.0
            for r in range(k):
                metric[r] = diagonal[j, r] + damping[j, r]
                largest = greater(largest, metric[r])
            if not largest > 0.0:
                continue
            for r in range(k):
                metric[r] = greater(metric[r], 1e-12 * largest)
                z[r] = W[j, r] + D[j, r] + (G[j, r] - pull[j * k + r] - damping[j, r] * D[j, r]) / metric[r]
            if strength[j] == 0.0:
                for r in range(k):
                    out[r] = z[r]
            else:
                diagonal_prox(code, a, b, z, metric, strength[j], out, work)
            for r in range(k):
                delta[r] = out[r] - W[j, r] - D[j, r]
                # D is set so that W + D reproduces `out`: exact zeros must stay exact
                D[j, r] = out[r] - W[j, r]
                gain += metric[r] * delta[r] * delta[r]
            for r in range(k):
                change = delta[r]
                if change != 0.0:
                    for t in range(s * k):
                        pull[t] += H[j * k + r, t] * change
        most = greater(most, gain)
        small = gain <= enough * most
        if small and full:
            break
        full = small


@njit(nogil=True, cache=True)
def times(H: Float64, x: Float64, out: Float64) -> None:
    """out = H x of a symmetric table."""
    out[:] = 0.0
    for j in range(x.shape[0]):
        if x[j] != 0.0:
            for t in range(out.shape[0]):
                out[t] += H[j, t] * x[j]
