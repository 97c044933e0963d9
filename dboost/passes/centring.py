"""Columns far from zero, less a number that is near all their values: what every pass then sees of a partition.

A column of times (1.7e9 and some) is the constant 1.7e9 and a little that differs from row to row. Beside the constant
the little is lost in the rounding of sums, and steps see one column, almost that of the intercept, in place of two.
With a free intercept x_j and x_j - c_j are the same model: W stays, and b is less by sum_j c_j W_j.

Labels far from zero are the same to a loss that depends on y - f alone, and offsets of scores to any: ``LabelCentres``
takes a number off them that the intercept gets back.

Covers: ``Centres``, ``LabelCentres``, and a partition less its centres. Does not cover: which columns are far and what
their centres are (``dboost.columns.statistics``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dboost.compiled.sparse.centring import less_centres
from dboost.partition import Partition

Array = NDArray[np.float64]
Features = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Centres:
    """What is taken off some columns."""

    columns: NDArray[np.int64]  # (c,): Stored columns, ascending.
    values: Array  # (c,): What is taken off each; finite and not zero.
    token: str  # Names them, for the memo.

    lane: ClassVar[None] = None

    def seen(self, partition: Any, memo: Any) -> Any:
        """A partition less its centres."""
        return CentredPartition(partition, self, memo)

    def features(self, partition: Any) -> Features:
        """The features of a partition by column, less their centres."""
        block = (partition.indptr, partition.rows, partition.values)
        return less_centres(*block, partition.n_rows, self.columns, self.values)

    def of(self, active: NDArray[np.int64]) -> Array:
        """c_j of some columns, 0 of those that nothing is taken off, shape (a,)."""
        place = np.minimum(np.searchsorted(self.columns, active), self.columns.shape[0] - 1)
        return np.where(self.columns[place] == active, self.values[place], 0.0)


@dataclass(frozen=True, eq=False)
class LabelCentres:
    """What is taken off real labels, and off the offsets of scores."""

    labels: Array  # (k,): What is taken off those of each output; 0 for nothing.
    offsets: Array
    token: str  # Names them, for the memo.

    lane: ClassVar[None] = None

    def of(self, partition: Any) -> tuple[NDArray[Any], Array | None]:
        """The labels of a partition less their centres, and its offsets less theirs."""
        y, offset = partition.y, partition.offset
        if self.labels.any():
            y = y - (self.labels if y.ndim > 1 else self.labels[0])
        return y, None if offset is None else offset - self.offsets

    def seen(self, partition: Any, memo: Any) -> Any:
        """A partition with such labels and offsets; its features are shared, not copied."""
        y, offset = memo.get("label-centres", self.token, lambda: self.of(partition))
        return replace(partition, y=y, offset=offset)


@dataclass(frozen=True)
class CentredPartition:
    """A partition with the features less their centres, which are made when a leaf first asks for them."""

    partition: Any
    centres: Centres
    # Where the features are remembered: as long as those of a partition that stays decoded, else for one visit.
    memo: Any

    def __getattr__(self, name: str) -> Any:
        """All but the features is as in the partition."""
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.partition, name)

    @property
    def rowwise(self) -> bool:
        """False: a column that is less its centre has a value in almost every row."""
        return False

    @property
    def by_row(self) -> None:
        """None, as the features are at hand by column only."""
        return None

    @cached_property
    def _features(self) -> Features:
        decoded = isinstance(self.partition, Partition)
        # a partition that is read anew for each visit is not to be held in another form instead
        kept = {"passing": not decoded, "stays": decoded}
        build = partial(self.centres.features, self.partition)
        found: Features = self.memo.get("centred", self.centres.token, build, **kept)
        return found

    @property
    def indptr(self) -> NDArray[np.int64]:
        """Start of each column in `rows` and `values`."""
        return self._features[0]

    @property
    def rows(self) -> NDArray[np.int32]:
        """Row of each stored value, by column."""
        return self._features[1]

    @property
    def values(self) -> NDArray[Any]:
        """The stored values, by column."""
        return self._features[2]
