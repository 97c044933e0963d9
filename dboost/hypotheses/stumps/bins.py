"""Stumps of features with too many values to sum them all: thresholds at the ends of bins, and what lies inside.

The sums of a stump grow with its threshold: those of the positive part, those of the negative part and the weight of
the examples below are prefix sums of terms >= 0. So what is summed at the two ends of a bin bounds, entry by entry, the
sums of every stump with a threshold inside (sharper than the bound of docs/math.md 7 (J), which follows from it):
with A and B the sums of [Theta]_+ and [-Theta]_+ below the lower end, and A', B' below the upper, h'Theta lies between
A - B' and A' - B. A bin whose bound is within the best known keeps its stumps closed; of the others every distinct
value is summed, from their rows alone.

Covers: ``BinnedStumps``. Does not cover: which bins are opened (``dboost.boosting.between``), where they end
(``distinct``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.hypotheses.base import Array, Key
from dboost.hypotheses.capabilities import THETA, Gaps
from dboost.hypotheses.stumps import histograms
from dboost.hypotheses.stumps.pool import Codes, Shard, StumpsPool, ThresholdKeys, encoded, halfway, token_of
from dboost.partition import Partition, Sums


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

    `start`, `thresholds`, `signed`, `token`: As in ``StumpsPool``, for the thresholds between the bins. Bin b of column
    j lies at start[j] + j + b.
    """

    hidden: NDArray[np.bool_]  # Whether a bin has more than one distinct value.
    rows: NDArray[np.int64]  # Number of rows in each bin.
    mass: Array  # Weight of the examples below every threshold.
    weight: float  # That of all.
    least_weight: float  # Least positive weight of an example.
    cut: str  # Names the bins alone: values have the same codes wherever between two bins a threshold lies.

    @classmethod
    def within(
        cls,
        start: NDArray[np.int64],
        thresholds: Array,
        signed: bool,
        hidden: NDArray[np.bool_],
        rows: NDArray[np.int64],
        masses: Array,
        weight: float,
        least_weight: float,
        cut: str,
    ) -> BinnedStumps:
        """A pool with its token, from the weight of the examples in each bin and of all."""
        token = token_of(start, thresholds, signed, hidden, rows, masses)
        below = np.empty((len(thresholds), 1))
        histograms.below_ends(start, 0, len(start) - 1, masses[:, None], below)
        return cls(start, thresholds, signed, token, hidden, rows, below[:, 0], weight, least_weight, cut)

    @property
    def size(self) -> float:
        """Number of stumps at most: as if all values in a bin were different."""
        return float(len(self.thresholds) + np.maximum(self.rows[self.hidden] - 1, 0).sum())

    @property
    def searched(self) -> bool:
        """Whether there are stumps inside the bins."""
        return bool(self.hidden.any())

    @property
    def by_column(self) -> bool:
        """Yes: every value of a stump is one, and a round needs the margins several times."""
        return True

    def sums(self, partition: Partition, memo: Any, shard: Shard, plus: Array, minus: Array | None) -> Sums:
        """What is added up for `complete`: "between" of several outputs; of one what is inside each bin, "bins".

        The bins of a range of columns and last all examples, (bins + 1, 2).
        """
        if plus.shape[1] > 1 or (minus is not None and bool(np.any((plus > 0.0) & (minus > 0.0)))):
            parts = [np.maximum(plus, 0.0), np.maximum(-plus, 0.0)] if minus is None else [plus, minus]
            return Sums(add={"between": np.vstack(self._below(partition, memo, shard, np.hstack(parts)))})
        u = (plus if minus is None else plus - minus).reshape(-1)
        negative = u < 0.0
        size = np.abs(u)
        codes, zero = self._codes(partition, memo)
        first, last = shard
        bins = np.zeros((int(self.start[last] - self.start[first]) + last - first + 1, 2))
        bins[-1] = size[~negative].sum(), size[negative].sum()
        arrays = partition.indptr, partition.rows, codes, self.start, zero
        histograms.split_sums_of_one(*arrays, first, last, size, negative.view(np.uint8), bins)
        return Sums(add={"bins": bins})

    def complete(self, shard: Shard, total: Sums) -> Sums:
        """Sums of the stumps at the ends of the bins; "between" and "weight" as ``base.Binned`` says."""
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
        """The bins of a range of columns that hide stumps."""
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
        """Some bins of a range of columns with the sums below each."""
        ends, mass = self._ends(total)
        columns, lower, _ = self._bins(shard)
        first = np.searchsorted(columns, columns[places])
        return [
            Bin(int(columns[q]), q - int(start), ends[lower[q]], ends[-2], float(mass[lower[q]]), float(mass[-2]))
            for q, start in zip(places.tolist(), first, strict=True)
        ]

    def inside(self, partition: Partition, memo: Any, nodes: Sequence[Bin], U: Array) -> Sums:
        """The rows of one partition in some bins: (number of the bin, value, weight, U), equal values summed."""
        codes, zero = self._codes(partition, memo)
        live = partition.weight > 0.0
        numbers: list[NDArray[np.int64]] = [np.zeros(0, np.int64)]
        values, rows = [np.zeros(0)], [np.zeros(0, np.int64)]
        column_nodes: dict[int, list[int]] = {}
        for number, node in enumerate(nodes):
            column_nodes.setdefault(node.column, []).append(number)
        for j, mine in column_nodes.items():
            slot = np.full(int(self.start[j + 1] - self.start[j]) + 1, -1, np.int64)
            slot[[nodes[number].code for number in mine]] = mine
            span = slice(int(partition.indptr[j]), int(partition.indptr[j + 1]))
            stored, mine_of = partition.rows[span], np.empty(span.stop - span.start + 1, np.int64)
            chosen = mine_of[: histograms.places_in_bins(stored, codes[span], slot, live, mine_of)]
            numbers.append(slot[codes[span][chosen]])
            values.append(partition.values[span][chosen].astype(np.float64))
            rows.append(stored[chosen].astype(np.int64))
            if slot[zero[j]] >= 0:
                others = live.copy()
                others[stored] = False
                absent = np.flatnonzero(others)
                numbers.append(np.full(len(absent), slot[zero[j]]))
                values.append(np.zeros(len(absent)))
                rows.append(absent)
        every = np.concatenate(rows)
        sums = np.hstack([partition.weight[every, None], U[every]])
        return Sums(parts={"inside": [_joined(np.concatenate(numbers), np.concatenate(values), sums)]})

    def settle(self, nodes: Sequence[Bin], total: Sums, k: int) -> tuple[Sequence[Key], Sums]:
        """Every stump inside some bins, with its sums."""
        parts = total.parts["inside"]
        numbers, values, sums = _joined(*(np.concatenate([part[i] for part in parts]) for i in range(3)))
        bounds = np.searchsorted(numbers, np.arange(len(nodes) + 1)).tolist()
        found = []
        for node, first, last in zip(nodes, bounds[:-1], bounds[1:], strict=True):
            inner = np.cumsum(sums[first:last], axis=0)[:-1]
            thresholds = halfway(values[first:last][:-1], values[first:last][1:])
            columns = np.full(len(inner), node.column, np.int64)
            found.append((columns, thresholds, node.mass + inner[:, 0], node.below + inner[:, 1:]))
        columns, thresholds, mass, below = (np.concatenate([part[i] for part in found]) for i in range(4))
        whole, settled = nodes[0].total, self._weighed(mass, nodes[0].weight)
        theta = below[:, -2 * k : -k], below[:, -k:], whole[-2 * k : -k], whole[-k:]
        mu = self._mu(*theta)
        settled.add["G"] = mu["mu_plus"] - mu["mu_minus"]
        settled.add |= self._mu(below[:, :k], below[:, k : 2 * k], whole[:k], whole[k : 2 * k])
        return ThresholdKeys(columns, thresholds), settled


def _joined(numbers: NDArray[np.int64], values: Array, sums: Array) -> tuple[NDArray[np.int64], Array, Array]:
    """Rows in the order of bins and values, those with equal values summed."""
    order = np.lexsort((values, numbers))
    numbers, values, sums = numbers[order], values[order], sums[order]
    fresh = np.ones(len(values), np.bool_)
    fresh[1:] = (numbers[1:] != numbers[:-1]) | (values[1:] != values[:-1])
    first = np.flatnonzero(fresh)
    return numbers[first], values[first] + 0.0, np.add.reduceat(sums, first, axis=0) if len(first) else sums
