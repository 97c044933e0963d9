"""The functions of one example of losses of real labels: any output may have any of them, and labels may be missing.

Each output is what its own loss is; a label that is NaN contributes nothing. The exponential bound of a loss of bounded
curvature, which `branch_row` sums, is that of docs/math.md 1.
"""

from __future__ import annotations

import math
from typing import Any

from dboost.compiled.examples.loss_rows import SINGLE, Array, implements, single_dual, single_rows
from dboost.compiled.kept import njit
from dboost.compiled.vectors.emit import INLINED
from dboost.compiled.vectors.exponential import exp_nonpositive, log1p_unit
from dboost.compiled.vectors.room import greater, lesser
from dboost.losses.epsilon_insensitive import sigmoid, tube, tube_curvature, tube_dual
from dboost.losses.huber import huber, huber_curvature, huber_dual
from dboost.losses.logistic import moved_entropy
from dboost.losses.poisson import poisson, poisson_dual
from dboost.losses.quantile import pinball, pinball_curvature, pinball_dual
from dboost.losses.real import HUBER, LOG, POISSON, QUANTILE, SQUARED, TUBE, RealLabels
from dboost.losses.scalar import sum_over_outputs


@njit(nogil=True, cache=True, **INLINED)
def _of_kind(kind: int, y: float, f: float, first: float, second: float) -> tuple[float, float]:
    """l and -dl/df of the loss that it is."""
    if kind == SQUARED:
        return 0.5 * (y - f) * (y - f), y - f
    if kind == LOG:
        z = f if y > 0.0 else -f
        value = (-z if z < 0.0 else 0.0) + log1p_unit(exp_nonpositive(-abs(z)))
        return value, sigmoid(-f) if y > 0.0 else -sigmoid(f)
    if kind == POISSON:
        return poisson(y, f)
    if kind == HUBER:
        return huber(y - f, first)
    if kind == QUANTILE:
        return pinball(y - f, first, second)
    return tube(y - f, first, second)


@njit(nogil=True, cache=True, **INLINED)
def _curvature(kind: int, y: float, f: float, first: float, second: float) -> float:
    if kind == SQUARED:
        return 1.0
    if kind == LOG:
        return sigmoid(f) * sigmoid(-f)
    if kind == POISSON:
        return math.exp(f)
    if kind == HUBER:
        return huber_curvature(y - f, first)
    if kind == QUANTILE:
        return pinball_curvature(y - f, second)
    return tube_curvature(y - f, first, second)


@njit(nogil=True, cache=True, **INLINED)
def _dual(
    kind: int, y: float, f: float, first: float, second: float, scale: float, mix: float, shift: float, prior: float
) -> float:
    """As ``loss_rows.dual_row`` of the loss that it is, of an example of weight one."""
    if kind == LOG:
        return -moved_entropy(f, 1.0 if y > 0.0 else -1.0, scale, mix, shift, prior)
    if kind == POISSON:
        theta = 0.0
        if scale > 0.0:
            theta = scale * (poisson(y, f)[1] - (shift * math.exp(f) if shift != 0.0 else 0.0))
        return poisson_dual(y, greater(y - theta, 0.0), prior)
    theta = scale * (_of_kind(kind, y, f, first, second)[1] - shift)
    if kind == SQUARED:
        return theta * (y - prior - 0.5 * theta)
    if kind == HUBER:
        return huber_dual(theta, y) - theta * prior
    if kind == QUANTILE:
        return pinball_dual(theta, y, first, second) - theta * prior
    return tube_dual(lesser(greater(theta, -1.0), 1.0), y - prior, first, second)


@njit(nogil=True, cache=True, inline="always", error_model="numpy")
def _at(target: Any, i: int, r: int, f: float) -> tuple[float, float]:
    y = target.label[i, r]
    if target.squared:
        z = y - f
        # a missing label is no number, and equals nothing
        z = z if z == z else 0.0
        return 0.5 * z * z, z
    if y != y:
        return 0.0, 0.0
    kind, first, second = target.kind[r], target.first[r], target.second[r]
    return _of_kind(kind, y, f, first, second)


@njit(nogil=True, cache=True, inline="always", error_model="numpy")
def _curvature_at(target: Any, i: int, r: int, f: float) -> float:
    y = target.label[i, r]
    return _curvature(target.kind[r], y, f, target.first[r], target.second[r]) if y == y else 0.0


@njit(nogil=True, cache=True, inline="always", error_model="numpy")
def _dual_at(target: Any, i: int, r: int, f: float, scale: float, mix: float, shift: float, prior: float) -> float:
    y = target.label[i, r]
    if y != y:
        return 0.0
    return _dual(target.kind[r], y, f, target.first[r], target.second[r], scale, mix, shift, prior)


@njit(nogil=True, cache=True, inline="always", error_model="numpy")
def _theta_at(
    target: Any, i: int, r: int, u: float, s: float, keep: float, mix: float, shift: float, prior: float
) -> float:
    y, kind = target.label[i, r], target.kind[r]
    if y != y:
        return 0.0
    if kind == LOG:
        on = 1.0 if y > 0.0 else 0.0
        return keep * ((1.0 - mix) * (u + s * shift) + s * mix * (on - prior))
    if kind == POISSON:
        return float(keep * (u - shift * (s * y - u)))
    return keep * (u - s * shift)


@njit(nogil=True, cache=True, inline="always", error_model="numpy")
def _branches_at(target: Any, i: int, r: int, f: float) -> tuple[float, float]:
    y, kind = target.label[i, r], target.kind[r]
    if y != y:
        return 0.0, 0.0
    if kind == POISSON:
        return y, math.exp(f)
    if kind == TUBE:
        epsilon, softness = target.first[r], target.second[r]
        return sigmoid((y - f - epsilon) / softness), sigmoid((f - y - epsilon) / softness)
    u = _of_kind(kind, y, f, target.first[r], target.second[r])[1]
    return greater(u, 0.0) + target.both[r], greater(-u, 0.0) + target.both[r]


# Several outputs may have losses of two branches; those of one branch are two where one of them is zero.
sum_over_outputs(RealLabels, _at, _curvature_at, _dual_at, _theta_at, _branches_at)
SINGLE.add(RealLabels)


@implements(single_rows, RealLabels)
def _single_rows(target: Any, first: int, f: Array, weight: Array, u: Array, h: Array) -> float:
    label = target.label.reshape(target.label.size)
    kind, a, b = target.kind[0], target.first[0], target.second[0]
    loss = 0.0
    for t in range(f.shape[0]):
        y, s = label[first + t], weight[first + t]
        u[t] = 0.0
        h[t] = 0.0
        if s > 0.0 and y == y:
            value, pull = _of_kind(kind, y, f[t], a, b)
            u[t] = s * pull
            h[t] = s * _curvature(kind, y, f[t], a, b)
            loss += s * value
    return loss


@implements(single_dual, RealLabels)
def _single_dual(target: Any, f: Array, weight: Array, scale: float, mix: float, shift: float, prior: float) -> float:
    label = target.label.reshape(target.label.size)
    kind, a, b = target.kind[0], target.first[0], target.second[0]
    value = 0.0
    for t in range(f.shape[0]):
        y, s = label[t], weight[t]
        if s > 0.0 and y == y:
            value += s * _dual(kind, y, f[t], a, b, scale, mix, shift, prior)
    return value
