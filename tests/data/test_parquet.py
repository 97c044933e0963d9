"""ParquetData: three layouts, the same bits as in memory."""

from __future__ import annotations

import importlib
import pickle

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dboost
from dboost.boosting.fit import Fitting
from dboost.data import ParquetData, build_plan, prepare_text
from dboost.data.parquet import plan as parquet_plan
from dboost.data.parquet.plan import blocks_of
from dboost.data.parquet.read import Layout, decode_features, file_ref, open_file, read_group
from dboost.data.parquet.rows import scan_features
from dboost.engine.local import LocalEngine
from dboost.engine.memo import MemoStore
from dboost.errors import DataError
from dboost.problem.state import FitSettings
from tests.data.conftest import listed, lists, plan, replace, same, write


def column_table(X, y, dtype=np.float64, **more):
    dense = X.toarray().astype(dtype)
    return pa.table({**{f"x{j}": dense[:, j] for j in range(dense.shape[1])}, "label": y, **more})


def fixed_table(X, y, dtype=np.float64):
    flat = pa.array(X.toarray().astype(dtype).ravel())
    return pa.table({"x": pa.FixedSizeListArray.from_arrays(flat, X.shape[1]), "label": y})


def pieces(table, *cuts):
    bounds = [0, *cuts, table.num_rows]
    return [table.slice(a, b - a) for a, b in zip(bounds[:-1], bounds[1:])]


@pytest.mark.parametrize("layout", ["lists", "large lists", "float32 lists", "columns", "fixed"])
def test_layouts_give_the_bits_of_memory(small, tmp_path, layout):
    X, options = small.X, {}
    if layout == "float32 lists":
        X = X.astype(np.float32)
    if layout == "columns":
        table, options = column_table(X, small.y), {"features": [f"x{j}" for j in range(7)]}
    elif layout == "fixed":
        table, options = fixed_table(X, small.y), {"features": "x"}
    else:
        table = lists(X, small.y, large=layout == "large lists", weight=small.weight)
    if layout in ("columns", "fixed"):
        table = table.append_column("weight", pa.array(small.weight))
    # Three files and five row groups are small enough for one block.
    write(tmp_path / "d", *pieces(table, 25, 26))
    data = listed(tmp_path / "d", weight="weight", **options)
    found = plan(pickle.loads(pickle.dumps(data)))
    same(found, plan(X, small.y, small.weight))
    assert found.n_features == 7 and found.classes.tolist() == ["ant", "bee", "cat"]
    assert found.rows == (57,) and not found.streams and found.notes == ()
    assert found.feature_names == (tuple(f"x{j}" for j in range(7)) if layout == "columns" else None)
    loaded = found.items[0].load()
    assert loaded.nbytes <= found.nbytes_estimate <= loaded.nbytes + 4096
    assert pickle.loads(pickle.dumps(found.items[0])).load().nbytes == loaded.nbytes


def test_features_and_width_are_found(small, tmp_path):
    write(tmp_path / "c", column_table(small.X, small.y, weight=small.weight))
    found = plan(ParquetData(tmp_path / "c", label="label", weight="weight"))
    assert found.feature_names == tuple(f"x{j}" for j in range(7))
    write(tmp_path / "l", lists(small.X[:, :6], small.y))
    assert plan(listed(tmp_path / "l", n_features=None)).n_features == 6
    assert plan(listed(tmp_path / "l" / "f0.parquet", n_features=None)).n_rows == 60
    both = [tmp_path / "l" / "f0.parquet", tmp_path / "l" / "f0.parquet"]
    assert plan(listed(both, n_features=9)).n_rows == 120


