"""Block coordinate descent over groups of entries that a norm ties together, on a quadratic whose matrix is formed.

Covers: the prox of many groups, and the descent. A group is a range of entries. The block of a group is a problem of
its own,

    min_v  1/2 v'H_gg v - <c, v> + lam_g omega(v),

which is zero exactly where the dual norm of c is at most lam_g, and is otherwise solved by accelerated proximal steps
whose length a bound of the largest eigenvalue of H_gg allows: no step on such a bound raises the objective.
Does not cover: what the quadratic stands for (``dboost.solvers.formed``).
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from dboost.compiled.arrays import Float64, Int64
from dboost.compiled.kept import njit
from dboost.compiled.solves.row_prox import BOUND, diagonal_prox
from dboost.compiled.vectors.room import greater, lesser, room

# Steps of one block at most, and the shares of the square of its first step, and of its own, at which it is solved.
_STEPS: Final = 200
_SOLVED: Final = 1e-24
_ROUNDING: Final = 1e-31


@njit(nogil=True, cache=True)
def prox_of_groups(
    code: int, a: float, b: float, c: float, z: Float64, D: Float64, lam: Float64, starts: Int64, out: Float64
) -> None:
    """Write argmin_w 1/2 sum_e D_e (w_e - z_e)^2 + sum_g lam_g omega(w_g) into ``out`` (entries,).

    `code`, `a`, `b`, `c`: as ``Penalty.compiled`` gives them.
    `z`, `D`: (entries,).
    `lam`: (groups,).
    `starts`, (groups + 1,): the entries of group g are those from ``starts[g]`` up to ``starts[g + 1]``.
    `out`: (entries,).
    """
    work = room(z.size, np.float64)
    for g in range(lam.size):
        s, e = starts[g], starts[g + 1]
        diagonal_prox(code, a, b, c, z[s:e], D[s:e], lam[g], out[s:e], work[s:e])


@njit(nogil=True, cache=True)
def group_descent(
    H: Float64,
    R: Float64,
    V: Float64,
    lam: Float64,
    starts: Int64,
    code: int,
    a: float,
    b: float,
    max_sweeps: int,
    tolerance: float,
    least: float,
) -> tuple[int, float]:
    """Minimise -<R, d> + d'H d / 2 + sum_g lam_g omega(V_g + d_g) over d, and add d to V.

    Stops when a sweep moves less than `tolerance` times the first, or than `least`, in the metric of the blocks.
    Returns the number of sweeps and what the first moved.

    `H`, (entries, entries): symmetric and positive semidefinite but for rounding. `R`, (entries,): overwritten by R - H
    d. `V`, (entries,): overwritten by V + d. `lam`, `starts`, `code`, `a`, `b`: as for `prox_of_groups`, all lam_g > 0;
    a ridge is part of H.
    """
    n = V.size
    groups = lam.size
    longest = room(groups, np.float64)
    for g in range(groups):
        longest[g] = _largest(H, starts[g], starts[g + 1])
    pull, new = room(n, np.float64), room(n, np.float64)
    scratch = room(5 * n, np.float64).reshape((5, n))
    first = 0.0
    for sweep in range(max_sweeps):
        moved = 0.0
        for g in range(groups):
            s, e = starts[g], starts[g + 1]
            if not longest[g] > 0.0:
                # columns without a curvature have no pull either: the penalty alone speaks
                V[s:e] = 0.0
                continue
            for i in range(s, e):
                total = R[i]
                for j in range(s, e):
                    total += H[i, j] * V[j]
                pull[i] = total
            _solve_block(H, s, e, longest[g], lam[g], code, a, b, pull, V, new, scratch)
            for i in range(s, e):
                d = new[i] - V[i]
                if d != 0.0:
                    moved += longest[g] * d * d
                    V[i] = new[i]
                    for j in range(n):
                        R[j] -= H[i, j] * d
        if sweep == 0:
            first = moved
        if moved <= greater(tolerance * first, least):
            return sweep + 1, first
    return max_sweeps, first


@njit(nogil=True, cache=True)
def _largest(H: Float64, s: int, e: int) -> float:
    """An upper bound of the largest eigenvalue of the block: the lesser of its row sums and of its Euclidean norm."""
    rows, squares = 0.0, 0.0
    for i in range(s, e):
        total = 0.0
        for j in range(s, e):
            total += abs(H[i, j])
            squares += H[i, j] * H[i, j]
        rows = greater(rows, total)
    return float(lesser(rows, math.sqrt(squares)))


@njit(nogil=True, cache=True)
def _solve_block(
    H: Float64,
    s: int,
    e: int,
    longest: float,
    lam: float,
    code: int,
    a: float,
    b: float,
    pull: Float64,
    V: Float64,
    new: Float64,
    scratch: Float64,
) -> None:
    """Fill ``new[s:e]`` by the solution of a block, from ``V[s:e]``; ``pull`` is c. Never worse than ``V``."""
    metric, z, ahead, out, work = scratch[0], scratch[1], scratch[2], scratch[3], scratch[4]
    metric[s:e] = 1.0
    diagonal_prox(code, a, b, 0.0, pull[s:e], metric[s:e], lam, new[s:e], work[s:e])
    still = True
    for i in range(s, e):
        still = still and new[i] == 0.0
    if still:
        # W_g = 0 is optimal: the dual norm of c is at most lam
        return
    for i in range(s, e):
        metric[i] = longest
        new[i] = V[i]
        ahead[i] = V[i]
    start = _value(H, s, e, lam, code, a, b, pull, V)
    momentum, first = 1.0, 0.0
    for step in range(_STEPS):
        for i in range(s, e):
            total = pull[i]
            for j in range(s, e):
                total -= H[i, j] * ahead[j]
            z[i] = ahead[i] + total / longest
        diagonal_prox(code, a, b, 0.0, z[s:e], metric[s:e], lam, out[s:e], work[s:e])
        square, turned, length = 0.0, 0.0, 0.0
        for i in range(s, e):
            d = out[i] - new[i]
            square += d * d
            turned += (ahead[i] - out[i]) * d
            length += out[i] * out[i]
        then = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * momentum * momentum))
        share = (momentum - 1.0) / then
        if turned > 0.0:
            # the momentum leads away from the minimum (O'Donoghue & Candes 2015)
            then, share = 1.0, 0.0
        for i in range(s, e):
            ahead[i] = out[i] + share * (out[i] - new[i])
            new[i] = out[i]
        momentum = then
        if step == 0:
            first = square
        if square <= greater(_SOLVED * first, _ROUNDING * length):
            break
    if _value(H, s, e, lam, code, a, b, pull, new) > start:
        # steps with momentum may end above where they began: the first of them, on the bound, does not
        for i in range(s, e):
            total = pull[i]
            for j in range(s, e):
                total -= H[i, j] * V[j]
            z[i] = V[i] + total / longest
        diagonal_prox(code, a, b, 0.0, z[s:e], metric[s:e], lam, new[s:e], work[s:e])


@njit(nogil=True, cache=True)
def _value(H: Float64, s: int, e: int, lam: float, code: int, a: float, b: float, pull: Float64, v: Float64) -> float:
    """1/2 v'H_gg v - <c, v> + lam omega(v)."""
    total, squares, entries, top = 0.0, 0.0, 0.0, 0.0
    for i in range(s, e):
        bent = 0.0
        for j in range(s, e):
            bent += H[i, j] * v[j]
        total += v[i] * (0.5 * bent - pull[i])
        squares += v[i] * v[i]
        entries += abs(v[i])
        top = greater(top, abs(v[i]))
    if code == BOUND:
        return total + lam * top
    return total + lam * (a * math.sqrt(squares) + b * entries)
