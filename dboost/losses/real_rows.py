"""The functions of one example of losses of real labels: any output may have any of them, and labels may be missing.

Each output is what its own loss is; a label that is NaN contributes nothing. The exponential bound of a loss of bounded
curvature, which `branch_row` sums, is that of docs/math.md 1.
"""

from __future__ import annotations

import math
from typing import Any

from numba.extending import overload

from dboost.compiled.examples.loss_rows import (
    SINGLE,
    TWO_BRANCHED,
    Array,
    branch_row,
    curvature_row,
    dual_row,
    loss_row,
    residual_row,
    single_dual,
    single_rows,
    theta_row,
)
from dboost.compiled.kept import njit
from dboost.compiled.vectors.emit import INLINED
from dboost.compiled.vectors.exponential import exp_nonpositive, log1p_unit
from dboost.compiled.vectors.room import greater, lesser
from dboost.losses.epsilon_insensitive import sigmoid, tube, tube_curvature, tube_dual, tube_pull
from dboost.losses.huber import huber, huber_curvature, huber_dual, huber_pull
from dboost.losses.logistic import moved_entropy
from dboost.losses.poisson import poisson_deviance, poisson_dual, poisson_pull
from dboost.losses.quantile import pinball, pinball_curvature, pinball_dual, pinball_pull
from dboost.losses.real import HUBER, LOG, POISSON, QUANTILE, SQUARED, TUBE, RealLabels

# Several outputs may have losses of two branches; those of one branch are two where one of them is zero.
TWO_BRANCHED.add(RealLabels)
SINGLE.add(RealLabels)


def _is_mine(target: Any) -> bool:
    return getattr(target, "instance_class", None) is RealLabels


@njit(nogil=True, cache=True, **INLINED)
def _value(kind: int, y: float, f: float, first: float, second: float) -> float:
    if kind == SQUARED:
        return 0.5 * (y - f) * (y - f)
    if kind == LOG:
        z = f if y > 0.0 else -f
        return (-z if z < 0.0 else 0.0) + log1p_unit(exp_nonpositive(-abs(z)))
    if kind == POISSON:
        return poisson_deviance(y, f)
    if kind == HUBER:
        return huber(y - f, first)
    if kind == QUANTILE:
        return pinball(y - f, first, second)
    return tube(y - f, first, second)


@njit(nogil=True, cache=True, **INLINED)
def _pull(kind: int, y: float, f: float, first: float, second: float) -> float:
    if kind == SQUARED:
        return y - f
    if kind == LOG:
        return sigmoid(-f) if y > 0.0 else -sigmoid(f)
    if kind == POISSON:
        return poisson_pull(y, f)
    if kind == HUBER:
        return huber_pull(y - f, first)
    if kind == QUANTILE:
        return pinball_pull(y - f, first, second)
    return tube_pull(y - f, first, second)


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
            theta = scale * (poisson_pull(y, f) - (shift * math.exp(f) if shift != 0.0 else 0.0))
        return poisson_dual(y, greater(y - theta, 0.0), prior)
    theta = scale * (_pull(kind, y, f, first, second) - shift)
    if kind == SQUARED:
        return theta * (y - prior - 0.5 * theta)
    if kind == HUBER:
        return huber_dual(theta, y) - theta * prior
    if kind == QUANTILE:
        return pinball_dual(theta, y, first, second) - theta * prior
    return tube_dual(lesser(greater(theta, -1.0), 1.0), y - prior, first, second)


@overload(residual_row, inline="never", jit_options=INLINED)
def _residual_row(target: Any, i: int, f: Array, s: float, u: Array) -> Any:
    if not _is_mine(target):
        return None

    def each(target: Any, i: int, f: Array, s: float, u: Array) -> float:
        loss = 0.0
        if target.squared:
            for r in range(f.shape[0]):
                z = target.label[i, r] - f[r]
                # a missing label is no number, and equals nothing
                z = z if z == z else 0.0
                u[r] = s * z
                loss += z * z
            return float(0.5 * s * loss)
        for r in range(f.shape[0]):
            y = target.label[i, r]
            u[r] = 0.0
            if y == y:
                u[r] = s * _pull(target.kind[r], y, f[r], target.first[r], target.second[r])
                loss += _value(target.kind[r], y, f[r], target.first[r], target.second[r])
        return float(s * loss)

    return each


