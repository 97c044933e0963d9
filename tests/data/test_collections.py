"""Dask arrays and frames: the rows of memory, alignment, and repairs named in full."""

from __future__ import annotations

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client
from scipy import sparse

import dboost
from dboost.data import build_plan
from dboost.data.budget import block_budget, memory_budget
from dboost.errors import DataError, UsageError
from tests.data.conftest import listed, lists, plan, same, write

NAMES = list("abcdefg")


@pytest.fixture
def blocks(small):
    """What the plan holds, as one matrix, labels and weights."""

    def check(found, weight=None):
        items = [item.load() for item in found.items]
        X = np.vstack([sparse.csc_array((p.values, p.rows, p.indptr), shape=(p.n_rows, 7)).toarray() for p in items])
        keep = np.ones(60, bool) if weight is None else weight > 0
        expected = plan(small.X, small.y, weight).items[0]
        np.testing.assert_array_equal(X, small.X.toarray()[keep])
        np.testing.assert_array_equal(np.concatenate([p.y for p in items]), expected.y)
        np.testing.assert_array_equal(np.concatenate([p.weight for p in items]), expected.weight)
        assert found.rows == tuple(p.n_rows for p in items)
        assert found.classes.tolist() == ["ant", "bee", "cat"]

    return check


def chunked(small, *sizes):
    X = da.from_array(small.X.toarray(), chunks=(sizes, 7))
    return X, da.from_array(small.y, chunks=(sizes,)), da.from_array(small.weight, chunks=(sizes,))


def test_arrays(small, blocks):
    X, y, weight = chunked(small, 13, 1, 46)
    blocks(plan(X, y))
    blocks(plan(X, y, weight), small.weight)
    blocks(plan(X, small.y, small.weight), small.weight)
    blocks(plan(X, y[:, None]))
    assert len(plan(X, y).items) == 3


def test_sparse_chunks(small, blocks):
    X, y, _ = chunked(small, 30, 30)
    blocks(plan(X.map_blocks(sparse.csr_matrix), y))
    blocks(plan(X.map_blocks(sparse.csc_array), y))


def test_unknown_sizes_and_empty_chunks(small, blocks):
    X, y, weight = chunked(small, 20, 20, 20)
    keep = da.from_array(np.arange(60) < 40, chunks=20)
    found = plan(X[keep], y[keep], weight[keep])
    assert found.n_rows == np.count_nonzero(small.weight[:40]) and len(found.items) == 2
    blocks(plan(X[weight >= 0], y[weight >= 0]))


@pytest.mark.parametrize("weighted", [False, True])
def test_partitions_row_groups_and_memory_are_cut_at_the_same_rows(small, monkeypatch, tmp_path, weighted):
    """Blocks of 16 rows, from partitions and row groups that have as many, or that are cut."""
    monkeypatch.setattr("dboost.data.blocks.BLOCK_COST", 50)
    weight = np.where(np.arange(60) % 32 < 16, 2.0, 1.0) if weighted else None
    memory = plan(small.X, small.y, weight)
    assert memory.rows == (16, 16, 16, 12)
    table = lists(small.X, small.y, **({"weight": weight} if weighted else {}))
    for number, sizes in enumerate([(60,), (16, 16, 16, 12), (32, 28), (20, 25, 15)]):
        X, y, _ = chunked(small, *sizes)
        weights = da.from_array(weight, chunks=(sizes,)) if weighted else None
        same(plan(X.map_blocks(sparse.csr_matrix), y, weights), memory)
        starts = np.cumsum((0, *sizes[:-1]))
        files = [table.slice(start, size) for start, size in zip(starts, sizes, strict=True)]
        for rows in (60, 16) if 20 not in sizes else ():
            write(tmp_path / str(number), *files, rows=rows)
            data = listed(tmp_path / str(number), weight="weight" if weighted else None)
            same(plan(data), memory)


def test_rows_of_weight_zero_do_not_count_but_in_files(small, monkeypatch, tmp_path):
    monkeypatch.setattr("dboost.data.blocks.BLOCK_COST", 50)
    weight = np.ones(60)
    weight[[0, 1, *range(16, 24), *range(40, 44), *range(46, 50)]] = 0.0
    memory = plan(small.X, small.y, weight)
    assert memory.rows == (16, 16, 10)
    # the last partition begins with rows that do not count, and then with a block
    for sizes in ((60,), (25, 35), (2, 58), (46, 14)):
        X, y, _ = chunked(small, *sizes)
        same(plan(X.map_blocks(sparse.csr_matrix), y, da.from_array(weight, chunks=(sizes,))), memory)
    write(tmp_path, lists(small.X, small.y, weight=weight), rows=60)
    files = plan(listed(tmp_path, weight="weight"))
    assert files.rows == tuple(item.load().n_rows for item in files.items) == (14, 8, 10, 10)


