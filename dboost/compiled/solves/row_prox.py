"""The compiled row solve under a diagonal quadratic, called once per row inside coordinate descent.

    min_w  1/2 sum_r D_r (w_r - z_r)^2 + lam omega(w)

Covers: code 0, omega(w) = a ||w||_2 + b ||w||_1 + c ||w||_2^2 / 2, where the ridge adds lam c to D and keeps D z; code
1, omega(w) = ||w||_inf. Nothing is allocated.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import numpy.typing as npt

from dboost.compiled.kept import njit
from dboost.compiled.vectors.room import greater, lesser

GROUP: Final = 0
BOUND: Final = 1
_STEPS = 200

Vector = npt.NDArray[np.float64]


@njit(nogil=True, cache=True, error_model="numpy")
def diagonal_prox(
    code: int, a: float, b: float, c: float, z: Vector, D: Vector, lam: float, out: Vector, work: Vector
) -> None:
    """Write the minimiser for one row into ``out``.

    `code`, `a`, `b`, `c`: as ``Penalty.compiled`` gives them.
    `z`, `D`, (k,): centre and curvature, D >= 0. An entry with D_r = 0 has no data: it stays where the penalty allows
    it to.
    `lam`: >= 0; with 0 the row is z.
    `out`, (k,): may be ``z`` itself.
    `work`, (k,): scratch, not ``z``, ``D`` or ``out``.
    """
    if not lam > 0.0:
        for r in range(z.size):
            out[r] = z[r]
    elif code == BOUND:
        _bound(z, D, lam, out)
    else:
        _group(lam * a, lam * b, lam * c, z, D, out, work)


@njit(nogil=True, cache=True, error_model="numpy")
def _group(lam2: float, lam1: float, ridge: float, z: Vector, D: Vector, out: Vector, work: Vector) -> None:
    """lam2 ||w||_2 + lam1 ||w||_1 + ridge ||w||_2^2 / 2: soft threshold, then a secular equation in tau = ||w||_2.

    With u = soft(D z, lam1) and B = D + ridge the solution is w = tau u / (B tau + lam2), where
    ||u / (B tau + lam2)||_2 = 1. The reciprocal of that norm increases and is concave in tau, so Newton rises to the
    root from any point below it.
    """
    k = z.size
    top, steepest = 0.0, 0.0
    for r in range(k):
        v = D[r] * z[r]
        size = abs(v) - lam1
        work[r] = math.copysign(size, v) if size > 0.0 else 0.0
        if size > top:
            top = size
        if size > 0.0 and D[r] + ridge > steepest:
            steepest = D[r] + ridge
    if not lam2 > 0.0:
        for r in range(k):
            if not lam1 > 0.0 and not ridge > 0.0:
                out[r] = z[r]
            else:
                out[r] = work[r] / (D[r] + ridge) if D[r] > 0.0 else 0.0
        return
    if not top > 0.0:
        for r in range(k):
            out[r] = 0.0
        return
    squares = 0.0
    for r in range(k):
        squares += (work[r] / top) ** 2
    length = top * math.sqrt(squares)
    if length <= lam2:
        for r in range(k):
            out[r] = 0.0
        return
    # As if every entry had the largest curvature: at or below the root.
    tau = (length - lam2) / steepest
    for _ in range(_STEPS):
        squares, slope = 0.0, 0.0
        for r in range(k):
            if work[r] != 0.0:
                bottom = (D[r] + ridge) * tau + lam2
                part = work[r] / bottom
                squares += part * part
                slope += part * part * ((D[r] + ridge) / bottom)
        # f = 1 / norm - 1, f' = slope / norm^3
        norm = math.sqrt(squares)
        step = squares * (norm - 1.0) / slope
        # From below all steps are positive; the first that is not, or is too small, is rounding.
        if step <= 1e-15 * tau:
            break
        tau += step
    for r in range(k):
        out[r] = tau * work[r] / ((D[r] + ridge) * tau + lam2)


@njit(nogil=True, cache=True, error_model="numpy")
def _bound(z: Vector, D: Vector, lam: float, out: Vector) -> None:
    """lam ||w||_inf: clip at the xi with sum_r D_r [|z_r| - xi]_+ = lam.

    The left side is convex and piecewise linear, so Newton from below ends at the exact piece after finitely many
    steps, without sorting.
    """
    k = z.size
    xi, count = -1.0, -1
    for _ in range(k + 1):
        weight, total, members = 0.0, 0.0, 0
        for r in range(k):
            if abs(z[r]) > xi and D[r] > 0.0:
                weight += D[r]
                total += D[r] * abs(z[r])
                members += 1
        if members == count or members == 0:
            break
        count = members
        new = (total - lam) / weight
        if new <= 0.0 and xi < 0.0:
            for r in range(k):
                out[r] = 0.0
            return
        xi = greater(xi, new)
    if xi < 0.0:
        xi = 0.0
    for r in range(k):
        out[r] = lesser(greater(z[r], -xi), xi) + 0.0
