"""Squared loss: l(y, f) = (f - y)^2 / 2 with a real label y, of one output or summed over several (docs/math.md 1).

Of several a label that is NaN is missing and contributes nothing; a penalty on rows of W is what ties the outputs.
It has no exponential bound, since it grows without limit in both directions from any point: ``template_constant`` is 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dboost.losses.base import Array
from dboost.losses.real import SQUARED, KindOfLoss


def label_mass(y: Array, weight: Array) -> tuple[Array, Array]:
    """(sum s y, sum s) over the labels (m, k) that are there, of shape (k,) each."""
    found = np.empty((2, y.shape[1]))
    for r, label in enumerate(y.T):
        there = label == label
        # one after the other, as no sum of NumPy adds them
        found[:, r] = [np.bincount(there, what, 2)[1] for what in (weight * label, weight)]
    return found[0], found[1]


@dataclass(frozen=True)
class Squared(KindOfLoss):
    """The squared loss of one real label."""

    name: str = "squared"
    kind: ClassVar[int] = SQUARED
    kappa: float = 1.0
    growing: bool = False
    closed_null: bool = True
    parabolic: ClassVar[bool] = True
    difference: ClassVar[bool] = True


@dataclass(frozen=True)
class SquaredTargets(Squared):
    """The squared loss of several real labels, some of them missing."""

    name: str = "multitarget"
    task: ClassVar[str] = "multitarget"
    # A missing label has no curvature, so that a line search is not over after one step.
    parabolic: ClassVar[bool] = False

    def label_mass(self, y: NDArray[Any], weight: Array, k: int) -> tuple[Array, Array]:
        """(sum s y, sum s) over the observed labels of each output, of shape (k,)."""
        return label_mass(y, weight)
