"""The raw columns as a pool: sums and shards."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from dboost.hypotheses.base import Context
from dboost.hypotheses.columns import Columns
from dboost.partition import Partition


def partition(m=30, n=7, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(m, n)) * (rng.random((m, n)) < 0.6)).astype(dtype)
    X[:, 5] = 0.0
    weight = rng.uniform(0.5, 2.0, m)
    weight[::6] = 0.0
    stored = sp.csc_array(X)
    rows = stored.indices.astype(np.int32)
    return X, Partition(stored.indptr.astype(np.int64), rows, stored.data, np.zeros((m, 1), np.int8), weight, "p")


def pool(n=7):
    context = Context(engine=None, n_rows=30, n_features=n, n_outputs=2, peak=np.ones(n), seed=0)
    return Columns().prepare(context)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shard", [(0, 7), (2, 6), (5, 6)])
def test_sums_are_those_of_the_explicit_columns(dtype, shard):
    X, part = partition(dtype=dtype)
    H = X[:, slice(*shard)].astype(np.float64)
    rng = np.random.default_rng(1)
    signed = rng.normal(size=(30, 2))
    plus, minus = rng.random((2, 30, 2))
    one, two = pool().sums(part, None, shard, signed, None), pool().sums(part, None, shard, plus, minus)
    s = part.weight
    np.testing.assert_allclose(one.add["G"], H.T @ signed, rtol=1e-12, atol=1e-12)
    up, down = np.maximum(H, 0.0).T, np.maximum(-H, 0.0).T
    np.testing.assert_allclose(two.add["mu_plus"], up @ plus + down @ minus, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(two.add["mu_minus"], down @ plus + up @ minus, rtol=1e-12, atol=1e-12)
    for sums in (one, two):
        np.testing.assert_allclose(sums.add["square"], s @ H**2, rtol=1e-12)
        np.testing.assert_allclose(sums.add["total"], s @ H, rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(sums.peak["peak"], np.abs(H[s > 0]).max(axis=0))


def test_shards_cover_every_column_once_and_respect_their_size():
    found = pool()
    assert (found.size, found.searched) == (7, False)
    for row_bytes, shard_bytes, longest in ((16, 48, 3), (16, 1, 1), (16, 10**6, 7)):
        shards = found.shards([(3,)], row_bytes, shard_bytes)
        assert [key for shard in shards for key in found.keys(shard)] == [(j,) for j in range(7)]
        assert max(stop - start for start, stop in shards) == longest
    assert found.keys((2, 6), np.array([3, 0])) == [(5,), (2,)]
