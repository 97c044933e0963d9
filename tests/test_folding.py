"""Folds and shares of the rows as fits see them: what is left and judged. How they are drawn: ``test_draws``."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from dboost.data.sparse.csc import to_csc
from dboost.data.sparse.csr import CsrPiece
from dboost.engine.memo import Memo, MemoStore
from dboost.engine.views import through
from dboost.partition import Partition, Sums
from dboost.passes.draws import Places, count_rows
from dboost.passes.folds import Folds, Left, fold_masses, judge, wrong_share
from dboost.passes.subsamples import Subsample, rows_of


def partition(X, y, weight=None, key="p", dtype=np.float64):
    csr = sparse.csr_array(X)
    piece = CsrPiece(csr.indptr.astype(np.int64), csr.indices, csr.data.astype(dtype))
    weight = np.ones(len(y)) if weight is None else weight
    return Partition(*to_csc([piece], X.shape[1], dtype=np.dtype(dtype)), y, weight, key)


def places_of(parts, k=1):
    """The places of the rows of some partitions, in this order."""
    return Places.of([counted for part in parts for counted in count_rows(part, None, k).parts["rows"]])


def drawn(part, count, seed=0):
    """Folds of the rows of one partition with three classes."""
    return Folds(count, seed, places=places_of([part], 3))


def memo(key="p"):
    return Memo(MemoStore(10**8), "run", key)


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = rng.integers(-2, 3, (400, 15)) * (rng.random((400, 15)) < 0.4) * 0.5
    return X, rng.integers(0, 3, 400).astype(np.int32)


def _sums(part, memo, *extra):
    return Sums(add={"weight": part.weight.copy(), "y": part.y.copy(), "features": part.values is VALUES[0]})


VALUES = [None]


def test_what_is_left_shares_the_features(rows):
    X, y = rows
    part = partition(X, y, np.linspace(1.0, 2.0, 400))
    VALUES[0] = part.values
    folds = drawn(part, 4)
    ids = folds.ids(part, memo())
    seen = through(Left(folds, 2), _sums, part, memo()).add
    assert seen["features"]
    assert seen["weight"].tolist() == np.where(ids == 2, 0.0, part.weight).tolist()
    assert seen["y"].tolist() == y.tolist()
    renamed = through(Left(folds, 2, present=(0, 2)), _sums, part, memo(), (0, 5)).add
    assert renamed["y"][y == 2].tolist() == [1] * int(np.sum(y == 2))
    assert renamed["weight"].tolist() == seen["weight"].tolist()


def test_lanes_remember_apart(rows):
    part = partition(*rows)
    store = MemoStore(10**8)
    for number in range(4):
        Left(drawn(part, 4), number, lane=number).seen(part, Memo(store, "run", "p"))
    kept = len(store)
    for number in range(4):
        Left(drawn(part, 4), number, lane=number).seen(part, Memo(store, "run", "p"))
    assert len(store) == kept == 5


def test_masses_of_folds(rows):
    X, y = rows
    weight = np.random.default_rng(5).random(400)
    part = partition(X, y, weight)
    folds = drawn(part, 4)
    ids = folds.ids(part, memo())
    add = fold_masses(part, memo(), folds, 3).add
    for f in range(4):
        assert add["rows"][f] == np.sum(ids == f)
        np.testing.assert_allclose(add["weight"][f], weight[ids == f].sum())
        np.testing.assert_allclose(add["mass"][f], [weight[(ids == f) & (y == c)].sum() for c in range(3)])


def test_judging_counts_held_out_rows_only(rows):
    from dboost.hypotheses.held_by_model import Held
    from dboost.passes import Point

    X, y = rows
    rng = np.random.default_rng(6)
    weight = rng.random(400)
    part = partition(X, y, weight)
    folds = drawn(part, 4)
    ids = folds.ids(part, memo())
    models = [(np.array([1, 4, 9]), rng.normal(size=(3, 3))), (np.zeros(0, np.int64), np.zeros((0, 3)))]
    points = tuple(Point("multinomial", Held(a, f"t{i}"), W, np.array([0.1, 0.0, -0.2]), f"p{i}")
                   for i, (a, W) in enumerate(models))  # fmt: skip
    found = judge(part, memo(), Left(folds, 1), points).add
    mine = ids == 1
    for i, (a, W) in enumerate(models):
        F = X[mine][:, a] @ W + points[i].intercept
        log_q = F - np.log(np.exp(F).sum(axis=1, keepdims=True))
        loss = -weight[mine] @ log_q[np.arange(mine.sum()), y[mine]]
        np.testing.assert_allclose(found["loss"][i], loss, rtol=1e-12)
        np.testing.assert_allclose(found["wrong"][i], weight[mine] @ (F.argmax(axis=1) != y[mine]), rtol=1e-12)
    assert found["absent"] == 0.0
    two = tuple(Point("multinomial", p.held, p.W[:, :2], p.intercept[:2], p.token + "x") for p in points)
    np.testing.assert_allclose(
        judge(part, memo(), Left(folds, 1, present=(0, 1)), two).add["absent"], weight[mine & (y == 2)].sum()
    )


def test_wrong_labels_of_each_kind():
    F = np.array([[1.0, -1.0], [0.5, 2.0]])
    assert wrong_share(np.array([0, 0], np.int32), F).tolist() == [0.0, 1.0]
    assert wrong_share(np.array([[1], [-1]], np.int8), F[:, :1]).tolist() == [0.0, 1.0]
    # missing labels do not count
    assert wrong_share(np.array([[1, 0], [-1, 1]], np.int8), F).tolist() == [0.0, 0.5]
    assert np.isnan(wrong_share(np.array([0.3, 1.0]), F[:, :1])).all()


# ---- rows of a share: nested, and the same for any partitions ----------------------------------------------------


def drawn_rows(m=400, n=12, key="a", seed=0):
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
    whole = drawn_rows()
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
    whole = drawn_rows()
    held = of(0.4, 1, whole).seen(whole, memo("a"))
    first = np.arange(whole.n_rows) < 150
    cut = [replace(rows_of(whole, side), key=str(i)) for i, side in enumerate((first, ~first))]
    parts = [of(0.4, 1, *cut).seen(part, memo(part.key)) for part in cut]
    np.testing.assert_array_equal(np.vstack([dense(part) for part in parts]), dense(held))


def test_rows_are_copied_in_their_order():
    whole = drawn_rows(m=50)
    held = np.arange(50) % 3 == 1
    np.testing.assert_array_equal(dense(rows_of(whole, held)), dense(whole)[held])
    none = rows_of(whole, np.zeros(50, np.bool_))
    assert none.n_rows == 0 and none.n_features == 12 and none.values.size == 0


@pytest.mark.parametrize("share", [0.2, 1.0])
def test_a_leaf_sees_these_rows_alone_and_remembers_them_apart(share):
    whole, seen = drawn_rows(), []

    def leaf(part, remembers, extra):
        seen.append((part, extra, remembers.get("kind", "token", lambda: share)))

    store = memo("a")
    through(of(share, 2, whole), leaf, whole, store, "extra")
    part, extra, value = seen[0]
    assert extra == "extra" and value == share
    np.testing.assert_array_equal(dense(part), dense(of(share, 2, whole).seen(whole, memo("b"))))
    assert store.get("kind", "token", lambda: "not there") == "not there"
