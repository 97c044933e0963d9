"""The functions of one example where every target has a loss of its own (``per_target``).

Each output is what its own loss is; a label that is NaN contributes nothing. The exponential bound of a loss of bounded
curvature, which `branch_row` sums, is that of docs/math.md 1.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

from dboost.compiled.examples.loss_rows import (
    TWO_BRANCHED,
    Array,
    branch_row,
    curvature_row,
    dual_row,
    loss_row,
    residual_row,
    theta_row,
)
from dboost.compiled.kept import njit
from dboost.compiled.vectors.emit import INLINED
from dboost.compiled.vectors.exponential import exp_nonpositive, log1p_unit
from dboost.losses.epsilon_insensitive import sigmoid, tube, tube_curvature, tube_dual, tube_pull
from dboost.losses.huber import huber, huber_curvature, huber_dual, huber_pull
from dboost.losses.logistic import moved_entropy
from dboost.losses.poisson import poisson_deviance, poisson_dual, poisson_pull
from dboost.losses.quantile import pinball, pinball_curvature, pinball_dual, pinball_pull

# What the compiled functions tell the parts by.
SQUARED, LOG, POISSON, HUBER, QUANTILE, TUBE = range(6)


class PerTargetLabels(NamedTuple):
    """Labels of one block, float64 (m, k), NaN where missing; which loss each output has, int8 (k,).

    With two parameters of each, float64 (k,), and kappa (k,), which is infinite where there is none.
    """

    label: Array
    part: NDArray[np.int8]
    first: Array
    second: Array
    kappa: Array


TWO_BRANCHED.add(PerTargetLabels)


def _is_mine(target: Any) -> bool:
    return getattr(target, "instance_class", None) is PerTargetLabels


@njit(nogil=True, cache=True, **INLINED)
def _value(part: int, y: float, f: float, first: float, second: float) -> float:
    if part == SQUARED:
        return 0.5 * (y - f) * (y - f)
    if part == LOG:
        z = f if y > 0.0 else -f
        return (-z if z < 0.0 else 0.0) + log1p_unit(exp_nonpositive(-abs(z)))
    if part == POISSON:
        return poisson_deviance(y, f)
    if part == HUBER:
        return huber(y - f, first)
    if part == QUANTILE:
        return pinball(y - f, first, second)
    return tube(y - f, first)


@njit(nogil=True, cache=True, **INLINED)
def _pull(part: int, y: float, f: float, first: float, second: float) -> float:
    if part == SQUARED:
        return y - f
    if part == LOG:
        return sigmoid(-f) if y > 0.0 else -sigmoid(f)
    if part == POISSON:
        return poisson_pull(y, f)
    if part == HUBER:
        return huber_pull(y - f, first)
    if part == QUANTILE:
        return pinball_pull(y - f, first, second)
    return tube_pull(y - f, first)


@njit(nogil=True, cache=True, **INLINED)
def _curvature(part: int, y: float, f: float, first: float, second: float) -> float:
    if part == SQUARED:
        return 1.0
    if part == LOG:
        return sigmoid(f) * sigmoid(-f)
    if part == POISSON:
        return math.exp(f)
    if part == HUBER:
        return huber_curvature(y - f, first)
    if part == QUANTILE:
        return pinball_curvature(y - f, second)
    return tube_curvature(y - f, first)


@njit(nogil=True, cache=True, **INLINED)
def _dual(
    part: int, y: float, f: float, first: float, second: float, scale: float, mix: float, shift: float, prior: float
) -> float:
    """As ``loss_rows.dual_row`` of the loss that it is, of an example of weight one."""
    if part == LOG:
        return -moved_entropy(f, 1.0 if y > 0.0 else -1.0, scale, mix, shift, prior)
    if part == POISSON:
        theta = 0.0
        if scale > 0.0:
            theta = scale * (poisson_pull(y, f) - (shift * math.exp(f) if shift != 0.0 else 0.0))
        return poisson_dual(y, max(y - theta, 0.0), prior)
    theta = scale * (_pull(part, y, f, first, second) - shift)
    if part == SQUARED:
        return theta * (y - prior - 0.5 * theta)
    if part == HUBER:
        return huber_dual(theta, y) - theta * prior
    if part == QUANTILE:
        return pinball_dual(theta, y, first, second) - theta * prior
    return tube_dual(min(max(theta, -1.0), 1.0), y - prior, first)


@overload(residual_row, inline="never", jit_options=INLINED)
def _residual_row(target: Any, i: int, f: Array, s: float, u: Array) -> Any:
    if not _is_mine(target):
        return None

    def each(target: Any, i: int, f: Array, s: float, u: Array) -> float:
        label, loss = target.label[i], 0.0
        for r in range(f.shape[0]):
            y = label[r]
            u[r] = 0.0
            # a missing label is no number, and equals nothing
            if y == y:
                u[r] = s * _pull(target.part[r], y, f[r], target.first[r], target.second[r])
                loss += _value(target.part[r], y, f[r], target.first[r], target.second[r])
        return float(s * loss)

    return each


@overload(branch_row, inline="never", jit_options=INLINED)
def _branch_row(target: Any, i: int, f: Array, s: float, plus: Array, minus: Array) -> Any:
    if not _is_mine(target):
        return None

    def each(target: Any, i: int, f: Array, s: float, plus: Array, minus: Array) -> float:
        label, loss = target.label[i], 0.0
        for r in range(f.shape[0]):
            y, part = label[r], target.part[r]
            plus[r] = 0.0
            minus[r] = 0.0
            if y == y:
                loss += _value(part, y, f[r], target.first[r], target.second[r])
                if part == POISSON:
                    plus[r] = s * y
                    minus[r] = s * math.exp(f[r])
                elif part == TUBE:
                    plus[r] = s * sigmoid(y - f[r] - target.first[r])
                    minus[r] = s * sigmoid(f[r] - y - target.first[r])
                else:
                    u = _pull(part, y, f[r], target.first[r], target.second[r])
                    # that of the log-loss is one branch by itself
                    both = 0.0 if part == LOG else 0.5 * target.kappa[r]
                    plus[r] = s * (max(u, 0.0) + both)
                    minus[r] = s * (max(-u, 0.0) + both)
        return float(s * loss)

    return each


@overload(loss_row, inline="never", jit_options=INLINED)
def _loss_row(target: Any, i: int, f: Array, s: float) -> Any:
    if not _is_mine(target):
        return None

    def each(target: Any, i: int, f: Array, s: float) -> float:
        label, loss = target.label[i], 0.0
        for r in range(f.shape[0]):
            y = label[r]
            if y == y:
                loss += _value(target.part[r], y, f[r], target.first[r], target.second[r])
        return float(s * loss)

    return each


@overload(curvature_row, inline="never", jit_options=INLINED)
def _curvature_row(target: Any, i: int, f: Array, s: float, h: Array) -> Any:
    if not _is_mine(target):
        return None

    def each(target: Any, i: int, f: Array, s: float, h: Array) -> float:
        label = target.label[i]
        for r in range(f.shape[0]):
            y = label[r]
            h[r] = s * _curvature(target.part[r], y, f[r], target.first[r], target.second[r]) if y == y else 0.0
        return 0.0

    return each


@overload(dual_row, inline="never", jit_options=INLINED)
def _dual_row(target: Any, i: int, f: Array, s: float, scale: Array, mix: Array, shift: Array, prior: Array) -> Any:
    if not _is_mine(target):
        return None

    def each(target: Any, i: int, f: Array, s: float, scale: Array, mix: Array, shift: Array, prior: Array) -> float:
        label, value = target.label[i], 0.0
        for r in range(f.shape[0]):
            y = label[r]
            if y == y:
                value += _dual(
                    target.part[r], y, f[r], target.first[r], target.second[r], scale[r], mix[r], shift[r], prior[r]
                )
        return float(s * value)

    return each


@overload(theta_row, inline="never", jit_options=INLINED)
def _theta_row(target: Any, i: int, u: Array, s: float, keep: Array, mix: Array, shift: Array, prior: Array) -> Any:
    if not _is_mine(target):
        return None

    def each(target: Any, i: int, u: Array, s: float, keep: Array, mix: Array, shift: Array, prior: Array) -> None:
        label = target.label[i]
        for r in range(u.shape[0]):
            y, part = label[r], target.part[r]
            if y != y:
                u[r] = 0.0
            elif part == LOG:
                on = 1.0 if y > 0.0 else 0.0
                u[r] = keep[r] * ((1.0 - mix[r]) * (u[r] + s * shift[r]) + s * mix[r] * (on - prior[r]))
            elif part == POISSON:
                u[r] = keep[r] * (u[r] - shift[r] * (s * y - u[r]))
            else:
                u[r] = keep[r] * (u[r] - s * shift[r])

    return each
