"""How good a regression is, of one target or several, in sums that partitions can add up."""

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
    """Figures of one model on one data set."""

    weight: float  # sum of the weights of the observed targets
    rmse: float  # root mean square, mean absolute and largest error; examples of weight 0 count in none
    mae: float
    largest: float
    # 1 - (residual sum of squares) / (sum of squares about the weighted mean of each target); nan where none varies.
    r2: float
    target_r2: tuple[float, ...]  # the same of each target by itself


def partial(predicted: Float, y: Float, weight: Float, centre: Float) -> Sums:
    """Sums of one batch.

    `predicted, y`: float64 arrays, shape (m,), or (m, k) with NaN where a target is missing.
    `centre`: near the mean of the targets, the same for every batch: the sum of squares is taken about it, so that a
    large mean does not eat its digits.
    """
    targets = y.reshape(len(weight), -1)
    seen = ~np.isnan(targets)
    error = np.where(seen, np.abs(targets - predicted.reshape(targets.shape)), 0.0)
    off = np.where(seen, targets - centre.reshape(1, -1), 0.0)
    return Sums(
        add={
            "weight": weight @ seen,
            "off": weight @ off,
            "square": weight @ off**2,
            "absolute": weight @ error,
            "residual": weight @ error**2,
        },
        peak={"largest": np.array([error[weight > 0.0].max(initial=0.0)])},
    )


def summarise(total: Sums) -> RegressionFigures:
    """The figures of all batches."""
    sums: dict[str, Any] = total.add
    weight = np.maximum(sums["weight"], np.finfo(float).tiny)
    spread = sums["square"] - sums["off"] ** 2 / weight
    whole = float(sums["weight"].sum())
    return RegressionFigures(
        weight=whole,
        rmse=math.sqrt(sums["residual"].sum() / whole),
        mae=float(sums["absolute"].sum() / whole),
        largest=float(total.peak["largest"][0]),
        r2=_explained(float(sums["residual"].sum()), float(spread.sum())),
        target_r2=tuple(_explained(left, all_) for left, all_ in zip(sums["residual"].tolist(), spread.tolist())),
    )


def _explained(residual: float, spread: float) -> float:
    return 1.0 - residual / spread if spread > 0.0 else math.nan