def test_blocks_follow_row_groups(small, tmp_path, monkeypatch):
    monkeypatch.setattr("dboost.data.blocks.BLOCK_COST", 50)
    table = lists(small.X, small.y)
    write(tmp_path / "d", *pieces(table, 2, 4, 6), rows=10)
    found = plan(listed(tmp_path / "d"))
    assert [ref.name for ref, _ in found.items[0].spans] == [f"f{i}.parquet" for i in range(4)]
    assert all(len(item.spans) == 1 for item in found.items[1:])
    assert found.rows == (16, 20, 20, 4)  # groups of 2, 2, 2, 10, 10, 10, 10, 10 and 4 rows, by where they begin
    assert len({item.key for item in found.items}) == len(found.items)
    np.testing.assert_array_equal(
        *(np.concatenate([item.load().y for item in one.items]) for one in (found, plan(small.X, small.y)))
    )


@pytest.mark.parametrize("budget, most", [(10**9, 3), (9_000, 10**9)])
def test_parts_of_a_row_group_read_it_once_in_a_pass(small, tmp_path, monkeypatch, budget, most):
    """Once for the labels, and once in the pass that decodes all parts; more often where little can be kept."""
    monkeypatch.setattr("dboost.data.blocks.BLOCK_COST", 50)
    write(tmp_path, lists(small.X, small.y), rows=60)
    data, read = listed(tmp_path), []
    monkeypatch.setattr("dboost.data.parquet.block.read_group", lambda *given: read.append(given) or read_group(*given))
    with LocalEngine(2, MemoStore(budget)) as engine:
        plan = build_plan(data, task="classification", engine=engine)
        assert len(plan.items) == 4 and len(read) == 1
        found = Fitting(plan, engine, FitSettings("multinomial", "l1")).fit(0.01)
    assert 2 <= len(read) <= most
    expected = dboost.BoostedClassifier(penalty="l1", alpha=0.01).fit(small.X, small.y)
    np.testing.assert_array_equal(found.W.T, expected.coef_[:, found.active])


def test_list_columns_are_not_copied(small, tmp_path):
    X = small.X.astype(np.float32)
    write(tmp_path, lists(X, small.y), rows=60)
    path = str(tmp_path / "f0.parquet")
    layout = Layout("lists", ("indices", "values"), 7, np.dtype(np.float32))
    with open_file(path) as file:
        table = read_group(file, file_ref(path, "f0"), 0, ["indices", "values"])
    [piece] = decode_features(table, layout, path, 0)
    for name, array in (("indices", piece.indices), ("values", piece.values)):
        child = table.column(name).chunk(0).values
        buffer = np.frombuffer(child.buffers()[1], dtype=array.dtype)
        assert np.shares_memory(array, buffer)
        assert array.shape[0] == X.nnz
    np.testing.assert_array_equal(piece.indptr, X.indptr)


def test_sliced_lists_are_read_from_their_offsets(small):
    table = lists(small.X, small.y).slice(10, 20)
    layout = Layout("lists", ("indices", "values"), 7, np.dtype(np.float64))
    [piece] = decode_features(table, layout, "f", 0)
    part = small.X[10:30]
    np.testing.assert_array_equal(piece.indices, part.indices)
    np.testing.assert_array_equal(piece.values, part.data)
    np.testing.assert_array_equal(piece.indptr, part.indptr)


def test_empty_files_and_one_class_partitions(small, tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_plan, "rows_per_block", lambda *_: 8)
    order = np.argsort(small.y, kind="stable")
    table = lists(small.X[order], small.y[order])
    nothing = table.slice(0, 0)
    write(tmp_path / "d", nothing, *pieces(table, 25), nothing, rows=5)
    found = plan(listed(tmp_path / "d"))
    assert len(found.items) > 5 and all(found.rows)
    monkeypatch.undo()
    same(plan(listed(tmp_path / "d")), plan(small.X[order], small.y[order]))
    write(tmp_path / "e", nothing, nothing)
    with pytest.raises(DataError, match="no rows"):
        plan(listed(tmp_path / "e"))


