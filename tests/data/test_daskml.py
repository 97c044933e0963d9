"""Principal components and centres: scikit-learn in process, dask-ml on a dask array, both against plain references."""

from __future__ import annotations

import importlib.util

import dask.array as da
import numpy as np
import pytest
import scipy.sparse as sp

from dboost.data import daskml
from dboost.errors import DataError, UsageError

needs_daskml = pytest.mark.skipif(importlib.util.find_spec("dask_ml") is None, reason="dask-ml is not installed")
KINDS = ["array", "sparse", pytest.param("dask", marks=needs_daskml)]


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    return rng.normal(size=(200, 6)) @ np.diag([5.0, 3.0, 2.0, 1.0, 0.5, 0.1]) @ rng.normal(size=(6, 6)) + 3.0


def given(X, kind):
    return {"array": X, "sparse": sp.csr_array(X), "dask": da.from_array(X, chunks=(70, 6))}[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_components_are_the_eigenvectors_of_the_covariance(rows, kind):
    found = daskml.fit_projection(given(rows, kind), 3)
    values, vectors = np.linalg.eigh(np.cov(rows.T))
    np.testing.assert_allclose(found.variances, values[::-1][:3], rtol=1e-9)
    np.testing.assert_allclose(np.abs(found.components @ vectors[:, ::-1][:, :3]), np.eye(3), atol=1e-7)
    np.testing.assert_allclose(found.mean, rows.mean(axis=0))
    made = found.apply(given(rows, kind))
    assert isinstance(made, da.Array if kind == "dask" else np.ndarray)
    np.testing.assert_allclose(np.asarray(made), (rows - rows.mean(axis=0)) @ found.components.T, atol=1e-10)


@pytest.mark.parametrize("kind", ["array", pytest.param("dask", marks=needs_daskml)])
def test_centres_lie_in_the_clusters(kind):
    rng = np.random.default_rng(1)
    middles = 20.0 * np.eye(4)
    X = middles[rng.integers(0, 4, 400)] + rng.normal(size=(400, 4))
    one, other = (daskml.cluster_centres(da.from_array(X, chunks=(90, 4)) if kind == "dask" else X, 4, 3) for _ in "ab")
    assert one.dtype == np.float64 and np.array_equal(one, other)
    nearest = ((one[:, None] - middles) ** 2).sum(axis=2)
    assert sorted(nearest.argmin(axis=1)) == [0, 1, 2, 3] and nearest.min(axis=1).max() < 1.0


def test_what_has_no_meaning_is_refused(rows, monkeypatch):
    for count in (0, 7, 2.0, True):
        with pytest.raises(UsageError, match="n_components"):
            daskml.fit_projection(rows, count)
    with pytest.raises(UsageError, match="n_centres"):
        daskml.cluster_centres(rows, 0)
    with pytest.raises(DataError, match="5 columns"):
        daskml.fit_projection(rows, 2).apply(rows[:, :5])

    def missing(name):
        raise ImportError(f"no module {name}")

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(UsageError, match="dask-ml"):
        daskml.cluster_centres(da.from_array(rows, chunks=(50, 6)), 3)
