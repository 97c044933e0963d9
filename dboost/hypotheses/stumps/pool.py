"""The stumps over one data set, all of them summed.

Covers: ``StumpsPool``, keys of stumps and thresholds between two values. The sums of all stumps of a feature are prefix
sums over its sorted values (docs/math.md 7 (J); Shalev-Shwartz, Wexler & Shashua, ShareBoost): a partition adds its
examples up by the code of their value, counted among the thresholds, and cumulates.
Does not cover: how the thresholds are found (``stumps``).

A key is (j, high, low): the raw column, and the threshold as two integers whose order is that of the thresholds.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from dboost.hypotheses.base import Array, Block, Key
from dboost.hypotheses.stumps import histograms
from dboost.hypotheses.stumps.in_model import StumpSet, made, words
from dboost.partition import Partition, Sums

_SIGN = np.uint64(1 << 63)

# how many thresholds are at most each stored value of a partition, and at most zero in each column
Codes = tuple[NDArray[Any], NDArray[np.int64]]
# a range of raw columns
Shard = tuple[int, int]


def halfway(low: Array, high: Array) -> Array:
    """Thresholds th with low < th <= high, in the middle where there are numbers between."""
    middle = 0.5 * low + 0.5 * high
    return np.where((middle > low) & (middle <= high), middle, high) + 0.0


def threshold_keys(columns: NDArray[np.int64], thresholds: Array) -> list[Key]:
    """Keys of stumps."""
    bits = thresholds.view(np.uint64)
    # negative numbers grow downwards in their bits
    ordered = np.where(bits & _SIGN, ~bits, bits | _SIGN)
    high, low = (ordered >> np.uint64(32)).tolist(), (ordered & np.uint64(0xFFFFFFFF)).tolist()
    return list(zip(columns.tolist(), high, low, strict=True))


@dataclass(frozen=True)
class ThresholdKeys(Sequence[Key]):
    """Keys of stumps, each made when it is asked for: of the thousands that a round looks at it wants a few."""

    columns: NDArray[np.int64]
    thresholds: Array

    def __len__(self) -> int:
        return len(self.columns)

    @overload
    def __getitem__(self, place: int) -> Key: ...
    @overload
    def __getitem__(self, place: slice) -> list[Key]: ...
    def __getitem__(self, place: int | slice) -> Key | list[Key]:
        if isinstance(place, slice):
            return threshold_keys(self.columns[place], self.thresholds[place])
        return threshold_keys(self.columns[[place]], self.thresholds[[place]])[0]


def key_arrays(keys: Sequence[Key]) -> tuple[NDArray[np.int64], Array]:
    """Raw columns and thresholds of some keys."""
    parts = np.array(keys, dtype=np.int64).reshape(len(keys), 3)
    ordered = (parts[:, 1].astype(np.uint64) << np.uint64(32)) | parts[:, 2].astype(np.uint64)
    bits = np.where(ordered & _SIGN, ordered & ~_SIGN, ~ordered)
    return parts[:, 0].copy(), bits.view(np.float64)


def token_of(*contents: Any) -> str:
    """Hash of some arrays and plain values."""
    digest = hashlib.sha256()
    for item in contents:
        digest.update(item.tobytes() if isinstance(item, np.ndarray) else repr(item).encode())
    return digest.hexdigest()[:16]


def encoded(partition: Partition, start: NDArray[np.int64], thresholds: Array) -> Codes:
    """Codes of the stored values of a partition, and the code of zero in every column."""
    most = int(np.diff(start).max(initial=0))
    kind = np.uint8 if most < 1 << 8 else np.uint16 if most < 1 << 16 else np.uint32
    codes = np.empty(len(partition.values), kind)
    histograms.encode(partition.indptr, partition.values, start, thresholds, codes)
    spans = zip(start[:-1].tolist(), start[1:].tolist(), strict=True)
    zero = [int(np.searchsorted(thresholds[a:b], 0.0, side="right")) for a, b in spans]
    return codes, np.array(zero, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class StumpsPool:
    """The stumps over one data set."""

    start: NDArray[np.int64]  # (n + 1,): Where the thresholds of each raw column lie.
    thresholds: Array  # Ascending within a column.
    signed: bool  # As in ``Stumps``.
    token: str  # Names the contents.

    @classmethod
    def of(cls, start: NDArray[np.int64], thresholds: Array, signed: bool) -> StumpsPool:
        """A pool with its token."""
        return cls(start, thresholds, signed, token_of(start, thresholds, signed))

    @property
    def size(self) -> float:
        """Number of stumps."""
        return len(self.thresholds)

    @property
    def searched(self) -> bool:
        """No: every stump is summed."""
        return False

    # ---- columns ---------------------------------------------------------------------------------------------------

    def columns(self, raw: Block, keys: Sequence[Key]) -> Block:
        """The stumps `keys`."""
        return made(raw, *key_arrays(keys), self.signed)

    def chosen(self, keys: Sequence[Key], features: Sequence[str] | None) -> StumpSet:
        """The stumps `keys`."""
        columns, thresholds = key_arrays(keys)
        return StumpSet(columns, thresholds, self.signed, tuple(self.names(keys, features)))

    def names(self, keys: Sequence[Key], features: Sequence[str] | None) -> list[str]:
        """Stumps in words."""
        columns, thresholds = key_arrays(keys)
        return words(columns.tolist(), thresholds.tolist(), self.signed, features)

    # ---- candidates ------------------------------------------------------------------------------------------------

    def shards(self, active: Sequence[Key], row_bytes: int, shard_bytes: int) -> list[Shard]:
        """Ranges of raw columns with all their stumps, whatever is active."""
        room = max(1, shard_bytes // max(1, row_bytes))
        n = len(self.start) - 1
        shards, first = [], 0
        while first < n:
            last = int(np.searchsorted(self.start, self.start[first] + room, side="right")) - 1
            last = min(max(last, first + 1), n)
            shards.append((first, last))
            first = last
        return shards or [(0, 0)]

    def keys(self, shard: Shard, places: NDArray[np.int64] | None = None) -> list[Key]:
        """The stumps at some places of a range of columns; all when `places` is None."""
        first, last = int(self.start[shard[0]]), int(self.start[shard[1]])
        wanted = np.arange(first, last) if places is None else first + places
        columns = np.searchsorted(self.start, wanted, side="right") - 1
        return threshold_keys(columns.astype(np.int64), self.thresholds[wanted])

    def sums(self, partition: Partition, memo: Any, shard: Shard, plus: Array, minus: Array | None) -> Sums:
        """Prefix sums of a range of columns over one partition, as ``base.Pool.sums`` says."""
        mass, weight = self._mass(partition, memo, shard)
        found = self._weighed(mass, weight)
        up, total_up = self._below(partition, memo, shard, plus)
        if minus is None:
            found.add["G"] = 2.0 * up - total_up if self.signed else up
            return found
        down, total_down = self._below(partition, memo, shard, minus)
        found.add |= self._mu(up, down, total_up, total_down)
        return found

    def _below(self, partition: Partition, memo: Any, shard: Shard, U: Array) -> tuple[Array, Array]:
        """Sums of U (m, q) over the examples below every threshold of a range of columns, and over all."""
        codes, zero = self._codes(partition, memo)
        total = U.sum(axis=0)
        out = np.empty((int(self.start[shard[1]] - self.start[shard[0]]), U.shape[1]))
        arrays = partition.indptr, partition.rows, codes, self.start, zero
        histograms.sums_below(*arrays, *shard, U, total, out)
        return out, total

    def _mass(self, partition: Partition, memo: Any, shard: Shard) -> tuple[Array, float]:
        """Weight of the examples below every threshold, and of all."""

        def build() -> tuple[Array, float]:
            out, total = self._below(partition, memo, shard, partition.weight[:, None])
            return out[:, 0], float(total[0])

        found: tuple[Array, float] = memo.get(f"mass below in {shard}", self.token, build)
        return found

    def _weighed(self, mass: Array, weight: float) -> Sums:
        """What a shard's sums say of the hypotheses alone."""
        peak = np.full(len(mass), float(weight > 0.0)) if self.signed else (mass > 0.0).astype(np.float64)
        if self.signed:
            return Sums(add={"square": np.full(len(mass), weight), "total": 2.0 * mass - weight}, peak={"peak": peak})
        return Sums(add={"square": mass.copy(), "total": mass.copy()}, peak={"peak": peak})

    def _mu(self, up: Array, down: Array, total_up: Array, total_down: Array) -> dict[str, Array]:
        """mu+ and mu- from the sums of both parts below the thresholds and over all examples."""
        if self.signed:
            up, down = up + (total_down - down), down + (total_up - up)
        # what is not stored is the rest of a total, and may fall short of nothing by its rounding
        return {"mu_plus": np.maximum(up, 0.0), "mu_minus": np.maximum(down, 0.0)}

    def _codes(self, partition: Partition, memo: Any) -> Codes:
        found: Codes = memo.get("codes", self.token, lambda: encoded(partition, self.start, self.thresholds))
        return found
