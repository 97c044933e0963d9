"""Exponential loss of AdaBoost: l(y, f) = e^(-y f) with y in {-1, +1}; a label of 0 is missing (docs/math.md 1).

Its curvature has no limit, so there is no quadratic bound and no gap-safe screening. A model whose values have none
either is no start for a fit, which goes back towards the model without features.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

from dboost.compiled.examples.loss_rows import curvature_row, dual_row, loss_row, residual_row, theta_row
from dboost.compiled.vectors.emit import INLINED
from dboost.losses.base import Array, Common, Repair
from dboost.losses.link import Link
from dboost.losses.sign_mass import sign_mass

# With one label only the optimal intercept is infinite; at this one an example costs 1e-13.
_SATURATED = 30.0
# An example that costs more has no number as its residual: sums of smaller ones, and their squares, do not overflow,
# and those of what is no number are none either, without a warning.
_BEYOND = 1e100


class ExponentialTarget(NamedTuple):
    """Labels of one block: int8 (m, k) with -1, +1, or 0 where missing."""

    sign: NDArray[np.int8]


def _is_exponential(target: Any) -> bool:
    return getattr(target, "instance_class", None) is ExponentialTarget


@overload(residual_row, inline="never", jit_options=INLINED)
def _residual_row(target: Any, i: int, f: Array, s: float, u: Array) -> Any:
    if not _is_exponential(target):
        return None

    def exponential(target: Any, i: int, f: Array, s: float, u: Array) -> float:
        loss = 0.0
        for r in range(f.shape[0]):
            y = np.float64(target.sign[i, r])
            q = s * abs(y) * math.exp(-y * f[r])
            u[r] = y * q if q < _BEYOND else np.nan
            loss += q
        return loss

    return exponential


@overload(loss_row, inline="never", jit_options=INLINED)
def _loss_row(target: Any, i: int, f: Array, s: float) -> Any:
    if not _is_exponential(target):
        return None

    def exponential(target: Any, i: int, f: Array, s: float) -> float:
        loss = 0.0
        for r in range(f.shape[0]):
            y = np.float64(target.sign[i, r])
            loss += abs(y) * math.exp(-y * f[r])
        return s * loss

    return exponential


@overload(curvature_row, inline="never", jit_options=INLINED)
def _curvature_row(target: Any, i: int, f: Array, s: float, h: Array) -> Any:
    if not _is_exponential(target):
        return None

    def exponential(target: Any, i: int, f: Array, s: float, h: Array) -> float:
        for r in range(f.shape[0]):
            y = np.float64(target.sign[i, r])
            h[r] = s * abs(y) * math.exp(-y * f[r])
        return 0.0

    return exponential


@overload(dual_row, inline="never", jit_options=INLINED)
def _dual_row(target: Any, i: int, f: Array, s: float, scale: Array, mix: Array, shift: Array, prior: Array) -> Any:
    if not _is_exponential(target):
        return None

    def exponential(
        target: Any, i: int, f: Array, s: float, scale: Array, mix: Array, shift: Array, prior: Array
    ) -> float:
        value = 0.0
        for r in range(f.shape[0]):
            y = np.float64(target.sign[i, r])
            if y == 0.0 or scale[r] == 0.0:
                continue
            al = scale[r] * (math.exp(-y * f[r]) + max(y * shift[r], 0.0))
            if al == math.inf:
                value = -math.inf
            elif al > 0.0:
                value += al - al * math.log(al)
        return s * value

    return exponential


@overload(theta_row, inline="never", jit_options=INLINED)
def _theta_row(target: Any, i: int, u: Array, s: float, keep: Array, mix: Array, shift: Array, prior: Array) -> Any:
    if not _is_exponential(target):
        return None

    def exponential(
        target: Any, i: int, u: Array, s: float, keep: Array, mix: Array, shift: Array, prior: Array
    ) -> None:
        for r in range(u.shape[0]):
            y = np.float64(target.sign[i, r])
            u[r] = keep[r] * (u[r] + s * y * max(y * shift[r], 0.0))

    return exponential


@dataclass(frozen=True)
class Exponential(Common):
    """The exponential loss of a binary label."""

    name: str = "exp"
    kappa: float = math.inf
    template_constant: float = 1.0
    separable: bool = True
    floor: float = 0.0
    growing: bool = True
    closed_null: bool = True
    task: str = "binary"
    exponential: ClassVar[bool] = True
    # The score that minimises e^(-yf) in expectation is half the log-odds.
    link: ClassVar[Link] = Link(scale=2.0)

    def target(self, y: NDArray[Any]) -> ExponentialTarget:
        """Wrap int8 labels of shape (m, 1)."""
        return ExponentialTarget(y)

    def label_mass(self, y: NDArray[Any], weight: Array, k: int) -> tuple[Array, Array]:
        """Weighted mass of label +1, and of all observed labels, per output."""
        return sign_mass(y, weight)

    def null_intercept(self, mass: Array, total: Array) -> Array:
        """Half of log(p / (1 - p)) of the weighted share p of +1 labels."""
        with np.errstate(divide="ignore", invalid="ignore"):
            logit = 0.5 * (np.log(mass) - np.log(total - mass))
        logit = np.where(total > 0.0, logit, 0.0)
        return np.where(np.isfinite(logit), logit, np.copysign(_SATURATED, logit))

    def longest_residual(self, k: int) -> None:
        """None: residuals have no bound."""
        return None

    def repair(self, mass: Array, total: Array, bias: Array) -> Repair:
        """Add to the residuals of the label that pulls too little, the same to each example of it.

        The domain al >= 0 is a cone, so that this is always allowed. An output that has one label only gets Theta = 0.
        """
        other = total - mass
        keep = ((mass > 0.0) & (other > 0.0)).astype(float)
        with np.errstate(divide="ignore", invalid="ignore"):
            shift = np.where(keep > 0.0, np.where(bias > 0.0, -bias / other, -bias / mass), 0.0)
        zero = np.zeros_like(shift)
        return Repair(keep, zero, shift, zero, 0.0, zero, keep * np.abs(bias))
