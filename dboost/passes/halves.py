"""Halves of the rows of a data set, drawn again and again: complementary pairs of half samples.

Covers: ``Halves``, one pair as two folds, and the leaves by which pairs are drawn and checked.
Does not cover: who draws them and what is fitted to them (``dboost.boosting.stability``).

As with folds, it is the content of a row that decides: each pair orders the rows of a class by a hash of their content
and of the number of the pair, and cuts that order where half of the weight of the class lies on each side. So a half
depends neither on partitions nor on engines nor on the order of the rows, every class is split evenly, equal rows stay
together, and a weight of 2 is the row twice.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.partition import Partition, Sums
from dboost.passes.folds import Folds, Ids, hashes_of

UInt64 = NDArray[np.uint64]

KEY_BITS = 32
"""Bits of a row's place in the order of a pair. Rows whose bits agree stay together: of a million rows one in five
thousand has such a neighbour, which moves a half by no more than that."""
STEP_BITS = 8
"""Bits of the cut that one pass finds: four passes find it, with 256 sums for each pair and class."""


@dataclass(frozen=True)
class Halves(Folds):
    """A pair of halves as two folds, 0 and 1: a fit without the one is a fit to the other.

    Parameters
    ----------
    count, seed, given
        As in ``Folds``; the count is 2, and no rows are given.
    pair : int
        Number of the pair.
    cuts : tuple of int
        For each class the place in the order of the pair at which the second half begins; one alone where the labels
        are no classes.
    """

    count: int = 2
    pair: int = 0
    cuts: tuple[int, ...] = ()

    def ids(self, partition: Partition, memo: Any) -> Ids:
        """Half of each row of a partition, int32 (m,)."""
        cuts = np.array(self.cuts, dtype=np.uint64)[strata_of(partition, len(self.cuts))]
        return (keys_of(partition, memo, self.seed, self.pair) >= cuts).astype(np.int32)

    @property
    def token(self) -> Hashable:
        """What tells this pair from others of the same data."""
        return self.seed, self.pair, self.cuts


def keys_of(partition: Partition, memo: Any, seed: int, pair: int) -> UInt64:
    """The place of each row in the order of a pair, from 0 to 2**KEY_BITS - 1, uint64 (m,)."""
    base = np.asarray(memo.get("row-hash", seed, lambda: hashes_of(partition, seed)))
    # The finaliser of MurmurHash3 (Appleby 2011): every bit of its argument reaches every bit of the result, so that
    # numbers of pairs that differ in one bit give orders that have nothing in common.
    h = base ^ np.uint64((pair + 1) * 0x9E3779B97F4A7C15 % 2**64)
    h = (h ^ (h >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    h = (h ^ (h >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    found: UInt64 = h >> np.uint64(64 - KEY_BITS)
    return found


def strata_of(partition: Partition, k: int) -> NDArray[np.int64]:
    """The class of each row, 0..k-1, int64 (m,); zeros where k is 1."""
    if k == 1:
        return np.zeros(partition.n_rows, dtype=np.int64)
    y = partition.y
    return (y if y.ndim == 1 else y[:, 0] > 0).astype(np.int64)


def weights_by_key(
    partition: Partition, memo: Any, seed: int, pairs: Sequence[int], prefixes: UInt64, shift: int
) -> Sums:
    """Weight of the rows by the next bits of their places, among those whose bits so far are given ones.

    Parameters
    ----------
    pairs : sequence of int
    prefixes : uint64 array, shape (number of pairs, k)
        The bits so far, for each pair and class.
    shift : int
        How many bits of a place come after the next ones.

    Returns
    -------
    Sums
        "weight", shape (number of pairs, k, 2**STEP_BITS).
    """
    k, width = prefixes.shape[1], 2**STEP_BITS
    strata = strata_of(partition, k)
    found = np.zeros((len(pairs), k, width))
    for place, pair in enumerate(pairs):
        keys = keys_of(partition, memo, seed, pair) >> np.uint64(shift)
        near = np.flatnonzero(keys >> np.uint64(STEP_BITS) == prefixes[place][strata])
        slot = strata[near] * width + (keys[near] % np.uint64(width)).astype(np.int64)
        found[place] = np.bincount(slot, partition.weight[near], minlength=k * width).reshape(k, width)
    return Sums(add={"weight": found})


def masses_of_halves(partition: Partition, memo: Any, pairs: Sequence[Halves], k: int) -> Sums:
    """Weight in both halves of each pair.

    Parameters
    ----------
    pairs : sequence of Halves
    k : int
        Number of classes; 0 for tasks, whose positive and negative labels are counted for each.

    Returns
    -------
    Sums
        "mass", shape (number of pairs, 2, k), or (number of pairs, 2, 2 times the number of tasks) with the negative
        labels of all tasks before the positive ones.
    """
    if k:
        strata = strata_of(partition, k)
        found = [np.bincount(h.ids(partition, memo) * np.int64(k) + strata, partition.weight, 2 * k) for h in pairs]
        return Sums(add={"mass": np.reshape(found, (len(pairs), 2, k))})
    tasks = partition.y.shape[1]
    by_sign = np.zeros((len(pairs), 2, 2 * tasks))
    for place, halves in enumerate(pairs):
        half = halves.ids(partition, memo)
        for task in range(tasks):
            for sign in (0, 1):
                observed = partition.y[:, task] == 2 * sign - 1
                mass = np.bincount(half[observed], partition.weight[observed], 2)
                by_sign[place, :, sign * tasks + task] = mass
    return Sums(add={"mass": by_sign})
