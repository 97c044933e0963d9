"""Multinomial log-loss: l(y, f) = log sum_r exp(f_r) - f_y (docs/math.md 1, "multiclass")."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dboost.compiled.examples.loss_rows import (
    ROWS,
    curvature_row,
    dual_row,
    implements,
    loss_row,
    residual_row,
    residual_rows,
    theta_row,
)
from dboost.compiled.kept import njit
from dboost.compiled.vectors.emit import INLINED
from dboost.compiled.vectors.lanes import (
    add_row,
    entropy_row,
    exp_row,
    largest_of,
    log1p_of,
    log1p_total,
    others_of,
    scale_others,
    scale_row,
    total_of,
)
from dboost.compiled.vectors.room import greater, zeros
from dboost.compiled.vectors.softmax import LONGEST, softmax_parts, softmax_residual, softmax_scaled
from dboost.losses.base import SATURATED, Alike, Array, Loss, Repair, share

_TINY = 1e-300


class MultinomialTarget(NamedTuple):
    """Labels of one block: int32 (m,) class codes, and what is taken off the score of an example's own class."""

    code: NDArray[np.int32]
    margin: float


ROWS.add(MultinomialTarget)
# Examples whose logarithms are taken together.
_TOGETHER = 64


@njit(nogil=True, cache=True, **INLINED)
def _take_off(f: Array, y: int, margin: float) -> None:
    # a number that is written alone holds up the vector that is read next: not for nothing
    if margin > 0.0:
        f[y] -= margin


@njit(nogil=True, cache=True, **INLINED)
def _exponentials(f: Array, y: int) -> tuple[float, float, float, float]:
    """(own, others, max, f_y): own = exp(f_y - max), others the sum of the rest; f may become exp(f - max)."""
    if f.shape[0] <= LONGEST:
        own, others, top, mine = softmax_parts(f, y)
        return own, others, top, mine
    top = largest_of(f)
    mine = f[y]
    exp_row(f, top)
    return f[y], others_of(f, y), top, mine


@njit(nogil=True, cache=True, **INLINED)
def _residual(f: Array, y: int, s: float, u: Array) -> tuple[float, float]:
    """Write s (e_y - q) into u; return (z, d) so that the loss is s (log(1 + z) + d), z >= 0."""
    # 1 - q_y as the sum of the other probabilities, never by subtraction
    if f.shape[0] <= LONGEST:
        own, others, top, mine = softmax_residual(f, y, s, u)
    else:
        own, others, top, mine = _exponentials(f, y)
        t = s / (own + others)
        scale_others(f, -t, y, t * others, u)
    z, d = _log_loss(own, others, top, mine)
    return z, d


@njit(nogil=True, cache=True, **INLINED)
def _log_loss(own: float, others: float, top: float, mine: float) -> tuple[float, float]:
    """(z, d) so that the loss is log(1 + z) + d, z >= 0."""
    # log1p keeps the loss of a confident, correct example, whose own is one, to full precision. The same code for
    # others: whether an example is right is not foreseen, and the next ones would wait. The difference is exact where
    # both are large.
    return others + (own - 1.0), top - mine


@implements(residual_row, MultinomialTarget)
def _residual_row(target: Any, i: int, f: Array, s: float, u: Array) -> float:
    y = target.code[i]
    _take_off(f, y, target.margin)
    z, d = _residual(f, y, s, u)
    return float(s * (log1p_of(z) + d))


@implements(residual_rows, MultinomialTarget)
def _residual_rows(target: Any, F: Array, first: int, k: int, weight: Array, U: Array, total: Array) -> float:
    z, s = zeros(_TOGETHER, np.float64), zeros(_TOGETHER, np.float64)
    loss = 0.0
    c = 0
    for t in range(F.shape[0]):
        i = first + t
        # no view has a name: a loop would count the references to it
        if weight[i] > 0.0:
            y = target.code[i]
            _take_off(F[t][:k], y, target.margin)
            z[c], d = _residual(F[t][:k], y, weight[i], U[t][:k])
            s[c] = weight[i]
            loss += weight[i] * d
            add_row(U[t][:k], total)
            c += 1
            if c == _TOGETHER:
                loss += log1p_total(z, s)
                c = 0
        else:
            for r in range(k):
                U[t, r] = 0.0
    for t in range(c, _TOGETHER):
        s[t] = 0.0
    return float(loss + log1p_total(z, s))


@implements(loss_row, MultinomialTarget)
def _loss_row(target: Any, i: int, f: Array, s: float) -> float:
    y = target.code[i]
    _take_off(f, y, target.margin)
    own, others, top, mine = _exponentials(f, y)
    z, d = _log_loss(own, others, top, mine)
    return float(s * (log1p_of(z) + d))


