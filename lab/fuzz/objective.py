"""The objective of a fit in long double, written from the mathematics and from nothing in ``dboost``.

P(W, b) = sum_i s_i l(y_i, W'x_i + b) / sum_i s_i + alpha sum_j omega_j(W_j)

Covers: every loss with its derivative, every penalty with its prox, the strengths that ``standardize`` gives to
columns, and what the rounding of a computation in float64 may cost. Does not cover: minimising (``descent``), or what
a fit claims (``judge``). A long double has 64 bits of mantissa and an exponent of 15, so that no square of a float64
overflows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

Long = NDArray[Any]
"""Arrays of long double, whose type is another one on each kind of machine."""
Number = Any
"""One of them."""

EPSILON = 0.1
"""Half the width of the tube of the eps-insensitive loss."""
BEND = 1.35
"""The error up to which Huber's loss is half its square."""
TAU, WIDTH = 0.5, 0.1
"""The quantile, and the width over which its kink is rounded off."""
BY_DIFFERENCE = ("squared", "multitarget", "epsilon_insensitive", "huber", "quantile")
"""Losses of labels that may be less a number, which scores then are less, too."""
L1_RATIO = 0.5
"""Share of the l1 part in the penalty ``l1/l2+l1``."""
SHARPNESS = 1.0
"""b of the penalties that are rounded at zero."""
_FLOAT64 = np.longdouble(2.0) ** -52
# A column whose deviation is below this share of its mean has none that float64 values can tell.
_CONSTANT = np.longdouble(2.0) ** -50
# Numbers are far from zero with a mean of so many deviations: long double has 64 bits, and 1e15 deviations take 50.
_FAR = 1e3


def long(values: Any) -> Long:
    """Values as long double."""
    found: Long = np.asarray(values, dtype=np.longdouble)
    return found


def softplus(z: Long) -> Long:
    """log(1 + e^z)."""
    return np.maximum(z, 0) + np.log1p(np.exp(-np.abs(z)))


def sigma(z: Long) -> Long:
    """1 / (1 + e^-z)."""
    return np.exp(-softplus(-z))


# ---- losses: F (m, k) -> (l (m,), dl/dF (m, k)) of an example of weight one ------------------------------------------

LossAndSlope = Callable[[Long, Long], tuple[Long, Long]]


def _signs(y: Long, F: Long) -> tuple[Long, Long]:
    seen = np.abs(y)
    return (seen * softplus(-y * F)).sum(axis=1), -y * sigma(-y * F)


def _exponential(y: Long, F: Long) -> tuple[Long, Long]:
    e = np.exp(-y * F)
    return e.sum(axis=1), -y * e


def _softmax(y: Long, F: Long) -> tuple[Long, Long]:
    return _classes(y, F, F)


def _margin_softmax(y: Long, F: Long) -> tuple[Long, Long]:
    return _classes(y, F, F + 1 - y)


def _classes(y: Long, F: Long, given: Long) -> tuple[Long, Long]:
    """log sum_r e^(given_r) - F_y, with one-hot labels y (m, k)."""
    # relative to the label's own score, so that what is left of a confident example is not lost in a difference
    own = (y * F).sum(axis=1, keepdims=True)
    z = given - own
    top = z.max(axis=1, keepdims=True)
    e = np.exp(z - top)
    total = e.sum(axis=1, keepdims=True)
    rest = (np.where(y > 0, 0, e)).sum(axis=1)
    label = (y * e).sum(axis=1)
    # where the label has the largest score, log(1 + rest / label) keeps what is small
    first = label == 1
    loss = np.where(first, np.log1p(np.where(first, rest, 0)), top[:, 0] + np.log(total[:, 0]))
    slope = e / total
    others = np.where(y > 0, -(rest / total[:, 0])[:, None], slope)
    return loss, others


def _squared(y: Long, F: Long) -> tuple[Long, Long]:
    z = F - y
    return (z * z / 2)[:, 0], z


def _targets(y: Long, F: Long) -> tuple[Long, Long]:
    z = np.where(np.isnan(y), 0, F - y)
    return (z * z / 2).sum(axis=1), z