def test_a_block_of_weight_zero_is_left_out(small, tmp_path, monkeypatch):
    monkeypatch.setattr("dboost.data.blocks.BLOCK_COST", 30)
    weight = np.ones(60)
    weight[20:40] = 0
    labels = small.y.copy()
    labels[25] = "unseen"
    write(tmp_path / "d", lists(small.X, labels, weight=weight), rows=10)
    found = plan(listed(tmp_path / "d", weight="weight"))
    assert found.n_rows == 40 and found.classes.tolist() == ["ant", "bee", "cat"]
    assert sum(item.load().n_rows for item in found.items) == 40


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]
)
def test_string_labels_of_all_encodings(small, tmp_path, kind):
    plain = lists(small.X, small.y)
    other = lists(small.X, pa.array(small.y).cast(kind))
    write(tmp_path / "d", plain.slice(0, 30), other.slice(30))
    write(tmp_path / "e", plain.slice(0, 30), plain.slice(30))
    same(
        plan(listed(tmp_path / "d")),
        plan(listed(tmp_path / "e")),
    )


def test_tasks_in_columns_and_in_lists(small, tmp_path):
    y = np.array([[0, 1], [1, 0], [1, 1]] * 20, dtype=float)
    y[4, 0] = np.nan
    columns = {"u": pa.array(y[:, 0], from_pandas=True), "v": pa.array(y[:, 1].astype(bool))}
    write(tmp_path / "c", column_table(small.X, small.y, **columns))
    names = [f"x{j}" for j in range(7)]
    found = plan(ParquetData(tmp_path / "c", features=names, label=["u", "v"]), task="multitask")
    expected = plan(small.X, y, task="multitask")
    np.testing.assert_array_equal(found.items[0].load().y, expected.items[0].y)
    assert found.classes.tolist() == ["u", "v"]
    for kind in (pa.list_(pa.int8()), pa.list_(pa.int8(), 2)):
        labels = pa.array(np.nan_to_num(y).astype(np.int8).tolist(), kind)
        write(tmp_path / str(kind)[:4], column_table(small.X, small.y, tasks=labels))
        found = plan(ParquetData(tmp_path / str(kind)[:4], features=names, label="tasks"), task="multitask")
        np.testing.assert_array_equal(found.items[0].load().y, 2 * np.nan_to_num(y) - 1)


def test_reading_rows_for_a_prediction(small, tmp_path):
    write(tmp_path / "d", lists(small.X, small.y).drop_columns(["label"]))
    data = ParquetData(tmp_path / "d", features=("indices", "values"), label="label")
    [block] = blocks_of(data, n_features=9)
    assert block.read().csr(9).toarray()[:, :7].tolist() == small.X.toarray().tolist()
    with pytest.raises(DataError, match="no such label column.*'label'"):
        blocks_of(data, n_features=9, labels=True)
    write(tmp_path / "e", lists(small.X, small.y))
    [block] = blocks_of(listed(tmp_path / "e", n_features=None), labels=True)
    rows = block.read(label=True)
    assert rows.label_array().tolist() == small.y.tolist()
    assert rows.weight_array().tolist() == [1.0] * 60


ACTIVE = np.array([1, 4, 6])


@pytest.mark.parametrize("layout", ["lists", "columns", "columns by name", "fixed"])
def test_some_features_of_every_row(small, tmp_path, layout, monkeypatch):
    monkeypatch.setattr(parquet_plan, "GROUP_ROWS", 1)
    monkeypatch.setattr(parquet_plan, "rows_per_block", lambda *_: 16)
    options, names = {"label": "absent"}, None
    if layout == "lists":
        table, options["features"] = lists(small.X), ("indices", "values")
    elif layout == "fixed":
        table, options["features"] = fixed_table(small.X, small.y), "x"
    else:
        # Broken values and text in columns that are not asked for do no harm.
        table = column_table(small.X, small.y)
        if layout == "columns by name":
            table, names = replace(table, "x0", pa.array([np.nan] * 60)), ["x1", "x4", "x6"]
        else:
            options["features"] = [f"x{j}" for j in range(7)]
    write(tmp_path, *pieces(table, 13, 13), rows=9)
    batches = list(scan_features(ParquetData(tmp_path, **options), active=ACTIVE, n_features=7, names=names))
    assert len(batches) > 2 and all(batch.dtype == np.float64 for batch in batches)
    np.testing.assert_array_equal(np.vstack([b.toarray() for b in batches]), small.X.toarray()[:, ACTIVE])
    arrays = list(scan_features(ParquetData(tmp_path, **options), active=ACTIVE, n_features=7, names=names, dense=True))
    assert all(isinstance(one, np.ndarray) == layout.startswith("columns") for one in arrays)
    for one, other in zip(arrays, batches, strict=True):
        np.testing.assert_array_equal(getattr(one, "toarray", lambda one=one: one)(), other.toarray())
    [*none] = scan_features(ParquetData(tmp_path, **options), active=ACTIVE[:0], n_features=7, names=[])
    assert sum(batch.shape[0] for batch in none) == 60 and {batch.shape[1] for batch in none} == {0}


