"""The exponential bound: template normalisations, tilted logarithms, the row-solve driver, gains.

For Delta_jr = delta_jr and a_j with sum_j a_j |x_ij| <= c for every example i,

    L(W + Delta) - L(W) <= sum_j a_j sum_r mu_plus_jr (e^(-delta_jr / a_j) - 1) + mu_minus_jr (e^(delta_jr / a_j) - 1)

(Duchi & Singer 2009, Lemma 4.1 and eq. 2; docs/math.md 2). The constant c belongs to the loss and is given by
the caller. Covers: what is common to all penalties. Does not cover: the penalties, nor the passes that form the sums.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.float64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]

CAP: Final = 30.0
"""Length of a step, in units of a, where the bound has no finite minimiser."""

_LOG2, _LOG4 = np.log(2.0), np.log(4.0)


def normalisation(peak: FloatArray, c: float) -> FloatArray:
    """a_j = c / peak_j, (n,); inf for a zero column. The constant c of the loss is 1 for log, 1/2 for multinomial.

    Where one row changes at a time, peak_j = max_i |x_ij| over the examples of positive weight. Where all rows of a
    template do it is max_i rho_i, rho_i = sum_j |x_ij| over the template, or the maximum over the examples with
    x_ij != 0, which gives no smaller a and is as valid.
    """
    with np.errstate(divide="ignore"):
        result: FloatArray = np.asarray(np.divide(c, peak), dtype=np.float64)
    return result


def change(delta: FloatArray, mu_plus: FloatArray, mu_minus: FloatArray, a: FloatArray) -> FloatArray:
    """The bound's change of the loss for each row, shape (rows,).

    `delta`, `mu_plus`, `mu_minus`: (rows, k). `a`, (rows,): a row with a = inf (zero column) contributes nothing.
    """
    column = np.isfinite(a)
    scale = np.where(column, a, 1.0)[:, None]
    d = delta / scale
    with np.errstate(over="ignore", invalid="ignore"):
        # A zero sum times an overflowed exponential is still zero.
        fall = np.where(mu_plus > 0, mu_plus * np.expm1(-d), 0.0)
        rise = np.where(mu_minus > 0, mu_minus * np.expm1(d), 0.0)
    return np.where(column, (scale * (fall + rise)).sum(axis=1), 0.0)


def tilt(W: FloatArray, mu_plus: FloatArray, mu_minus: FloatArray, a: FloatArray) -> tuple[FloatArray, FloatArray]:
    """A = log mu_plus + w / a and B = log mu_minus - w / a, both (rows, k), -inf where a sum is zero.

    In terms of gamma = (w + delta) / a the bound is a sum_r e^(A - gamma) + e^(B + gamma) up to a constant. w / a is
    routinely in the hundreds (a is about one over the row length), hence logarithms.
    """
    shift = W / a[:, None]
    with np.errstate(divide="ignore"):
        return np.log(mu_plus) + shift, np.log(mu_minus) - shift


def sides(A: FloatArray, B: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """P = max(A, B), N = min(A, B) and the sign (1, -1 or 0) of the minimiser, each (rows, k)."""
    sign = (A > B).astype(np.float64) - (A < B)
    return np.maximum(A, B), np.minimum(A, B), sign


def shrunk_root(P: FloatArray, N: FloatArray, lam: FloatArray) -> FloatArray:
    """argmin_{gamma >= 0} e^(P - gamma) + e^(N + gamma) + lam gamma, (rows, k); inf if there is none.

    The rationalised root of the stationarity equation, in logarithms (docs/math.md 4.1, eq. 9).
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        log_lam = np.log(lam)[:, None]
        half = 0.5 * np.logaddexp(2.0 * log_lam, _LOG4 + P + N)
        root = np.maximum(_LOG2 + P - np.logaddexp(log_lam, half), 0.0)
        positive = P > np.logaddexp(N, log_lam)
    return np.where(positive, root, 0.0)


