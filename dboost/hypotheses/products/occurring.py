"""Sums of those hypotheses of a shard that occur in some rows: a value that is added up over the partitions.

Covers: ``Occurring``, which children of the parents occur, with their sums. Does not cover: forming it
(``children_loops``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.hypotheses.base import Array
from dboost.hypotheses.capabilities import THETA, with_gradient
from dboost.hypotheses.products import children_loops
from dboost.partition import Sums

OCCURRING = "occurring"
"""Its name among the sums of a pass."""


@dataclass(frozen=True, eq=False)
class Occurring:
    """The hypotheses of a shard that occur in some rows."""

    names: tuple[str, ...]  # What `sums` begins with: "G", or "mu_plus" and "mu_minus".
    places: NDArray[np.int64]  # int64 array, shape (c,). Among all hypotheses of the shard, ascending.
    sums: Array  # float64 array, shape (c, len(names) * k + 2). The sums of each name, then "square" and "total".
    peak: Array  # float64 array, shape (c,).

    def __add__(self, right: Occurring) -> Occurring:
        """What occurs in the rows of either."""
        if np.array_equal(self.places, right.places):
            return Occurring(self.names, self.places, self.sums + right.sums, np.maximum(self.peak, right.peak))
        mine, other = ((part.places, part.sums, part.peak) for part in (self, right))
        return Occurring(self.names, *children_loops.merged(mine, other))

    def named(self) -> dict[str, Array]:
        """The sums by their names."""
        k = (self.sums.shape[1] - 2) // len(self.names)
        found = {name: np.ascontiguousarray(self.sums[:, k * n : k * (n + 1)]) for n, name in enumerate(self.names)}
        return found | {"square": self.sums[:, -2].copy(), "total": self.sums[:, -1].copy()}


def completed_sums(total: Sums) -> Sums:
    """The sums of the hypotheses that occur, as ``Pool.sums`` describes them, "G" among them."""
    found: Any = total.add[OCCURRING]
    add = found.named()
    if THETA + OCCURRING in total.add:
        add[THETA + "G"] = total.add[THETA + OCCURRING].named()["G"]
    return with_gradient(Sums(add=add, peak={"peak": found.peak}))
