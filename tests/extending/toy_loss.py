"""A loss of one's own: l(y, f) = log cosh(y - f), which is z^2 / 2 near the label and |z| - log 2 far from it.

Four compiled functions of one example, and a class that names the loss and says how large its curvature and residuals
can be. That is all a fit needs to be certified: its distance from the optimum is known, not estimated.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import njit

from dboost.losses.real import RealLoss, rows_of


@njit(error_model="numpy")
def value(target, i, f):
    """The loss of example i at the score f."""
    z = abs(target.label[i] - f)  # cosh itself would overflow
    return z + math.log1p(math.exp(-2.0 * z)) - math.log(2.0)


@njit(error_model="numpy")
def pull(target, i, f):
    """The residual -dl/df: where the example wants its score to go."""
    return math.tanh(target.label[i] - f)


@njit(error_model="numpy")
def curvature(target, i, f):
    """The second derivative, 1 / cosh^2 z."""
    e = math.exp(-2.0 * abs(target.label[i] - f))
    return 4.0 * e / (1.0 + e) ** 2


@njit(error_model="numpy")
def dual(target, i, theta):
    """inf_f l(y, f) + theta f, at the f where tanh(y - f) = theta."""
    a = min(abs(theta), 1.0)
    rest = (1.0 - a) * math.log1p(-a) if a < 1.0 else 0.0
    return theta * target.label[i] - 0.5 * ((1.0 + a) * math.log1p(a) + rest)


@rows_of(value, pull, curvature, dual)
class LogCoshTarget(NamedTuple):
    label: np.ndarray  # what the four functions read


@dataclass(frozen=True)
class LogCosh(RealLoss):
    name: str = "logcosh"
    kappa: float = 1.0  # the largest curvature
    largest: float = 1.0  # the largest residual

    def target(self, y):
        return LogCoshTarget(y)
