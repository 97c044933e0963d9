"""The columns a model holds, as every pass over the data needs them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.hypotheses.base import Block, Key, Pool
from dboost.partition import Partition


@dataclass(frozen=True)
class Held:
    """Which columns the rows of W belong to: stored ones, or hypotheses that are made where they are needed.

    Parameters
    ----------
    columns : int64 array, shape (a,)
        Places among the stored columns of a partition; without a meaning where there is a pool.
    token : str
        Names the columns, for the memo.
    pool : Pool or None
        The pool of the hypotheses.
    keys : tuple of Key
        The hypotheses, in the order of the rows of W.
    """

    columns: NDArray[np.int64]
    token: str
    pool: Pool | None = None
    keys: tuple[Key, ...] = ()

    @property
    def n(self) -> int:
        """How many columns there are."""
        return int(self.columns.shape[0]) if self.pool is None else len(self.keys)

    def block(self, partition: Partition, memo: Any) -> tuple[Block, NDArray[np.int64]]:
        """A block that has the columns, and their places in it."""
        stored = Block(partition.indptr, partition.rows, partition.values, partition.n_rows)
        if self.pool is None:
            return stored, self.columns
        pool = self.pool
        made = memo.get("hypotheses", self.token, lambda: tuple(pool.columns(stored, self.keys)))
        return Block(*made), np.arange(len(self.keys))