def _tube(y: Long, F: Long) -> tuple[Long, Long]:
    z, epsilon = F - y, long(EPSILON)
    return (softplus(z - epsilon) + softplus(-z - epsilon))[:, 0], sigma(z - epsilon) - sigma(-z - epsilon)


def _counts(y: Long, F: Long) -> tuple[Long, Long]:
    e = np.exp(F)
    # from F - log y, so that what is left of large counts is not lost in a difference
    d = F - np.log(np.where(y > 0, y, 1))
    return np.where(y > 0, y * (np.expm1(d) - d), e)[:, 0], e - y


def _huber(y: Long, F: Long) -> tuple[Long, Long]:
    z, bend = F - y, long(BEND)
    near = np.clip(z, -bend, bend)
    return (near * z - near * near / 2)[:, 0], near


def _quantile(y: Long, F: Long) -> tuple[Long, Long]:
    z, tau, h = y - F, long(TAU), long(WIDTH)
    near = np.clip(z / h, -0.5, 0.5)
    # |z| / 2 beyond h / 2, and the parabola that touches it there within
    half = np.where(np.abs(z) < h / 2, z * z / (2 * h) + h / 8, np.abs(z) / 2)
    return ((tau - long(0.5)) * z + half)[:, 0], -(tau - long(0.5) + near)


LOSSES: dict[str, LossAndSlope] = {
    "log": _signs,
    "multitask": _signs,
    "exp": _exponential,
    "multinomial": _softmax,
    "margin_softmax": _margin_softmax,
    "squared": _squared,
    "multitarget": _targets,
    "epsilon_insensitive": _tube,
    "huber": _huber,
    "quantile": _quantile,
    "poisson": _counts,
}


# ---- penalties of scaled rows: omega, and the prox where the row's own strength is `t` -------------------------------

DEGREE = {"l2_squared": 2, "smooth_l1": 0, "smooth_l1/linf": 0}
"""How a penalty follows the scale of its argument, where that is not linearly."""


def omega(penalty: str, W: Long, strength: Long) -> Number:
    """sum_j strength_j omega(W_j), of all rows together for the penalty ``l2``."""
    size = np.abs(W)
    # a row that is zero costs nothing, whatever its strength
    strength = np.where(size.any(axis=1), strength, 0)
    if penalty == "l2":
        return np.sqrt(((strength[:, None] * W) ** 2).sum())
    if penalty == "l1":
        rows = size.sum(axis=1)
    elif penalty == "l1/l2":
        rows = _length(W)
    elif penalty == "l1/linf":
        rows = size.max(axis=1, initial=0)
    elif penalty == "l1/l2+l1":
        rows = (1 - long(L1_RATIO)) * _length(W) + long(L1_RATIO) * size.sum(axis=1)
    elif penalty == "l2_squared":
        rows = (W * W).sum(axis=1) / 2
    elif penalty == "smooth_l1":
        u = long(SHARPNESS) * size
        near = 2 * np.log1p(2 * np.sinh(np.minimum(u, 1) / 4) ** 2)
        # log cosh: the difference of logarithms has no digits of a small weight
        rows = (np.where(u < 1, near, softplus(u) + softplus(-u) - 2 * np.log(long(2))) / long(SHARPNESS)).sum(axis=1)
    elif penalty == "smooth_l1/linf":
        u = long(SHARPNESS) * size
        top = u.max(axis=1, keepdims=True, initial=0)
        mean = (np.exp(u - top) + np.exp(-u - top)).sum(axis=1) / (2 * max(W.shape[1], 1))
        near = np.log1p((2 * np.sinh(np.minimum(u, 1) / 2) ** 2).sum(axis=1) / max(W.shape[1], 1))
        rows = np.where(top[:, 0] < 1, near, top[:, 0] + np.log(mean)) / long(SHARPNESS)
    else:
        return long(0)[()]
    return (strength * rows).sum()


def _length(W: Long) -> Long:
    found: Long = np.sqrt((W * W).sum(axis=1))
    return found


