"""A system of boosting of one's own: forward stagewise fitting (Hastie, Tibshirani & Friedman, section 10.12.1).

Each round moves the one weight along which the loss falls fastest, by a small step of fixed length. Many such steps
lead along the path of the l1 penalty. This file is the whole system, and a fit is handed one as it is::

    fit(plan, engine, FitSettings("log", "none", system=Stagewise(0.01)))
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dboost.boosting.systems import StepwiseSystem
from dboost.problem.iterate import Iterate


@dataclass(frozen=True)
class Stagewise(StepwiseSystem):
    """Steps of one length.

    Parameters
    ----------
    length : float
        What a round adds to one weight, or takes from it.
    least : float
        The fit ends when no slope is as large as this share of the loss.
    """

    length: float
    least: float = 0.01

    name = "stagewise"

    def step(self, at: Iterate) -> Iterate | None:
        """Move one weight; the intercept counts as one more row."""
        slopes = np.vstack([at.G, at.bias])
        row, output = np.unravel_index(np.argmax(np.abs(slopes)), slopes.shape)
        slope = slopes[row, output]
        if abs(slope) <= self.least * at.loss:
            return None
        weights = np.vstack([at.W, at.intercept])
        weights[row, output] += np.copysign(self.length, slope)
        return replace(at, W=weights[:-1], intercept=weights[-1])