@overload(branch_row, inline="never", jit_options=INLINED)
def _branch_row(target: Any, i: int, f: Array, s: float, plus: Array, minus: Array) -> Any:
    if not _is_mine(target):
        return None

    def each(target: Any, i: int, f: Array, s: float, plus: Array, minus: Array) -> float:
        loss = 0.0
        for r in range(f.shape[0]):
            y, kind = target.label[i, r], target.kind[r]
            plus[r] = 0.0
            minus[r] = 0.0
            if y == y:
                loss += _value(kind, y, f[r], target.first[r], target.second[r])
                if kind == POISSON:
                    plus[r] = s * y
                    minus[r] = s * math.exp(f[r])
                elif kind == TUBE:
                    plus[r] = s * sigmoid((y - f[r] - target.first[r]) / target.second[r])
                    minus[r] = s * sigmoid((f[r] - y - target.first[r]) / target.second[r])
                else:
                    u = _pull(kind, y, f[r], target.first[r], target.second[r])
                    plus[r] = s * (greater(u, 0.0) + target.both[r])
                    minus[r] = s * (greater(-u, 0.0) + target.both[r])
        return float(s * loss)

    return each


@overload(loss_row, inline="never", jit_options=INLINED)
def _loss_row(target: Any, i: int, f: Array, s: float) -> Any:
    if not _is_mine(target):
        return None

    def each(target: Any, i: int, f: Array, s: float) -> float:
        loss = 0.0
        if target.squared:
            for r in range(f.shape[0]):
                z = target.label[i, r] - f[r]
                loss += z * z if z == z else 0.0
            return float(0.5 * s * loss)
        for r in range(f.shape[0]):
            y = target.label[i, r]
            if y == y:
                loss += _value(target.kind[r], y, f[r], target.first[r], target.second[r])
        return float(s * loss)

    return each


@overload(curvature_row, inline="never", jit_options=INLINED)
def _curvature_row(target: Any, i: int, f: Array, s: float, h: Array) -> Any:
    if not _is_mine(target):
        return None

    def each(target: Any, i: int, f: Array, s: float, h: Array) -> float:
        for r in range(f.shape[0]):
            y = target.label[i, r]
            h[r] = s * _curvature(target.kind[r], y, f[r], target.first[r], target.second[r]) if y == y else 0.0
        return 0.0

    return each


@overload(dual_row, inline="never", jit_options=INLINED)
def _dual_row(target: Any, i: int, f: Array, s: float, scale: Array, mix: Array, shift: Array, prior: Array) -> Any:
    if not _is_mine(target):
        return None

    def each(target: Any, i: int, f: Array, s: float, scale: Array, mix: Array, shift: Array, prior: Array) -> float:
        value = 0.0
        for r in range(f.shape[0]):
            y = target.label[i, r]
            if y == y:
                value += _dual(
                    target.kind[r], y, f[r], target.first[r], target.second[r], scale[r], mix[r], shift[r], prior[r]
                )
        return float(s * value)

    return each


@overload(theta_row, inline="never", jit_options=INLINED)
def _theta_row(target: Any, i: int, u: Array, s: float, keep: Array, mix: Array, shift: Array, prior: Array) -> Any:
    if not _is_mine(target):
        return None

    def each(target: Any, i: int, u: Array, s: float, keep: Array, mix: Array, shift: Array, prior: Array) -> None:
        for r in range(u.shape[0]):
            y, kind = target.label[i, r], target.kind[r]
            if y != y:
                u[r] = 0.0
            elif kind == LOG:
                on = 1.0 if y > 0.0 else 0.0
                u[r] = keep[r] * ((1.0 - mix[r]) * (u[r] + s * shift[r]) + s * mix[r] * (on - prior[r]))
            elif kind == POISSON:
                u[r] = keep[r] * (u[r] - shift[r] * (s * y - u[r]))
            else:
                u[r] = keep[r] * (u[r] - s * shift[r])

    return each


@overload(single_rows, inline="never", jit_options=INLINED)
def _single_rows(target: Any, first: int, f: Array, weight: Array, u: Array, h: Array) -> Any:
    if not _is_mine(target):
        return None

    def each(target: Any, first: int, f: Array, weight: Array, u: Array, h: Array) -> float:
        label = target.label.reshape(target.label.size)
        kind, a, b = target.kind[0], target.first[0], target.second[0]
        loss = 0.0
        for t in range(f.shape[0]):
            y, s = label[first + t], weight[first + t]
            u[t] = 0.0
            h[t] = 0.0
            if s > 0.0 and y == y:
                u[t] = s * _pull(kind, y, f[t], a, b)
                h[t] = s * _curvature(kind, y, f[t], a, b)
                loss += s * _value(kind, y, f[t], a, b)
        return loss

    return each


@overload(single_dual, inline="never", jit_options=INLINED)
def _single_dual(target: Any, f: Array, weight: Array, scale: float, mix: float, shift: float, prior: float) -> Any:
    if not _is_mine(target):
        return None

    def each(target: Any, f: Array, weight: Array, scale: float, mix: float, shift: float, prior: float) -> float:
        label = target.label.reshape(target.label.size)
        kind, a, b = target.kind[0], target.first[0], target.second[0]
        value = 0.0
        for t in range(f.shape[0]):
            y, s = label[t], weight[t]
            if s > 0.0 and y == y:
                value += s * _dual(kind, y, f[t], a, b, scale, mix, shift, prior)
        return value

    return each
