"""Decision stumps: one raw feature below a threshold, for all thresholds at once.

Covers: the family ``Stumps``, and how its thresholds are found.
Does not cover: the sums of stumps (``stump_pool``, ``stump_bins``), or the stumps a model holds (``stump_set``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.errors import UsageError
from dboost.files.documents import Document
from dboost.hypotheses import family_from_fields
from dboost.hypotheses.base import Array, Context
from dboost.hypotheses.distinct import Distinct, cuts, distinct_values
from dboost.hypotheses.stumps import histograms
from dboost.hypotheses.stumps.bins import BinnedStumps
from dboost.hypotheses.stumps.in_model import FAMILY, StumpSet, restore
from dboost.hypotheses.stumps.pool import StumpsPool, encoded, halfway, token_of
from dboost.hypotheses.union import Joinable
from dboost.partition import Partition, Sums

_MOST_BINS = 256
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
        Up to this many thresholds are summed one by one.

    Examples
    --------
    >>> from dboost import BoostedClassifier, Stumps
    >>> X, y = [[1.0], [2.0], [3.0], [4.0]] * 5, [0, 1, 1, 0] * 5
    >>> model = BoostedClassifier(hypotheses=Stumps(), alpha=0.01).fit(X, y)
    >>> model.score(X, y), model.active_features_
    (1.0, ['x0 < 1.5', 'x0 < 3.5'])
    """

    signed: bool = False
    bins: int = _MOST_BINS
    max_listed: int = 2_000_000

    def __post_init__(self) -> None:
        if not isinstance(self.signed, bool):
            raise UsageError(f"Stumps: signed={self.signed!r}", hint="expected True or False")
        for name, value, least, most in (
            ("bins", self.bins, 2, _MOST_BINS),
            ("max_listed", self.max_listed, 0, np.iinfo(np.int64).max),
        ):
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or not least <= value <= most:
                hint = f"expected an integer from {least}" + (f" to {most}" if most < 1 << 60 else "")
                raise UsageError(f"Stumps: {name}={value!r}", hint=hint)

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
        """Find the thresholds of every feature; one pass, or two where they lie in bins."""
        most = max(_KEPT_PER_BIN * self.bins, self.max_listed // max(context.n_features, 1))
        found: Distinct = context.engine.map_reduce(distinct_values, most, name="distinct").add["distinct"]
        if found.exact.all() and np.maximum(np.diff(found.start) - 1, 0).sum() <= self.max_listed:
            start, low, high = boundaries(found.start, found.values, found.values)
            return StumpsPool.of(start, halfway(low, high), self.signed)
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
        hidden = least < largest
        return BinnedStumps.within(
            start, halfway(low, high), self.signed, hidden, rows, masses, weight, least_weight, cut
        )


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
    codes, zero = memo.get("codes", cut, lambda: encoded(partition, start, above))
    stored = partition.indptr, partition.rows, partition.values, partition.weight
    histograms.bin_ranges(*stored, len(live), codes, start, zero, least, most, rows, masses)
    weight = np.array([-live.min(initial=np.inf)])
    # adding 0 makes a zero of any sign the same
    add = {"rows": rows, "masses": masses, "weight": float(partition.weight.sum())}
    return Sums(add=add, peak={"below": 0.0 - least, "above": most + 0.0, "weight": weight})
