"""The compiled row solve under a diagonal quadratic, called once per row inside coordinate descent.

    min_w  1/2 sum_r D_r (w_r - z_r)^2 + lam omega(w)

Covers: code 0, omega(w) = a ||w||_2 + b ||w||_1; code 1, omega(w) = ||w||_inf; code 2, omega(w) = ||w||_2^2 / 2;
code 3, omega(w) = (2 / b) sum_r log cosh(b w_r / 2); codes 4 and 5, omega(w) = a ||w||_1 + b ||w||_2^2 / 2 and
a ||w||_2 + b ||w||_2^2 / 2, where the ridge adds lam b to D and keeps D z. Nothing is allocated.
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
SQUARE: Final = 2
SMOOTH: Final = 3
ENTRY_RIDGE: Final = 4
GROUP_RIDGE: Final = 5
_STEPS = 200

Vector = npt.NDArray[np.float64]


@njit(nogil=True, cache=True, error_model="numpy")
def diagonal_prox(code: int, a: float, b: float, z: Vector, D: Vector, lam: float, out: Vector, work: Vector) -> None:
    """Write the minimiser for one row into ``out``.

    `code`, `a`, `b`: as ``Penalty.compiled`` gives them.
    `z`, `D`, (k,): centre and curvature, D >= 0. An entry with D_r = 0 has no data: it stays where the penalty allows
    it to.
    `lam`: >= 0; with 0 the row is z.
    `out`, (k,): may be ``z`` itself.
    `work`, (k,): scratch, not ``z``, ``D`` or ``out``.
    """
    if not lam > 0.0:
        for r in range(z.size):
            out[r] = z[r]
    elif code == 0:
        _group(lam * a, lam * b, 0.0, z, D, out, work)
    elif code == 1:
        _bound(z, D, lam, out)
    elif code == 4:
        _group(0.0, lam * a, lam * b, z, D, out, work)
    elif code == 5:
        _group(lam * a, 0.0, lam * b, z, D, out, work)
    else:
        for r in range(z.size):
            if not D[r] > 0.0:
                out[r] = 0.0
            elif code == 2:
                out[r] = D[r] * z[r] / (D[r] + lam)
            else:
                out[r] = smooth_root(D[r], D[r] * z[r], lam, b)


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


@njit(nogil=True, cache=True, error_model="numpy")
def smooth_root(D: float, v: float, lam: float, b: float) -> float:
    """Root of D w + lam tanh(b w / 2) = v, D > 0.

    The left side is concave for w > 0, so Newton from below rises to the root; both bounds of tanh, 1 and its tangent
    at zero, give a start below.
    """
    if not lam > 0.0:
        return v / D
    target = abs(v)
    w = greater((target - lam) / D, target / (D + 0.5 * lam * b))
    for _ in range(_STEPS):
        t = math.tanh(0.5 * b * w)
        step = (target - D * w - lam * t) / (D + 0.5 * lam * b * (1.0 - t * t))
        if not step > 1e-16 * w:
            break
        w += step
    return math.copysign(w, v) if w > 0.0 else 0.0


@njit(nogil=True, cache=True, error_model="numpy")
def smooth_roots(D: Vector, lam: Vector, b: float, new: Vector) -> None:
    """Replace the right sides ``new`` (rows, k) by the roots of every entry; rows with D = 0 are left as they are."""
    for j in range(new.shape[0]):
        if D[j] > 0.0:
            for r in range(new.shape[1]):
                new[j, r] = smooth_root(D[j], new[j, r], lam[j], b)
