"""Symmetric, positive semidefinite systems of a few hundred unknowns, solved with the same bits on any machine.

Not LAPACK: its threads would fight the passes' for the cores, and the bits would depend on how many there are.
"""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(nogil=True, cache=True, error_model="numpy")
def factor(H, ridge):
    """Overwrite the upper triangle of H by its factor U, H = U' diag(U)^-1 U.

    A pivot at or below `ridge` times its diagonal belongs to a column that the others hold already, and becomes 0.
    Pivots go in pairs, which halves the traffic to memory.
    """
    n = H.shape[0]
    least = np.empty(n)
    for j in range(n):
        least[j] = ridge * H[j, j]
    for j in range(0, n, 2):
        a = H[j]
        s = 1.0 / a[j] if a[j] > least[j] else 0.0
        if s == 0.0:
            a[j] = 0.0
        if j + 1 == n:
            continue
        b = H[j + 1]
        t = a[j + 1] * s
        for q in range(j + 1, n):
            b[q] -= t * a[q]
        u = 1.0 / b[j + 1] if b[j + 1] > least[j + 1] else 0.0
        if u == 0.0:
            b[j + 1] = 0.0
        for i in range(j + 2, n):
            c, d = a[i] * s, b[i] * u
            row = H[i]
            for q in range(i, n):
                row[q] -= c * a[q] + d * b[q]


@njit(nogil=True, cache=True, error_model="numpy")
def solve(H, x):
    """Overwrite x by H^-1 x, H as `factor` left it; the entry of a pivot that is 0 becomes 0."""
    n = x.shape[0]
    for j in range(0, n - 1, 2):
        a, b = H[j], H[j + 1]
        s = 1.0 / a[j] if a[j] != 0.0 else 0.0
        u = 1.0 / b[j + 1] if b[j + 1] != 0.0 else 0.0
        x[j + 1] -= a[j + 1] * s * x[j]
        y, z = s * x[j], u * x[j + 1]
        for i in range(j + 2, n):
            x[i] -= a[i] * y + b[i] * z
    for j in range(n - 1, -1, -1):
        row = H[j]
        if row[j] == 0.0:
            x[j] = 0.0
            continue
        t = u = v = w = 0.0
        whole = n - (n - j - 1) % 4
        for q in range(j + 1, whole, 4):
            t += row[q] * x[q]
            u += row[q + 1] * x[q + 1]
            v += row[q + 2] * x[q + 2]
            w += row[q + 3] * x[q + 3]
        for q in range(whole, n):
            t += row[q] * x[q]
        x[j] = (x[j] - ((t + u) + (v + w))) / row[j]


@njit(nogil=True, cache=True)
def solve_positive(H, g, ridge):
    """H^-1 g for a symmetric, positive semidefinite H, of which the upper triangle is overwritten by its factor.

    Where columns hold one another (`ridge`, see `factor`) the entry of the later one is 0.
    """
    x = g.copy()
    factor(H, ridge)
    solve(H, x)
    return x


@njit(nogil=True, cache=True)
def factor_blocks(H, ridge):
    """`factor` each of the blocks H (blocks, n, n)."""
    for b in range(H.shape[0]):
        factor(H[b], ridge)


@njit(nogil=True, cache=True)
def solve_blocks(H, places, r, z):
    """z[places[b]] = H[b]^-1 r[places[b]] for every factored block b; a place of -1 is nobody's."""
    n = places.shape[1]
    x = np.empty(n)
    for b in range(places.shape[0]):
        for j in range(n):
            x[j] = r[places[b, j]] if places[b, j] >= 0 else 0.0
        solve(H[b], x)
        for j in range(n):
            if places[b, j] >= 0:
                z[places[b, j]] = x[j]
