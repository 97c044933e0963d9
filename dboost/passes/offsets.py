"""Columns whose weight is one and never moves: what every pass then sees of a partition is its labels with offsets.

Covers: ``Offsets``. Does not cover: the loss at scores that
begin at offsets (``dboost.losses.offset``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dboost.losses.offset import labelled

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Offsets:
    """The columns that hold the offsets."""

    columns: NDArray[np.int64]  # (k,): The stored column of each output.
    token: str  # Names them, for the memo.

    def labels(self, partition: Any) -> NDArray[Any]:
        """The labels of a partition with their offsets."""
        found = np.zeros((partition.n_rows, self.columns.shape[0]))
        by_row = partition.by_row
        if by_row is not None:
            pointer, index, data = by_row
            for r, column in enumerate(self.columns.tolist()):
                at = np.flatnonzero(index == column)
                found[np.searchsorted(pointer, at, side="right") - 1, r] = data[at]
            return labelled(partition.y, found)
        for r, column in enumerate(self.columns.tolist()):
            mine = slice(int(partition.indptr[column]), int(partition.indptr[column + 1]))
            found[partition.rows[mine], r] = partition.values[mine]
        return labelled(partition.y, found)

    lane: ClassVar[None] = None

    def seen(self, partition: Any, memo: Any) -> Any:
        """A partition whose labels have their offsets; its features are shared, not copied."""
        return replace(partition, y=memo.get("offsets", self.token, lambda: self.labels(partition)))
