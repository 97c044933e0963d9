"""What a cross-validation knows of each fold: how good the fits without it are on its rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class FoldScores:
    """What the fits without each fold, F of them, are worth on it, at each of T strengths.

    Parameters
    ----------
    loss, error : float64 arrays, shape (F, T)
        Mean loss and mean share of wrong labels of the held-out rows, by weight.
    weight : float64 array, shape (F,)
        Weight of the held-out rows.
    active_rows : int64 array, shape (F, T)
    gap : float64 array, shape (F, T)
        Certified relative gaps.
    passes : int64 array, shape (F,)
        Passes over the data.
    """

    loss: Array
    error: Array
    weight: Array
    active_rows: NDArray[np.int64]
    gap: Array
    passes: NDArray[np.int64]
