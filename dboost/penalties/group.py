"""Rows under lam2 ||w||_2 + lam1 ||w||_1 + ridge ||w||_2^2 / 2: the prox of the norm, and the exponential bound.

Covers: the row solve and the gain of an entry; ``l2`` uses the roots too. Does not cover: the penalties (``mixed``).
The row solve has no closed form: stationarity of an entry gamma > 0 (after choosing signs) is

    e^(P - gamma) = e^(N + gamma) + lam1 + ridge gamma + lam2 gamma / tau,      tau = ||gamma||_2.

For a fixed tau each entry is a scalar root, and tau / ||gamma(tau)||_2 increases with tau; the wanted tau makes it one.
That ratio is nearly linear in tau for small and for large rows alike, so Newton on it needs few steps; both
iterations keep a bracket and fall back to bisection.
"""

from __future__ import annotations

import math

import numpy as np

from dboost.bounds import exponential
from dboost.compiled.kept import njit
from dboost.penalties.rows import FloatArray, norm2

_STEPS = 200


def prox_group(Z: FloatArray, t: FloatArray) -> FloatArray:
    """Z [1 - t / ||Z||_2]_+ for each row of Z (rows, k), t (rows,)."""
    norms = norm2(Z)
    # (norm - t) / norm instead of 1 - t / norm: the difference is exact near the threshold.
    excess = np.maximum(norms - t, 0.0)
    factor = np.divide(excess, norms, out=np.zeros_like(norms), where=excess > 0)
    return Z * factor[:, None]


def solve_group(A: FloatArray, B: FloatArray, lam2: FloatArray, lam1: FloatArray, ridge: FloatArray) -> FloatArray:
    """argmin_gamma sum_r e^(A_r - gamma_r) + e^(B_r + gamma_r) + lam2 ||gamma||_2 + lam1 ||gamma||_1, (rows, k).

    ridge ||gamma||_2^2 / 2 is added to it. Where lam2 is zero entries are solved for one by one: by safeguarded Newton
    on P - g = log(e^(N + g) + lam1 + ridge g), or in closed form (Duchi & Singer 2009, eq. 3) where ridge is zero too.
    """
    P, N, s = exponential.sides(A, B)
    # Without the group part entries separate; that solution bounds each entry of the wanted one from above.
    upper = exponential.shrunk_root(P, N, lam1)
    if not (lam2.any() or ridge.any()):
        return s * upper
    gamma = upper.copy()
    lam2, lam1, ridge = (np.ascontiguousarray(each) for each in (lam2, lam1, ridge))
    _solve_rows(P, N, upper, lam2, lam1, ridge, gamma)
    return s * gamma


# A step so short is the Newton step from zero, to rounding.
_NEAR = 1e-7
# Below it 1 - e^-g - g is formed by its series, whose next term is below rounding.
_SMALL = 1e-2


def ridged_gain(p: FloatArray, q: FloatArray, lam1: FloatArray, ridge: FloatArray, excess: FloatArray) -> FloatArray:
    """max_g p (1 - e^-g) - q (e^g - 1) - lam1 g - ridge g^2 / 2 for each entry (rows, k), p >= q >= 0.

    It is p u^2 + lam1 (u - g) + ridge g (u - g / 2) at the maximiser, with u = 1 - e^-g, by stationarity
    (docs/math.md 4.5).

    `p`, `q`: (rows, k). `lam1`, `ridge`: (rows,). `excess`, (rows, k): p - q - lam1, without rounding; not positive
    where the maximiser is zero.
    """
    rise = ridge[:, None]
    with np.errstate(divide="ignore"):
        g = np.abs(solve_group(np.log(p), np.log(q), np.zeros_like(lam1), lam1, ridge))
    # next to the threshold the logarithms agree to rounding
    near = np.maximum(excess, 0.0) / np.where(excess > 0.0, p + q + rise, 1.0)
    g = np.where(excess > 0.0, np.where(near < _NEAR, near, np.where(g > 0.0, g, near)), 0.0)
    endless = np.isinf(g)
    g = np.where(endless, 0.0, g)
    u = np.where(endless, 1.0, -np.expm1(-g))
    series = -0.5 * g * g * (1.0 - g / 3.0 * (1.0 - g / 4.0 * (1.0 - g / 5.0 * (1.0 - g / 6.0 * (1.0 - g / 7.0)))))
    less = np.where(endless, 0.0, np.where(g < _SMALL, series, u - g))
    return p * u * u + lam1[:, None] * less + rise * g * (u - 0.5 * g)


@njit(nogil=True, cache=True)
def entry_root(P: float, N: float, lam1: float, nu: float, upper: float, start: float) -> float:
    """Root of P - g = log(e^(N + g) + lam1 + nu g) in (0, upper]; the left side minus the right decreases in g."""
    low, high, g = 0.0, upper, start
    for _ in range(_STEPS):
        rising = math.exp(N + g)
        total = rising + lam1 + nu * g
        if total <= 0.0:
            low = g
            g = 0.5 * (low + high)
            continue
        value = P - g - math.log(total)
        if value > 0.0:
            low = g
        elif value < 0.0:
            high = g
        else:
            break
        step = value / (1.0 + (rising + nu) / total)
        # Before the bracket is asked: once the value is mere rounding of P its sign may have closed it wrongly.
        if abs(step) <= 4e-16 * g:
            break
        if abs(value) <= 2e-16 * (1.0 + abs(P)):
            g = min(max(g + step, 0.5 * g), upper)
            break
        g += step
        if not (low < g < high):
            g = 0.5 * (low + high)
    return g


