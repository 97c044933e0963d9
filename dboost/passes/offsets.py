"""Columns whose weight is one and never moves: the scores of every example then begin at its offsets.

Margins are formed from there (``passes.point``), and the dual value is less <theta, o> (docs/math.md 6.2).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Offsets:
    """The columns that hold the offsets."""

    columns: NDArray[np.int64]  # (k,): The stored column of each output.
    token: str  # Names them, for the memo.

    def of(self, partition: Any) -> Array:
        """The offsets of a partition, (m, k)."""
        found = np.zeros((partition.n_rows, self.columns.shape[0]))
        by_row = partition.by_row
        if by_row is not None:
            pointer, index, data = by_row
            for r, column in enumerate(self.columns.tolist()):
                at = np.flatnonzero(index == column)
                found[np.searchsorted(pointer, at, side="right") - 1, r] = data[at]
            return found
        for r, column in enumerate(self.columns.tolist()):
            mine = slice(int(partition.indptr[column]), int(partition.indptr[column + 1]))
            found[partition.rows[mine], r] = partition.values[mine]
        return found

    lane: ClassVar[None] = None

    def seen(self, partition: Any, memo: Any) -> Any:
        """A partition with its offsets; its features are shared, not copied."""
        return replace(partition, offset=memo.get("offsets", self.token, lambda: self.of(partition)))
