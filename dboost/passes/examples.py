"""Leaves of passes that bring examples to the driver: a sample of them, and their columns.

Does not cover: sums over examples (``passes``).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.compiled.sparse import columns
from dboost.hypotheses.held_by_model import Held
from dboost.losses.offset import codes_of
from dboost.partition import Partition, Sums
from dboost.passes import columns_held
from dboost.passes.draws import sampled


def _place_of(chosen: NDArray[np.int64], count: int) -> NDArray[np.int32]:
    """The place of each of `count` among the chosen ones, -1 for the others: int32 (count,)."""
    place = np.full(count, -1, np.int32)
    place[chosen] = np.arange(chosen.shape[0], dtype=np.int32)
    return place


def sample_rows(partition: Partition, memo: Any, held: Held, share: float, seed: int) -> Sums:
    """A random sample of rows, cut to the columns held, with labels and weights."""
    pointer, slots, values = held.cut(partition, memo)
    if share < 1.0:
        chosen = sampled(partition, share, seed)
        pointer, slots, values = columns.take_rows(pointer, slots, values, chosen)
        part = (np.diff(pointer), slots, values, partition.y[chosen], partition.weight[chosen])
    else:
        part = (np.diff(pointer), slots, values, partition.y, partition.weight)
    return Sums(parts={"rows": [part]})


def sampled_partition(partition: Partition, memo: Any, share: NDArray[np.float64], seed: int) -> Sums:
    """A random sample of the examples as a partition; their weights are those of as many as they are drawn from.

    `share` (k,) is the share of each class, or (1,) that of all.
    """
    of_row = share[codes_of(partition.y)] if share.shape[0] > 1 else np.full(partition.n_rows, share[0])
    chosen = sampled(partition, of_row, seed)
    y, weight = partition.y[chosen], partition.weight[chosen] / of_row[chosen]
    if partition.by_row is not None:
        taken = columns.take_rows(*partition.by_row, chosen)
        indptr, rows, values = columns.transpose(*taken, partition.n_features)
    else:
        everything = np.arange(partition.n_features)
        data = (partition.indptr, partition.rows, partition.values)
        indptr, rows, values = columns.take_examples(*data, everything, _place_of(chosen, partition.n_rows))
    return Sums(parts={"found": [Partition(indptr, rows, values, y, weight, partition.key)]})


def held_columns(partition: Partition, memo: Any, held: Held, share: float = 1.0, seed: int = 0) -> Sums:
    """The columns held, as a CSC block, with labels and weights; of all rows, or of a random sample of them."""
    mine = columns_held(partition, memo, held)
    if share >= 1.0:
        # the columns of a block by column are taken as the rows of one by row
        return Sums(parts={"columns": [(*columns.take_rows(*mine), None, partition.y, partition.weight)]})
    chosen = sampled(partition, share, seed)
    taken = columns.take_examples(*mine, _place_of(chosen, partition.n_rows))
    return Sums(parts={"columns": [(*taken, None, partition.y[chosen], partition.weight[chosen])]})
