"""Symmetric, positive semidefinite systems of a few hundred unknowns, solved with the same bits on any machine.

Not LAPACK: its threads would fight the passes' for the cores, and the bits would depend on how many there are.
"""

from __future__ import annotations

import numpy as np

from dboost.compiled.arrays import Float64, Int64
from dboost.compiled.kept import njit
from dboost.compiled.vectors.eight_rows import EIGHT, add_eight
from dboost.compiled.vectors.emit import INLINED
from dboost.compiled.vectors.room import lesser, room, zeros

# Pivots that are subtracted from the rows below the block at once, so that each of these is read from memory once.
_BLOCK = 4 * EIGHT


@njit(nogil=True, cache=True, error_model="numpy")
def factor(H: Float64, ridge: float) -> None:
    """Overwrite the upper triangle of H by its factor U, H = U' diag(U)^-1 U.

    A pivot at or below `ridge` times its diagonal belongs to a column that the others hold already, and becomes 0.
    Pivots go in eights, and these in blocks, which saves traffic to memory.
    """
    n = H.shape[0]
    least = room(n, np.float64)
    for j in range(n):
        least[j] = ridge * H[j, j]
    share, scale = room(_BLOCK, np.float64), room(EIGHT, np.float64)
    for first in range(0, n, _BLOCK):
        stop = lesser(first + _BLOCK, n)
        for j in range(first, stop, EIGHT):
            end = lesser(j + EIGHT, n)
            for i in range(j, end):
                row = H[i]
                for p in range(j, i):
                    above = H[p]
                    c = above[i] * share[p - first]
                    for q in range(i, n):
                        row[q] -= c * above[q]
                if row[i] > least[i]:
                    share[i - first] = 1.0 / row[i]
                else:
                    share[i - first] = row[i] = 0.0
            for i in range(end, stop):
                _subtract(H, i, j, share[j - first : end - first], scale)
        for i in range(stop, n):
            for j in range(first, stop, EIGHT):
                _subtract(H, i, j, share[j - first :], scale)


@njit(nogil=True, cache=True, **INLINED)
def _subtract(H: Float64, i: int, j: int, share: Float64, scale: Float64) -> None:
    """Subtract what the eight pivots from j on, of these reciprocals, hold of row i, which is below them."""
    for p in range(EIGHT):
        scale[p] = -H[j + p, i] * share[p]
    add_eight(H, i, j, scale, i, H.shape[0])


@njit(nogil=True, cache=True, error_model="numpy")
def solve(H: Float64, x: Float64) -> None:
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
def solve_positive(H: Float64, g: Float64, ridge: float) -> Float64:
    """H^-1 g for a symmetric, positive semidefinite H, of which the upper triangle is overwritten by its factor.

    Where columns hold one another (`ridge`, see `factor`) the entry of the later one is 0.
    """
    x = g.copy()
    factor(H, ridge)
    solve(H, x)
    return x


@njit(nogil=True, cache=True)
def inverse_positive(H: Float64, ridge: float) -> Float64:
    """H^-1 for a symmetric, positive semidefinite H, which is left as it is.

    Where columns hold one another (`ridge`, see `factor`) those of the later one are 0: what H makes of any v is then
    what it makes of what the inverse makes of that.
    """
    n = H.shape[0]
    held = H.copy()
    found: Float64 = zeros(n * n, np.float64).reshape((n, n))
    factor(held, ridge)
    for j in range(n):
        if held[j, j] != 0.0:
            found[j, j] = 1.0
            solve(held, found[j])
    for i in range(n):
        for j in range(i):
            found[i, j] = found[j, i] = 0.5 * (found[i, j] + found[j, i])
    return found


@njit(nogil=True, cache=True)
def factor_blocks(H: Float64, ridge: float) -> None:
    """`factor` each of the blocks H (blocks, n, n)."""
    for b in range(H.shape[0]):
        factor(H[b], ridge)


@njit(nogil=True, cache=True)
def solve_blocks(H: Float64, places: Int64, r: Float64, z: Float64) -> None:
    """z[places[b]] = H[b]^-1 r[places[b]] for every factored block b; a place of -1 is none."""
    n = places.shape[1]
    x = room(n, np.float64)
    for b in range(places.shape[0]):
        for j in range(n):
            x[j] = r[places[b, j]] if places[b, j] >= 0 else 0.0
        solve(H[b], x)
        for j in range(n):
            if places[b, j] >= 0:
                z[places[b, j]] = x[j]
