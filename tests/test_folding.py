"""Folds as fits see them: what is left without one, and what is judged on it. How folds are drawn: ``test_draws``."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from dboost.data.sparse.csc import to_csc
from dboost.data.sparse.csr import CsrPiece
from dboost.engine.memo import Memo, MemoStore
from dboost.engine.views import shard_through, through
from dboost.partition import Partition, Sums
from dboost.passes.draws import Places, count_rows
from dboost.passes.folds import Folds, Left, judge


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
    seen = through(part, memo(), Left(folds, 2), _sums).add
    assert seen["features"]
    assert seen["weight"].tolist() == np.where(ids == 2, 0.0, part.weight).tolist()
    assert seen["y"].tolist() == y.tolist()
    renamed = shard_through(part, memo(), (0, 5), Left(folds, 2, present=(0, 2)), _sums).add
    assert renamed["y"][y == 2].tolist() == [1] * int(np.sum(y == 2))
    assert renamed["weight"].tolist() == seen["weight"].tolist()


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
