"""Rows under lam2 ||w||_2 + lam1 ||w||_1: what ``l1/l2`` (lam1 = 0) and the sparse group penalty share.

Covers: the prox and, for the exponential bound, the row solve and the score; ``l2`` and ``l2_squared`` use the roots
too. Does not cover: one class per penalty. The row solve has no closed form:
stationarity of an entry gamma > 0 (after choosing signs) is

    e^(P - gamma) = e^(N + gamma) + lam1 + lam2 gamma / tau,      tau = ||gamma||_2.

For a fixed tau each entry is a scalar root, and tau / ||gamma(tau)||_2 increases with tau; the wanted tau makes it one.
That ratio is nearly linear in tau for small and for large rows alike, so Newton on it needs few steps; both
iterations keep a bracket and fall back to bisection.
"""

from __future__ import annotations

import math

import numpy as np

from dboost.bounds import exponential
from dboost.compiled.kept import njit
from dboost.penalties.rows import FloatArray, norm2, soft_threshold

_STEPS = 200


def prox_group(Z: FloatArray, t: FloatArray) -> FloatArray:
    """Z [1 - t / ||Z||_2]_+ for each row of Z (rows, k), t (rows,)."""
    norms = norm2(Z)
    # (norm - t) / norm instead of 1 - t / norm: the difference is exact near the threshold.
    excess = np.maximum(norms - t, 0.0)
    factor = np.divide(excess, norms, out=np.zeros_like(norms), where=excess > 0)
    return Z * factor[:, None]


def score_group(mu_plus: FloatArray, mu_minus: FloatArray, lam2: FloatArray, lam1: FloatArray) -> FloatArray:
    """Lower bound of the decrease of bound plus penalty for rows that leave zero, a = 1, shape (rows,).

    The row moves along u = S / ||S||_2 with S = soft(|G|, lam1). As e^(-u d) - 1 <= u (e^(-d) - 1) for 0 <= u <= 1,
    that is a one-dimensional problem with weights sum u p, sum u q and penalty lam2 + lam1 sum u, whose zero is
    optimal exactly when ||S||_2 <= lam2, as for the row.
    """
    S = soft_threshold(np.abs(mu_plus - mu_minus), lam1)
    length = norm2(S)
    u = S / length[:, None]
    p = (u * np.maximum(mu_plus, mu_minus)).sum(axis=1)
    q = (u * np.minimum(mu_plus, mu_minus)).sum(axis=1)
    return exponential.gain(p, q, lam2 + lam1 * u.sum(axis=1), excess=length - lam2)


def solve_group(
    A: FloatArray, B: FloatArray, lam2: FloatArray, lam1: FloatArray, ridge: FloatArray | None = None
) -> FloatArray:
    """argmin_gamma sum_r e^(A_r - gamma_r) + e^(B_r + gamma_r) + lam2 ||gamma||_2 + lam1 ||gamma||_1, (rows, k).

    With `ridge` (rows,), ridge ||gamma||_2^2 / 2 is added to it.
    """
    P, N, s = exponential.sides(A, B)
    # Without the group part entries separate; that solution bounds each entry of the wanted one from above.
    upper = exponential.shrunk_root(P, N, lam1)
    gamma = upper.copy()
    bend = np.zeros(len(P)) if ridge is None else np.ascontiguousarray(ridge)
    _solve_rows(P, N, upper, np.ascontiguousarray(lam2), np.ascontiguousarray(lam1), bend, gamma)
    return s * gamma


def solve_entries(A: FloatArray, B: FloatArray, lam1: FloatArray, ridge: FloatArray) -> FloatArray:
    """argmin_gamma sum_r e^(A_r - gamma_r) + e^(B_r + gamma_r) + lam1 ||gamma||_1 + ridge ||gamma||_2^2 / 2, (rows, k).

    Safeguarded Newton on P - g = log(e^(N + g) + lam1 + ridge g), entry by entry.
    """
    P, N, s = exponential.sides(A, B)
    upper = exponential.shrunk_root(P, N, lam1)
    gamma = upper.copy()
    _entry_roots(P, N, upper, np.ascontiguousarray(lam1), np.ascontiguousarray(ridge), gamma)
    return s * gamma


@njit(nogil=True, cache=True)
def _entry_roots(
    P: FloatArray, N: FloatArray, upper: FloatArray, lam1: FloatArray, ridge: FloatArray, gamma: FloatArray
) -> None:
    """Overwrite the rows of gamma that have ridge > 0 by the roots of e^(P - g) = e^(N + g) + lam1 + ridge g."""
    for j in range(P.shape[0]):
        if not ridge[j] > 0.0:
            continue
        for r in range(P.shape[1]):
            if upper[j, r] > 0.0:
                # e^(P - g) <= ridge g holds at g = max(1, P - log ridge): a bound that is finite where upper is not
                bound = min(upper[j, r], max(1.0, P[j, r] - np.log(ridge[j])))
                gamma[j, r] = entry_root(P[j, r], N[j, r], lam1[j], ridge[j], bound, bound)


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
    """Overwrite the rows of gamma that have lam2 > 0 by the solution; the others keep their (separable) one."""
    rows, k = P.shape
    one = np.ones(k)
    for j in range(rows):
        if not lam2[j] > 0.0:
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