def frame(small):
    return pd.DataFrame(small.X.toarray(), columns=NAMES).assign(kind=small.y, s=small.weight)


def test_frames(small, blocks):
    ddf = dd.from_pandas(frame(small), npartitions=4)
    X = ddf[NAMES]
    found = plan(ddf.drop(columns=["s"]), "kind")
    blocks(found)
    assert found.feature_names == tuple(NAMES)
    blocks(plan(ddf, "kind", "s"), small.weight)
    blocks(plan(X, ddf["kind"], ddf["s"]), small.weight)
    blocks(plan(X, da.from_array(small.y, chunks=15)))


def test_tasks_in_a_frame(small):
    labels = pd.DataFrame({"u": [0, 1] * 30, "v": [1, 1, 0] * 20})
    X = dd.from_pandas(frame(small)[NAMES], npartitions=2)
    found = plan(X, dd.from_pandas(labels, npartitions=2), task="multitask")
    assert found.classes.tolist() == ["u", "v"] and found.n_outputs == 2
    np.testing.assert_array_equal(np.concatenate([p.y for p in found.items]), labels.to_numpy() * 2 - 1)


def test_mismatches_name_the_repair(small):
    X, y, weight = chunked(small, 20, 20, 20)
    with pytest.raises(UsageError, match=r"y has 2 partitions, X has 3; use y = y.rechunk\(\{0: X.chunks\[0\]\}\)"):
        plan(X, y.rechunk(30))
    with pytest.raises(UsageError, match=r"cut at other rows.*rechunk"):
        plan(X, y.rechunk(((10, 20, 30),)))
    assert plan(X, y.rechunk(30).rechunk({0: X.chunks[0]})).n_rows == 60
    with pytest.raises(UsageError, match=r"4 chunks along its columns.*X = X.rechunk\(\{1: -1\}\)"):
        plan(X.rechunk({1: 2}), y)
    unknown = X[weight >= 0]
    with pytest.raises(UsageError, match=r"compute_chunk_sizes"):
        plan(unknown, small.y)
    with pytest.raises(UsageError, match=r"compute_chunk_sizes\(\), then y = y.rechunk"):
        plan(unknown, y.rechunk(30))
    with pytest.raises(DataError, match="inconsistent numbers of samples"):
        plan(X, small.y[:50])
    ddf = dd.from_pandas(frame(small), npartitions=3)
    other = dd.from_pandas(frame(small)["kind"], npartitions=2)
    with pytest.raises(UsageError, match=r"y = y.repartition\(divisions=X.divisions\)"):
        plan(ddf[NAMES], other)
    assert plan(ddf[NAMES], other.repartition(divisions=ddf.divisions)).n_rows == 60
    with pytest.raises(UsageError, match="make y a column of X"):
        plan(ddf[NAMES], small.y)
    with pytest.raises(UsageError, match="no column"):
        plan(ddf, "nothing")
    with pytest.raises(UsageError, match="requires y"):
        plan(ddf)
    with pytest.raises(DataError, match="3 dimensions"):
        plan(da.zeros((6, 2, 2)), da.zeros(6))


def test_rows_that_do_not_belong_together_are_refused(small):
    data = frame(small)
    X = dd.from_pandas(data[NAMES], npartitions=2)
    shifted = data["kind"].copy()
    shifted.index = shifted.index + 1
    with pytest.raises(DataError, match=r"differ in their index \(partition [01]\)"):
        plan(X, dd.from_pandas(shifted, npartitions=2))
    a, y, _ = chunked(small, 20, 40)
    masked = da.from_array(np.arange(60) != 5, chunks=((20, 40),))
    with pytest.raises(DataError, match=r"X has 19 rows, y has 20 \(partition 0\)"):
        plan(a[masked], y)


def parts(*frames):
    """A frame of unlike partitions, as sources of many files may be."""
    from dask import delayed

    return dd.from_delayed([delayed(f) for f in frames], meta=frames[0], verify_meta=False)


