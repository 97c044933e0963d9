"""Decision stumps: one raw feature below a threshold, for all thresholds at once.

The sums of all stumps of a feature are prefix sums over its sorted values (docs/math.md 7 (J); Shalev-Shwartz, Wexler &
Shashua, ShareBoost): a partition adds its examples up by the code of their value, counted among the thresholds, and
cumulates. A key is (j, high, low): the raw column, and the threshold as two integers whose order is that of the
thresholds.

Features with too many values to sum them all have thresholds at the ends of bins. The sums of a stump grow with its
threshold: those of the positive part, those of the negative part and the weight of the examples below are prefix sums
of terms >= 0. So what is summed at the two ends of a bin bounds, entry by entry, the sums of every stump with a
threshold inside (sharper than the bound of docs/math.md 7 (J), which follows from it): with A and B the sums of
[Theta]_+ and [-Theta]_+ below the lower end, and A', B' below the upper, h'Theta lies between A - B' and A' - B. A bin
whose bound is within the best known keeps its stumps closed (``dboost.problem.tree_search``); of the others every
distinct value is summed, from their rows alone.

The stumps of one feature that a model holds are together a function of it, constant between their thresholds: margins,
sums over them and scores take a code of each row, and no column of a stump (``Steps``). Thresholds that are neighbours
part all but the same rows, and of those in one bin one enters a model in a round (``Pool.runs``).

A column with more distinct values than are kept becomes a sketch: some of its values, each with the number of rows from
the value kept before it. Merging thins it out again, so it holds no more for any number of partitions; where its values
lie is then known to one part in the number kept, per merge. Nothing that is found with its help depends on how well.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from dboost.compiled.arrays import Float64, Int32, Int64, Values
from dboost.compiled.kept import njit
from dboost.compiled.vectors.scaled_rows import padded
from dboost.errors import ModelFormatError, UsageError
from dboost.files.documents import Document
from dboost.hypotheses.base import THETA, Array, Block, Context, Key, NamedSet, Pool, is_whole, saved_arrays
from dboost.hypotheses.capabilities import Gaps
from dboost.hypotheses.stumps import histograms
from dboost.hypotheses.union import Joinable
from dboost.partition import Partition, Sums


@dataclass(frozen=True, eq=False)
class Distinct:
    """Distinct values of the columns, ascending, with the number of rows that have them."""

    start: NDArray[np.int64]  # (n + 1,): Where each column's values lie.
    values: Array
    counts: NDArray[np.int64]
    exact: NDArray[np.bool_]  # (n,): Whether no value was left out.
    most: int  # At most so many values of a column are kept.

    def __add__(self, right: Distinct) -> Distinct:
        room = len(self.values) + len(right.values)
        start, values, counts = np.zeros_like(self.start), np.empty(room), np.empty(room, np.int64)
        mine = self.start, self.values, self.counts
        filled = histograms.merge_runs(*mine, right.start, right.values, right.counts, start, values, counts)
        joined = Distinct(start, values[:filled].copy(), counts[:filled].copy(), self.exact & right.exact, self.most)
        return joined.thinned()

    def column(self, j: int) -> tuple[Array, NDArray[np.int64]]:
        """Values and counts of one column."""
        span = slice(int(self.start[j]), int(self.start[j + 1]))
        return self.values[span], self.counts[span]

    def thinned(self) -> Distinct:
        """The same with columns that keep too many values thinned out."""
        wide = np.diff(self.start) > self.most
        if not wide.any():
            return self
        start, values, counts = np.zeros_like(self.start), np.empty_like(self.values), np.empty_like(self.counts)
        filled = histograms.thin_runs(self.start, self.values, self.counts, self.most, start, values, counts)
        return Distinct(start, values[:filled].copy(), counts[:filled].copy(), self.exact & ~wide, self.most)


def cuts(values: Array, counts: NDArray[np.int64], bins: int) -> NDArray[np.int64]:
    """Places of the values that are the last of a bin, for at most `bins` of them; the last value is none.

    Bin b ends near the (b / bins)**2 part of the rows. A score divides the square of a sum by the number of rows below
    a threshold: with bins that widen with it, what a bin may hide is as little everywhere. A value that many rows have
    is a bin of its own.
    """
    below = np.cumsum(counts)
    wanted = (np.arange(1, bins) / bins) ** 2 * below[-1]
    found = np.searchsorted(below, wanted)
    heavy = found[1:][np.diff(found) == 0]
    ends = np.unique(np.concatenate([found, heavy - 1]))
    return ends[(ends >= 0) & (ends < len(values) - 1)][: bins - 1]


def distinct_values(partition: Partition, memo: Any, most: int) -> Sums:
    """Distinct values of one partition; rows of weight zero have none."""
    live = partition.weight > 0.0
    n_live, whole = int(np.count_nonzero(live)), bool(live.all())
    values, counts = [np.zeros(0)], [np.zeros(0, np.int64)]
    start = np.zeros(partition.n_features + 1, np.int64)
    for j in range(partition.n_features):
        span = slice(int(partition.indptr[j]), int(partition.indptr[j + 1]))
        stored = partition.values[span]
        if not whole:
            stored = stored[live[partition.rows[span]]]
        unique, count = np.unique(stored, return_counts=True)
        found, missing = unique.astype(np.float64), n_live - len(stored)
        if missing:
            place = int(np.searchsorted(found, 0.0))
            if place < len(found) and found[place] == 0.0:
                count[place] += missing
            else:
                found, count = np.insert(found, place, 0.0), np.insert(count, place, missing)
        values.append(found)
        counts.append(count)
        start[j + 1] = start[j] + len(found)
    # adding 0 makes a zero of any sign the same
    exact = np.ones(partition.n_features, np.bool_)
    every = Distinct(start, np.concatenate(values) + 0.0, np.concatenate(counts), exact, most)
    return Sums(add={"distinct": every.thinned()})


FAMILY = "stumps"


def words(
    columns: Sequence[int], thresholds: Sequence[float], signed: bool, features: Sequence[str] | None
) -> list[str]:
    """Stumps in words, for example ``petal length < 2.45``; with `signed` as ``sign(...)``: -1 and 1."""
    named = [f"x{j}" if features is None else features[j] for j in columns]
    plain = [f"{name} < {threshold:.6g}" for name, threshold in zip(named, thresholds, strict=True)]
    return [f"sign({name})" for name in plain] if signed else plain


@njit(nogil=True, cache=True)
def count_below(indptr: Int64, values: Values, n_rows: int, places: Int64, thresholds: Float64, counts: Int64) -> None:
    """Count the rows of every stump, those below its threshold in the column at its place; others are zeros."""
    for s in range(places.shape[0]):
        begin, end = indptr[places[s]], indptr[places[s] + 1]
        th, found = thresholds[s], 0
        for p in range(begin, end):
            found += np.float64(values[p]) < th
        counts[s] = found + (n_rows - (end - begin) if th > 0.0 else 0)


@njit(nogil=True, cache=True)
def rows_below(
    indptr: Int64,
    rows: Int32,
    values: Values,
    n_rows: int,
    places: Int64,
    thresholds: Float64,
    start: Int64,
    out: Int32,
) -> None:
    """Write the rows of every stump, ascending.

    `start`: int64 array, shape (stumps + 1,). Where the rows of each stump lie.
    `out`: int32 array, shape (start[-1] + 1,). The last entry has no meaning: a row is written before it is known
    whether it counts.
    """
    for s in range(places.shape[0]):
        begin, end = indptr[places[s]], indptr[places[s] + 1]
        th, p = thresholds[s], start[s]
        if end - begin == n_rows or not th > 0.0:
            for q in range(begin, end):
                out[p] = rows[q]
                p += np.float64(values[q]) < th
            continue
        row = 0
        for q in range(begin, end):
            for absent in range(row, rows[q]):
                out[p] = absent
                p += 1
            row = rows[q] + 1
            out[p] = rows[q]
            p += np.float64(values[q]) < th
        for absent in range(row, n_rows):
            out[p] = absent
            p += 1


def made(raw: Block, places: NDArray[np.int64], thresholds: Array, signed: bool) -> Block:
    """Stumps as columns, from the columns of `raw` at some places."""
    n = len(places)
    arrays = raw.n_rows, places, thresholds
    counts = np.empty(n, np.int64)
    count_below(raw.indptr, raw.values, *arrays, counts)
    indptr = np.zeros(n + 1, np.int64)
    np.cumsum(counts, out=indptr[1:])
    # one more, which the loop may write to
    found = np.empty(int(indptr[-1]) + 1, np.int32)
    rows_below(raw.indptr, raw.rows, raw.values, *arrays, indptr, found)
    rows, kind = found[:-1], raw.values.dtype
    if not signed:
        return Block(indptr, rows, np.ones(len(rows), kind), raw.n_rows)
    values = np.full((n, raw.n_rows), kind.type(-1.0))
    values[np.repeat(np.arange(n), counts), rows] = kind.type(1.0)
    every = np.tile(np.arange(raw.n_rows, dtype=np.int32), n)
    return Block(np.arange(n + 1, dtype=np.int64) * raw.n_rows, every, values.reshape(-1), raw.n_rows)


@dataclass(frozen=True, eq=False)
class StumpSet(NamedSet):
    """The stumps of a model."""

    columns: NDArray[np.int64]  # (a,): Raw column of each stump.
    thresholds: Array  # (a,): A stump is 1 where the value is below its threshold.
    signed: bool  # Whether it is -1 elsewhere, and not 0.
    names: tuple[str, ...]  # In words.

    family = FAMILY

    @property
    def inputs(self) -> NDArray[np.int64]:
        return np.unique(self.columns)

    def evaluate(self, raw: Block) -> Block:
        return made(raw, np.searchsorted(self.inputs, self.columns), self.thresholds, self.signed)

    def products(self, raw: Block, W: Array) -> Array:
        """As in ``Summed``: the stumps of a column are one function of it, for each output."""
        scores = np.zeros((W.shape[1], raw.n_rows))
        for steps in by_column(np.searchsorted(self.inputs, self.columns), self.thresholds):
            # a code for each row, however many are stored: the sums of a row are then the same in any block
            _, codes, _ = encoded(steps.of(raw), np.array([0, len(steps.places)]), steps.thresholds, filled=True)
            for weights, f in zip(W[steps.places].T, scores, strict=True):
                histograms.add_steps(raw.rows, codes, 0, steps.table(weights, self.signed), f)
        return np.ascontiguousarray(scores.T)

    def to_json(self) -> dict[str, Any]:
        return {"family": FAMILY, "signed": self.signed, "names": list(self.names)}

    def arrays(self) -> dict[str, NDArray[Any]]:
        return {"columns": self.columns, "thresholds": self.thresholds}


_SIGN = np.uint64(1 << 63)

# where the codes of each column lie, how many thresholds are at most each value of a partition, and at most zero in
# each column (``histograms``)
Codes = tuple[NDArray[np.int64], NDArray[Any], NDArray[np.int64]]
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


def encoded(partition: Partition | Block, start: NDArray[np.int64], thresholds: Array, filled: bool = False) -> Codes:
    """Codes of the values of a partition, with `filled` of each row in all columns, and the code of zero in each."""
    most = int(np.diff(start).max(initial=0))
    kind = np.uint8 if most < 1 << 8 else np.uint16 if most < 1 << 16 else np.uint32
    spans = zip(start[:-1].tolist(), start[1:].tolist(), strict=True)
    zero = np.array([int(np.searchsorted(thresholds[a:b], 0.0, side="right")) for a, b in spans], dtype=np.int64)
    m, columns = partition.n_rows, len(start) - 1
    at = np.arange(columns + 1) * m if filled else histograms.code_places(partition.indptr, m)
    codes = np.empty(int(at[-1]), kind)
    stored = partition.indptr, partition.rows, partition.values, partition.n_rows
    histograms.encode(*stored, start, thresholds, zero, at, codes)
    return at, codes, zero


@dataclass(frozen=True, eq=False)
class StumpsPool(Pool):
    """The stumps over one data set."""

    start: NDArray[np.int64]  # (n + 1,): Where the thresholds of each raw column lie.
    thresholds: Array  # Ascending within a column.
    signed: bool  # As in ``Stumps``.

    @cached_property
    def token(self) -> str:
        return token_of(self.start, self.thresholds, self.signed)

    @property
    def size(self) -> float:
        return len(self.thresholds)

    # ---- columns ---------------------------------------------------------------------------------------------------

    def columns(self, raw: Block, keys: Sequence[Key]) -> Block:
        return made(raw, *key_arrays(keys), self.signed)

    def chosen(self, keys: Sequence[Key], features: Sequence[str] | None) -> StumpSet:
        columns, thresholds = key_arrays(keys)
        return StumpSet(columns, thresholds, self.signed, tuple(self.names(keys, features)))

    def names(self, keys: Sequence[Key], features: Sequence[str] | None) -> list[str]:
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

    def runs(self, shard: Shard, count: int) -> NDArray[np.int64] | None:
        """Neighbouring thresholds of a column with more than some: they part all but the same rows."""
        start = self.start[shard[0] : shard[1] + 1] - self.start[shard[0]]
        steps = -(-np.diff(start) // _MOST_BINS)
        if not (steps > 1).any():
            return None
        spans = zip(start[:-1].tolist(), start[1:].tolist(), steps.tolist(), strict=True)
        return np.concatenate([np.arange(first, last, max(step, 1)) for first, last, step in spans])

    def sums(self, partition: Partition, memo: Any, shard: Shard, plus: Array, minus: Array | None) -> Sums:
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
        at, codes, zero = self._codes(partition, memo)
        total = U.sum(axis=0)
        out = np.empty((int(self.start[shard[1]] - self.start[shard[0]]), U.shape[1]))
        arrays = partition.indptr, partition.rows, at, codes, self.start, zero
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

    # ---- those that a model holds ----------------------------------------------------------------------------------

    def arranged(self, keys: Sequence[Key]) -> list[Steps]:
        """As in ``Stepwise``: column by column, since the stumps of one are a function of it."""
        return by_column(*key_arrays(keys))

    def add_margins(self, partition: Partition, memo: Any, arranged: list[Steps], w: Array, f: Array) -> None:
        """As in ``Stepwise``."""
        for steps in arranged:
            block, (_, codes, zero) = steps.of(partition), steps.codes(partition, memo)
            stored = block.rows[block.indptr[0] : block.indptr[1]]
            histograms.add_steps(stored, codes, int(zero[0]), steps.table(w[steps.places], self.signed), f)

    def held_sums(
        self, partition: Partition, memo: Any, arranged: list[Steps], plus: Array, minus: Array | None
    ) -> dict[str, Array]:
        """As in ``Stepwise``."""

        def below(U: Array) -> tuple[Array, Array]:
            total, wide = U.sum(axis=0), U if U.shape[1] == 1 else padded(U)
            sums = np.empty((sum(len(steps.places) for steps in arranged), len(total)))
            for steps in arranged:
                found = np.empty((len(steps.places), len(total)))
                block, (at, codes, zero) = steps.of(partition), steps.codes(partition, memo)
                arrays = block.indptr, block.rows, at, codes, np.array([0, len(found)]), zero
                histograms.sums_below(*arrays, 0, 1, wide, total, found)
                sums[steps.places] = found
            return sums, total

        up, total_up = below(plus)
        if minus is None:
            return {"G": 2.0 * up - total_up if self.signed else up}
        down, total_down = below(minus)
        return self._mu(up, down, total_up, total_down)


@dataclass(frozen=True)
class Steps:
    """The stumps of one raw column among some of a model."""

    column: int
    places: NDArray[np.int64]  # (s,): Where they are among these, in the order of their thresholds.
    thresholds: Array  # (s,): Ascending.

    def of(self, block: Partition | Block) -> Block:
        """The column alone, among the rows and values of all."""
        return Block(block.indptr[self.column : self.column + 2], block.rows, block.values, block.n_rows)

    def codes(self, partition: Partition, memo: Any) -> Codes:
        """Those of the column among these thresholds."""

        def build() -> Codes:
            return encoded(self.of(partition), np.array([0, len(self.thresholds)]), self.thresholds)

        found: Codes = memo.get(f"steps of column {self.column}", self.thresholds.tobytes(), build)
        return found

    def table(self, weights: Array, signed: bool) -> Array:
        """What the stumps add up to for the values of each code, by their weights in the order of their thresholds."""
        below = np.append(0.0, np.cumsum(weights))
        # code c is of the values that c thresholds are at most: the stumps of all others are one there
        found: Array = (below[-1] - below) - (below if signed else 0.0)
        return found


def by_column(columns: NDArray[np.int64], thresholds: Array) -> list[Steps]:
    """Stumps column by column."""
    order = np.lexsort((thresholds, columns))
    ends = np.flatnonzero(np.diff(columns[order])) + 1
    groups = np.split(order, ends) if len(order) else []
    return [Steps(int(columns[places[0]]), places, thresholds[places]) for places in groups]


@dataclass(frozen=True)
class Bin:
    """A bin to look into, with what was summed below it."""

    column: int  # column, code: The raw column and the number of thresholds below.
    code: int
    below: Array  # below, total: float64 arrays, shape (q,). Sums over the examples below the bin, and over all.
    total: Array
    mass: float  # mass, weight: Weight of the examples below the bin, and of all.
    weight: float


@dataclass(frozen=True, eq=False)
class BinnedStumps(StumpsPool):
    """The stumps over one data set, summed at the ends of bins.

    `start`, `thresholds`, `signed`: As in ``StumpsPool``, for the thresholds between the bins. Bin b of column
    j lies at start[j] + j + b.
    """

    hidden: NDArray[np.bool_]  # Whether a bin has more than one distinct value.
    rows: NDArray[np.int64]  # Number of rows in each bin.
    masses: Array  # Weight of the examples in each bin.
    weight: float  # That of all.
    least_weight: float  # Least positive weight of an example.
    cut: str  # Names the bins alone: values have the same codes wherever between two bins a threshold lies.

    @cached_property
    def token(self) -> str:
        return token_of(self.start, self.thresholds, self.signed, self.hidden, self.rows, self.masses)

    @cached_property
    def mass(self) -> Array:
        """Weight of the examples below every threshold."""
        below = np.empty((len(self.thresholds), 1))
        histograms.below_ends(self.start, 0, len(self.start) - 1, self.masses[:, None], below)
        return below[:, 0]

    @property
    def size(self) -> float:
        """Number of stumps at most: as if all values in a bin were different."""
        return float(len(self.thresholds) + np.maximum(self.rows[self.hidden] - 1, 0).sum())

    @property
    def searched(self) -> bool:
        return bool(self.hidden.any())

    by_column = True  # Yes: every value of a stump is one, and a round needs the margins several times.

    def sums(self, partition: Partition, memo: Any, shard: Shard, plus: Array, minus: Array | None) -> Sums:
        """What is added up for `complete`: "between" of several outputs; of one what is inside each bin, "bins".

        The bins of a range of columns and last all examples, (bins + 1, 2).
        """
        if minus is None:
            plus, minus = np.maximum(plus, 0.0), np.maximum(-plus, 0.0)
        if plus.shape[1] > 1 or np.minimum(plus, minus).any():
            return Sums(add={"between": np.vstack(self._below(partition, memo, shard, np.hstack([plus, minus])))})
        size, negative = (plus + minus).reshape(-1), (minus > 0.0).reshape(-1)
        at, codes, zero = self._codes(partition, memo)
        first, last = shard
        bins = np.zeros((int(self.start[last] - self.start[first]) + last - first + 1, 2))
        bins[-1] = plus.sum(), minus.sum()
        arrays = partition.indptr, partition.rows, at, codes, self.start, zero
        histograms.split_sums_of_one(*arrays, first, last, size, negative.view(np.uint8), bins)
        return Sums(add={"bins": bins})

    def complete(self, shard: Shard, total: Sums) -> Sums:
        """Sums of the stumps at the ends of the bins; "between" and "weight" as ``Binned`` says."""
        first, last = int(self.start[shard[0]]), int(self.start[shard[1]])
        found = self._weighed(self.mass[first:last], self.weight)
        given = [self._between(shard, total, prefix) for prefix in ("", THETA)]
        between = [one for one in given if one is not None]
        k = between[0].shape[1] // 2
        branches, theta = between[0], between[-1]
        up, down = theta[:-1, :k], theta[:-1, k:]
        G = up - down
        if self.signed:
            G = 2.0 * G - (theta[-1, :k] - theta[-1, k:])
        others = {name: value for name, value in total.add.items() if not name.endswith(("bins", "between"))}
        found.add |= others | {"G": G, "between": np.hstack(between), "weight": self.weight}
        found.add |= self._mu(branches[:-1, :k], branches[:-1, k:], branches[-1, :k], branches[-1, k:])
        return found

    def _between(self, shard: Shard, total: Sums, prefix: str) -> Array | None:
        """Sums of both parts (c + 1, 2 k) below every threshold and over all examples; None where there are none."""
        bins = total.add.get(prefix + "bins")
        if bins is None:
            return total.add.get(prefix + "between")
        between = np.empty((int(self.start[shard[1]] - self.start[shard[0]]) + 1, 2))
        between[-1] = bins[-1]
        histograms.below_ends(self.start, *shard, bins, between)
        return between

    def _codes(self, partition: Partition, memo: Any) -> Codes:
        found: Codes = memo.get("codes", self.cut, lambda: encoded(partition, self.start, self.thresholds))
        return found

    # ---- inside the bins -------------------------------------------------------------------------------------------

    def _bins(self, shard: Shard) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Of every bin of a range of columns its column, and the places of its ends in `between`.

        The place after the last of `between` stands for no examples at all.
        """
        sizes = np.diff(self.start[shard[0] : shard[1] + 1]) + 1
        columns = np.repeat(np.arange(*shard), sizes)
        number = np.arange(len(columns))
        upper = number - (columns - shard[0])
        last = np.cumsum(sizes) - 1
        first = last - sizes + 1
        count = int(self.start[shard[1]] - self.start[shard[0]])
        lower = upper - 1
        lower[first], upper[last] = count + 1, count
        return columns, lower, upper

    def _ends(self, total: Sums) -> tuple[Array, Array]:
        """What was summed below every threshold, over all examples, and over none; and the weight of these examples."""
        between, weight = total.add["between"], total.add["weight"]
        mass = 0.5 * (total.add["total"] + weight) if self.signed else total.add["total"]
        return np.vstack([between, np.zeros((1, between.shape[1]))]), np.append(mass, [weight, 0.0])

    def gaps(self, shard: Shard, total: Sums) -> Gaps:
        ends, mass = self._ends(total)
        _, lower, upper = self._bins(shard)
        offset = int(self.start[shard[0]]) + shard[0]
        places = np.flatnonzero(self.hidden[offset : offset + len(lower)])
        low, high, whole = ends[lower[places]], ends[upper[places]], ends[-2]
        k = total.add["G"].shape[1]
        A, B, above_A, above_B = low[:, -2 * k : -k], low[:, -k:], high[:, -2 * k : -k], high[:, -k:]
        least, most = A - above_B, above_A - B
        if self.signed:
            rest = whole[-2 * k : -k] - whole[-k:]
            least, most = 2.0 * least - rest, 2.0 * most - rest
        larger, smaller = self._range_of_mu(low[:, : 2 * k], high[:, : 2 * k], whole[: 2 * k])
        reach = np.maximum(np.abs(least), np.abs(most))
        square = np.full(len(places), mass[-2]) if self.signed else np.maximum(mass[lower[places]], self.least_weight)
        return Gaps(places, reach, square, larger, smaller, self.rows[offset + places])

    def _range_of_mu(self, low: Array, high: Array, whole: Array) -> tuple[Array, Array]:
        """The largest and the least that mu+ or mu- can be inside bins."""
        k = len(whole) // 2
        plus, above_plus, minus, above_minus = low[:, :k], high[:, :k], low[:, k:], high[:, k:]
        if self.signed:
            plus, above_plus, minus, above_minus = (
                plus + (whole[k:] - above_minus),
                above_plus + (whole[k:] - minus),
                minus + (whole[:k] - above_plus),
                above_minus + (whole[:k] - plus),
            )
        return np.maximum(above_plus, above_minus), np.maximum(np.minimum(plus, minus), 0.0)

    def nodes(self, shard: Shard, total: Sums, places: NDArray[np.int64]) -> list[Bin]:
        ends, mass = self._ends(total)
        columns, lower, _ = self._bins(shard)
        first = np.searchsorted(columns, columns[places])
        return [
            Bin(int(columns[q]), q - int(start), ends[lower[q]], ends[-2], float(mass[lower[q]]), float(mass[-2]))
            for q, start in zip(places.tolist(), first, strict=True)
        ]

    def inside(self, partition: Partition, memo: Any, nodes: Sequence[Bin], U: Array) -> Sums:
        """The rows of one partition in some bins, column by column: its number, and what ``_joined`` makes of them."""
        at, codes, zero = self._codes(partition, memo)
        live, found = partition.weight > 0.0, []
        for j, opened in _bins_by_column(nodes).items():
            wanted = np.zeros(int(self.start[j + 1] - self.start[j]) + 1, np.bool_)
            wanted[opened] = True
            span = slice(int(partition.indptr[j]), int(partition.indptr[j + 1]))
            mine, stored, given = codes[at[j] : at[j + 1]], partition.rows[span], partition.values[span]
            # a table of truths is looked up in a third of the time of one of numbers, and most rows are in no open bin
            chosen = np.flatnonzero(wanted.take(mine))
            number = mine[chosen].astype(np.int64)
            if len(mine) > len(stored):
                # of these examples some are not stored, and zero
                places = np.minimum(np.searchsorted(stored, chosen), len(stored) - 1)
                rows, values = chosen, np.where(stored[places] == chosen, given[places], 0.0).astype(np.float64)
            else:
                rows, values = stored[chosen].astype(np.int64), given[chosen].astype(np.float64)
                if wanted[zero[j]] and len(stored) < partition.n_rows:
                    others = np.ones(partition.n_rows, np.bool_)
                    others[stored] = False
                    absent = np.flatnonzero(others)
                    number = np.append(number, np.full(len(absent), zero[j]))
                    rows, values = np.append(rows, absent), np.append(values, np.zeros(len(absent)))
            counted = live[rows]
            if not counted.all():
                number, values, rows = number[counted], values[counted], rows[counted]
            sums = np.hstack([partition.weight[rows, None], U[rows]])
            found.append((j, *_joined(number, values, sums)))
        return Sums(parts={"inside": found})

    def settle(self, nodes: Sequence[Bin], total: Sums, k: int) -> tuple[Sequence[Key], Sums, NDArray[np.int64]]:
        parts: dict[int, list[tuple[NDArray[np.int64], Array, Array]]] = {}
        for j, *part in total.parts["inside"]:
            parts.setdefault(j, []).append(part)
        node_of = {(node.column, node.code): node for node in nodes}
        found = []
        for j, opened in _bins_by_column(nodes).items():
            number, values, sums = _joined(*(np.concatenate([part[i] for part in parts[j]]) for i in range(3)))
            histograms.running_sums(number, sums)
            inner = np.flatnonzero(number[1:] == number[:-1])
            thresholds = halfway(values[inner], values[inner + 1])
            mine = [node_of[j, code] for code in opened.tolist()]
            which = np.searchsorted(opened, number[inner])
            mass = np.array([node.mass for node in mine])[which] + sums[inner, 0]
            below = np.array([node.below for node in mine])[which] + sums[inner, 1:]
            found.append((np.full(len(inner), j, np.int64), thresholds, mass, below, which))
        columns, thresholds, mass, below, bins = (np.concatenate([part[i] for part in found]) for i in range(5))
        whole, settled = nodes[0].total, self._weighed(mass, nodes[0].weight)
        theta = below[:, -2 * k : -k], below[:, -k:], whole[-2 * k : -k], whole[-k:]
        mu = self._mu(*theta)
        settled.add["G"] = mu["mu_plus"] - mu["mu_minus"]
        settled.add |= self._mu(below[:, :k], below[:, k : 2 * k], whole[:k], whole[k : 2 * k])
        other = (columns[1:] != columns[:-1]) | (bins[1:] != bins[:-1])
        runs = np.flatnonzero(np.append(True, other)[: len(bins)])
        return ThresholdKeys(columns, thresholds), settled, runs


