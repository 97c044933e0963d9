"""Which rows are drawn: the one place that decides it, for folds, halves, shares of the rows and samples.

Covers: the random orders of the rows that folds and halves (``folds``) and shares of the rows (``subsamples``) are cut
from, what of the data these have to know (``Places``), and samples within a partition.
Does not cover: what is made of the rows.

A row is drawn by its number among the rows of its class, in the order of the data, and never by what it holds: what is
held out is a random part of each class, also where many rows are equal. All rows of a class are put into a random order
that a seed chooses, and folds and halves are dealt out along it, one class after the other: the rows of a class in two
folds differ by one at most, and so do those of all classes, as with ``StratifiedKFold(shuffle=True)`` of scikit-learn.
Labels that are numbers, and those of several tasks, are one class. So a draw depends on the data, the order of its rows
and the seed, and neither on partitions, threads and workers nor on what is tried again. Rows of weight zero are no part
of a plan and have no number; a row of weight two is one row.

Rows that belong together are drawn together (``Groups``): the largest groups first, each to the hand that has the
fewest rows, as ``GroupKFold`` of scikit-learn deals them, but in a random order of those that are as large. Such a draw
depends on the groups and the seed alone.
"""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.compiled.vectors.shuffled import shuffled_places
from dboost.partition import Partition, Sums

Counts = NDArray[np.int64]

# A sample within a partition is drawn by so many of its first stored values' rows and of its first labels.
_TOLD_BY = 1024


def strata_of(partition: Partition, k: int) -> Counts:
    """The class of each row, 0..k-1, int64 (m,); zeros where k is 1."""
    if k == 1:
        return np.zeros(partition.n_rows, dtype=np.int64)
    y = partition.y
    return (y if y.ndim == 1 else y[:, 0] > 0).astype(np.int64)


def count_rows(partition: Partition, memo: Any, k: int) -> Sums:
    """The part "rows": the key of each partition and its rows of each of k classes, int64 (k,).

    Where rows belong together it is the part "groups": those of each partition, and how many rows they have there.
    """
    if partition.group is not None:
        return Sums(parts={"groups": [np.unique(partition.group, return_counts=True)]})
    return Sums(parts={"rows": [(partition.key, np.bincount(strata_of(partition, k), minlength=k))]})


def _random(draw: str, seed: int) -> np.random.Philox:
    """Random numbers of a draw."""
    digest = hashlib.sha256(f"{draw}:{seed}".encode()).digest()
    return np.random.Philox(int.from_bytes(digest[:8], "little"))


@dataclass(frozen=True, eq=False)
class Places:
    """Where the rows of every partition stand among all rows of their classes."""

    # As many numbers as partitions and classes, which every pass refers to: an engine sends them to a worker once.
    sent_once = True

    before: Mapping[str, Counts]  # (k,): Rows of each class in the partitions before.
    sizes: Counts  # (k,): All rows of each class.

    @classmethod
    def of(cls, counted: list[tuple[str, Counts]]) -> Places:
        """Those of partitions whose rows were counted (``count_rows``), in their order."""
        ends = np.cumsum([counts for _, counts in counted], axis=0, dtype=np.int64)
        before = {key: end - counts for (key, counts), end in zip(counted, ends, strict=True)}
        return cls(before, ends[-1])

    def order(self, partition: Partition, draw: str, seed: int) -> tuple[Counts, Counts]:
        """The class of each row, and its place in a random order of the rows of the class; both int64 (m,).

        `draw` tells what is drawn from other draws by the same seed.
        """
        k = self.sizes.shape[0]
        strata, found = strata_of(partition, k), np.empty(partition.n_rows, np.int64)
        keys = _random(draw, seed).random_raw(k)
        shuffled_places(strata, self.before[partition.key], self.sizes, np.atleast_1d(keys), found)
        return strata, found

    def dealt(self, partition: Partition, count: int, draw: str, seed: int) -> NDArray[np.int32]:
        """The hand of each row, 0..count-1, int32 (m,), where the rows are dealt to so many; see `order`."""
        strata, place = self.order(partition, draw, seed)
        first = np.cumsum(self.sizes) - self.sizes
        return ((first[strata] + place) % count).astype(np.int32)

    def share(self, partition: Partition, share: float, draw: str, seed: int) -> NDArray[np.bool_]:
        """Which rows are in a share of each class; all that are in a smaller one are.

        Two rows of a class are at least: without a fold that has one of them the other is left.
        """
        strata, place = self.order(partition, draw, seed)
        wanted: NDArray[np.bool_] = place < np.maximum(np.ceil(share * self.sizes - 1e-9), 2.0)[strata]
        return wanted


