"""Sums over the data that never change during a fit, and the strengths that follow from them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dboost.partition import Sums

Array = NDArray[np.float64]

COUNTED = ("log", "multinomial", "margin_softmax", "multitask")
"""Losses of labels, whose mass is that of the examples that bear them; a rare one has little of it."""

# A column whose variance is below this share of its mean square is constant but for the rounding of its sums.
_CONSTANT = 1e-12


@dataclass(frozen=True)
class Statistics:
    """Sums over the data that never change during a fit.

    Parameters
    ----------
    mass, total : float64 arrays, shape (k,)
        Weighted mass of examples with the label on, and of examples with the label observed, per output.
    weight : float
        Sum of the example weights.
    peak, absolute, square, sum : float64 arrays, shape (n,)
        Per column: max |x|, sum s |x|, sum s x**2, sum s x.
    at_zero : float
        L where all margins are zero.
    """

    mass: Array
    total: Array
    weight: float
    peak: Array
    absolute: Array
    square: Array
    sum: Array
    at_zero: float = 0.0

    @classmethod
    def of(cls, labels: Sums, features: Sums) -> Statistics:
        """From the sums of ``passes.label_counts`` and ``passes.feature_statistics``."""
        return cls(
            mass=labels.add["mass"],
            total=labels.add["total"],
            weight=labels.add["weight"],
            peak=features.peak["peak"],
            absolute=features.add["absolute"],
            square=features.add["square"],
            sum=features.add["total"],
            at_zero=labels.add["at_zero"],
        )

    def values(self, columns: NDArray[np.int64], m: int) -> float:
        """About how many values these columns store, of m examples: (sum s |x|)**2 / sum s x**2, in examples.

        Never more where all examples weigh the same (Cauchy and Schwarz); exact where all values are of one size too.
        """
        absolute, square = self.absolute[columns], self.square[columns]
        return float(np.sum(absolute**2 / np.maximum(square, np.finfo(float).tiny))) * m / self.weight


def deviation(total: Array, square: Array, weight: float) -> Array:
    """Weighted standard deviation of columns from sum s x and sum s x**2; 0 where it is lost in their rounding."""
    mean, square = total / weight, square / weight
    variance = square - mean * mean
    return np.sqrt(np.where(variance > _CONSTANT * square, variance, 0.0))


def row_weights(statistics: Statistics, standardize: bool, degree: int) -> Array:
    """Factor of lam for each column: 1, or its standard deviation to the power `degree` of the penalty.

    A constant column then never enters.
    """
    if not standardize:
        # one number for all columns, as far as memory goes
        return np.broadcast_to(1.0, statistics.square.shape)
    found = deviation(statistics.sum, statistics.square, statistics.weight)
    return np.where(found > 0.0, found**degree, np.inf)
