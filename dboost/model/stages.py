"""The models of the rounds of a fit that adds features, as arrays that a checkpoint and a saved model hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.errors import ModelFormatError

Float = NDArray[np.float64]
Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Stages:
    """T models, each with the features of the one before and some more."""

    order: Rows  # (a,): Rows of W in the order in which they entered; in a model, of the last model's W.
    counts: Rows  # (T,): Number of rows of each model, rising.
    weights: Float  # (sum of counts, k): Rows of W of each model in that order, model after model.
    intercepts: Float  # (T, k)

    def __len__(self) -> int:
        return len(self.counts)

    @staticmethod
    def empty(k: int) -> Stages:
        """Of no rounds, with k outputs."""
        none = np.zeros(0, np.int64)
        return Stages(none, none, np.zeros((0, k)), np.zeros((0, k)))

    @staticmethod
    def restored(found: Mapping[str, NDArray[Any]], n_rows: int, k: int, file: str) -> Stages | None:
        """Those that a saved model holds, trusting nothing; None where it has none."""
        if not found:
            return None
        names = {"order": np.int64, "counts": np.int64, "weights": np.float64, "intercepts": np.float64}
        sound = set(found) == set(names) and all(found[name].dtype == kind for name, kind in names.items())
        if sound:
            made = Stages(**found)
            order, counts, ends = made.order, made.counts, (made.weights, made.intercepts)
            sound = (
                order.shape == (n_rows,)
                and counts.ndim == 1
                and bool(np.array_equal(np.sort(order), np.arange(n_rows)))
                and bool(np.all(np.diff(counts, prepend=0) >= 0))
                and int(counts[-1] if len(counts) else 0) == n_rows
                and [each.shape for each in ends] == [(int(counts.sum()), k), (len(counts), k)]
                and all(bool(np.all(np.isfinite(each))) for each in ends)
            )
        if not sound:
            raise ModelFormatError("the models of the rounds do not fit together", file=file)
        return made

    def at(self, stage: int) -> tuple[Float, Float]:
        """W of one model over the rows of the last one, zero where a row had not entered, and its intercept."""
        count = int(self.counts[stage])
        start = int(self.counts[:stage].sum())
        W = np.zeros((len(self.order), self.weights.shape[1]))
        W[self.order[:count]] = self.weights[start : start + count]
        return W, self.intercepts[stage]

    def after(self, active: Rows, W: Float, intercept: Float, fresh: Rows) -> Stages:
        """With the model of one more round, in which some rows entered."""
        k = intercept.shape[0]
        order = np.append(self.order, fresh)
        return Stages(
            order,
            np.append(self.counts, order.shape[0]),
            np.concatenate([self.weights.reshape(-1, k), W[np.searchsorted(active, order)]]),
            np.concatenate([self.intercepts.reshape(-1, k), intercept[None]]),
        )

    def until(self, rounds: int) -> Stages:
        """The first rounds only."""
        counts = self.counts[:rounds]
        held = int(counts[-1]) if rounds else 0
        return Stages(self.order[:held], counts, self.weights[: int(counts.sum())], self.intercepts[:rounds])

    def last(self) -> tuple[Rows, Float, Float]:
        """The model after the last round: rows ascending, their weights, the intercept."""
        held = int(self.counts[-1])
        places = np.argsort(self.order)
        return self.order[places], self.weights[-held:][places], self.intercepts[-1]
