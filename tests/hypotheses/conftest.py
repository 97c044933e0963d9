"""Raw data and partitions for the families, and the explicit matrix that each family is compared with."""

from __future__ import annotations

import itertools
import json
import pickle

import numpy as np
import pytest
import scipy.sparse as sp

from dboost.engine.local import LocalEngine
from dboost.files.documents import Document
from dboost.hypotheses import restore_chosen, same_hypotheses
from dboost.hypotheses.base import Block, Context
from dboost.partition import Partition
from tests.conftest import workers_here


def block_of(X):
    """Rows of a matrix as a block."""
    part = sp.csc_array(X)
    return Block(part.indptr.astype(np.int64), part.indices.astype(np.int32), part.data, X.shape[0])


class Raw:
    """Raw rows in blocks, so many or of such sizes, on an engine, with one of the families prepared on them."""

    def __init__(self, X, weight=None, cuts=3, seed=0, dtype=np.float64, y=None, engine=None):
        self.X, self.dtype = np.asarray(X, float), dtype
        self.m, self.n = self.X.shape
        rng = np.random.default_rng(seed)
        self.weight = np.ones(self.m) if weight is None else weight
        self.theta = rng.normal(size=(self.m, 3)) * (self.weight > 0)[:, None]
        self.y = rng.integers(0, 3, self.m).astype(np.int32) if y is None else y
        ends = np.linspace(0, self.m, cuts + 1).astype(int) if isinstance(cuts, int) else np.cumsum([0, *cuts])
        spans = enumerate(itertools.pairwise(ends.tolist()))
        self.items = [self.partition(start, stop, f"block-{start}-{number}") for number, (start, stop) in spans]
        self.engine = LocalEngine(2) if engine is None else engine
        self.engine.set_plan(self.items, [item.n_rows for item in self.items], "raw")

    def partition(self, start, stop, key):
        part = block_of(self.X[start:stop].astype(self.dtype))
        return Partition(*part[:3], self.y[start:stop], self.weight[start:stop], key)

    def block(self, columns=None):
        return block_of(self.X if columns is None else self.X[:, columns])

    def prepare(self, family, seed=0):
        live = self.X[self.weight > 0]
        peak = np.abs(live).max(axis=0, initial=0.0)
        k = self.y.shape[1] if self.y.ndim == 2 else 3
        return family.prepare(Context(self.engine, self.m, self.n, k, peak, seed))

    def sums(self, pool, shard, split=False):
        """Sums of one shard over all blocks; with `split` from the positive and negative parts of theta."""
        return self.keys_and_sums(pool, shard, split)[1]

    def total(self, pool, shard, split=False):
        """What the sums of all blocks add up to, before they are completed."""
        parts = (np.maximum(self.theta, 0), np.maximum(-self.theta, 0)) if split else (self.theta, None)
        return self.engine.map_reduce(sums_of, pool, shard, *parts, name="sums")

    def keys_and_sums(self, pool, shard, split=False):
        """`sums`, and the hypotheses that they are of."""
        total = self.total(pool, shard, split)
        keys = pool.keys(pool.narrowed(shard, total))
        total = pool.complete(shard, total)
        return keys, {**total.add, **total.peak}


def every_stump(X, weight):
    """(column, threshold) of every stump that is not constant on the rows of positive weight, by plain enumeration."""
    found = []
    for j in range(X.shape[1]):
        values = sorted(set(X[weight > 0, j].tolist()))
        found += [(j, (a + b) / 2) for a, b in zip(values, values[1:], strict=False)]
    return found


def rows_in(partition):
    """Where the rows of a block lie among all."""
    start = int(partition.key.split("-")[1])
    return slice(start, start + partition.n_rows)


def sums_of(partition, memo, pool, shard, plus, minus):
    """A leaf: the sums of a shard, of parts for all rows."""
    mine = rows_in(partition)
    return pool.sums(partition, memo, shard, plus[mine], None if minus is None else minus[mine])


