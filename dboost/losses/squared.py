"""Squared loss: l(y, f) = (f - y)^2 / 2 with a real label y (docs/math.md 1).

It has no exponential bound, since it grows without limit in both directions from any point: ``template_constant`` is 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

from dboost.compiled.examples.loss_rows import Array, curvature_row, dual_row, loss_row, residual_row, theta_row
from dboost.compiled.vectors.emit import INLINED
from dboost.losses.real import RealLoss


class SquaredTarget(NamedTuple):
    """Labels of one block: float64 (m,)."""

    label: Array


def _is_squared(target: Any) -> bool:
    return getattr(target, "instance_class", None) is SquaredTarget


@overload(residual_row, inline="never", jit_options=INLINED)
def _residual_row(target: Any, i: int, f: Array, s: float, u: Array) -> Any:
    if not _is_squared(target):
        return None

    def squared(target: Any, i: int, f: Array, s: float, u: Array) -> float:
        z = target.label[i] - f[0]
        u[0] = s * z
        return float(0.5 * s * z * z)

    return squared


@overload(loss_row, inline="never", jit_options=INLINED)
def _loss_row(target: Any, i: int, f: Array, s: float) -> Any:
    if not _is_squared(target):
        return None

    def squared(target: Any, i: int, f: Array, s: float) -> float:
        z = target.label[i] - f[0]
        return float(0.5 * s * z * z)

    return squared


@overload(curvature_row, inline="never", jit_options=INLINED)
def _curvature_row(target: Any, i: int, f: Array, s: float, h: Array) -> Any:
    if not _is_squared(target):
        return None

    def squared(target: Any, i: int, f: Array, s: float, h: Array) -> float:
        h[0] = s
        return 0.0

    return squared


@overload(dual_row, inline="never", jit_options=INLINED)
def _dual_row(target: Any, i: int, f: Array, s: float, scale: Array, mix: Array, shift: Array, prior: Array) -> Any:
    if not _is_squared(target):
        return None

    def squared(target: Any, i: int, f: Array, s: float, scale: Array, mix: Array, shift: Array, prior: Array) -> float:
        y = target.label[i]
        theta = scale[0] * (y - f[0] - shift[0])
        return float(s * theta * (y - prior[0] - 0.5 * theta))

    return squared


@overload(theta_row, inline="never", jit_options=INLINED)
def _theta_row(target: Any, i: int, u: Array, s: float, keep: Array, mix: Array, shift: Array, prior: Array) -> Any:
    if not _is_squared(target):
        return None

    def squared(target: Any, i: int, u: Array, s: float, keep: Array, mix: Array, shift: Array, prior: Array) -> None:
        u[0] = keep[0] * (u[0] - s * shift[0])

    return squared


@dataclass(frozen=True)
class Squared(RealLoss):
    """The squared loss of one real label."""

    name: str = "squared"
    kappa: float = 1.0
    growing: bool = False
    closed_null: bool = True
    parabolic: ClassVar[bool] = True
    difference: ClassVar[bool] = True

    def target(self, y: NDArray[Any]) -> SquaredTarget:
        """Wrap float64 labels of shape (m,)."""
        return SquaredTarget(y)

    def ray_curvature(self, y: NDArray[Any], U: Array, weight: Array) -> float:
        """Sum of u**2 / s: the dual value is a parabola."""
        used = weight > 0.0
        return float(np.sum(U[used, 0] ** 2 / weight[used]))
