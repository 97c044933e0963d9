"""The models of all rounds of a fit that only adds rows: what such a system carries from round to round.

Covers: arrays of a state, in and out. Does not cover: the same as a user sees it (``dboost.model.stages``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.problem.iterate import Iterate

Array = NDArray[np.float64]
Rows = NDArray[np.int64]


@dataclass(frozen=True)
class StagesSoFar:
    """The model after every round."""

    order: Rows  # (a,): Rows of W in the order in which they entered.
    counts: Rows  # (T,): Rows held after each round.
    weights: Array  # (sum of counts, k): Their weights, round after round, in the order of entering.
    intercepts: Array  # (T, k)

    @staticmethod
    def empty(k: int) -> StagesSoFar:
        """Of no rounds, with k outputs."""
        none = np.zeros(0, np.int64)
        return StagesSoFar(none, none, np.zeros((0, k)), np.zeros((0, k)))

    @staticmethod
    def of(carried: Mapping[str, NDArray[Any]]) -> StagesSoFar:
        """Undo `arrays`."""
        return StagesSoFar(carried["order"], carried["counts"], carried["weights"], carried["intercepts"])

    def arrays(self) -> dict[str, NDArray[Any]]:
        """As a state carries them."""
        return dict(vars(self))

    def after(self, at: Iterate, fresh: Rows) -> StagesSoFar:
        """With the model of one more round, in which some rows entered."""
        k = at.intercept.shape[0]
        order = np.append(self.order, fresh)
        mine = at.W[np.searchsorted(at.active, order)]
        return StagesSoFar(
            order,
            np.append(self.counts, order.shape[0]),
            np.concatenate([self.weights.reshape(-1, k), mine]),
            np.concatenate([self.intercepts.reshape(-1, k), at.intercept[None]]),
        )

    def until(self, rounds: int) -> StagesSoFar:
        """The first rounds only."""
        counts = self.counts[:rounds]
        held = int(counts[-1]) if rounds else 0
        return StagesSoFar(
            self.order[:held], counts, self.weights[: int(counts.sum())], self.intercepts[:rounds]
        )

    def last(self) -> tuple[Rows, Array, Array]:
        """The model after the last round: rows ascending, their weights, the intercept."""
        held = int(self.counts[-1])
        places = np.argsort(self.order)
        return self.order[places], self.weights[-held:][places], self.intercepts[-1]
