"""Exponential loss of every class against the rest: l(y, F) = sum_r e^(-z_r F_r), z_r = 1 for r = y and -1 otherwise.

The loss of JointBoost (Torralba, Murphy & Freeman 2007; docs/math.md 7 (J)). The compiled functions are those of
``exp`` for k labels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.losses.base import Array
from dboost.losses.exponential import Exponential, ExponentialTarget


@dataclass(frozen=True)
class OneVsRestExponential(Exponential):
    """The sum of the exponential losses of k binary labels that one class code stands for."""

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