def prox(penalty: str, Z: Long, t: Long) -> Long:
    """argmin_V ||V - Z||^2 / 2 + sum_j t_j omega(V_j), for the penalties that certificates exist for."""
    if penalty == "l1":
        return _soft(Z, t[:, None])
    if penalty == "l1/l2":
        return _shortened(Z, t)
    if penalty == "l1/linf":
        return _clipped(Z, t)
    if penalty == "l1/l2+l1":
        return _shortened(_soft(Z, long(L1_RATIO) * t[:, None]), (1 - long(L1_RATIO)) * t)
    if penalty == "l2_squared":
        found: Long = Z / (1 + t)[:, None]
        return found
    if penalty == "l2":
        return _shortened_together(Z, t)
    raise ValueError(f"no prox of {penalty!r} here")


def _soft(Z: Long, t: Long) -> Long:
    found: Long = np.sign(Z) * np.maximum(np.abs(Z) - t, 0)
    return found


def _shortened(Z: Long, t: Long) -> Long:
    length = _length(Z)
    found: Long = Z * (np.maximum(length - t, 0) / np.where(length > 0, length, 1))[:, None]
    return found


def _clipped(Z: Long, t: Long) -> Long:
    """Z less its projection on the l1 ball of radius t, row by row."""
    ordered = -np.sort(-np.abs(Z), axis=1)
    counts = np.arange(1, Z.shape[1] + 1)
    bound = np.maximum(((np.cumsum(ordered, axis=1) - t[:, None]) / counts).max(axis=1), 0)[:, None]
    return np.clip(Z, -bound, bound)


def _shortened_together(Z: Long, t: Long) -> Long:
    """Root tau of sum_j (t_j Z_j / (tau + t_j^2))^2 = 1, by bisection; V_j = tau Z_j / (tau + t_j^2)."""
    squares, t2 = (Z * Z).sum(axis=1), t * t
    tied = t > 0
    if not (squares[tied] / t2[tied]).sum() > 1:
        return np.where(tied[:, None], 0, Z)
    high = np.sqrt((t2 * squares).sum())
    low = long(0)[()]
    for _ in range(100):
        tau = (low + high) / 2
        if (t2 * squares / (tau + np.where(tied, t2, 1)) ** 2)[tied].sum() > 1:
            low = tau
        else:
            high = tau
    return Z * np.where(tied, high / (high + t2), 1)[:, None]


