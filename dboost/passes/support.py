"""Some of the stored columns only: what every pass then sees of a partition, and how far models are apart on it.

Covers: ``Support``, and the leaf that looks for a model that separates the labels. Does not cover: the fit of
such columns (``dboost.boosting.relaxed``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.compiled.sparse.columns import take_rows
from dboost.engine.views import NoMemo
from dboost.hypotheses.held_by_model import Held
from dboost.partition import Partition, Sums
from dboost.passes.point import Point, margins_at


@dataclass(frozen=True, eq=False)
class Support:
    """The columns that are seen."""

    columns: NDArray[np.int64]  # (a,): Stored columns, ascending.
    token: str  # Names them, for the memo.

    @property
    def lane(self) -> str:
        """What is remembered of these columns is kept apart from what is of all by this."""
        return "support"

    def seen(self, partition: Any, memo: Any) -> Partition:
        """A partition with these columns and no other."""

        def build() -> Any:
            block, places = Held(self.columns, self.token).block(partition, NoMemo())
            return take_rows(block.indptr, block.rows, block.values, places)

        indptr, rows, values = memo.get("support", self.token, build)
        offset = partition.offset
        return Partition(indptr, rows, values, partition.y, partition.weight, partition.key, offset=offset)


def beside(partition: Partition, memo: Any, before: Point, after: Point) -> Sums:
    """How a model moved, and whether it is right of every label.

    "wrong", float64 array (number of problems,): the weight of the examples whose label the second model does not give
    strictly, of each task or of all classes together; zeros where labels are numbers. The peak "moved", (1,): the
    largest change of a score of an example of positive weight.
    """
    F, G = (margins_at(partition, memo, point) for point in (before, after))
    counted = partition.weight > 0.0
    y, k = partition.y, G.shape[1]
    if y.dtype.kind == "f":
        wrong = np.zeros(1)
    elif y.ndim == 1:
        own = G[np.arange(len(y)), y]
        others = G.copy()
        others[np.arange(len(y)), y] = -np.inf
        wrong = np.array([np.sum(partition.weight * (own <= others.max(axis=1, initial=-np.inf)))])
        if k > 1:
            # what all classes have in common is no part of the model
            F, G = F - F.mean(axis=1, keepdims=True), G - G.mean(axis=1, keepdims=True)
    else:
        wrong = np.sum(partition.weight[:, None] * ((y != 0) & (y * G <= 0.0)), axis=0)
    moved = np.abs(G - F)[counted].max(initial=0.0)
    return Sums(add={"wrong": wrong}, peak={"moved": np.array([moved])})
