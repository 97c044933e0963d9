"""Centres of k-means: scikit-learn in process, dask-ml on a dask array."""

from __future__ import annotations

import importlib.util

import dask.array as da
import numpy as np
import pytest

from dboost.data import daskml
from dboost.errors import UsageError

needs_daskml = pytest.mark.skipif(importlib.util.find_spec("dask_ml") is None, reason="dask-ml is not installed")


@pytest.mark.parametrize("kind", ["array", pytest.param("dask", marks=needs_daskml)])
def test_centres_lie_in_the_clusters(kind):
    rng = np.random.default_rng(1)
    middles = 20.0 * np.eye(4)
    X = middles[rng.integers(0, 4, 400)] + rng.normal(size=(400, 4))
    one, other = (daskml.cluster_centres(da.from_array(X, chunks=(90, 4)) if kind == "dask" else X, 4, 3) for _ in "ab")
    assert one.dtype == np.float64 and np.array_equal(one, other)
    nearest = ((one[:, None] - middles) ** 2).sum(axis=2)
    assert sorted(nearest.argmin(axis=1)) == [0, 1, 2, 3] and nearest.min(axis=1).max() < 1.0


def test_what_has_no_meaning_is_refused(monkeypatch):
    with pytest.raises(UsageError, match="n_centres"):
        daskml.cluster_centres(np.ones((9, 2)), 0)

    def missing(name):
        raise ImportError(f"no module {name}")

    monkeypatch.setattr(daskml, "import_module", missing)
    with pytest.raises(UsageError, match="dask-ml"):
        daskml.cluster_centres(da.from_array(np.ones((9, 2)), chunks=(5, 2)), 3)