# ---- the objective ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Objective:
    """One problem in long double."""

    loss: str
    penalty: str
    X: Long
    # Signs (m, k), one-hot labels (m, k), or targets (m, 1).
    y: Long
    # s_i / sum s.
    share: Long
    alpha: Number
    # Factor of alpha for each column: 1, or a power of its deviation; infinite for a constant one.
    scale: Long
    # Whether there is an intercept.
    free: bool
    # What scores begin at.
    offset: Any = 0
    # What was taken off the columns, exactly: `X` holds the rest. 0 for those that are not far from zero.
    taken: Any = None
    # What was taken off the offsets less what was taken off the labels: scores are lower by it.
    lower: tuple[Fraction, ...] = ()

    @classmethod
    def of(
        cls,
        loss: str,
        penalty: str,
        X: Any,
        y: Any,
        weight: Any,
        alpha: float,
        free: bool,
        standardize: bool,
        offset: Any = None,
    ) -> Objective:
        """From what a fit is given; `weight` and `offset` may be None."""
        near, _ = _near(X, True)
        X, taken = _near(X, free)
        y, off_labels = _near(y, free and loss in BY_DIFFERENCE)
        begun, off_offsets = (long(0), np.zeros(y.shape[1])) if offset is None else _near(offset, free)
        lower = tuple(Fraction(o) - Fraction(c) for o, c in zip(off_offsets, off_labels, strict=True))
        s = np.ones(len(X), np.longdouble) if weight is None else long(weight)
        share = s / s.sum()
        scale = np.ones(X.shape[1], np.longdouble)
        if standardize:
            # of what is left of them: quotients of columns far from zero have lost it
            deviation = deviations(near, share)
            degree = DEGREE.get(penalty, 1)
            scale = np.where(deviation > 0, np.where(deviation > 0, deviation, 1) ** degree, np.inf)
        return cls(loss, penalty, X, y, share, long(alpha)[()], scale, free, begun, taken, lower)

    def seen(self, W: Long, b: Long) -> Long:
        """The intercept of a model for what is left of the data, exact but for the last rounding."""
        if not self.taken.any() and not any(self.lower):
            return b
        far = np.flatnonzero(self.taken)
        found = []
        for r, lower in enumerate(self.lower):
            terms = (Fraction(float(self.taken[j])) * _fraction(W[j, r]) for j in far)
            whole = _fraction(b[r]) + lower + sum(terms, Fraction(0))
            high = float(whole)
            found.append(long(high) + long(float(whole - Fraction(high))))
        return long(found)

    @property
    def strength(self) -> Long:
        """alpha times the factor of each column."""
        return np.where(np.isinf(self.scale), np.inf, self.alpha * np.where(np.isinf(self.scale), 1, self.scale))

    def loss_at(self, F: Long) -> tuple[Number, Long]:
        """Mean loss at the scores F, and its derivative (m, k); examples of weight zero count in nothing."""
        on = self.share > 0
        each, slope = LOSSES[self.loss](self.y[on], F[on])
        U = np.zeros_like(F)
        U[on] = self.share[on, None] * slope
        return (self.share[on] * each).sum(), U

    def value(self, W: Any, b: Any) -> Number:
        """P(W, b)."""
        W = long(W)
        return self.value_seen(W, self.seen(W, long(b)))

    def value_seen(self, W: Long, b: Long) -> Number:
        """P of weights and an intercept of what is left of the data."""
        return self.loss_at(self.X @ W + b + self.offset)[0] + omega(self.penalty, W, self.strength)

    def rounding(self, W: Any, b: Any) -> Number:
        """What P may change by where scores, terms and sums are rounded to float64, with some room.

        Scores of m examples are off by some units in the last place of the sum of |x_ij W_jr|, which the slope of the
        loss carries over; the sum of all terms is off by as many as there are merges of sums.
        """
        W = long(W)
        b = self.seen(W, long(b))
        F = self.X @ W + b + self.offset
        value, U = self.loss_at(F)
        reach = np.abs(self.X) @ np.abs(W) + np.abs(b) + np.abs(self.offset)
        # an error of the scores may move the slope, too: of the squared loss by as much as itself
        off = 4 * _FLOAT64 * reach
        moved = (np.abs(U) * off).sum() + (self.share[:, None] * off * off).sum()
        terms = len(self.X) + self.X.shape[1]
        return moved + 8 * np.sqrt(long(terms))[()] * _FLOAT64 * (value + omega(self.penalty, W, self.strength))


def _near(values: Any, free: bool) -> tuple[Long, NDArray[np.float64]]:
    """Columns less what makes those far from zero near, which is exact, and what that is; `free`: whether it may be."""
    given = np.asarray(values, dtype=np.float64)
    if not free:
        return long(values), np.zeros(given.shape[1])
    with np.errstate(over="ignore", invalid="ignore"):
        mean = np.nanmean(given, axis=0)
        far = np.abs(mean) > _FAR * np.nanstd(given, axis=0)
        # differences of numbers within a factor of two of one another are exact
        far &= np.nanmin(np.abs(given), axis=0) > np.abs(mean) / 2
        taken = np.where(far & np.isfinite(mean), mean, 0.0)
    return long(values) - long(taken), taken


def _fraction(value: Number) -> Fraction:
    return Fraction(*value.as_integer_ratio())


def deviations(X: Long, share: Long) -> Long:
    """Weighted standard deviation of each column, in two passes; 0 for one that float64 cannot tell from constant."""
    peak = np.abs(X).max(axis=0, initial=0)
    unit = np.where(peak > 0, peak, 1)
    Z = X / unit
    mean = share @ Z
    found = np.sqrt(share @ (Z - mean) ** 2)
    on = share > 0
    same = (X[on] == X[on][0]).all(axis=0)
    return np.where(same | (found <= _CONSTANT * np.abs(mean)), 0, found * unit)
