"""Poisson loss of counts: l(y, f) = e^f - y f + y log y - y with a label y >= 0 (docs/math.md 1).

It is half the Poisson deviance of the mean e^f: zero at f = log y and never below. scikit-learn's ``PoissonRegressor``
minimises the same but for the constant y log y - y, so that its objective is this one less the mean of that constant.
A relative gap needs the constant: without it the objective may be zero or below.

Its curvature e^f has no limit, so there is no quadratic bound and no gap-safe screening. It has the exponential bound
of two branches (docs/math.md, eq. 2 and 3): it pulls up by y and down by e^f, and as e^-d - 1 >= -d,

    l(y, f + d) - l(y, f) = e^f (e^d - 1) - y d <= e^f (e^d - 1) + y (e^-d - 1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dboost.compiled.examples.loss_rows import Array
from dboost.compiled.kept import njit
from dboost.losses.base import Loss, Repair
from dboost.losses.link import Link
from dboost.losses.real import POISSON, KindOfLoss, mean_label

# What stands for a mean of zero, whose logarithm there is none of.
_LEAST_MEAN = 1e-300
# The dual value is formed from its difference to that of theta = 0 while the prediction is no larger than this many
# times the label: large terms then do not cancel.
_NEAR = 2.0
# Beyond 2**53 float64 has no odd numbers, so that a label is no count.
_MOST = 2.0**53
# |log y| + 1 of a count, up to which each residual is multiplied in the dual value, and as much for its prediction.
_LOGARITHMS = 80.0


@njit(nogil=True, cache=True, inline="always", error_model="numpy")
def poisson(y: float, f: float) -> tuple[float, float]:
    """e^f - y f + y log y - y, and y - e^f, to full precision also of large counts next to their prediction."""
    if y <= 0.0:
        mean = math.exp(f)
        return mean, -mean
    d = f - math.log(y)
    over = math.expm1(d)
    return y * (over - d), -y * over


@njit(nogil=True, cache=True, inline="always", error_model="numpy")
def poisson_dual(y: float, v: float, prior: float) -> float:
    """inf_f l(y, f) + theta (f - prior) at theta = y - v, v >= 0: v - v log v + y log y - y - theta prior."""
    if v <= 0.0:
        return y * (math.log(y) - prior - 1.0) if y > 0.0 else 0.0
    if y <= 0.0 or v > _NEAR * y:
        return v * (1.0 + prior - math.log(v)) + (y * (math.log(y) - prior - 1.0) if y > 0.0 else 0.0)
    share = v / y
    return (y - v) * (math.log(y) - prior) - y * (share * math.log(share) - share + 1.0)


@dataclass(frozen=True)
class Poisson(KindOfLoss):
    """Half the Poisson deviance of one count, with the logarithm as its link."""

    name: str = "poisson"
    kind: ClassVar[int] = POISSON
    kappa: float = math.inf
    template_constant: float = 1.0
    closed_null: bool = True
    link: ClassVar[Link] = Link(exponential=True)
    labels_taken: ClassVar[str] = "counts, numbers from 0 to 2**53"

    def invalid(self, y: NDArray[Any]) -> int:
        """Place of the first label below zero, above 2**53 or not finite."""
        bad = ~((y >= 0.0) & (y <= _MOST))
        return int(np.argmax(bad)) if bad.any() else -1

    def unbounded(self, mass: Array, total: Array) -> str:
        """Counts that are all zero: the best intercept is the logarithm of their mean."""
        return "every label is 0, so that the best intercept is minus infinity" if not mass[0] > 0.0 else ""

    def null_intercept(self, mass: Array, total: Array) -> Array:
        """The logarithm of the weighted mean of the labels."""
        return np.log(np.maximum(mean_label(mass, total), _LEAST_MEAN))

    def shifts(self, pull: Array, z: Array) -> Array:
        """The mean e^f becomes e^f (1 + z)."""
        return z

    def kept(self, far: Array, moved: Array) -> float:
        """All of it while no mean moves by more than half of itself."""
        return Loss.kept(self, far, moved)

    def repair(self, mass: Array, total: Array, bias: Array) -> Repair:
        """Predictions are multiplied by one number, which makes them sum to what the labels sum to.

        They are all that bounds theta <= y, so that any number > 0 is allowed. It changes residuals by |bias| together.
        """
        predicted = mass - bias
        with np.errstate(divide="ignore", invalid="ignore"):
            keep = ((mass > 0.0) & (predicted > 0.0)).astype(float)
            shift = np.where(keep > 0.0, bias / np.where(predicted > 0.0, predicted, 1.0), 0.0)
        zero = np.zeros_like(shift)
        prior = self.null_intercept(mass, total)
        return Repair(keep, zero, shift, prior, 0.0, zero, keep * np.abs(bias))

    def deviance(self, y: Array, mean: Array) -> Array:
        """2 (y log(y / mean) - y + mean), the deviance of a Poisson distribution."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(2.0 * (np.where(y > 0.0, y * np.log(y / mean), 0.0) - y + mean))

    def pulls(self, value: float, mass: Array, total: Array, bias: Array) -> float:
        """At most what labels and predictions sum to; near the optimum less, by Cauchy and Schwarz.

        (y - e^f)**2 <= 2 max(y, e^f) l(y, f), so that (sum s |u|)**2 <= 2 L sum s (y + e^f).
        """
        together = float(2.0 * mass[0] - bias[0])
        return min(together, math.sqrt(2.0 * max(value, 0.0) * max(together, 0.0)))

    def terms(self, value: float, at_zero: float, mass: Array, total: Array, bias: Array) -> float:
        """Residuals times the logarithms of labels and predictions."""
        return _LOGARITHMS * self.pulls(value, mass, total, bias)