@dataclass(frozen=True, eq=False)
class Groups:
    """The groups of all rows, which stand in the place of ``Places`` where rows belong together."""

    sent_once = True

    numbers: NDArray[np.uint64]  # (g,): Ascending
    sizes: Counts  # (g,): Rows of each

    @classmethod
    def of(cls, counted: list[tuple[NDArray[np.uint64], Counts]]) -> Groups:
        """Those of partitions whose rows were counted (``count_rows``)."""
        every = np.concatenate([numbers for numbers, _ in counted])
        numbers, place = np.unique(every, return_inverse=True)
        rows = np.concatenate([sizes for _, sizes in counted])
        return cls(numbers, np.bincount(place, rows, minlength=len(numbers)).astype(np.int64))

    def dealt(self, partition: Partition, count: int, draw: str, seed: int) -> NDArray[np.int32]:
        """As ``Places.dealt``, with all rows of a group in one hand."""
        return _hands(self, count, draw, seed)[self._places(partition)]

    def share(self, partition: Partition, share: float, draw: str, seed: int) -> NDArray[np.bool_]:
        """As ``Places.share``: groups in a random order, until they have this share of the rows; two at least."""
        order = np.random.Generator(_random(draw, seed)).permutation(len(self.numbers))
        before = np.cumsum(self.sizes[order]) - self.sizes[order]
        wanted = np.zeros(len(order), dtype=np.bool_)
        wanted[order[before < share * self.sizes.sum() - 1e-9]] = True
        wanted[order[:2]] = True
        return np.asarray(wanted[self._places(partition)])

    def _places(self, partition: Partition) -> Counts:
        assert partition.group is not None, "all partitions of a plan have groups, or none has"
        return np.searchsorted(self.numbers, partition.group)


@lru_cache(maxsize=4)
def _hands(groups: Groups, count: int, draw: str, seed: int) -> NDArray[np.int32]:
    """The hand of each group, int32 (g,); every partition of a process asks for the same."""
    random = np.random.Generator(_random(draw, seed)).permutation(len(groups.numbers))
    order = random[np.argsort(-groups.sizes[random], kind="stable")]
    found = np.empty(len(order), np.int32)
    hands = [(0, hand) for hand in range(count)]
    for group, size in zip(order.tolist(), groups.sizes[order].tolist(), strict=True):
        rows, hand = hands[0]
        found[group] = hand
        heapq.heapreplace(hands, (rows + size, hand))
    return found


def sampled(partition: Partition, share: float | NDArray[np.float64], seed: int) -> NDArray[np.int64]:
    """The rows of a random sample, ascending; they depend on the seed and the rows alone, not on the engine.

    Each is drawn by itself, as steps of a solver ask for other samples again and again and need none to be exact.
    `share` is that of all, or of the likes of each row (m,). A draw by the key of the partition would be another one of
    the same rows in a file of another name, in memory and on Dask; partitions that begin alike are drawn alike.
    """
    said = f"{seed}:{partition.n_rows}:{partition.values.shape[0]}".encode()
    beginning = partition.rows[:_TOLD_BY].tobytes() + partition.y[:_TOLD_BY].tobytes()
    digest = hashlib.sha256(said + beginning).digest()
    rng = np.random.Generator(np.random.Philox(int.from_bytes(digest[:8], "little")))
    return np.flatnonzero(rng.random(partition.n_rows) < share)
