"""Kernels of rows that are far from zero compared with their distances."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from dboost import BoostedClassifier
from dboost.engine.local import LocalEngine
from dboost.hypotheses.base import Block, Context
from dboost.hypotheses.kernels.family import Kernels
from dboost.partition import Partition


def block(X):
    found = sparse.csc_array(X)
    found.sort_indices()
    return Block(found.indptr.astype(np.int64), found.indices.astype(np.int32), found.data, X.shape[0])


def prepare(kernels, X, y, sizes):
    parts = []
    for stop, size in zip(np.cumsum(sizes), sizes):
        raw = block(X[stop - size : stop])
        labels = y[stop - size : stop]
        parts.append(Partition(raw.indptr, raw.rows, raw.values, labels, np.ones(size), f"block-{stop}"))
    with LocalEngine(2) as engine:
        engine.set_plan(parts, [p.n_rows for p in parts], "far rows")
        return kernels.prepare(Context(engine, len(X), X.shape[1], 3, np.abs(X).max(axis=0), 0))


def explicit(pool, X):
    """The kernels of all centres as a dense matrix."""
    found = pool.columns(block(X), [(s,) for s in range(len(pool.centres))])
    return sparse.csc_array((found.values, found.rows, found.indptr), shape=(len(X), len(pool.centres))).toarray()


def grid(seed, m=40, n=5, density=1.0):
    """Rows on multiples of 2**-10, to which 2**30 can be added without rounding, and classes."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(m, n)) * (rng.random((m, n)) < density) * 2**10) / 2**10
    return X, (X[:, :3] + 0.7 * rng.normal(size=(m, 3))).argmax(axis=1).astype(np.int32)


@pytest.mark.parametrize("offset", [2.0**20, -(2.0**30)])
@pytest.mark.parametrize("support", ["perceptron", 12])
def test_rows_far_from_zero_have_the_kernels_of_rows_near_it(offset, support):
    X, y = grid(11)
    near, far = prepare(Kernels(support=support), X, y, [40]), prepare(Kernels(support=support), X + offset, y, [40])
    assert far.gamma == pytest.approx(near.gamma, rel=1e-12)
    assert far.centres.numbers.tolist() == near.centres.numbers.tolist()
    np.testing.assert_allclose(explicit(far, X + offset), explicit(near, X), rtol=1e-11)


def test_a_fit_is_the_same_however_far_the_rows_are_from_zero():
    X, y = grid(15, m=60)
    fits = [BoostedClassifier(hypotheses=Kernels(), alpha=0.01).fit(X + far, y) for far in (0.0, 2.0**20, 2.0**30)]
    assert [fit.objective_ for fit in fits] == pytest.approx([fits[0].objective_] * 3, rel=1e-9)


def test_a_far_column_leaves_the_distances_of_sparse_ones_beside_it_alone():
    X, y = grid(12, n=6, density=0.4)
    X[:, 0] = 0.0
    far = X.copy()
    far[:, 0] = 2.0**30
    near, moved = (explicit(prepare(Kernels(support=40, gamma=0.5), rows, y, [40]), rows) for rows in (X, far))
    np.testing.assert_allclose(moved, near, rtol=1e-11)


def test_far_rows_are_as_far_apart_by_angle_as_their_exact_directions():
    X, y = grid(13)
    far, gamma = X + 2.0**20, 2.0**38
    found = explicit(prepare(Kernels(support=40, gamma=gamma, input="cosine"), far, y, [40]), far)
    rows = far.astype(np.longdouble)
    unit = rows / np.sqrt((rows**2).sum(axis=1, keepdims=True))
    square = ((unit[:, None] - unit[None]) ** 2).sum(axis=2)
    np.testing.assert_allclose(found, np.exp(-gamma * square.astype(float)), rtol=1e-6)


@pytest.mark.parametrize("input, gamma", [("raw", 0.5), ("cosine", 2.0**46)])
def test_a_far_perceptron_is_the_same_in_any_chunks_and_cuts(input, gamma, monkeypatch):
    X, y = grid(14, m=90)
    X += 2.0**24
    kernels = Kernels(gamma=gamma, input=input)
    found = {prepare(kernels, X, y, sizes).centres.token for sizes in ([90], [30, 41, 19], [1] * 20 + [70])}
    monkeypatch.setattr("dboost.hypotheses.kernels.family.CHUNK", 7)
    assert found == {prepare(kernels, X, y, [90]).centres.token}
