"""Rows of a share: nested, the same for any partitions, and all that a partition says of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from dboost.engine.views import through
from dboost.partition import Partition
from dboost.passes.subsamples import Subsample, rows_of
from tests.test_folding import memo, places_of


def partition(m=400, n=12, key="a", seed=0):
    rng = np.random.default_rng(seed)
    X = sparse.random(m, n, density=0.4, random_state=seed, format="csc", dtype=np.float64)
    y = rng.integers(0, 3, m).astype(np.int32)
    return Partition(X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data, y, rng.uniform(1, 2, m), key)


def dense(part):
    X = sparse.csc_matrix((part.values, part.rows, part.indptr), shape=(part.n_rows, part.n_features))
    return np.column_stack([X.toarray(), part.y, part.weight])


def of(share, seed, *parts):
    return Subsample(share, seed, places_of(parts, 3))


def test_the_rows_of_a_share_are_rows_of_every_larger_one():
    whole = partition()
    before: set[bytes] = set()
    for share in (0.001, 0.01, 0.1, 0.3, 0.9, 1.0):
        mine = {row.tobytes() for row in dense(of(share, 5, whole).seen(whole, memo("a")))}
        assert before <= mine
        # the same share of each of the three classes, rounded up, and two rows of it at least
        expected = np.maximum(np.ceil(share * np.bincount(whole.y) - 1e-9), 2)
        np.testing.assert_array_equal(np.bincount([int(np.frombuffer(row)[-2]) for row in mine]), expected)
        before = mine
    assert len(before) == whole.n_rows
    other = {row.tobytes() for row in dense(of(0.3, 6, whole).seen(whole, memo("b")))}
    assert other != {row.tobytes() for row in dense(of(0.3, 5, whole).seen(whole, memo("c")))}


def test_partitions_do_not_matter():
    whole = partition()
    held = of(0.4, 1, whole).seen(whole, memo("a"))
    first = np.arange(whole.n_rows) < 150
    cut = [replace(rows_of(whole, side), key=str(i)) for i, side in enumerate((first, ~first))]
    parts = [of(0.4, 1, *cut).seen(part, memo(part.key)) for part in cut]
    np.testing.assert_array_equal(np.vstack([dense(part) for part in parts]), dense(held))


@pytest.mark.parametrize("share", [0.2, 1.0])
def test_a_leaf_sees_these_rows_alone_and_remembers_them_apart(share):
    whole, seen = partition(), []

    def leaf(part, remembers, extra):
        seen.append((part, extra, remembers.get("kind", "token", lambda: share)))

    store = memo("a")
    through(whole, store, of(share, 2, whole), leaf, "extra")
    part, extra, value = seen[0]
    assert extra == "extra" and value == share
    np.testing.assert_array_equal(dense(part), dense(of(share, 2, whole).seen(whole, memo("b"))))
    assert store.get("kind", "token", lambda: "not there") == "not there"