def solve_rows(
    solve_tilted: Callable[[FloatArray, FloatArray, FloatArray], FloatArray],
    W: FloatArray,
    mu_plus: FloatArray,
    mu_minus: FloatArray,
    a: FloatArray,
    lam: FloatArray,
) -> tuple[FloatArray, BoolArray]:
    """Minimise the bound plus penalty row by row, given the solver of the tilted, scaled problem.

    `solve_tilted`: (A, B, lam) -> gamma, with +-inf where an entry has no finite minimiser. `W`, `mu_plus`, `mu_minus`:
    (rows, k). `a`, `lam`: (rows,). An entry without a minimiser moves by ``CAP * a`` towards it, which lowers the
    bound, and marks its row.
    """
    column = np.isfinite(a)
    scale = np.where(column, a, 1.0)
    A, B = tilt(W, mu_plus, mu_minus, scale)
    gamma = solve_tilted(A, B, lam)
    endless = np.isinf(gamma)
    step = np.copysign((scale * CAP)[:, None], np.where(endless, gamma, 1.0))
    new: FloatArray = np.where(endless, W + step, scale[:, None] * np.where(endless, 0.0, gamma))
    # No data: nothing pulls, so the penalty alone decides; without one every value is as good and w stays.
    silent = ((mu_plus == 0) & (mu_minus == 0)) | ~column[:, None]
    new = np.where(silent & ~(lam > 0)[:, None], W, new)
    new = np.where(~column[:, None] & (lam > 0)[:, None], 0.0, new) + 0.0
    return new, (endless & ~silent).any(axis=1)


def gain(p: FloatArray, q: FloatArray, lam: npt.ArrayLike, *, excess: FloatArray | None = None) -> FloatArray:
    """-min_{d >= 0} p (e^(-d) - 1) + q (e^d - 1) + lam d for p >= q >= 0, elementwise; Psi of docs/math.md, eq. 14.

    `excess`: p - q - lam where the caller has it more exactly; the gain is positive exactly where it is.

    Notes
    -----
    With u = 1 - e^(-d) at the minimiser, the gain is p u^2 - lam (d - u): both terms are of second order in d and the
    first is at least twice the second, so nothing cancels near the threshold.
    """
    p, q, lam = np.broadcast_arrays(p, q, np.asarray(lam, dtype=np.float64))
    over: FloatArray = p - q - lam if excess is None else np.broadcast_to(excess, p.shape)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        if not (lam > 0).any():
            # Without a penalty no logarithm is needed; they took most of the time of a round over all stumps.
            return np.where(over > 0, (over / (np.sqrt(p) + np.sqrt(q))) ** 2, 0.0)
        R = np.hypot(lam, 2.0 * np.sqrt(p) * np.sqrt(q))
        near = np.log1p((4.0 * p / (lam + R)) * (over / (2.0 * p - lam + R)))
        # d = log(2 p / (lam + R)): exact enough away from the threshold, where the quotient itself may overflow.
        d = np.where(p > lam + R, _LOG2 + np.log(p) - np.log(lam + R), near)
        u = -np.expm1(-d)
        penalised = p * u * u - lam * _beyond(d)
        free = (over / (np.sqrt(p) + np.sqrt(q))) ** 2
    return np.where(over > 0, np.where(lam > 0, penalised, free), 0.0)


def _beyond(d: FloatArray) -> FloatArray:
    """d - (1 - e^(-d)) without cancellation for small d >= 0."""
    x = np.where(d < 0.1, d, 0.0)
    series = np.zeros_like(x)
    for n in range(12, 1, -1):
        # Horner: 1/2! - x/3! + x^2/4! - ... = 1/2 (1 - x/3 (1 - x/4 (...)))
        series = (1.0 - x * series) / n
    return np.where(d < 0.1, x * x * series, d + np.expm1(-d))