@implements(curvature_row, MultinomialTarget)
def _curvature_row(target: Any, i: int, f: Array, s: float, h: Array) -> float:
    _take_off(f, target.code[i], target.margin)
    if f.shape[0] <= LONGEST:
        softmax_scaled(f, s, h)
    else:
        top = largest_of(f)
        exp_row(f, top)
        t = s / total_of(f)
        scale_row(f, t, h)
    return 1.0 / s if s > 0.0 else 0.0


@implements(dual_row, MultinomialTarget)
def _dual_row(target: Any, i: int, f: Array, s: float, scale: Array, mix: Array, shift: Array, prior: Array) -> float:
    y = target.code[i]
    _take_off(f, y, target.margin)
    top = largest_of(f)
    exp_row(f, top)
    t = 1.0 / total_of(f)
    for r in range(f.shape[0]):
        f[r] = scale[r] * ((1.0 - mix[r]) * (t * f[r] - shift[r]) + mix[r] * prior[r])
    f[y] += 1.0 - scale[y]
    # the margin is an offset on the other classes, of which the dual pays <Theta, offset>
    offset = 0.0
    if target.margin > 0.0:
        for r in range(f.shape[0]):
            offset += 0.0 if r == y else greater(f[r], 0.0)
    entropy_row(f, _TINY)
    return float(s * (target.margin * offset - total_of(f)))


@implements(theta_row, MultinomialTarget)
def _theta_row(target: Any, i: int, u: Array, s: float, keep: Array, mix: Array, shift: Array, prior: Array) -> None:
    y = target.code[i]
    for r in range(u.shape[0]):
        on = 1.0 if r == y else 0.0
        u[r] = keep[r] * ((1.0 - mix[r]) * (u[r] + s * shift[r]) + s * mix[r] * (on - prior[r]))


@dataclass(frozen=True)
class Multinomial(Loss):
    """The multinomial log-loss of k classes, one margin per class."""

    name: str = "multinomial"
    kappa: float = 0.5
    template_constant: float = 0.5
    separable: bool = False
    probabilities: ClassVar[bool] = True
    mixes: ClassVar[bool] = True
    closed_null: bool = True
    task: str = "multiclass"
    counted: ClassVar[bool] = True

    def target(self, y: NDArray[Any]) -> MultinomialTarget:
        """Wrap int32 class codes of shape (m,)."""
        return MultinomialTarget(y, 0.0)

    def label_mass(self, y: NDArray[Any], weight: Array, k: int) -> tuple[Array, Array]:
        """Weighted class counts, and the total weight repeated k times."""
        counts = np.bincount(y, weights=weight, minlength=k).astype(np.float64)
        return counts, np.full(k, weight.sum())

    def null_intercept(self, mass: Array, total: Array) -> Array:
        """Centred logarithms of the class frequencies."""
        with np.errstate(divide="ignore"):
            logs = np.log(mass) - np.log(total)
        # a class without examples is below all others, and one with few may be however low
        logs = np.where(mass > 0.0, logs, min(-SATURATED, float(np.min(logs, initial=0.0, where=mass > 0.0))))
        return np.asarray(logs - logs.mean())

    def without_features(self, intercept: Array, mass: Array) -> Alike | None:
        """Residuals e_c - p, p the softmax of the intercept: no table of a row for each class is needed."""
        top = float(intercept.max())
        e = np.exp(intercept - top)
        whole = float(e.sum())
        held = mass > 0.0
        # 1 - p_c as the sum of the other probabilities, not by subtraction, where a class has nearly all
        rest = np.maximum(whole - e, 0.0)
        rest[e > 0.5 * whole] = e[e <= 0.5 * whole].sum()
        with np.errstate(divide="ignore"):
            odds = rest[held] / e[held]
            # log1p keeps the loss of a class that has nearly all, which a difference of logarithms does not
            losses = np.where(e[held] > 0.5 * whole, np.log1p(odds), np.log(whole) + top - intercept[held])
        loss = float(np.sum(mass[held] * losses))
        return Alike(e / whole, loss)

    def longest_residual(self, k: int) -> Array:
        """(1, -1, 0, ...): residuals are e_y - p with p in the simplex, at one of whose corners they are longest."""
        longest = np.zeros(k)
        longest[:2] = (1.0, -1.0)[:k]
        return longest

    def shifts(self, pull: Array, z: Array) -> Array:
        """What a prediction rises by is what its residual falls by, and `dual_row` subtracts from predictions."""
        return -pull

    def repair(self, mass: Array, total: Array, bias: Array) -> Repair:
        """Predictions become (1 - t)(q - e/M) + t n/M, with e the excess of predicted over observed mass, one t."""
        seen = total > 0.0
        whole = np.where(seen, total, 1.0)
        excess = np.where(seen, -bias, 0.0)
        mix = np.full(mass.shape[0], np.max(share(excess, mass)))
        shift = excess / whole
        keep = np.ones_like(mix)
        return Repair(keep, mix, shift, mass / whole, float(mix.max()), np.abs(shift), np.zeros_like(mix))
