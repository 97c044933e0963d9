"""Steps before a fit by dask-ml: principal components, and centres of k-means.

Covers: ``fit_projection``, ``Projection``, ``cluster_centres``. Does not cover: families of hypotheses.

A dask array goes to dask-ml, which computes on its scheduler and never gathers the rows; anything else to scikit-learn,
in process and on one thread. Both are steps before a fit, not parts of it: a fit has the same bits on both engines,
and sums of dask-ml depend on how the array is cut.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.errors import DataError, UsageError

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Projection:
    """Rows on their principal components."""

    mean: Array  # (d,)
    components: Array  # (c, d): Orthonormal, by falling variance.
    variances: Array  # (c,): Variance of the training rows along each.

    def apply(self, X: Any) -> Any:
        """(X - mean) components', shape (m, c); a dask array stays one."""
        if X.shape[1] != self.mean.shape[0]:
            raise DataError(f"X has {X.shape[1]} columns, the projection takes {self.mean.shape[0]}")
        shift = self.components @ self.mean
        product = X @ self.components.T
        return (np.asarray(product) if not _is_dask(X) else product) - shift


def fit_projection(X: Any, n_components: int) -> Projection:
    """Principal components of the rows.

    `X`: Array, SciPy sparse matrix or dask array, shape (m, d). A dask array is cut by rows only, and its blocks are
    dense.
    `n_components`: 1 <= c <= min(m, d).
    Raises UsageError: When `n_components` has no meaning, or dask-ml is missing for a dask array.

    Examples
    --------
    >>> found = fit_projection(np.array([[0.0, 0.0], [2.0, 0.2], [4.0, -0.2]]), 1)
    >>> np.abs(found.components).round(1).tolist()
    [[1.0, 0.1]]
    """
    most = X.shape[1] if _is_dask(X) else min(X.shape)
    if isinstance(n_components, bool) or not isinstance(n_components, int | np.integer):
        raise UsageError(f"n_components={n_components!r}", hint="expected an integer")
    if not 1 <= n_components <= most:
        raise UsageError(f"n_components={n_components}", hint=f"expected 1 to {most}")
    if _is_dask(X):
        found = _daskml("decomposition").PCA(n_components=int(n_components), svd_solver="tsqr").fit(X)
    else:
        from sklearn.decomposition import PCA
        from threadpoolctl import threadpool_limits

        with threadpool_limits(1):
            found = PCA(int(n_components), svd_solver="covariance_eigh").fit(X)
    parts = (found.mean_, found.components_, found.explained_variance_)
    return Projection(*(np.ascontiguousarray(part, dtype=np.float64) for part in parts))


def cluster_centres(X: Any, n_centres: int, seed: int = 0) -> Array:
    """Centres of k-means over all rows, for ``PiecewiseLinear(centres=...)``; shape (c, d)."""
    if isinstance(n_centres, bool) or not isinstance(n_centres, int | np.integer) or n_centres < 1:
        raise UsageError(f"n_centres={n_centres!r}", hint="expected a positive integer")
    if _is_dask(X):
        cluster = _daskml("cluster").KMeans(int(n_centres), random_state=seed, oversampling_factor=4)
    else:
        from sklearn.cluster import KMeans

        cluster = KMeans(int(n_centres), n_init=1, random_state=seed)
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        found = cluster.fit(X)
    return np.ascontiguousarray(np.asarray(found.cluster_centers_), dtype=np.float64)


def _is_dask(X: Any) -> bool:
    return type(X).__module__.partition(".")[0] == "dask"


def _daskml(part: str) -> Any:
    """A module of dask-ml; a UsageError where it is not installed."""
    from importlib import import_module

    try:
        return import_module(f"dask_ml.{part}")
    except ImportError as fault:
        raise UsageError(
            f"a dask array goes to dask-ml, which cannot be imported: {fault}",
            hint="pip install 'dboost[dask-ml]', or give the rows as a NumPy array",
        ) from fault
