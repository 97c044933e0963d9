"""Exponential loss of AdaBoost: l(y, f) = e^(-y f) with y in {-1, +1}; a label of 0 is missing (docs/math.md 1).

Its curvature has no limit, so there is no quadratic bound and no gap-safe screening. A model whose values have none
either is no start for a fit, which goes back towards the model without features.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dboost.compiled.kept import njit
from dboost.compiled.vectors.emit import INLINED
from dboost.losses.base import Array, Repair, SignLoss
from dboost.losses.link import Link
from dboost.losses.scalar import sum_over_outputs

# An example that costs more has no number as its residual: sums of smaller ones, and their squares, do not overflow,
# and those of what is no number are none either, without a warning.
_BEYOND = 1e100


class ExponentialTarget(NamedTuple):
    """Labels of one block: int8 (m, k) with -1, +1, or 0 where missing."""

    sign: NDArray[np.int8]


@njit(nogil=True, cache=True, **INLINED)
def _at(target: Any, i: int, r: int, f: float) -> tuple[float, float]:
    y = np.float64(target.sign[i, r])
    q = abs(y) * math.exp(-y * f)
    return q, y * q if q < _BEYOND else np.nan


@njit(nogil=True, cache=True, **INLINED)
def _curvature(target: Any, i: int, r: int, f: float) -> float:
    y = np.float64(target.sign[i, r])
    return abs(y) * math.exp(-y * f)


@njit(nogil=True, cache=True, **INLINED)
def _dual(target: Any, i: int, r: int, f: float, scale: float, mix: float, shift: float, prior: float) -> float:
    y = np.float64(target.sign[i, r])
    if y == 0.0 or scale == 0.0:
        return 0.0
    al = scale * (math.exp(-y * f) + max(y * shift, 0.0))
    if al == math.inf:
        return -math.inf
    return al - al * math.log(al) if al > 0.0 else 0.0


@njit(nogil=True, cache=True, **INLINED)
def _theta(
    target: Any, i: int, r: int, u: float, s: float, keep: float, mix: float, shift: float, prior: float
) -> float:
    y = np.float64(target.sign[i, r])
    return keep * (u + s * y * max(y * shift, 0.0))


sum_over_outputs(ExponentialTarget, _at, _curvature, _dual, _theta)


@dataclass(frozen=True)
class Exponential(SignLoss):
    """The exponential loss of a binary label."""

    name: str = "exp"
    kappa: float = math.inf
    template_constant: float = 1.0
    separable: bool = True
    closed_null: bool = True
    task: str = "binary"
    exponential: ClassVar[bool] = True
    # The score that minimises e^(-yf) in expectation is half the log-odds.
    link: ClassVar[Link] = Link(scale=2.0)

    def target(self, y: NDArray[Any]) -> ExponentialTarget:
        """Wrap int8 labels of shape (m, 1)."""
        return ExponentialTarget(y)

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


@dataclass(frozen=True)
class OneVsRestExponential(Exponential):
    """Of every class against the rest: l(y, F) = sum_r e^(-z_r F_r), z_r = 1 for r = y and -1 otherwise.

    The loss of JointBoost (Torralba, Murphy & Freeman 2007; docs/math.md 7 (J)).
    """

    name: str = "exp_one_vs_rest"
    task: str = "multiclass"
    n_classes: int = 2

    def _signs(self, y: NDArray[Any]) -> NDArray[np.int8]:
        return np.where(y[:, None] == np.arange(self.n_classes), 1, -1).astype(np.int8)

    def target(self, y: NDArray[Any]) -> ExponentialTarget:
        """Labels -1 and 1 of the classes from int32 codes of shape (m,)."""
        return ExponentialTarget(self._signs(y))

    def label_mass(self, y: NDArray[Any], weight: Array, k: int) -> tuple[Array, Array]:
        """Weighted mass of every class, and of all examples, per class."""
        return super().label_mass(self._signs(y), weight, k)
