"""A block that is read again in every pass that needs its features, and in no other.

Covers: ``LatePartition``, which leaves take in place of a ``Partition``, and what is remembered for it.
Does not cover: which partitions stay decoded in memory (``bundle``), or reading (the item).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dboost.engine.memo import MemoStore
from dboost.partition import ByRow


def loaded(item: Any, store: MemoStore, run: str, load: Callable[..., Any]) -> Any:
    """What an item loads; what it shares with others is read once in a pass, where the memory has room for it."""
    key = getattr(item, "shared", None)
    if key is None:
        return load()
    return load(store.get(run, key, "shared", None, item.read_shared, passing=True))


class Features:
    """The features of a block, read once when they are first asked for; what is derived from a block shares them."""

    def __init__(self, item: Any, store: MemoStore, run: str) -> None:
        self.item, self._store, self._run = item, store, run

    @cached_property
    def decoded(self) -> Any:
        """By row where the item can: for one visit, that is cheaper than turning rows into columns."""
        return loaded(self.item, self._store, self._run, getattr(self.item, "load_rows", self.item.load))


class _Deferred:
    features: Features
    if TYPE_CHECKING:
        n_features: int
        by_row: ByRow | None
        indptr: NDArray[np.int64]
        rows: NDArray[np.int32]
        values: NDArray[Any]

    def __getattr__(self, name: str) -> Any:
        """The features by row or by column, as the block that is read for them has them."""
        if name not in ("n_features", "by_row", "indptr", "rows", "values"):
            raise AttributeError(name)
        return getattr(self.features.decoded, name)


@dataclass(frozen=True)
class LatePartition(_Deferred):
    """Labels and weights that are at hand, features that are read when a leaf first asks for them.

    Most passes need only the columns that a model holds, which they have cut out before and find in the memo: then
    nothing is read, and the pass costs what its arithmetic does.
    """

    features: Features
    y: NDArray[Any]  # As in ``dboost.partition.Partition``.
    weight: NDArray[np.float64]
    key: str
    rowwise: bool  # Whether the features come by row.
    group: NDArray[np.uint64] | None = None
    offset: NDArray[np.float64] | None = None

    @property
    def n_rows(self) -> int:
        """Number of examples m in the block."""
        return int(self.weight.shape[0])


def open_late(item: Any, store: MemoStore, run: str) -> LatePartition:
    """The block of an item that does not stay decoded; it is read here only where its labels are not remembered."""
    features = Features(item, store, run)

    def known() -> tuple[NDArray[Any], NDArray[np.float64], bool, NDArray[np.uint64] | None]:
        read = features.decoded
        return read.y, read.weight, read.rowwise, read.group

    y, weight, rowwise, group = store.get(run, item.key, "labels", None, known, True)
    return LatePartition(features, y, weight, item.key, rowwise, group)
