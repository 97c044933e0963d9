"""Squared loss of several real labels: l(y, f) = sum over the observed r of (f_r - y_r)^2 / 2 (docs/math.md 1).

A label that is NaN is missing and contributes nothing. Each output is a squared loss by itself (``squared``); a penalty
on rows of W is what ties them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

from dboost.compiled.examples.loss_rows import Array, curvature_row, dual_row, loss_row, residual_row, theta_row
from dboost.compiled.kept import njit
from dboost.compiled.vectors.emit import INLINED
from dboost.losses.base import Repair
from dboost.losses.real import RealLoss, mean_label


class ManyTargets(NamedTuple):
    """Labels of one block: float64 (m, k), NaN where missing."""

    label: Array


def _is_many(target: Any) -> bool:
    return getattr(target, "instance_class", None) is ManyTargets


@njit(nogil=True, cache=True)
def add_labels(y: Array, weight: Array, labels: Array, observed: Array) -> None:
    """Add s y to `labels` and s to `observed`, both (k,), over the labels (m, k) that are there."""
    for i in range(y.shape[0]):
        for r in range(y.shape[1]):
            if y[i, r] == y[i, r]:
                labels[r] += weight[i] * y[i, r]
                observed[r] += weight[i]


@overload(residual_row, inline="never", jit_options=INLINED)
def _residual_row(target: Any, i: int, f: Array, s: float, u: Array) -> Any:
    if not _is_many(target):
        return None

    def squared(target: Any, i: int, f: Array, s: float, u: Array) -> float:
        label, loss = target.label[i], 0.0
        for r in range(f.shape[0]):
            z = label[r] - f[r]
            # a missing label is no number, and equals nothing
            z = z if z == z else 0.0
            u[r] = s * z
            loss += z * z
        return float(0.5 * s * loss)

    return squared


@overload(loss_row, inline="never", jit_options=INLINED)
def _loss_row(target: Any, i: int, f: Array, s: float) -> Any:
    if not _is_many(target):
        return None

    def squared(target: Any, i: int, f: Array, s: float) -> float:
        label, loss = target.label[i], 0.0
        for r in range(f.shape[0]):
            z = label[r] - f[r]
            loss += z * z if z == z else 0.0
        return float(0.5 * s * loss)

    return squared


@overload(curvature_row, inline="never", jit_options=INLINED)
def _curvature_row(target: Any, i: int, f: Array, s: float, h: Array) -> Any:
    if not _is_many(target):
        return None

    def squared(target: Any, i: int, f: Array, s: float, h: Array) -> float:
        label = target.label[i]
        for r in range(f.shape[0]):
            h[r] = s if label[r] == label[r] else 0.0
        return 0.0

    return squared


@overload(dual_row, inline="never", jit_options=INLINED)
def _dual_row(target: Any, i: int, f: Array, s: float, scale: Array, mix: Array, shift: Array, prior: Array) -> Any:
    if not _is_many(target):
        return None

    def squared(target: Any, i: int, f: Array, s: float, scale: Array, mix: Array, shift: Array, prior: Array) -> float:
        label, value = target.label[i], 0.0
        for r in range(f.shape[0]):
            y = label[r]
            if y == y:
                theta = scale[r] * (y - f[r] - shift[r])
                value += theta * (y - prior[r] - 0.5 * theta)
        return float(s * value)

    return squared


@overload(theta_row, inline="never", jit_options=INLINED)
def _theta_row(target: Any, i: int, u: Array, s: float, keep: Array, mix: Array, shift: Array, prior: Array) -> Any:
    if not _is_many(target):
        return None

    def squared(target: Any, i: int, u: Array, s: float, keep: Array, mix: Array, shift: Array, prior: Array) -> None:
        label = target.label[i]
        for r in range(u.shape[0]):
            u[r] = keep[r] * (u[r] - s * shift[r]) if label[r] == label[r] else 0.0

    return squared


@dataclass(frozen=True)
class SquaredTargets(RealLoss):
    """The squared loss of several real labels, some of them missing."""

    name: str = "multitarget"
    task: ClassVar[str] = "multitarget"
    difference: ClassVar[bool] = True
    kappa: float = 1.0
    growing: bool = False
    closed_null: bool = True
    # A missing label has no curvature, so that a line search is not over after one step.
    parabolic: ClassVar[bool] = False

    def target(self, y: NDArray[Any]) -> ManyTargets:
        """Wrap float64 labels of shape (m, k)."""
        return ManyTargets(y)

    def label_mass(self, y: NDArray[Any], weight: Array, k: int) -> tuple[Array, Array]:
        """(sum s y, sum s) over the observed labels of each output, of shape (k,)."""
        labels, observed = np.zeros(k), np.zeros(k)
        add_labels(y, weight, labels, observed)
        return labels, observed

    def ray_curvature(self, y: NDArray[Any], U: Array, weight: Array) -> float:
        """Sum of u**2 / s: the dual value of each label is a parabola."""
        used = weight > 0.0
        return float(np.sum(U[used] ** 2 / weight[used, None]))

    def repair(self, mass: Array, total: Array, bias: Array) -> Repair:
        """Observed residuals minus their weighted mean, output by output."""
        k = len(total)
        shift, zero = mean_label(bias, total), np.zeros(k)
        return Repair(np.ones(k), zero, shift, mean_label(mass, total), 0.0, np.abs(shift), zero)
