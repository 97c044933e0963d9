"""Centres of k-means, for ``PiecewiseLinear(centres=...)``: on Dask by dask-ml, which never gathers the rows.

Covers: ``cluster_centres``. Does not cover: families of hypotheses.

It is a step before a fit, not a part of it: a fit has the same bits on both engines, and sums of dask-ml depend on how
the array is cut.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.errors import UsageError


def cluster_centres(X: Any, n_centres: int, seed: int = 0) -> NDArray[np.float64]:
    """Centres of all rows of an array, or of a dask array, shape (c, d)."""
    if isinstance(n_centres, bool) or not isinstance(n_centres, int | np.integer) or n_centres < 1:
        raise UsageError(f"n_centres={n_centres!r}", hint="expected a positive integer")
    if type(X).__module__.partition(".")[0] == "dask":
        try:
            found = import_module("dask_ml.cluster")
        except ImportError as fault:
            raise UsageError(
                f"a dask array goes to dask-ml, which cannot be imported: {fault}",
                hint="pip install 'dboost[dask-ml]', or give the rows as a NumPy array",
            ) from fault
        cluster = found.KMeans(int(n_centres), random_state=seed, oversampling_factor=4)
    else:
        from sklearn.cluster import KMeans

        cluster = KMeans(int(n_centres), n_init=1, random_state=seed)
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        return np.ascontiguousarray(cluster.fit(X).cluster_centers_, dtype=np.float64)