def test_partitions_that_differ(small):
    data = frame(small).drop(columns=["s"])
    first, second = data.iloc[:30], data.iloc[30:]
    assert plan(parts(first, second), "kind").n_rows == 60
    assert plan(parts(first, second, first.iloc[:0].astype(object)), "kind").n_rows == 60
    with pytest.raises(DataError, match="mixed types: int and str"):
        plan(parts(first, second.assign(kind=1)), "kind")
    with pytest.raises(DataError, match=r"expected numbers \(partition 1\); column 'b'"):
        plan(parts(first, second.assign(b="x")), "kind")
    with pytest.raises(DataError, match="partition 1 has 6 features, partition 0 has 7"):
        plan(parts(first, second.drop(columns=["b"])), "kind")
    with pytest.raises(DataError, match="columns of partition 1 are not those of partition 0"):
        plan(parts(first, second.rename(columns={"b": "B"})), "kind")
    with pytest.raises(DataError, match=r"missing value.*\(partition 1\); column 'b'"):
        plan(parts(first, second.assign(b=np.nan)), "kind")
    with pytest.raises(DataError, match=r"labels are missing.*\(partition 1\)"):
        plan(parts(first, second.assign(kind=None)), "kind")
    with pytest.raises(DataError, match="only one class"):
        plan(parts(first.assign(kind="x"), second.assign(kind="x")), "kind")
    with pytest.raises(DataError, match=r"infinity in row 0, .*\(partition 1\); column 'b'"):
        plan(parts(first, second.assign(b=np.inf)), "kind")


class OnClient:
    """The few lines of an engine that planning needs, on a client."""

    def __init__(self, client):
        self.client = client

    def map(self, fn, items, *args, name):
        return self.client.gather(self.client.map(fn, items, *[[a] * len(items) for a in args], pure=False))


def test_on_a_cluster_partitions_stay_there(small, one_worker):
    with one_worker.as_current():
        ddf = dd.from_pandas(frame(small), npartitions=4)
        found = build_plan(ddf, "kind", "s", task="classification", engine=OnClient(one_worker))
        here = plan(ddf, "kind", "s")
        assert all(type(item).__name__ == "Future" for item in found.items)
        assert (found.fingerprint, found.rows) == (here.fingerprint, here.rows)
        for future, item in zip(found.items, here.items, strict=True):
            part = future.result()
            np.testing.assert_array_equal(part.values, item.values)
            np.testing.assert_array_equal(part.y, item.y)
        with pytest.raises(DataError, match="mixed types"):
            data = frame(small)
            build_plan(
                parts(data.iloc[:30], data.iloc[30:].assign(kind=1)), "kind", task="binary", engine=OnClient(one_worker)
            )


class Limits:
    """A client whose workers have these memory limits."""

    def __init__(self, *limits):
        self.workers = {str(i): {"memory_limit": limit} for i, limit in enumerate(limits)}

    def scheduler_info(self, n_workers=5):
        return {"workers": dict(list(self.workers.items())[: n_workers if n_workers >= 0 else None])}


def test_budgets_are_a_share_of_the_workers_limits():
    six = OnClient(Limits(*[10**9] * 5, 5 * 10**8))
    assert memory_budget(six) == 2_200_000_000
    assert block_budget(six) == 200_000_000
    assert memory_budget(OnClient(Limits(10**9, 0))) == memory_budget(None)


@pytest.mark.filterwarnings("ignore::dboost.DboostWarning")
def test_collections_whose_client_is_closed_are_refused_by_name(small, one_worker):
    X, y, _ = chunked(small, 30, 30)
    fitted = dboost.BoostedClassifier(alpha=0.1, tol=0.1).fit(X, y)
    table = dd.from_pandas(pd.DataFrame(small.X.toarray(), columns=NAMES), npartitions=2)
    with Client(one_worker.cluster):
        gone, labels, frame = X.persist(), y.persist(), table.persist()
        assert np.array_equal(fitted.predict(gone).compute(), fitted.predict(X.compute()))
    told = "was persisted on a cluster whose client is closed"
    for call, name in (
        (lambda: fitted.fit(gone, y), "X"),
        (lambda: fitted.fit(gone * 2.0, y), "X"),
        (lambda: fitted.fit(X, labels), "y"),
        (lambda: fitted.predict(gone), "X"),
        (lambda: fitted.predict(frame), "X"),
        (lambda: fitted.score(gone, y), "X"),
        (lambda: dboost.TableFeatures().fit(frame), "X"),
    ):
        with pytest.raises(UsageError, match=f"^{name} {told}"):
            call()
