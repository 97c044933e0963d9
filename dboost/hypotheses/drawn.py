"""Rows drawn at random from a data set, the same however it is cut into partitions.

Covers: drawing row positions from a seed, fetching these rows, and the median distance among some.
Does not cover: rows chosen by their labels (``perceptron``).

Positions count the rows of the training set in the order of its partitions; rows of weight zero are no part of it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.errors import DataError
from dboost.hypotheses.base import Context
from dboost.hypotheses.kernels.centres import (
    Centres,
    by_row,
    chosen_rows,
    distances,
    join_centres,
    live_rows,
    rows_of,
    squares_of,
)
from dboost.partition import Partition, Sums

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


def offsets_of(context: Context) -> tuple[dict[str, int], int]:
    """Position of the first row of each partition, by its key, and the number of all rows."""
    found = context.engine.map_reduce(lengths, name="lengths").parts["lengths"]
    starts = np.cumsum([0, *(rows for _, rows in found)])
    return {key: int(start) for (key, _), start in zip(found, starts)}, int(starts[-1])


def draw(context: Context, count: int, purpose: int) -> Centres:
    """`count` different rows at random, in the order of their positions; all rows where there are fewer.

    `purpose`: Different purposes draw different rows from one seed.
    """
    rng = np.random.Generator(np.random.Philox(np.random.SeedSequence([context.seed, purpose])))
    offsets, n_rows = offsets_of(context)
    positions = np.sort(rng.choice(n_rows, size=min(count, n_rows), replace=False)).astype(np.int64)
    total = context.engine.map_reduce(fetch, positions, offsets, name="rows")
    return join_centres(total.parts["rows"])


def median_gamma(context: Context, cosine: bool) -> float:
    """1 / median of the squared distances among at most 500 rows drawn at random (docs/math.md 7 (F)).

    Raises DataError: When more than half of them are zero, so that there is no scale.
    """
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