@njit(nogil=True, cache=True)
def row_is_zero(P: FloatArray, N: FloatArray, lam2: float, lam1: float) -> bool:
    """Whether ||soft(e^P - e^N, lam1)||_2 <= lam2, scaled by the largest exponential so that nothing overflows."""
    top = -math.inf
    for r in range(P.size):
        top = max(top, P[r])
    if top == -math.inf:
        return True
    scale = math.exp(-top) if top > -700.0 else math.inf
    if scale == math.inf:
        return lam2 > 0.0 or lam1 > 0.0
    total = 0.0
    for r in range(P.size):
        if P[r] == -math.inf:
            continue
        over = -math.exp(P[r] - top) * math.expm1(N[r] - P[r]) - lam1 * scale
        if over > 0.0:
            total += over * over
    return math.sqrt(total) <= lam2 * scale


@njit(nogil=True, cache=True)
def _solve_rows(
    P: FloatArray,
    N: FloatArray,
    upper: FloatArray,
    lam2: FloatArray,
    lam1: FloatArray,
    ridge: FloatArray,
    gamma: FloatArray,
) -> None:
    """Overwrite the rows of gamma that have lam2 > 0 or ridge > 0 by the solution; it stays for the others."""
    rows, k = P.shape
    one = np.ones(k)
    for j in range(rows):
        if not lam2[j] > 0.0:
            for r in range(k):
                if ridge[j] > 0.0 and upper[j, r] > 0.0:
                    # e^(P - g) <= ridge g holds at g = max(1, P - log ridge): a bound that is finite where upper is not
                    bound = min(upper[j, r], max(1.0, P[j, r] - math.log(ridge[j])))
                    gamma[j, r] = entry_root(P[j, r], N[j, r], lam1[j], ridge[j], bound, bound)
            continue
        if row_is_zero(P[j], N[j], lam2[j], lam1[j]):
            gamma[j, :] = 0.0
            continue
        nested_root(P[j], N[j], upper[j], lam2[j] * one, one, lam1[j], ridge[j] * one, gamma[j])


@njit(nogil=True, cache=True)
def nested_root(
    P: FloatArray,
    N: FloatArray,
    upper: FloatArray,
    pull: FloatArray,
    share: FloatArray,
    lam1: float,
    ridge: FloatArray,
    gamma: FloatArray,
) -> None:
    """Roots of e^(P - g) = e^(N + g) + lam1 + (pull / tau + ridge) g, tau = sqrt(sum share g^2); not all are zero.

    For a row of its own ``pull`` is lam2 and ``share`` one; both differ by entry where rows of different templates
    are tied together.

    `P`, `N`, `upper`, `pull`, `share`, `ridge`, (k,): ``upper`` bounds the roots from above; inf allowed. `gamma`,
    (k,): overwritten.
    """
    k = P.size
    low, high, tau = 0.0, 0.0, 0.0
    for r in range(k):
        high += share[r] * upper[r] ** 2
        gamma[r] = min(upper[r], max(1.0, P[r] - math.log(pull[r])))
        tau += share[r] * gamma[r] ** 2
    high, tau = math.sqrt(high), math.sqrt(tau)
    if tau == 0.0:
        # Rounding at the threshold: the row test and the entry tests disagree in the last bit.
        gamma[:] = 0.0
        return
    for _ in range(_STEPS):
        squares, bend = 0.0, 0.0
        for r in range(k):
            if upper[r] <= 0.0:
                gamma[r] = 0.0
                continue
            nu = pull[r] / tau
            # e^(P - g) <= nu g holds at g = max(1, P - log nu), which closes the bracket when upper is inf.
            bound = min(upper[r], max(1.0, P[r] - math.log(pull[r]) + math.log(tau)))
            c = ridge[r]
            g = entry_root(P[r], N[r], lam1, nu + c, bound, min(gamma[r], bound))
            gamma[r] = g
            squares += share[r] * g * g
            # g (g - tau dg/dtau), written without the difference, which vanishes next to the threshold.
            settled = 2.0 * math.exp(N[r] + g) + lam1 + (nu + c) * g + c
            bend += share[r] * g * g * (settled / (settled + nu))
        norm = math.sqrt(squares)
        if bend <= 0.0:
            break
        ratio = tau / norm
        # The derivative of the ratio is bend / norm^3.
        step = (1.0 - ratio) * norm * (squares / bend)
        if abs(1.0 - ratio) <= 4e-16 or abs(step) <= 1e-15 * tau:
            break
        if ratio > 1.0:
            high = tau
        else:
            low = tau
        tau += step
        if not (low < tau < high):
            if high == math.inf:
                tau = 2.0 * low
            elif low > 0.0:
                tau = math.sqrt(low) * math.sqrt(high)
            else:
                tau = 0.1 * high