def _bins_by_column(nodes: Sequence[Bin]) -> dict[int, NDArray[np.int64]]:
    """The codes of some bins, ascending, of each of their columns."""
    found: dict[int, list[int]] = {}
    for column, code in sorted((node.column, node.code) for node in nodes):
        found.setdefault(column, []).append(code)
    return {column: np.array(codes) for column, codes in found.items()}


def _joined(number: NDArray[np.int64], values: Array, sums: Array) -> tuple[NDArray[np.int64], Array, Array]:
    """Rows of one column in the order of their values, which is that of their bins, those with equal values summed."""
    order = np.argsort(values, kind="stable")
    number, values, sums = number[order], values[order], sums[order]
    fresh = np.append(True, values[1:] != values[:-1])[: len(values)]
    if not fresh.all():
        first = np.flatnonzero(fresh)
        number, values, sums = number[first], values[first], np.add.reduceat(sums, first, axis=0)
    return number, values + 0.0, sums


_MOST_BINS = 256
# Where the best of all thresholds is asked for and nothing else, more than these are searched in less time than summed.
_LISTED_TO_PICK = 20_000
# Values kept of a column from which its bins are cut; more make the bins more even, and no result better.
_KEPT_PER_BIN = 8


@dataclass(frozen=True)
class Stumps(Joinable):
    """All decision stumps: 1 where a raw feature is below a threshold, else 0.

    The thresholds of a feature lie halfway between its neighbouring distinct values, so no two stumps of a feature are
    equal on the training rows, and none is constant there. Values that a sparse matrix does not store are zeros.
    Missing values are refused before any family sees the data. One direction is enough: weights are signed, and where
    there is an intercept 1[v >= th] is 1 - 1[v < th].

    Where the data has more thresholds than `max_listed`, those at the ends of some bins are summed in every round, and
    the others only where the sums at the two ends of their bin leave room for a better one (docs/math.md 7 (J)).
    The stump with the largest score is found all the same, and the certificate still covers every stump.

    Parameters
    ----------
    signed : bool, default False
        Whether a stump is -1 where it is not 1, as the papers on AdaBoost have it. Such a column has no zeros to skip:
        the model's columns take more memory.
    bins : int, default 256
        At most so many bins for a feature, 256 at most.
    max_listed : int, default 2,000,000
        Up to this many thresholds are summed one by one; 20,000 at most where a fit asks for the best stump alone
        (``update="forward"``), which a search finds sooner.
    exact : bool, default True
        Whether every threshold is a candidate. Otherwise those of a feature with more values than `bins` are the ends
        of its bins, as in the histograms of most tree learners: a round takes less time, and what a certificate covers
        are these stumps. Of a feature with very many values (`max_listed` over the number of features) bins depend on
        the cut of the rows into blocks, by what a sketch of its values knows.

    Examples
    --------
    >>> from dboost import BoostedClassifier, Stumps
    >>> X, y = [[1.0], [2.0], [3.0], [4.0]] * 5, [0, 1, 1, 0] * 5
    >>> model = BoostedClassifier(hypotheses=Stumps(), alpha=0.01).fit(X, y)
    >>> model.score(X, y), model.active_features_
    (1.0, ['x0 < 1.5', 'x0 < 3.5'])
    """

    name = FAMILY
    signed: bool = False
    bins: int = _MOST_BINS
    max_listed: int = 2_000_000
    exact: bool = True

    def __post_init__(self) -> None:
        for name, given in (("signed", self.signed), ("exact", self.exact)):
            if not isinstance(given, bool):
                raise UsageError(f"Stumps: {name}={given!r}", hint="expected True or False")
        for name, value, least, most in (
            ("bins", self.bins, 2, _MOST_BINS),
            ("max_listed", self.max_listed, 0, np.iinfo(np.int64).max),
        ):
            if not is_whole(value, least) or value > most:
                hint = f"expected an integer from {least}" + (f" to {most}" if most < 1 << 60 else "")
                raise UsageError(f"Stumps: {name}={value!r}", hint=hint)

    @staticmethod
    def restore(spec: Document, arrays: Mapping[str, NDArray[Any]], n_features: int) -> StumpSet:
        """The set that ``StumpSet.to_json`` and ``arrays`` describe, trusting nothing."""

        def bad(what: str) -> ModelFormatError:
            return ModelFormatError(f"hypotheses of the family {FAMILY!r}: {what}", file=spec.file)

        columns, thresholds = saved_arrays(
            FAMILY, arrays, {"columns": (np.int64, 1), "thresholds": (np.float64, 1)}, spec.file
        )
        signed, names = spec.fields.get("signed"), spec.strings("names")
        if not isinstance(signed, bool):
            raise bad("'signed' is neither true nor false")
        if names is None or not len(names) == len(columns) == len(thresholds):
            raise bad("names, columns and thresholds are not lists of one length")
        if np.any((columns < 0) | (columns >= n_features)):
            raise bad(f"a raw column is not within 0..{n_features - 1}")
        return StumpSet(columns, thresholds, signed, names)

    def prepare(self, context: Context) -> StumpsPool:
        """Find the thresholds of every feature; one pass, or two where they lie in bins."""
        most = max(_KEPT_PER_BIN * self.bins, self.max_listed // max(context.n_features, 1))
        found: Distinct = context.engine.map_reduce(distinct_values, most, name="distinct").add["distinct"]
        listed = min(self.max_listed, _LISTED_TO_PICK) if context.picks else self.max_listed
        if self.exact and found.exact.all() and np.maximum(np.diff(found.start) - 1, 0).sum() <= listed:
            start, low, high = boundaries(found.start, found.values, found.values)
            return StumpsPool(start, halfway(low, high), self.signed)
        return self._binned(context, found)

    def _binned(self, context: Context, found: Distinct) -> StumpsPool:
        """Stumps in bins, whose thresholds lie halfway between the values on both sides in the whole data."""
        ends, sizes = [np.zeros(0)], np.zeros(context.n_features, np.int64)
        for j in range(context.n_features):
            values, counts = found.column(j)
            whole = found.exact[j] and len(values) <= self.bins
            chosen = np.arange(len(values) - 1) if whole else cuts(values, counts, self.bins)
            ends.append(values[chosen])
            sizes[j] = len(chosen)
        start = np.concatenate([[0], np.cumsum(sizes)])
        # what is above the last value of a bin is at least the next number
        above = np.nextafter(np.concatenate(ends), np.inf)
        cut = token_of(start, above)
        total = context.engine.map_reduce(value_ranges, start, above, cut, name="bins")
        least, largest, rows = -total.peak["below"], total.peak["above"], total.add["rows"]
        _, low, high = boundaries(start + np.arange(len(start)), least, largest)
        masses, weight = total.add["masses"], float(total.add["weight"])
        least_weight = -float(total.peak["weight"][0])
        hidden = (least < largest) & self.exact
        return BinnedStumps(start, halfway(low, high), self.signed, hidden, rows, masses, weight, least_weight, cut)


def boundaries(start: NDArray[np.int64], least: Array, largest: Array) -> tuple[NDArray[np.int64], Array, Array]:
    """Where thresholds lie between neighbouring groups of values of the same column.

    `start`: int64 array, shape (n + 1,). Where each column's groups lie.
    `least`, `largest`: Of every group, ascending within a column.
    """
    sizes = np.diff(start)
    first, last = np.zeros(len(least), np.bool_), np.zeros(len(least), np.bool_)
    first[start[:-1][sizes > 0]] = True
    last[start[1:][sizes > 0] - 1] = True
    return np.concatenate([[0], np.cumsum(np.maximum(sizes - 1, 0))]), largest[~last], least[~first]


def value_ranges(partition: Partition, memo: Any, start: NDArray[np.int64], above: Array, cut: str) -> Sums:
    """Least and largest value, rows and weight of every bin in one partition; all weight and the least positive one."""
    live = partition.weight[partition.weight > 0.0]
    bins = len(above) + partition.n_features
    least, most, rows = np.full(bins, np.inf), np.full(bins, -np.inf), np.zeros(bins, np.int64)
    masses = np.zeros(bins)
    at, codes, zero = memo.get("codes", cut, lambda: encoded(partition, start, above))
    stored = partition.indptr, partition.rows, partition.values, partition.weight
    histograms.bin_ranges(*stored, len(live), at, codes, start, zero, least, most, rows, masses)
    weight = np.array([-live.min(initial=np.inf)])
    # adding 0 makes a zero of any sign the same
    add = {"rows": rows, "masses": masses, "weight": float(partition.weight.sum())}
    return Sums(add=add, peak={"below": 0.0 - least, "above": most + 0.0, "weight": weight})