def test_rows_that_do_not_fit_the_model(small, tmp_path):
    write(tmp_path / "l", lists(small.X))
    with pytest.raises(DataError, match="expected 0 to 4"):
        list(scan_features(listed(tmp_path / "l", n_features=None), active=ACTIVE[:2], n_features=5))
    write(tmp_path / "f", fixed_table(small.X, small.y))
    with pytest.raises(DataError, match="has 7 features, the model was fitted on 8"):
        list(scan_features(ParquetData(tmp_path / "f", features="x"), active=ACTIVE, n_features=8))
    write(tmp_path / "c", column_table(small.X, small.y).drop_columns(["x4"]))
    data = ParquetData(tmp_path / "c")
    with pytest.raises(DataError, match="no such feature column.*'x4'"):
        list(scan_features(data, active=ACTIVE, n_features=7, names=["x1", "x4", "x6"]))
    write(tmp_path / "i", replace(column_table(small.X, small.y), "x4", pa.array([np.inf] * 60)))
    for dense in (False, True):
        with pytest.raises(DataError, match="x4"):
            data = ParquetData(tmp_path / "i", label="y")
            list(scan_features(data, active=ACTIVE, n_features=7, names=["x1", "x4", "x6"], dense=dense))


def test_a_source_that_is_opened_is_read_once(tmp_path, monkeypatch):
    texts = [f"word{i % 5} word{i % 3} other" for i in range(40)]
    table = pa.table({"text": texts, "y": ["ab"[i % 3 == 0] for i in range(40)]})
    pq.write_table(table, tmp_path / "d.parquet")
    prepare_text(tmp_path / "d.parquet", tmp_path / "p", text="text", label="y", min_df=1, max_df=1.0)
    calls = []
    for name in ("parquet.input.find_manifest", "parquet.plan.inspect_file"):
        home, _, last = f"dboost.data.{name}".rpartition(".")
        real = getattr(importlib.import_module(home), last)
        monkeypatch.setattr(f"{home}.{last}", lambda *a, real=real, last=last: (calls.append(last), real(*a))[1])
    data = ParquetData(tmp_path / "p").opened()
    model = dboost.BoostedClassifier(alpha=0.01).fit(data)
    assert len(data.files()) == 1 and model.score(data) >= 0.5 and len(model.predict(data)) == 40
    assert sorted(calls) == ["find_manifest", "inspect_file"]
    pq.write_table(table, tmp_path / "p" / "train" / "part-00000.parquet")
    with pytest.raises(DataError, match="changed since it was first read"):
        model.predict(data)


def test_the_file_of_a_row_is_its_group(tmp_path):
    for name in ("b", "a"):
        pq.write_table(pa.table({"x": [1.0, 2.0, 3.0], "y": [0, 1, 1]}), tmp_path / f"{name}.parquet", row_group_size=2)
    data = ParquetData(tmp_path, label="y", groups="file")
    found = plan(data)
    groups = np.concatenate([item.load().group for item in found.items])
    assert found.feature_names == ("x",) and found.n_rows == 6
    assert len(np.unique(groups[:3])) == len(np.unique(groups[3:])) == 1 and groups[0] != groups[-1]
    assert ">6<" in data._repr_html_()
