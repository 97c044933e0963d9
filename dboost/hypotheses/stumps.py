"""Decision stumps: one raw feature below a threshold, for all thresholds at once.

Covers: the family ``Stumps`` and its pool. The sums of all stumps of a feature are prefix sums over its sorted values
(math notes, section 7J; Shalev-Shwartz, Wexler & Shashua, ShareBoost): a partition adds the examples up by the code of
their value, counted among the thresholds, and cumulates.
Does not cover: the stumps a model holds (``stump_set``), or how values are counted (``distinct``).

A key is (j, high, low): the raw column, and the threshold as two integers whose order is that of the thresholds.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.compiled import histograms
from dboost.errors import UsageError
from dboost.hypotheses import family_from_fields
from dboost.hypotheses.base import Array, Block, Context, Key, taken
from dboost.hypotheses.distinct import Distinct, distinct_values
from dboost.hypotheses.stump_set import FAMILY, StumpSet, restore, words
from dboost.hypotheses.union import Joinable
from dboost.modelfile import Document
from dboost.partition import Partition, Sums

_SIGN = np.uint64(1 << 63)

# a range of raw columns
Shard = tuple[int, int]


@dataclass(frozen=True)
class Stumps(Joinable):
    """All decision stumps: 1 where a raw feature is below a threshold, else 0.

    The thresholds of a feature lie halfway between its neighbouring distinct values, so no two stumps of a feature are
    equal on the training rows, and none is constant there. Values that a sparse matrix does not store are zeros.
    Missing values are refused before any family sees the data. One direction is enough: weights are signed, and where
    there is an intercept 1[v >= th] is 1 - 1[v < th].

    Parameters
    ----------
    signed : bool, default False
        Whether a stump is -1 where it is not 1, as the papers on AdaBoost have it. Such a column has no zeros to skip:
        the model's columns take more memory.

    Examples
    --------
    >>> from dboost import BoostedClassifier, Stumps
    >>> X, y = [[1.0], [2.0], [3.0], [4.0]] * 5, [0, 1, 1, 0] * 5
    >>> model = BoostedClassifier(hypotheses=Stumps(), alpha=0.01).fit(X, y)
    >>> model.score(X, y), model.active_features_
    (1.0, ['x0 < 1.5', 'x0 < 3.5'])
    """

    signed: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.signed, bool):
            raise UsageError(f"Stumps: signed={self.signed!r}", hint="expected True or False")

    def to_json(self) -> dict[str, Any]:
        """Name and parameters."""
        return {"family": FAMILY} | {name: getattr(self, name) for name in self.__dataclass_fields__}

    @classmethod
    def from_json(cls, spec: dict[str, Any]) -> Stumps:
        """Undo `to_json`."""
        found: Stumps = family_from_fields(cls, spec)
        return found

    @staticmethod
    def restore(spec: Document, arrays: Mapping[str, NDArray[Any]], n_features: int) -> StumpSet:
        """The stumps of a saved model."""
        return restore(spec, arrays, n_features)

    def prepare(self, context: Context) -> StumpsPool:
        """Find the thresholds of every feature; one pass."""
        found: Distinct = context.engine.map_reduce(distinct_values, name="distinct").add["distinct"]
        low, high = found.values[:-1], found.values[1:]
        # the last value of a column has no neighbour
        inner = np.ones(max(len(found.values) - 1, 0), np.bool_)
        ends = found.start[1:-1]
        inner[ends[(ends > 0) & (ends < len(found.values))] - 1] = False
        start = np.zeros_like(found.start)
        np.cumsum(np.maximum(np.diff(found.start) - 1, 0), out=start[1:])
        return make_pool(start, halfway(low[inner], high[inner]), self.signed)


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


def key_arrays(keys: Sequence[Key]) -> tuple[NDArray[np.int64], Array]:
    """Raw columns and thresholds of some keys."""
    parts = np.array(keys, dtype=np.int64).reshape(len(keys), 3)
    ordered = (parts[:, 1].astype(np.uint64) << np.uint64(32)) | parts[:, 2].astype(np.uint64)
    bits = np.where(ordered & _SIGN, ordered & ~_SIGN, ~ordered)
    return parts[:, 0].copy(), bits.view(np.float64)


def make_pool(start: NDArray[np.int64], thresholds: Array, signed: bool) -> StumpsPool:
    """A pool with its token, the hash of all it holds."""
    digest = hashlib.sha256(repr(signed).encode())
    for array in (start, thresholds):
        digest.update(array.tobytes())
    return StumpsPool(start, thresholds, signed, digest.hexdigest()[:16])


@dataclass(frozen=True, eq=False)
class StumpsPool:
    """The stumps over one data set.

    Parameters
    ----------
    start : int64 array, shape (n + 1,)
        Where the thresholds of each raw column lie.
    thresholds : float64 array
        Ascending within a column.
    signed : bool
        As in ``Stumps``.
    token : str
        Names the contents.
    """

    start: NDArray[np.int64]
    thresholds: Array
    signed: bool
    token: str

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
        chosen = self.chosen(keys, None)
        return chosen.evaluate(taken(raw, chosen.inputs))

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
        codes, zero = memo.get("codes", self.token, lambda: self._codes(partition))
        count = int(self.start[shard[1]] - self.start[shard[0]])

        def below(U: Array) -> tuple[Array, Array]:
            out, total = np.empty((count, U.shape[1])), U.sum(axis=0)
            arrays = (partition.indptr, partition.rows, codes, self.start, zero)
            histograms.sums_below(*arrays, *shard, np.ascontiguousarray(U), total, out)
            return out, total

        def weighed() -> tuple[Array, float]:
            out, total = below(partition.weight[:, None])
            return out[:, 0], float(total[0])

        mass, weight = memo.get(f"mass below in {shard}", self.token, weighed)
        found = Sums(peak={"peak": (mass > 0.0).astype(np.float64)})
        if self.signed:
            found.add = {"square": np.full(count, weight), "total": 2.0 * mass - weight}
            found.peak["peak"][:] = float(weight > 0.0)
        else:
            found.add = {"square": mass.copy(), "total": mass.copy()}
        up, total_up = below(plus)
        if minus is None:
            found.add["G"] = 2.0 * up - total_up if self.signed else up
            return found
        down, total_down = below(minus)
        if self.signed:
            # the rest of a total may fall short of nothing by its rounding
            up, down = up + np.maximum(total_down - down, 0.0), down + np.maximum(total_up - up, 0.0)
        found.add |= {"mu_plus": np.maximum(up, 0.0), "mu_minus": np.maximum(down, 0.0)}
        return found

    def _codes(self, partition: Partition) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Codes of the stored values of a partition, and the code of zero in every column."""
        most = int(np.diff(self.start).max(initial=0))
        kind = np.uint8 if most < 1 << 8 else np.uint16 if most < 1 << 16 else np.uint32
        codes = np.empty(len(partition.values), kind)
        histograms.encode(partition.indptr, partition.values, self.start, self.thresholds, codes)
        spans = zip(self.start[:-1].tolist(), self.start[1:].tolist(), strict=True)
        zero = [int(np.searchsorted(self.thresholds[a:b], 0.0, side="right")) for a, b in spans]
        return codes, np.array(zero, dtype=np.int64)
