"""Processor seconds of scheduler and driver for each byte that goes through them, from passes of real size.

Covers: a pass with a large argument and large results on two workers, beside one with small ones.
Does not cover: bytes between workers, which neither of the two sees.
"""

from __future__ import annotations

import statistics
from typing import Any

import numpy as np

from dboost.engine.dask.engine import DaskEngine
from dboost.partition import Sums
from lab.many_workers import cluster
from lab.many_workers.thin import Few

WORKERS = 2
LARGE = 4_000_000
"""Numbers of the argument, and of each result: 32 MB, so that the time for them is most of the pass."""

REPEATS = 3


def as_many(partition: Any, memo: Any, given: Any, count: int) -> Sums:
    """Sums of so many numbers, whatever is given."""
    return Sums(add={"sum": np.zeros(count)})


def per_byte(large: int = LARGE) -> tuple[float, float]:
    """Seconds for a byte of scheduler and driver; not less than 0, where what is measured is lost in the rest."""
    with cluster.running(WORKERS) as there, DaskEngine(there.client) as engine:
        engine.set_plan([Few(i, 10, 2) for i in range(WORKERS)], [1] * WORKERS, "bytes")

        def spent(count: int) -> tuple[float, float]:
            found = []
            for _ in range(REPEATS + 1):
                before = there.spent()
                engine.map_reduce(as_many, np.zeros(count), count, name="bytes")
                found.append(there.spent().since(before))
            return tuple(statistics.median(getattr(one, who) for one in found[1:]) for who in ("scheduler", "driver"))

        (few, few_driver), (many, many_driver) = spent(1), spent(large)
    nbytes = 8 * large * (1 + WORKERS)
    return max(0.0, many - few) / nbytes, max(0.0, many_driver - few_driver) / nbytes