def dense(block):
    """A block as an array (m, columns)."""
    shape = (block.n_rows, len(block.indptr) - 1)
    return sp.csc_array((block.values, block.rows, block.indptr), shape=shape).toarray()


def check_sums(raw, pool, active=()):
    """Every shard's sums are those of the explicit columns, as far as these occur; returns the keys of all shards."""
    found = []
    s = raw.weight
    for shard in pool.shards(list(active), 24, 500):
        for split in (False, True):
            keys, sums = raw.keys_and_sums(pool, shard, split)
            others = [key for key in pool.keys(shard) if key not in set(keys)]
            assert not dense(pool.columns(raw.block(), others))[s > 0].any()
            H = dense(pool.columns(raw.block(), keys))
            plus, minus = np.maximum(raw.theta, 0), np.maximum(-raw.theta, 0)
            up, down = np.maximum(H, 0), np.maximum(-H, 0)
            expected = {"square": s @ H**2, "total": s @ H, "peak": np.abs(H[s > 0]).max(axis=0, initial=0.0)}
            if split:
                expected |= {"mu_plus": up.T @ plus + down.T @ minus, "mu_minus": up.T @ minus + down.T @ plus}
            expected["G"] = H.T @ raw.theta
            assert sums.keys() == expected.keys()
            for name, value in expected.items():
                np.testing.assert_allclose(sums[name], value, rtol=1e-12, atol=1e-12, err_msg=name)
        keys = pool.keys(shard)
        places = np.arange(len(keys))[::2]
        assert pool.keys(shard, places) == keys[::2]
        found.extend(keys)
    return found


def check_cuts(raw, family):
    """A pool of rows in another cut has the same token and sums, and so has one that travelled; returns the pool."""
    whole = Raw(raw.X, raw.weight, cuts=1)
    first, second = raw.prepare(family), whole.prepare(family)
    assert first.token == second.token == pickle.loads(pickle.dumps(first)).token
    for shard in first.shards([], 24, 500):
        a, b = raw.sums(first, shard), whole.sums(second, shard)
        for name in a:
            np.testing.assert_allclose(a[name], b[name], rtol=1e-12, atol=1e-12)
    return first


def check_read_back(raw, pool, keys, names=None):
    """What a model holds of a pool comes back from its document and arrays; returns it and the document."""
    chosen = pool.chosen(keys, names)
    document = Document(json.loads(json.dumps(chosen.to_json())), "model.json")
    back = restore_chosen(document, chosen.arrays(), raw.n)
    assert same_hypotheses(back, chosen) and back.words() == chosen.words() == pool.names(keys, names)
    assert np.array_equal(dense(back.evaluate(raw.block(back.inputs))), dense(pool.columns(raw.block(), keys)))
    return chosen, document


@pytest.fixture(scope="session")
def client():
    """Two workers inside this process."""
    with workers_here(2) as opened:
        yield opened


@pytest.fixture
def sparse_rows():
    """Signed, half zeros, with weights of which some are 0."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(60, 6)) * (rng.random((60, 6)) < 0.6)
    X[:, 4] = np.where(X[:, 4] != 0, 2.5, 0.0)
    weight = rng.uniform(0.2, 2.0, 60)
    weight[[0, 5, 59]] = 0.0
    return Raw(X, weight)


@pytest.fixture
def dense_rows():
    """Positive, no zeros, one column constant and one of two values."""
    rng = np.random.default_rng(8)
    X = rng.uniform(0.5, 3.0, size=(50, 5))
    X[:, 1] = 2.0
    X[:, 3] = np.where(rng.random(50) < 0.5, 1.0, 4.0)
    return Raw(X)


def count_monomials(letters, two_valued, low, high):
    """Number of monomials of degree low..high by plain enumeration."""
    keys = set()
    for degree in range(low, high + 1):
        for key in itertools.combinations_with_replacement(letters, degree):
            if all(key.count(j) == 1 for j in set(key) & set(two_valued)):
                keys.add(key)
    return keys
