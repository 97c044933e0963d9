"""Squared loss of several real labels: l(y, f) = sum over the observed r of (f_r - y_r)^2 / 2 (docs/math.md 1).

A label that is NaN is missing and contributes nothing. Each output is a squared loss by itself (``squared``); a penalty
on rows of W is what ties them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dboost.compiled.examples.loss_rows import Array
from dboost.losses.base import Repair
from dboost.losses.real import SQUARED, RealLabels, RealLoss, labels_of, mean_label


def label_mass(y: Array, weight: Array) -> tuple[Array, Array]:
    """(sum s y, sum s) over the labels (m, k) that are there, of shape (k,) each."""
    found = np.empty((2, y.shape[1]))
    for r, label in enumerate(y.T):
        there = label == label
        # one after the other, as no sum of NumPy adds them
        found[:, r] = [np.bincount(there, what, 2)[1] for what in (weight * label, weight)]
    return found[0], found[1]


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

    def target(self, y: NDArray[Any]) -> RealLabels:
        """Wrap float64 labels of shape (m, k)."""
        return labels_of(y, SQUARED)

    def label_mass(self, y: NDArray[Any], weight: Array, k: int) -> tuple[Array, Array]:
        """(sum s y, sum s) over the observed labels of each output, of shape (k,)."""
        return label_mass(y, weight)

    def repair(self, mass: Array, total: Array, bias: Array) -> Repair:
        """Observed residuals minus their weighted mean, output by output."""
        k = len(total)
        shift, zero = mean_label(bias, total), np.zeros(k)
        return Repair(np.ones(k), zero, shift, mean_label(mass, total), 0.0, np.abs(shift), zero)
