"""The columns a model holds, as every pass over the data needs them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.compiled.sparse.centring import less_centres
from dboost.compiled.sparse.columns import cut_of_rows, cut_rows, transpose
from dboost.hypotheses.base import Block, Key, Pool
from dboost.hypotheses.capabilities import Stepwise
from dboost.partition import Partition

# Columns cut out of a block, by row: (row pointer, slot of each value, values).
Cut = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]


@dataclass(frozen=True)
class Held:
    """Which columns the rows of W belong to: stored ones, or hypotheses that are made where they are needed."""

    # (a,): Places among the stored columns of a partition; without a meaning where there is a pool.
    columns: NDArray[np.int64]
    token: str  # Names the columns, for the memo.
    pool: Pool | None = None  # The pool of the hypotheses.
    keys: tuple[Key, ...] = ()  # The hypotheses, in the order of the rows of W.
    # What is taken off each hypothesis, 0 for nothing; empty where nothing is taken off any.
    centres: tuple[float, ...] = ()

    def some(self, chosen: NDArray[np.int64], token: str, centres: tuple[float, ...] = ()) -> Held:
        """The hypotheses at some places, by a name of their own, less `centres` if any."""
        return Held(self.columns[:0], token, self.pool, tuple(self.keys_at(chosen)), centres)

    @property
    def stepwise(self) -> Stepwise | None:
        """The pool, where there are hypotheses, and sums over them need no column of each."""
        return self.pool if self.keys and isinstance(self.pool, Stepwise) and not self.centres else None

    @cached_property
    def arranged(self) -> Any:
        """All of them, as a stepwise pool takes them."""
        assert self.stepwise is not None
        return self.stepwise.arranged(self.keys)

    @property
    def n(self) -> int:
        """How many columns there are."""
        return int(self.columns.shape[0]) if self.pool is None else len(self.keys)

    def keys_at(self, places: NDArray[np.int64]) -> list[Key]:
        """The hypotheses at some places."""
        return [self.keys[i] for i in places.tolist()]

    def block(self, partition: Partition, memo: Any) -> tuple[Block, NDArray[np.int64]]:
        """A block that has the columns, and their places in it."""
        if self.pool is None and partition.rowwise:
            # to take these columns out of the rows costs less than to put all of them by column
            pointer, rows, values = transpose(*self.cut(partition, memo), self.n)
            return Block(pointer, rows, values, partition.n_rows), np.arange(self.n)
        stored = Block(partition.indptr, partition.rows, partition.values, partition.n_rows)
        if self.pool is None:
            return stored, self.columns
        made = memo.get("hypotheses", self.token, lambda: tuple(self._made(partition, memo)))
        return Block(*made), np.arange(len(self.keys))

    def _made(self, partition: Partition, memo: Any) -> Block:
        assert self.pool is not None
        block = self.pool.held(partition, memo, self.keys)
        if not self.centres:
            return block
        centres = np.array(self.centres)
        far = np.flatnonzero(centres)
        return Block(*less_centres(*block, far, centres[far]), block.n_rows)

    def cut(self, partition: Partition, memo: Any) -> Cut:
        """The columns by row: start of each row, place of each value among the columns, values."""

        def build() -> Cut:
            by_row = partition.by_row if self.pool is None and partition.rowwise else None
            if by_row is not None:
                return cut_of_rows(*by_row, self.columns, partition.n_features)
            block, places = self.block(partition, memo)
            return cut_rows(block.indptr, block.rows, block.values, places, block.n_rows)

        # without it, a block that is not held has to be read again
        cut: Cut = memo.get("cut", self.token, build, stays=partition.rowwise)
        return cut
