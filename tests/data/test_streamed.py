"""Blocks that are read again in every pass: by row where the files allow it, with the bits of the block by column."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from dboost import passes
from dboost.boosting.fit import FitSettings, Fitting
from dboost.data import streamed
from dboost.data.streamed import StreamedPartition, to_csc
from dboost.engine.local import LocalEngine
from dboost.engine.memo import Memo, MemoStore
from dboost.errors import DataError
from dboost.hypotheses.held_by_model import Held
from dboost.partition import Partition
from tests.boosting import plain
from tests.data.conftest import listed, lists, plan, same_arrays, write
from tests.test_passes import Run


@pytest.fixture
def block(small, tmp_path):
    """One block of three files and six row groups; `change` may damage the matrix."""

    def make(change=lambda X: X, dtype=np.float32, **options):
        X = change(small.X.astype(dtype).tocsr())
        table = lists(X, small.y, weight=options.pop("weight", small.weight + 1.0))
        write(tmp_path / "d", table.slice(0, 25), table.slice(25, 1), table.slice(26), **options)
        data = listed(tmp_path / "d", weight="weight")
        (item,) = plan(data, class_weight={"ant": 2.0, "bee": 1.0, "cat": 0.5}).items
        return item

    return make


@pytest.mark.parametrize("rows", [20, 60])
def test_rows_hold_what_the_columns_hold(block, rows):
    item = block(rows=rows)
    wanted, found = item.load(), item.load_rows()
    assert isinstance(found, StreamedPartition) and isinstance(wanted, Partition)
    same_arrays(found, wanted)
    assert (found.key, found.n_rows, found.n_features) == (wanted.key, wanted.n_rows, wanted.n_features)
    assert found.nbytes == sum(a.nbytes for a in (*found.by_row, found.y, found.weight))
    pointer, index, data = found.by_row
    np.testing.assert_array_equal(
        sparse.csr_array((data, index, pointer), shape=(found.n_rows, 7)).tocsc().data, wanted.values
    )


def descending(X):
    start, stop = X.indptr[8:10]
    assert stop - start > 1
    for array in (X.indices, X.data):
        array[start:stop] = array[start:stop][::-1].copy()
    return X


def twice(X):
    start, stop = X.indptr[8:10]
    assert stop - start > 1
    X.indices[start + 1] = X.indices[start]
    return X


def with_zero(X):
    X.data[17] = 0.0
    return X


@pytest.mark.parametrize("change", [descending, twice, with_zero])
def test_rows_that_need_work_are_put_by_column_at_once(block, change):
    item = block(change)
    found, wanted = item.load_rows(), item.load()
    assert isinstance(found, Partition)
    assert found.values.tobytes() == wanted.values.tobytes() and found.rows.tobytes() == wanted.rows.tobytes()


def test_doubles_and_rows_of_weight_zero_are_put_by_column_at_once(block, small):
    assert isinstance(block(dtype=np.float64).load_rows(), Partition)
    item = block(weight=small.weight)
    assert item.load_rows().n_rows == 57 and isinstance(item.load_rows(), Partition)


@pytest.mark.parametrize(
    ("value", "column", "words"), [(np.nan, 3, "NaN"), (np.inf, 3, "infinity"), (1.0, 7, "feature index 7")]
)
def test_faults_are_refused_as_by_column(block, value, column, words):
    def change(X):
        X.data[30], X.indices[30] = value, column
        return X

    item = block(change)
    with pytest.raises(DataError, match=words) as by_row:
        item.load_rows()
    with pytest.raises(DataError) as by_column:
        item.load()
    assert str(by_row.value) == str(by_column.value)


@dataclass(frozen=True)
class ReadAgain:
    """A block that fits no memory."""

    given: Partition
    nbytes_estimate: int = 2**60

    @property
    def key(self) -> str:
        return self.given.key

    def load(self) -> Any:
        raise AssertionError("a block that does not stay is read by row")

    def load_rows(self) -> StreamedPartition:
        shape = self.given.n_rows, self.given.n_features
        X = sparse.csc_array((self.given.values, self.given.rows, self.given.indptr), shape=shape).tocsr()
        by_row = X.indptr.astype(np.int64), X.indices.astype(np.int32), X.data
        return StreamedPartition(*by_row, shape[1], self.given.y, self.given.weight, self.given.key)


def read_again(run):
    """The same run over blocks that are read in every pass."""
    engine = LocalEngine(run.engine.n_threads, MemoStore(10**6))
    engine.set_plan([ReadAgain(item) for item in run.plan.items], run.plan.rows, "again")
    run.engine = engine
    return run


@pytest.mark.parametrize("loss", ["log", "multinomial", "squared", "exp"])
@pytest.mark.parametrize("threads", [1, 2])
def test_every_pass_has_the_bits_of_blocks_by_column(loss, threads):
    data = plain.make(loss, m=80, n=12, weights=True, seed=50)
    data.X[:, 4] = 0.0
    data.X[np.abs(data.X) < 0.4] = 0.0
    wanted = Run(data, 3, dtype=np.float32).sums()
    found = read_again(Run(data, 3, threads, dtype=np.float32)).sums()
    assert found.keys() == wanted.keys()
    assert all(found[name].tobytes() == wanted[name].tobytes() for name in wanted)


def over_active_columns(W, b):
    """The passes that need only the columns of the model, with their arguments."""
    zero = np.zeros_like(b)
    return (
        (passes.active_gradient, ()),
        (passes.intercept_sums, ()),
        (passes.dual_value, (zero + 0.9, zero, zero, zero)),
        (passes.curvature_diagonal, (True,)),
        (passes.hessian_product, (W, b)),
    )


@pytest.mark.parametrize("loss", ["log", "multinomial"])
def test_passes_over_the_active_columns_leave_the_others_by_row(loss, monkeypatch):
    data = plain.make(loss, m=60, n=12, seed=3)
    (item,) = plain.plan(data, 1, np.float32).items
    found = ReadAgain(item).load_rows()
    rng = np.random.default_rng(0)
    W, b = rng.normal(size=(2, data.k)), np.zeros(data.k)
    point = passes.Point(loss, Held(np.array([1, 7]), "held"), W, b, "point")
    memo = Memo(MemoStore(10**6), "run", found.key)
    put_by_column = []
    monkeypatch.setattr(
        streamed, "to_csc", lambda *given, **more: put_by_column.append(given) or to_csc(*given, **more)
    )
    for leaf, arguments in over_active_columns(W, b):
        assert leaf(found, memo, point, *arguments).add
        assert not put_by_column, leaf.__name__
    assert found.values.size and put_by_column


@pytest.mark.parametrize("loss", ["log", "multinomial"])
def test_a_fit_has_the_bits_of_one_in_memory(loss):
    rng = np.random.default_rng(0)
    data = plain.make(loss, m=400, n=30, weights=True, seed=1)
    data = replace(data, X=np.where(rng.random(data.X.shape) < 0.5, 0.0, data.X))
    plan = plain.plan(data, 5, np.float32)
    settings = FitSettings(loss, penalty="l1/l2", tol=1e-6, sample=0.5)
    results = []
    for items in (plan.items, [ReadAgain(item) for item in plan.items]):
        plan.items = tuple(items)
        with LocalEngine(2, MemoStore(10**6)) as engine:
            fitting = Fitting(plan, engine, settings)
            results.append(fitting.fit(0.05 * fitting.alpha_max()))
    held, streamed = results
    assert held.W.shape == streamed.W.shape and held.W.any()
    assert held.W.tobytes() == streamed.W.tobytes() and held.intercept.tobytes() == streamed.intercept.tobytes()
    assert held.gap == streamed.gap <= 1e-6


@dataclass(frozen=True)
class Counted(ReadAgain):
    """A block that notes when it is read."""

    reads: list[str] = field(default_factory=list)

    def load_rows(self) -> StreamedPartition:
        self.reads.append(self.key)
        return super().load_rows()


def test_a_pass_over_the_active_columns_reads_nothing_once_they_are_cut_out():
    data = plain.make("multinomial", m=90, n=12, seed=3)
    parts = plain.plan(data, 3, np.float32).items
    reads: list[str] = []
    engine = LocalEngine(2, MemoStore(10**6))
    engine.set_plan([Counted(part, reads=reads) for part in parts], [part.n_rows for part in parts], "run")
    W, b = np.random.default_rng(0).normal(size=(2, data.k)), np.zeros(data.k)

    def held(columns, token):
        return passes.Point("multinomial", Held(np.array(columns), token), W, b, f"point-{token}")

    first = engine.map_reduce(passes.active_gradient, held([1, 7], "a"), name="gradient")
    assert sorted(reads) == sorted(part.key for part in parts)
    engine.map_reduce(passes.label_counts, "multinomial", data.k, name="labels")
    for leaf, arguments in over_active_columns(W, b):
        engine.map_reduce(leaf, held([1, 7], "a"), *arguments, name="pass")
        assert len(reads) == 3, leaf.__name__
    # other columns, or all of them: once for every block
    engine.map_reduce(passes.active_gradient, held([0, 7], "b"), name="gradient")
    assert len(reads) == 6
    every = np.arange(12)
    found = engine.map_reduce(passes.score, every, held([1, 7], "a"), False, True, name="score").add
    assert len(reads) == 9
    np.testing.assert_allclose(found["G"][[1, 7]], first.add["G"])
    engine.close()
