"""The patches of images on one data set: templates under masks, made by partition and remembered as bytes.

Covers: ``PatchPool``. Does not cover: what a user asks for (``patches``), responses and the patches that a model holds
(``patch_set``).

16,000 features of 60,000 images are 10^9 numbers and 10^12 multiplications. A partition makes them of its images once,
a tile of 128 templates under all masks at a time, and remembers them as bytes; tiles that do not fit what the process
may remember are made again in every pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.hypotheses.base import Array, Block, Chosen, Key
from dboost.hypotheses.patches import patch_loops as loops
from dboost.hypotheses.patches.in_model import Bank, Bytes, PatchSet, columns_of, made_columns, words_of
from dboost.hypotheses.patches.patch_loops import TILE
from dboost.partition import Partition, Sums

# Bytes of features beside everything else that a process remembers.
_SHARE = 0.7


@dataclass(frozen=True, eq=False)
class PatchPool:
    """Templates under masks on one data set. Key (f, c) is template f under mask c; a shard is a range of tiles."""

    bank: Bank
    rows_per_worker: int  # Decides how much is remembered, and nothing else.

    @property
    def size(self) -> float:
        """Number of pairs of template and mask."""
        return len(self.bank) * self.bank.n_masks

    @property
    def searched(self) -> bool:
        """No: every patch is summed."""
        return False

    @cached_property
    def token(self) -> str:
        """Digest of the templates and masks."""
        return self.bank.token

    def columns(self, raw: Block, keys: Sequence[Key]) -> Block:
        """The features `keys` of the images of a block."""
        bank, slots, masks = self._part(keys)
        return made_columns(bank, slots, masks, self.bank.images(raw))

    def held(self, partition: Partition, memo: Any, keys: Sequence[Key]) -> Block:
        """``columns`` of a partition, from the features that are remembered where all of them are."""
        if self._kept(memo) < self.bank.n_tiles:
            raw = Block(partition.indptr, partition.rows, partition.values, partition.n_rows)
            return self.columns(raw, keys)
        parts: list[Any] = [None] * len(keys)
        owner = np.array([template // TILE for template, _ in keys], dtype=np.int64)
        for tile, H in self._tiles(partition, memo, np.unique(owner).tolist()):
            width = self.bank.width(tile)
            for place in np.flatnonzero(owner == tile).tolist():
                template, mask = keys[place]
                parts[place] = H[:, mask * width + template - tile * TILE]
        return columns_of(parts, partition.n_rows)

    def shards(self, active: Sequence[Key], row_bytes: int, shard_bytes: int) -> list[tuple[int, int]]:
        """All tiles as ranges; the active patches have no part in it."""
        step = max(1, shard_bytes // max(1, row_bytes * TILE * self.bank.n_masks))
        tiles = self.bank.n_tiles
        return [(first, min(first + step, tiles)) for first in range(0, tiles, step)]

    def keys(self, shard: tuple[int, int], places: NDArray[np.int64] | None = None) -> list[Key]:
        """The patches at some places of a shard, or all of them: by tile, mask, template."""
        first, last = shard
        if places is None:
            places = np.arange(self._start(last) - self._start(first))
        tiles, within = np.divmod(np.asarray(places, np.int64), TILE * self.bank.n_masks)
        found: list[Key] = []
        for tile, place in zip((tiles + first).tolist(), within.tolist()):
            mask, template = divmod(place, self.bank.width(tile))
            found.append((tile * TILE + template, mask))
        return found

    def sums(self, partition: Partition, memo: Any, shard: tuple[int, int], plus: Array, minus: Array | None) -> Sums:
        """Sums of a shard's patches; see ``Pool.sums``. A patch is never negative, so mu+ = h'plus, mu- = h'minus."""
        first, last = shard
        start, count = self._start(first), self._start(last) - self._start(first)
        names = {"G": plus} if minus is None else {"mu_plus": plus, "mu_minus": minus}
        found = {name: np.empty((count, plus.shape[1])) for name in names}
        square, total, peak = (np.empty(count) for _ in range(3))
        for tile, H in self._tiles(partition, memo, range(first, last)):
            mine = slice(self._start(tile) - start, self._start(tile + 1) - start)
            for name, residual in names.items():
                loops.byte_sums(H, residual, found[name][mine])
            statistics = partial(_statistics, H, partition.weight)
            square[mine], total[mine], peak[mine] = memo.get(f"patch-statistics-{tile}", self.token, statistics)
        return Sums(add={**found, "square": square, "total": total}, peak={"peak": peak})

    def names(self, keys: Sequence[Key], features: Sequence[str] | None) -> list[str]:
        """``patch 17 at 2,3``; names of pixels have no part in it."""
        templates, masks = _pairs(keys)
        return words_of(templates, masks, self.bank.lattices)

    def chosen(self, keys: Sequence[Key], features: Sequence[str] | None) -> Chosen:
        """The patches `keys` with their templates only."""
        bank, slots, masks = self._part(keys)
        return PatchSet(bank, np.unique(_pairs(keys)[0]), slots, masks)

    def _part(self, keys: Sequence[Key]) -> tuple[Bank, NDArray[np.int64], NDArray[np.int64]]:
        """The templates of some keys, each once, and the template and mask of every key."""
        templates, masks = _pairs(keys)
        used, slots = np.unique(templates, return_inverse=True)
        return self.bank.take(used), slots.astype(np.int64), masks

    def _start(self, tile: int) -> int:
        """Place of a tile's first patch among all."""
        return min(tile * TILE, len(self.bank)) * self.bank.n_masks

    def _kept(self, memo: Any) -> int:
        """How many tiles, from the first, are remembered."""
        # Tiles that do not fit together would push each other out, and decoded partitions with them.
        return min(self.bank.n_tiles, int(_SHARE * memo.budget / (self.rows_per_worker * TILE * self.bank.n_masks)))

    def _tiles(self, partition: Partition, memo: Any, tiles: Sequence[int]) -> Iterator[tuple[int, Bytes]]:
        """The features of a partition, tile by tile."""
        raw = Block(partition.indptr, partition.rows, partition.values, partition.n_rows)
        images = cache(lambda: self.bank.images(raw))
        keeps = self._kept(memo)

        def build(tile: int) -> Bytes:
            return self.bank.features(images(), tile)

        for tile in tiles:
            made = partial(build, tile)
            yield tile, memo.get(f"patches-{tile}", self.token, made) if tile < keeps else made()


def _pairs(keys: Sequence[Key]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    pairs = np.array(keys, dtype=np.int64).reshape(len(keys), 2)
    return pairs[:, 0].copy(), pairs[:, 1].copy()


def _statistics(H: Bytes, weight: Array) -> tuple[Array, Array, Array]:
    square, total, peak = (np.empty(H.shape[1]) for _ in range(3))
    loops.byte_statistics(H, weight, square, total, peak)
    return square, total, peak
