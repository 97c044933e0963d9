"""How good a regression is, in sums that partitions can add up.

Covers: root mean square error, mean absolute error, the largest error and R^2, all weighted.
Does not cover: classifiers (``dboost.metrics``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.partition import Sums

Float = NDArray[np.float64]


@dataclass(frozen=True)
class RegressionFigures:
    """Figures of one model on one data set.

    Parameters
    ----------
    weight : float
        Sum of the example weights.
    rmse, mae, largest : float
        Root mean square, mean absolute and largest error; examples of weight 0 count in none.
    r2 : float
        1 - (residual sum of squares) / (sum of squares about the weighted mean); nan where all targets are equal.
    """

    weight: float
    rmse: float
    mae: float
    largest: float
    r2: float


def partial(predicted: Float, y: Float, weight: Float, centre: float) -> Sums:
    """Sums of one batch.

    Parameters
    ----------
    predicted, y, weight : float64 arrays, shape (m,)
    centre : float
        Near the mean of the targets, the same for every batch: the sum of squares is taken about it, so that a large
        mean does not eat its digits.
    """
    error, off = np.abs(y - predicted), y - centre
    return Sums(
        add={
            "weight": float(weight.sum()),
            "off": float(weight @ off),
            "square": float(weight @ off**2),
            "absolute": float(weight @ error),
            "residual": float(weight @ error**2),
        },
        peak={"largest": np.array([error[weight > 0.0].max(initial=0.0)])},
    )


def summarise(total: Sums) -> RegressionFigures:
    """The figures of all batches."""
    sums: dict[str, Any] = total.add
    weight = sums["weight"]
    spread = sums["square"] - sums["off"] ** 2 / weight
    return RegressionFigures(
        weight=weight,
        rmse=math.sqrt(sums["residual"] / weight),
        mae=sums["absolute"] / weight,
        largest=float(total.peak["largest"][0]),
        r2=1.0 - sums["residual"] / spread if spread > 0.0 else math.nan,
    )
