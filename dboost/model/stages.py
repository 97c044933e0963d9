"""The models of all rounds of one fit that only adds features: its whole path, in one value.

Covers: ``Stages`` and its arrays in a saved model. Does not cover: how a fit keeps them
(``dboost.boosting.shareboost``), or predictions (``dboost.estimators.predicting``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.errors import ModelFormatError

Float = NDArray[np.float64]

# Their names in the arrays of a saved model begin with this.
PREFIX = "stages."


@dataclass(frozen=True)
class Stages:
    """T models, each with the features of the one before and some more."""

    # Shape (a,). Rows of the last model's W in the order in which they entered.
    order: NDArray[np.int64]
    # Shape (T,). Number of rows of each model, rising.
    counts: NDArray[np.int64]
    # Shape (sum of counts, k). Rows of W of each model in that order, model after model.
    weights: Float
    # Shape (T, k).
    intercepts: Float

    def __len__(self) -> int:
        return len(self.counts)

    def at(self, stage: int) -> tuple[Float, Float]:
        """W of one model over the rows of the last one, zero where a row had not entered, and its intercept.

        W has shape (a, k), the intercept (k,).
        """
        count = int(self.counts[stage])
        start = int(self.counts[:stage].sum())
        W = np.zeros((len(self.order), self.weights.shape[1]))
        W[self.order[:count]] = self.weights[start : start + count]
        return W, self.intercepts[stage]

    def arrays(self) -> dict[str, NDArray[Any]]:
        """As a saved model holds them."""
        return {PREFIX + name: value for name, value in vars(self).items()}


def restored(arrays: Mapping[str, NDArray[Any]], n_rows: int, k: int, file: str) -> Stages | None:
    """Undo ``Stages.arrays``; None where a model has none."""
    found = {name.removeprefix(PREFIX): value for name, value in arrays.items() if name.startswith(PREFIX)}
    if not found:
        return None
    order, counts = found.get("order"), found.get("counts")
    weights, intercepts = found.get("weights"), found.get("intercepts")
    sound = (
        len(found) == 4
        and order is not None
        and counts is not None
        and weights is not None
        and intercepts is not None
        and order.dtype == counts.dtype == np.int64
        and weights.dtype == intercepts.dtype == np.float64
        and order.shape == (n_rows,)
        and counts.ndim == 1
        and bool(np.array_equal(np.sort(order), np.arange(n_rows)))
        and bool(np.all(np.diff(counts, prepend=0) >= 0))
        and int(counts[-1] if len(counts) else 0) == n_rows
        and weights.shape == (int(counts.sum()), k)
        and intercepts.shape == (len(counts), k)
        and bool(np.all(np.isfinite(weights)) and np.all(np.isfinite(intercepts)))
    )
    if not sound:
        raise ModelFormatError("the models of the rounds do not fit together", file=file)
    return Stages(**found)
