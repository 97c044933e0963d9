"""A share of the rows of a data set, and what a partition contributes to a fit to it.

Covers: ``Subsample``, how a partition is seen with these rows alone. Does not cover: the fits
(``dboost.boosting.halving``).

Whether a row is in is a hash of its content and a seed, as its fold is (``dboost.passes.folds``): it depends neither on
partitions nor on engines nor on the order of the rows. The rows of a smaller share are among those of a larger one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.partition import Partition, Sums
from dboost.passes.folds import hashes_of

_BITS = 53


@dataclass(frozen=True)
class Subsample:
    """A share of the rows.

    Parameters
    ----------
    share : float
        In (0, 1]; 1 is all rows.
    seed : int
        Enters the hash. That of the folds of the same rows must be another, or folds would go by what is in.
    """

    share: float
    seed: int

    def seen(self, partition: Partition, memo: Any) -> Partition:
        """The partition with these rows alone, which are copied."""
        if self.share >= 1.0:
            return partition

        def build() -> Partition:
            # the highest bits: folds go by the lowest
            held = (hashes_of(partition, self.seed) >> np.uint64(64 - _BITS)) < np.uint64(self.share * 2.0**_BITS)
            return rows_of(partition, held)

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
    )


def count_rows(partition: Partition, memo: Any) -> Sums:
    """The number of rows."""
    return Sums(add={"rows": float(partition.n_rows)})
