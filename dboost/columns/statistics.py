"""Sums over the data that never change during a fit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dboost.partition import Sums

Array = NDArray[np.float64]

# Variance, as a share of the mean square, below which a column counts as constant: it is the rounding of sums.
_CONSTANT = 1e-12
# |mean| over deviation from which a column is far from zero. Up to here rounds and seconds of a fit are those of the
# centred column; at 30 the steps of several outputs take twice as many products, at 1e5 no fit ends (2026-11). At least
# 1 - 1 / (1 + 10**2) of the weight of such a column is where it is not zero.
FAR = 10.0
# The same for labels, beside which steps see the intercept alone: all that is lost is what sums are rounded by, so many
# times the usual. At 7,000 that left fits with residuals of 1e-5 at gaps of 2e-5, where 1e-6 was asked for.
FAR_LABELS = 1e3
# The same for hypotheses. Many are zero and one, and one almost always; these are as easy to solve for as others, and
# two more passes are needed to register one that is far. A product that is far is so by much more.
FAR_HYPOTHESIS = 100.0
# A column is laid out less its centre only if so much of it is stored anyway: weights that differ much can make a
# column look far that is stored for a few examples.
_STORED = 0.5


@dataclass(frozen=True)
class Far:
    """Columns (f,), ascending, whose mean is far from zero beside their deviation, by sums about a number near it."""

    columns: NDArray[np.int64]
    mean: Array
    # 0 of what is constant.
    deviation: Array
    # How many examples have a stored value.
    stored: Array
    # Whether all values are stored in float32.
    single: bool

    @classmethod
    def of(cls, columns: NDArray[np.int64], about: Array, moments: Sums, weight: float) -> Far:
        """From the sums of ``passes.moments_about``, taken about the numbers `about` (f,)."""
        total, square = moments.add["total"], moments.add["square"]
        spread = square - total * total / weight
        spread = np.where(spread > _CONSTANT * square, spread, 0.0)
        single = not moments.peak["double"].any()
        return cls(columns, about + total / weight, np.sqrt(spread / weight), moments.add["stored"], single)

    def joined(self, other: Far | None) -> Far:
        """These and others, all of which come after these."""
        if other is None:
            return self
        names = ("columns", "mean", "deviation", "stored")
        both = {name: np.concatenate([getattr(self, name), getattr(other, name)]) for name in names}
        return Far(**both, single=self.single and other.single)

    def centres(self, n_rows: int, far: float) -> tuple[NDArray[np.int64], Array]:
        """Columns farther than `far` to be solved less a number, and that number; of data of `n_rows` examples.

        A constant column is as far from zero as it is from the intercept's own, which is one. Where all values are
        stored in float32, so is the number: differences of values near it are then exact in float32.
        """
        apart = np.where(self.deviation > 0.0, self.deviation, 1.0)
        chosen = (np.abs(self.mean) > far * apart) & (self.stored >= _STORED * n_rows)
        values = self.mean[chosen]
        if self.single:
            values = values.astype(np.float32).astype(np.float64)
        return self.columns[chosen], values


@dataclass(frozen=True)
class Statistics:
    """Sums over the data that never change during a fit, of n columns and k outputs."""

    # Weighted mass of examples with the label on, and of examples with the label observed, (k,).
    mass: Array
    total: Array
    # Sum of the example weights.
    weight: float
    # Of every column: max |x|, sum s |x|, sum s x**2, sum s x, (n,).
    peak: Array
    absolute: Array
    square: Array
    sum: Array
    # L where all margins are zero.
    at_zero: float = 0.0
    # Columns whose deviation is lost, in whole or in part, in the rounding of `square` and `sum`.
    far: Far | None = None

    @classmethod
    def of(cls, labels: Sums, features: Sums, far: Far | None = None) -> Statistics:
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
            far=far,
        )

    def deviation(self) -> Array:
        """Weighted standard deviation of every column (n,); 0 for a constant one."""
        found = deviation(self.sum, self.square, self.weight)
        if self.far is not None:
            found[self.far.columns] = self.far.deviation
        return found

    def constant(self) -> NDArray[np.int64]:
        """Columns that have one value, which is not zero, in all examples."""
        return np.flatnonzero((self.deviation() == 0.0) & (self.square > 0.0))

    def values(self, columns: NDArray[np.int64], m: int) -> float:
        """About how many values these columns store, (sum s |x|)**2 / sum s x**2: never more for equal weights."""
        absolute, square = self.absolute[columns], self.square[columns]
        return float(np.sum(absolute**2 / np.maximum(square, np.finfo(float).tiny))) * m / self.weight


def deviation(total: Array, square: Array, weight: float) -> Array:
    """Weighted standard deviation of columns from sum s x and sum s x**2; 0 where it is lost in their rounding."""
    mean, square = total / weight, square / weight
    variance = square - mean * mean
    return np.sqrt(np.where(variance > _CONSTANT * square, variance, 0.0))


def suspects(total: Array, square: Array, weight: float | Array, far: float) -> NDArray[np.int64]:
    """Columns whose mean is beyond `far` deviations, by sum s x and sum s x**2: the mean is about total / weight."""
    with np.errstate(over="ignore", invalid="ignore"):
        mean, mean_square = total / weight, square / weight
        return np.flatnonzero((mean_square - mean * mean) * (1.0 + far * far) < mean_square)
