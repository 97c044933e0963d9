"""Quadratic programs of a few unknowns over {z >= 0, sum z <= r}, by active sets: exact zeros, no BLAS.

The step of AdaBoost+L1's re-solve (docs/math.md 7 (H)). Compiled loops in a fixed order keep the bits the same
whatever the number of threads.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dboost.compiled.solves.positive import solve_positive

Array = NDArray[np.float64]

# Added to the diagonal: a direction without curvature ends at a bound instead of nowhere.
_RIDGE = 1e-8
# Gradients are edges, in [-1, 1].
_OPTIMAL = 1e-12
_PIVOT = 1e-14


def minimise_quadratic(g: Array, H: Array, start: Array, r: float) -> Array:
    """argmin over z >= 0, sum z <= r of <g, z - start> + (z - start)' H (z - start) / 2.

    Parameters
    ----------
    g : float64 array, shape (n,)
    H : float64 array, shape (n, n)
        Symmetric, positive semidefinite.
    start : float64 array, shape (n,)
        Feasible.

    Returns
    -------
    float64 array, shape (n,)
        Feasible; entries at the bound are exactly zero.
    """
    n = g.shape[0]
    H = H + np.diag(np.full(n, _RIDGE))
    z = start.copy()
    free = z > 0.0
    tight = bool(z.sum() >= r * (1.0 - 1e-15))
    solved = False
    for _ in range(20 * n + 20):
        gradient = g + (H * (z - start)).sum(axis=1)
        ids = np.flatnonzero(free)
        if solved or not ids.shape[0]:
            multiplier = -float(gradient[ids].mean()) if tight and ids.shape[0] else 0.0
            if tight and multiplier < -_OPTIMAL:
                tight, solved = False, False
                continue
            rest = np.where(free, np.inf, gradient + multiplier)
            if not n or rest.min() >= -_OPTIMAL:
                break
            free[int(np.argmin(rest))] = True
            solved = False
            continue
        inner = H[np.ix_(ids, ids)]
        p = solve_positive(inner.copy(), -gradient[ids], _PIVOT)
        if tight:
            ones = solve_positive(inner, np.ones(ids.shape[0]), _PIVOT)
            p = p - float(p.sum() / ones.sum()) * ones
            # what rounding leaves of the sum would leave the budget
            p[int(np.argmax(z[ids]))] -= p.sum()
        length, blocking, full = 1.0, -1, False
        room, total = max(r - float(z.sum()), 0.0), float(p.sum())
        if not tight and total > room:
            length, full = room / total, True
        shrinking = np.flatnonzero(p < 0.0)
        reach = z[ids[shrinking]] / -p[shrinking]
        if reach.shape[0] and reach.min() <= length:
            length, blocking, full = float(reach.min()), int(ids[shrinking[int(np.argmin(reach))]]), False
        z[ids] = np.maximum(z[ids] + length * p, 0.0)
        if blocking >= 0:
            z[blocking] = 0.0
            free[blocking] = False
        tight = tight or full
        solved = blocking < 0 and not full
    excess = float(z.sum()) - r
    return z if excess <= 0.0 else z * (r / (r + excess))
