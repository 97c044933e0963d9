"""The distinct values of every raw column, in a form that blocks of rows can be merged in.

Covers: ``Distinct``, made of one partition and added up over all of them.
Does not cover: which thresholds are made of the values (``stumps``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.compiled import histograms
from dboost.hypotheses.base import Array
from dboost.partition import Partition, Sums


@dataclass(frozen=True, eq=False)
class Distinct:
    """Distinct values of the columns, ascending, with the number of rows that have them.

    Parameters
    ----------
    start : int64 array, shape (n + 1,)
        Where each column's values lie.
    values : float64 array
    counts : int64 array
    """

    start: NDArray[np.int64]
    values: Array
    counts: NDArray[np.int64]

    def __add__(self, right: Distinct) -> Distinct:
        room = len(self.values) + len(right.values)
        start, values, counts = np.zeros_like(self.start), np.empty(room), np.empty(room, np.int64)
        mine = self.start, self.values, self.counts
        filled = histograms.merge_runs(*mine, right.start, right.values, right.counts, start, values, counts)
        return Distinct(start, values[:filled].copy(), counts[:filled].copy())


def distinct_values(partition: Partition, memo: Any) -> Sums:
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
        found, count = np.unique(stored, return_counts=True)
        found, missing = found.astype(np.float64), n_live - len(stored)
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
    return Sums(add={"distinct": Distinct(start, np.concatenate(values) + 0.0, np.concatenate(counts))})
