"""Squared loss: l(y, f) = (f - y)^2 / 2 with a real label y (docs/math.md 1).

It has no exponential bound, since it grows without limit in both directions from any point: ``template_constant`` is 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from numpy.typing import NDArray

from dboost.losses.real import SQUARED, RealLabels, RealLoss, labels_of


@dataclass(frozen=True)
class Squared(RealLoss):
    """The squared loss of one real label."""

    name: str = "squared"
    kappa: float = 1.0
    growing: bool = False
    closed_null: bool = True
    parabolic: ClassVar[bool] = True
    difference: ClassVar[bool] = True

    def target(self, y: NDArray[Any]) -> RealLabels:
        """Wrap float64 labels of shape (m,)."""
        return labels_of(y, SQUARED)
