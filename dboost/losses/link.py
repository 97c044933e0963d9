"""How scores become predictions: inverse links simple enough to be written in other systems.

Covers: ``Link`` and ``sigmoid``. Does not cover: which loss has which (``base.Loss.links``).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

MOST = float(np.finfo(np.float64).max)
# The largest number whose exponential is one.
LARGEST_EXPONENT = float(np.log(MOST))


def sigmoid(z: Array) -> Array:
    """1 / (1 + e^-z) without overflow."""
    small = np.exp(-np.abs(z))
    return np.asarray(np.where(z >= 0.0, 1.0, small) / (1.0 + small))


class Link(NamedTuple):
    """How scores become what a loss predicts: its inverse link, simple enough to be written in other systems."""

    scale: float = 1.0  # Scores are multiplied by it.
    exponential: bool = False  # Whether e^ that is then taken.
    logistic: bool = False  # Whether 1 / (1 + e^-) of it is taken instead.

    @property
    def linear(self) -> bool:
        """Whether the prediction is a linear function of the features, as the scores are."""
        return not (self.exponential or self.logistic)

    def applied(self, F: Array) -> Array:
        """What finite scores of any shape predict; where that is beyond all numbers, the largest one."""
        if self.scale != 1.0:
            with np.errstate(over="ignore"):
                F = np.clip(self.scale * F, -MOST, MOST)
        if self.logistic:
            return sigmoid(F)
        return np.exp(np.minimum(F, LARGEST_EXPONENT)) if self.exponential else F
