"""How many rows a block has: the same for rows in memory, for partitions of Dask and for row groups of Parquet.

Covers: ``rows_per_block``, a power of two that follows from the size of the data alone: never from threads, workers, or
what holds the rows; ``GROUP_ROWS``, the row groups that are written here.
Does not cover: the cut itself, which each kind of input makes in its own way (``plan``, ``collections``,
``parquet.plan``).

A sum depends on where it is cut, in its last bits. Input that is cut at the same rows gives the same model, to the bit.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

GROUP_ROWS = 1 << 15
"""Rows of a row group. Blocks have a power of two of rows, so that whole blocks make a group, or groups a block."""
BLOCK_COST = 1_000_000
"""A block costs so much or more where there is more data: a row costs 1, and 1 for each of its stored values."""
LARGEST_COST = 8_000_000
"""No average block costs twice as much: it is decoded at once, and a worker may be small."""
USUAL_BLOCKS = 256
"""More blocks would add up to more calls than threads and workers need: those of very much data cost more instead."""
BLOCK_WORK = 1_000_000
"""Cost times outputs from which a block is worth a thread of its own: about a millisecond of a pass."""
COLUMN_COST = 4
"""Cost in each block of a column: an offset, and sums of its own in every pass, whatever the block holds of it."""
LARGE_SHARE = 2
"""A block of much data costs so often what its columns cost, or more; one that threads are to share, as much."""
SHARED_BLOCKS = 8
"""So many blocks keep the threads of most machines busy; each more costs a pass its own sums of all columns."""
MOST_PARTS = 16
"""Data of more rows than so many row groups have is cut into whole groups, and less into so many blocks at most."""


def stored_values(indptr: NDArray[np.int64], keep: NDArray[np.bool_] | None = None) -> int:
    """Stored values of rows, all or those to keep; an empty row counts as one, as it does in the footers of Parquet.

    `indptr`: int64 array, shape (m + 1,), the offsets of CSR. `keep`: bool array, shape (m,), or None.
    """
    lengths = np.maximum(np.diff(indptr), 1)
    return int(lengths.sum() if keep is None else lengths[keep].sum())


def rows_per_block(n_rows: int, cost: int, n_features: int, n_outputs: int = 1) -> int:
    """A power of two: rows of each block but the last.

    Blocks cost a million to two of them on average, more where the columns alone would cost a block as much. Little
    data is cut into 2, 4 or 8 where a pass over it is long enough to be shared by threads.

    `cost`: number of rows and of stored values together.
    `n_outputs`: a pass works so often on what is stored.
    """
    columns = COLUMN_COST * max(n_features, 1)
    goal = max(BLOCK_COST, min(max(LARGE_SHARE * columns, cost // USUAL_BLOCKS), LARGEST_COST))
    shared = max(min(cost * n_outputs // BLOCK_WORK, cost // columns, SHARED_BLOCKS), 1)
    rows = min(n_rows * goal // max(cost, 1), -(-n_rows // shared), n_rows)
    least = max(rows, min(-(-n_rows // MOST_PARTS), GROUP_ROWS), 1)
    # the least power of two that is no smaller
    return 1 << (least - 1).bit_length()
