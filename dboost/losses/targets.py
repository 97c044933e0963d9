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
from dboost.compiled.kept import njit
from dboost.losses.base import Repair
from dboost.losses.real import SQUARED, RealLabels, RealLoss, labels_of, mean_label


@njit(nogil=True, cache=True)
def add_labels(y: Array, weight: Array, labels: Array, observed: Array) -> None:
    """Add s y to `labels` and s to `observed`, both (k,), over the labels (m, k) that are there."""
    for i in range(y.shape[0]):
        for r in range(y.shape[1]):
            if y[i, r] == y[i, r]:
                labels[r] += weight[i] * y[i, r]
                observed[r] += weight[i]


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
        labels, observed = np.zeros(k), np.zeros(k)
        add_labels(y, weight, labels, observed)
        return labels, observed

    def repair(self, mass: Array, total: Array, bias: Array) -> Repair:
        """Observed residuals minus their weighted mean, output by output."""
        k = len(total)
        shift, zero = mean_label(bias, total), np.zeros(k)
        return Repair(np.ones(k), zero, shift, mean_label(mass, total), 0.0, np.abs(shift), zero)
