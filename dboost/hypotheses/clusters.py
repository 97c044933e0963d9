"""k-means of a sample that fits the driver.

Covers: ``centres_of``. Does not cover: which rows or patches are clustered (the families draw them).

The sample is drawn by position, so it is the same for any partitioning; scikit-learn's mini-batch k-means runs on one
thread, because its sums over several threads are added in the order in which threads end. Together: the same centres on
every engine and with any number of workers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dboost.errors import DataError

Array = NDArray[np.float64]
_BATCH = 4096
_ITERATIONS = 30


def centres_of(points: Array, count: int, seed: int, name: str) -> Array:
    """`count` centres of k-means of points (p, d), shape (count, d); `name` is the parameter that asks for them."""
    from sklearn.cluster import MiniBatchKMeans
    from threadpoolctl import threadpool_limits

    if points.shape[0] < count:
        raise DataError(
            f"{name}={count} centres of k-means from {points.shape[0]} points", hint=f"expected {name} to be smaller"
        )
    with threadpool_limits(1):
        found = MiniBatchKMeans(
            count,
            batch_size=max(_BATCH, count),
            max_iter=_ITERATIONS,
            n_init=1,
            random_state=int(np.random.SeedSequence([seed, 11]).generate_state(1)[0] >> 1),
        ).fit(points)
    return np.ascontiguousarray(found.cluster_centers_, dtype=np.float64)
