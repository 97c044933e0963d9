"""Leaves of passes that bring examples to the driver: a sample of them, and their columns.

Does not cover: sums over examples (``passes``).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dboost.compiled.sparse import columns
from dboost.hypotheses.held_by_model import Held
from dboost.partition import Partition, Sums
from dboost.passes import columns_held
from dboost.passes.draws import sampled


def sample_rows(partition: Partition, memo: Any, held: Held, share: float, seed: int) -> Sums:
    """A random sample of rows, cut to the columns held, with labels, weights and offsets."""
    pointer, slots, values = held.cut(partition, memo)
    own: tuple[Any, ...] = (partition.y, partition.weight, partition.offset)
    if share < 1.0:
        chosen = sampled(partition, share, seed)
        pointer, slots, values = columns.take_rows(pointer, slots, values, chosen)
        own = tuple(None if each is None else each[chosen] for each in own)
    return Sums(parts={"rows": [(np.diff(pointer), slots, values, *own)]})


def held_columns(partition: Partition, memo: Any, held: Held) -> Sums:
    """The columns held, as a CSC block, with labels, weights and offsets."""
    mine = columns_held(partition, memo, held)
    # the columns of a block by column are taken as the rows of one by row
    own = (partition.y, partition.weight, partition.offset)
    return Sums(parts={"columns": [(*columns.take_rows(*mine), None, *own)]})
