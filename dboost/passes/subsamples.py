"""A share of the rows of a data set, and what a partition contributes to a fit to it.

Covers: ``Subsample``, how a partition is seen with these rows alone. Does not cover: the fits
(``dboost.boosting.cross_validation``).

The rows are drawn by their places (``draws``), the same share of each class. Those of a smaller share are among those
of a larger one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.partition import Partition, Sums
from dboost.passes.draws import Groups, Places


@dataclass(frozen=True)
class Subsample:
    """A share of the rows."""

    share: float  # In (0, 1]; 1 is all rows.
    seed: int  # Of the draw.
    places: Places | Groups  # Of all rows.

    def seen(self, partition: Partition, memo: Any) -> Partition:
        """The partition with these rows alone, which are copied."""
        if self.share >= 1.0:
            return partition

        def build() -> Partition:
            return rows_of(partition, self.places.share(partition, self.share, "share", self.seed))

        found: Partition = memo.get("subsample", (self.share, self.seed), build)
        return found

    @property
    def lane(self) -> str:
        """What is remembered of these rows is kept apart from that of others by this."""
        return f"of-{self.share!r}-{self.seed}"


def rows_of(partition: Partition, held: NDArray[np.bool_]) -> Partition:
    """A partition with some of its rows, in their order."""
    stored = held[partition.rows]
    ends = np.concatenate([[0], np.cumsum(stored)])
    place = np.cumsum(held) - 1
    return Partition(
        ends[partition.indptr],
        place[partition.rows[stored]].astype(np.int32),
        partition.values[stored],
        np.ascontiguousarray(partition.y[held]),
        partition.weight[held],
        partition.key,
        None if partition.group is None else partition.group[held],
        None if partition.offset is None else partition.offset[held],
    )


def count_rows(partition: Partition, memo: Any) -> Sums:
    """The number of rows."""
    return Sums(add={"rows": float(partition.n_rows)})
