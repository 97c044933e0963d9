"""The distinct values of every raw column, or a sketch of them, in a form that blocks of rows can be merged in.

Covers: ``Distinct``, made of one partition and added up over all of them, and the cuts of a column into bins.
Does not cover: which thresholds are made of the values (``stumps``).

A column with more distinct values than are kept becomes a sketch: some of its values, each with the number of rows from
the value kept before it. Merging thins it out again, so it holds no more for any number of partitions; where its values
lie is then known to one part in the number kept, per merge. Nothing that is found with its help depends on how well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.hypotheses.base import Array
from dboost.hypotheses.stumps import histograms
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
