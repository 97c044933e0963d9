"""Block coordinate descent on the Gram bound (docs/math.md, eq. 5), whose products are kept as K D.

One block is one row of the step D, solved exactly by ``compiled.solves.row_prox``.
"""

from __future__ import annotations

import numpy as np

from dboost.compiled.arrays import Float64
from dboost.compiled.kept import njit
from dboost.compiled.solves.row_prox import diagonal_prox


@njit(nogil=True, cache=True)
def gram_descent(
    K: Float64,
    kappa: float,
    centred: bool,
    G: Float64,
    W: Float64,
    lam: Float64,
    code: int,
    a: float,
    b: float,
    max_sweeps: int,
    tolerance: float,
    D: Float64,
) -> int:
    """Minimise -<G, D> + kappa/2 tr(D'K D) + sum_j lam_j omega(W_j + D_j) over D (docs/math.md, eq. 5).

    `centred` replaces K D by its row-centred version, the tighter bound of the multinomial loss. Stops when a sweep
    gains less than `tolerance` times the first. Returns the number of sweeps.
    """
    n_rows, k = W.shape
    KD = np.zeros((n_rows, k))
    z = np.empty(k)
    out = np.empty(k)
    metric = np.empty(k)
    delta = np.empty(k)
    work = np.empty(4 * k + 8)
    first = 0.0
    for sweep in range(max_sweeps):
        gain = 0.0
        for j in range(n_rows):
            d = kappa * K[j, j]
            if d <= 0.0:
                continue
            mean = 0.0
            if centred:
                for r in range(k):
                    mean += KD[j, r]
                mean /= k
            for r in range(k):
                metric[r] = d
                z[r] = W[j, r] + D[j, r] + (G[j, r] - kappa * (KD[j, r] - mean)) / d
            if lam[j] == 0.0:
                for r in range(k):
                    out[r] = z[r]
            else:
                diagonal_prox(code, a, b, z, metric, lam[j], out, work)
            moved = False
            for r in range(k):
                delta[r] = out[r] - W[j, r] - D[j, r]
                gain += d * delta[r] * delta[r]
                moved = moved or delta[r] != 0.0
                D[j, r] = out[r] - W[j, r]
            if moved:
                for i in range(n_rows):
                    x = K[j, i]
                    if x != 0.0:
                        row = KD[i]
                        for r in range(k):
                            row[r] += x * delta[r]
        if sweep == 0:
            first = gain
        if gain <= tolerance * first:
            return sweep + 1
    return max_sweeps
