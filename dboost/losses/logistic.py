"""Binary log-loss per output: ``log`` (one output) and ``multitask`` (one per task, labels may be missing).

l(y, f) = softplus(-y f) with y in {-1, +1}; a label of 0 is missing and contributes nothing (docs/math.md 1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dboost.compiled.examples.loss_rows import SINGLE, implements, single_dual, single_rows
from dboost.compiled.kept import njit
from dboost.compiled.vectors.exponential import exp_nonpositive, log1p_unit, log_positive
from dboost.compiled.vectors.room import lesser, room
from dboost.losses.base import Array, Repair, SignLoss, share
from dboost.losses.scalar import VECTOR, sum_over_outputs


class LogisticTarget(NamedTuple):
    """Labels of one block: int8 (m, k) with -1, +1, or 0 where missing."""

    sign: NDArray[np.int8]


SINGLE.add(LogisticTarget)
# Examples whose losses are formed before they are added.
_ROOM = 256
_TINY = 1e-300


@njit(nogil=True, cache=True, inline="always", error_model="numpy")
def moved_entropy(f: float, y: float, scale: float, mix: float, shift: float, prior: float) -> float:
    """al log(al) + (1 - al) log(1 - al), al being the mass that the dual point moves away from the label y."""
    z = f if y > 0.0 else -f
    e = exp_nonpositive(-abs(z))
    inverse = 1.0 / (1.0 + e)
    toward = shift if y > 0.0 else -shift
    other = 1.0 - prior if y > 0.0 else prior
    # Only the larger mass is one less the other: what a difference lacks, the logarithm of a small mass multiplies.
    al = scale * ((1.0 - mix) * ((e if z > 0.0 else 1.0) * inverse + toward) + mix * other)
    stays = (1.0 - mix) * ((1.0 if z > 0.0 else e) * inverse - toward) + mix * (1.0 - other)
    rest = 1.0 - al if al < 0.5 else (1.0 - scale) + scale * stays
    al = al if al < 0.5 else 1.0 - rest
    # at the ends both products vanish
    al = al if al < 1.0 else 1.0
    al, rest = al if al > _TINY else _TINY, rest if rest > _TINY else _TINY
    entropy: float = al * log_positive(al) + rest * log_positive(rest)
    return entropy


@njit(nogil=True, cache=True, inline="always", error_model="numpy")
def _at(target: Any, i: int, r: int, f: float) -> tuple[float, float]:
    y = np.float64(target.sign[i, r])
    z = y * f
    e = exp_nonpositive(-abs(z))
    # sigma(-z) without cancellation on either side
    pull = y * ((e if z > 0.0 else 1.0) / (1.0 + e))
    return abs(y) * ((-z if z < 0.0 else 0.0) + log1p_unit(e)), pull


@njit(nogil=True, cache=True, inline="always", error_model="numpy")
def _curvature(target: Any, i: int, r: int, f: float) -> float:
    e = exp_nonpositive(-abs(f))
    return abs(np.float64(target.sign[i, r])) * (e / ((1.0 + e) * (1.0 + e)))


@njit(nogil=True, cache=True, inline="always", error_model="numpy")
def _dual(target: Any, i: int, r: int, f: float, scale: float, mix: float, shift: float, prior: float) -> float:
    y = np.float64(target.sign[i, r])
    return -abs(y) * moved_entropy(f, y, scale, mix, shift, prior)


@njit(nogil=True, cache=True, inline="always", error_model="numpy")
def _theta(
    target: Any, i: int, r: int, u: float, s: float, keep: float, mix: float, shift: float, prior: float
) -> float:
    y = target.sign[i, r]
    on = 1.0 if y > 0 else 0.0
    moved = keep * ((1.0 - mix) * (u + s * shift) + s * mix * (on - prior))
    return moved if y != 0 else 0.0


sum_over_outputs(LogisticTarget, _at, _curvature, _dual, _theta, vector=True)


@implements(single_rows, LogisticTarget, VECTOR)
def _single_rows(target: Any, first: int, f: Array, weight: Array, u: Array, h: Array) -> float:
    sign = target.sign.reshape(target.sign.size)
    losses = room(_ROOM, np.float64)
    total = 0.0
    for start in range(0, f.shape[0], _ROOM):
        # straight-line code on consecutive numbers is vectorised; the sum, whose order counts, is apart
        size = lesser(_ROOM, f.shape[0] - start)
        some, label, s = f[start : start + size], sign[first + start :], weight[first + start :]
        pull, curvature = u[start : start + size], h[start : start + size]
        for t in range(size):
            y = np.float64(label[t])
            on = s[t] * abs(y)
            z = y * some[t]
            e = exp_nonpositive(-abs(z))
            inverse = 1.0 / (1.0 + e)
            pull[t] = s[t] * y * ((e if z > 0.0 else 1.0) * inverse)
            curvature[t] = on * e * inverse * inverse
            losses[t] = on * ((-z if z < 0.0 else 0.0) + log1p_unit(e))
        part = 0.0
        for t in range(size):
            part += losses[t]
        total += part
    return total


@implements(single_dual, LogisticTarget, VECTOR)
def _single_dual(target: Any, f: Array, weight: Array, scale: float, mix: float, shift: float, prior: float) -> float:
    sign = target.sign.reshape(target.sign.size)
    values = room(_ROOM, np.float64)
    total = 0.0
    for start in range(0, f.shape[0], _ROOM):
        size = lesser(_ROOM, f.shape[0] - start)
        some, label, s = f[start : start + size], sign[start:], weight[start:]
        for t in range(size):
            y = np.float64(label[t])
            values[t] = s[t] * abs(y) * moved_entropy(some[t], y, scale, mix, shift, prior)
        part = 0.0
        for t in range(size):
            part += values[t]
        total -= part
    return total


@dataclass(frozen=True)
class Logistic(SignLoss):
    """The binary log-loss of one or several outputs."""

    name: str
    task: str
    kappa: float = 0.25
    template_constant: float = 1.0
    separable: bool = True
    probabilities: ClassVar[bool] = True
    mixes: ClassVar[bool] = True
    closed_null: bool = True
    counted: ClassVar[bool] = True

    def target(self, y: NDArray[Any]) -> LogisticTarget:
        """Wrap int8 labels of shape (m, k)."""
        return LogisticTarget(y)

    def longest_residual(self, k: int) -> Array:
        """All ones: no pull is larger."""
        return np.ones(k)

    def shifts(self, pull: Array, z: Array) -> Array:
        """What a prediction rises by is what its residual falls by, and `dual_row` subtracts from predictions."""
        return -pull

    def repair(self, mass: Array, total: Array, bias: Array) -> Repair:
        """Predictions become (1 - t)(q - e/M) + t n/M, with e the excess of predicted over observed mass.

        One t per output. An output that has one label only gets Theta = 0, which is feasible and optimal for it.
        """
        other = total - mass
        seen = total > 0.0
        whole = np.where(seen, total, 1.0)
        excess = np.where(seen, -bias, 0.0)
        keep = ((mass > 0.0) & (other > 0.0)).astype(float)
        mix = np.maximum(share(excess, mass), share(-excess, other)) * keep
        shift = keep * excess / whole
        return Repair(keep, mix, shift, mass / whole, float(mix.max(initial=0.0)), np.abs(shift), np.zeros_like(mix))
