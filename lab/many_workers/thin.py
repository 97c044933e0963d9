"""Workers without data: the real leaves on partitions of a few rows, which answer after a recorded time.

Covers: ``Few`` rows, the leaf that waits, and the engine that puts it in the place of each leaf.
Does not cover: what the times are (``recorded``).

Sums have a row for each feature however few examples there are: what leaves a worker is as large as with all rows.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from dboost.partition import Partition, Sums

ROWS = 4
SPREAD = 0.2
"""Partitions take up to so much more or less than the recorded time, each always the same."""


@dataclass(frozen=True)
class Few:
    """A partition of a few rows, made where it is needed.

    Parameters
    ----------
    number, n_features, n_classes : int
    """

    number: int
    n_features: int
    n_classes: int

    @property
    def key(self) -> str:
        """Name of the partition."""
        return f"few-{self.number}"

    @property
    def nbytes_estimate(self) -> int:
        """Bytes of the decoded partition, about."""
        return 8 * self.n_features + 200 * ROWS

    def load(self) -> Partition:
        """Make it: each row has one feature more than there are rows, drawn by number."""
        rng = np.random.default_rng(self.number)
        places = np.sort(rng.choice(self.n_features * ROWS, size=ROWS * (ROWS + 1), replace=False))
        counts = np.bincount(places // ROWS, minlength=self.n_features)
        indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        y = rng.integers(0, self.n_classes, ROWS).astype(np.int32)
        values = rng.random((places.shape[0],), np.float32)
        return Partition(indptr, (places % ROWS).astype(np.int32), values, y, np.ones(ROWS), self.key)


def after(partition: Partition, memo: Any, seconds: float, leaf: Any, *args: Any) -> Sums:
    """What the leaf gives, so many seconds later."""
    _wait(partition, seconds)
    found: Sums = leaf(partition, memo, *args)
    return found


def shard_after(partition: Partition, memo: Any, shard: Any, seconds: float, leaf: Any, *args: Any) -> Sums:
    """As `after`, for a shard."""
    _wait(partition, seconds)
    found: Sums = leaf(partition, memo, shard, *args)
    return found


def _wait(partition: Partition, seconds: float) -> None:
    if seconds > 0.0:
        time.sleep(seconds * (1.0 + SPREAD * (zlib.crc32(partition.key.encode()) % 1000 / 500.0 - 1.0)))


class ThinEngine:
    """An engine whose leaves answer after a recorded time.

    Parameters
    ----------
    engine : Engine
    seconds : mapping of str to float
        Seconds of a leaf by name of pass, for all shards together; none for other passes.
    """

    def __init__(self, engine: Any, seconds: Mapping[str, float]) -> None:
        self._engine = engine
        self._seconds = seconds

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def map_reduce(self, leaf: Any, *args: Any, name: str, **kwargs: Any) -> Any:
        """As ``Engine.map_reduce``."""
        seconds = self._seconds.get(name, 0.0)
        shards = kwargs.get("shards")
        if shards is None:
            return self._engine.map_reduce(after, seconds, leaf, *args, name=name, **kwargs)
        return self._engine.map_reduce(shard_after, seconds / len(shards), leaf, *args, name=name, **kwargs)
