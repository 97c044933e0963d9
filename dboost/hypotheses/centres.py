"""Rows that hypotheses are centred on: a few rows as values, drawn at random, and the kernel of a block with them.

Covers: ``Centres``, taking and joining them, squared distances to the rows of a block; rows drawn at random from a data
set, the same however it is cut into partitions, and the median distance among some. Does not cover: rows chosen by
their labels (``kernels.family``), or what is made of the kernel.

Squared distances are ||x||**2 + ||z||**2 - 2 <x, z>, cut off at zero. Where rows are so far from the origin, compared
with their distance, that this loses digits, they are sums of squared differences. Which of the two follows from the
row and the centre alone. Positions of rows count those of the training set in the order of its partitions; rows of
weight zero are no part of it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dboost.compiled.sparse import columns
from dboost.errors import DataError
from dboost.hypotheses.base import Array, Block, Context
from dboost.hypotheses.kernels import kernel_loops
from dboost.partition import Partition, Sums


class RowBlock(NamedTuple):
    """A block of rows, stored by row (CSR); columns ascend within a row."""

    pointer: NDArray[np.int64]
    slots: NDArray[np.int32]
    values: NDArray[Any]
    n_columns: int

    @property
    def n_rows(self) -> int:
        """Number of rows m."""
        return len(self.pointer) - 1

    def piece(self, start: int, stop: int) -> RowBlock:
        """Rows [start, stop)."""
        first, last = self.pointer[start], self.pointer[stop]
        pointer = self.pointer[start : stop + 1] - first
        return RowBlock(pointer, self.slots[first:last], self.values[first:last], self.n_columns)


@dataclass(frozen=True)
class Centres:
    """Rows, stored by row (CSR)."""

    # Megabytes that every pass refers to: an engine sends them to a worker once (``engine.dask.wire_format``).
    sent_once = True

    pointer: NDArray[np.int64]  # (s + 1,)
    slots: NDArray[np.int32]  # (nnz,): Raw columns, ascending within a row.
    values: NDArray[Any]  # float32 or float64 array, shape (nnz,).
    # (s,): Positions of the rows in the data set, or 0, 1, ... for rows that were given.
    numbers: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.numbers)

    def take(self, chosen: Sequence[int] | NDArray[np.int64]) -> Centres:
        """Some of them, in the order asked for."""
        places = np.asarray(chosen, dtype=np.int64)
        rows = columns.take_rows(self.pointer, self.slots, self.values, places)
        return Centres(*rows, self.numbers[places])

    @property
    def token(self) -> str:
        """Digest of the rows and their numbers."""
        digest = hashlib.sha256()
        for array in (self.pointer, self.slots, self.values, self.numbers):
            digest.update(array.dtype.str.encode())
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()

    def block(self, n_columns: int) -> RowBlock:
        """The rows alone."""
        return RowBlock(self.pointer, self.slots, self.values, n_columns)


def no_centres() -> Centres:
    """An empty set."""
    return Centres(np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0), np.empty(0, np.int64))


def join_centres(parts: Sequence[Centres]) -> Centres:
    """Several sets, one after the other."""
    # A partition without rows has a type of values too; only those with rows decide.
    filled = [part for part in parts if len(part)] or list(parts[:1]) or [no_centres()]
    ends = np.cumsum([0, *(part.pointer[-1] for part in filled)])
    pointer = [np.zeros(1, np.int64), *(part.pointer[1:] + end for part, end in zip(filled, ends))]
    return Centres(
        np.concatenate(pointer),
        np.concatenate([part.slots for part in filled]),
        np.concatenate([part.values for part in filled]),
        np.concatenate([part.numbers for part in filled]),
    )


def by_row(raw: Block | Partition) -> RowBlock:
    """The features of a block of rows, by row."""
    n_columns = len(raw.indptr) - 1
    every = np.arange(n_columns, dtype=np.int64)
    return RowBlock(*columns.cut_rows(raw.indptr, raw.rows, raw.values, every, raw.n_rows), n_columns)


def live_rows(partition: Partition) -> NDArray[np.int64] | None:
    """The rows of positive weight of a partition, or None where all are.

    Rows of weight zero are as good as absent: those that a fold of a cross-validation holds out.
    """
    live = np.flatnonzero(partition.weight > 0.0)
    return None if len(live) == partition.n_rows else live


def chosen_rows(rows: RowBlock, chosen: NDArray[np.int64]) -> RowBlock:
    """Some rows of a block, in the order asked for."""
    return RowBlock(*columns.take_rows(*rows[:3], chosen), rows.n_columns)


def rows_of(rows: RowBlock, chosen: NDArray[np.int64], offset: int) -> Centres:
    """The rows `chosen` of a block as centres; the first row of the block has number `offset`."""
    return Centres(*columns.take_rows(*rows[:3], chosen), chosen + offset)


def squares_of(rows: RowBlock) -> Array:
    """||x||**2 of each row; a DataError where one is not finite."""
    out = np.empty(rows.n_rows)
    kernel_loops.row_squares(rows.pointer, rows.values, out)
    if not np.all(np.isfinite(out)):
        raise DataError(
            "a row has no finite length, so it has no distances",
            hint="expected finite features; scale them below 1e150",
        )
    return out


def distances(rows: RowBlock, xx: Array, centres: Centres, cosine: bool) -> Iterator[tuple[int, Array]]:
    """Squared distances of all rows to the centres, a few centres at a time.

    `rows`: m rows with all raw columns.
    `xx`: float64 array, shape (m,). ``squares_of(rows)``.
    `cosine`: Between rows and centres of length one.
    Yields first, int: Place of the first centre.
    Yields out, float64 array, shape (t, m): Distances to centres first, first + 1, ...
    """
    zz = squares_of(centres.block(rows.n_columns))
    lines = centres.pointer, centres.slots, centres.values
    for first in range(0, len(centres), kernel_loops.TILE):
        last = min(first + kernel_loops.TILE, len(centres))
        place, Z = kernel_loops.spread_tile(*lines, first, last, rows.n_columns)
        out = np.empty((last - first, rows.n_rows))
        kernel_loops.tile_distances(*rows[:3], xx, *lines, first, place, Z, zz[first:last], cosine, out)
        yield first, out


def kernel_block(rows: RowBlock, xx: Array, centres: Centres, gamma: float, cosine: bool) -> Array:
    """exp(-gamma * squared distance) of all rows and centres, shape (s, m); see `distances`."""
    K = np.empty((len(centres), rows.n_rows))
    for first, part in distances(rows, xx, centres, cosine):
        kernel_loops.exponentiate(part, gamma)
        K[first : first + len(part)] = part
    return K


SAMPLE = 500
"""Rows among which the median distance is taken: 124,750 pairs."""


def lengths(partition: Partition, memo: Any) -> Sums:
    """Key and number of rows of a partition."""
    there = live_rows(partition)
    return Sums(parts={"lengths": [(partition.key, partition.n_rows if there is None else len(there))]})


def fetch(partition: Partition, memo: Any, positions: NDArray[np.int64], offsets: dict[str, int]) -> Sums:
    """Those of the rows at `positions` (ascending) that lie in this partition."""
    offset, there, rows = offsets[partition.key], live_rows(partition), by_row(partition)
    if there is not None:
        rows = chosen_rows(rows, there)
    first, last = np.searchsorted(positions, [offset, offset + rows.n_rows])
    return Sums(parts={"rows": [rows_of(rows, positions[first:last] - offset, offset)]})


def draw(context: Context, count: int, purpose: int) -> Centres:
    """`count` different rows at random, by their positions, or all; each `purpose` draws others from one seed."""
    rng = np.random.Generator(np.random.Philox(np.random.SeedSequence([context.seed, purpose])))
    found = context.engine.map_reduce(lengths, name="lengths").parts["lengths"]
    starts = np.cumsum([0, *(rows for _, rows in found)])
    offsets, n_rows = {key: int(start) for (key, _), start in zip(found, starts)}, int(starts[-1])
    positions = np.sort(rng.choice(n_rows, size=min(count, n_rows), replace=False)).astype(np.int64)
    total = context.engine.map_reduce(fetch, positions, offsets, name="rows")
    return join_centres(total.parts["rows"])


def median_gamma(context: Context, cosine: bool) -> float:
    """1 / median of the squared distances among at most 500 rows drawn at random (docs/math.md 7 (F))."""
    sample = draw(context, min(SAMPLE, context.n_rows), purpose=1)
    rows = sample.block(context.n_features)
    square = np.concatenate([part for _, part in distances(rows, squares_of(rows), sample, cosine)])
    pairs = square[np.triu_indices(len(sample), 1)]
    median = float(np.median(pairs)) if len(pairs) else 0.0
    if not (median > 0.0 and np.isfinite(median) and np.isfinite(1.0 / median)):
        raise DataError(
            f"gamma='median': the median squared distance among {len(sample)} rows is {median:g}",
            hint="expected a positive number; give gamma as a number",
        )
    return 1.0 / median
