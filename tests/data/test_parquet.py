"""ParquetData: three layouts, the same bits as in memory, and refusals that name file, column and row group."""

from __future__ import annotations

import os
import pickle
import warnings

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dboost.data import ParquetData, memory, parquet_plan
from dboost.data.mapper import InProcess
from dboost.data.parquet_read import Layout, decode_features, inspect_file, open_file, read_group
from dboost.data.parquet_rows import scan_features
from dboost.errors import DataError, DboostWarning, UsageError


def column_table(X, y, dtype=np.float64, **more):
    dense = X.toarray().astype(dtype)
    return pa.table({**{f"x{j}": dense[:, j] for j in range(dense.shape[1])}, "label": y, **more})


def fixed_table(X, y, dtype=np.float64):
    flat = pa.array(X.toarray().astype(dtype).ravel())
    return pa.table({"x": pa.FixedSizeListArray.from_arrays(flat, X.shape[1]), "label": y})


def pieces(table, *cuts):
    bounds = [0, *cuts, table.num_rows]
    return [table.slice(a, b - a) for a, b in zip(bounds[:-1], bounds[1:])]


# -- layouts -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["lists", "large lists", "float32 lists", "columns", "fixed"])
def test_layouts_give_the_bits_of_memory(small, plan, same, write, lists, as_lists, tmp_path, layout):
    X, options = small.X, dict(as_lists)
    if layout == "float32 lists":
        X = X.astype(np.float32)
    if layout == "columns":
        table, options = column_table(X, small.y), {"features": [f"x{j}" for j in range(7)], "label": "label"}
    elif layout == "fixed":
        table, options = fixed_table(X, small.y), {"features": "x", "label": "label"}
    else:
        table = lists(X, small.y, large=layout == "large lists", weight=small.weight)
    if layout in ("columns", "fixed"):
        table = table.append_column("weight", pa.array(small.weight))
    # Three files and five row groups are small enough for one block.
    write(tmp_path / "d", *pieces(table, 25, 26))
    data = ParquetData(tmp_path / "d", weight="weight", n_features=7, **options)
    found = plan(pickle.loads(pickle.dumps(data)))
    same(found, plan(X, small.y, small.weight))
    assert found.n_features == 7 and found.classes.tolist() == ["ant", "bee", "cat"]
    assert found.rows == (57,) and not found.streams and found.notes == ()
    assert found.feature_names == (tuple(f"x{j}" for j in range(7)) if layout == "columns" else None)
    loaded = found.items[0].load()
    assert loaded.nbytes <= found.nbytes_estimate <= loaded.nbytes + 4096
    assert pickle.loads(pickle.dumps(found.items[0])).load().nbytes == loaded.nbytes


def test_features_and_width_are_found(small, plan, write, lists, as_lists, tmp_path):
    write(tmp_path / "c", column_table(small.X, small.y, weight=small.weight))
    found = plan(ParquetData(tmp_path / "c", label="label", weight="weight"))
    assert found.feature_names == tuple(f"x{j}" for j in range(7))
    write(tmp_path / "l", lists(small.X[:, :6], small.y))
    assert plan(ParquetData(tmp_path / "l", **as_lists)).n_features == 6
    assert plan(ParquetData(tmp_path / "l" / "f0.parquet", **as_lists)).n_rows == 60
    both = [tmp_path / "l" / "f0.parquet", tmp_path / "l" / "f0.parquet"]
    assert plan(ParquetData(both, n_features=9, **as_lists)).n_rows == 120


def test_blocks_follow_row_groups(small, plan, write, lists, as_lists, tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_plan, "BLOCK_COST", 60)
    table = lists(small.X, small.y)
    write(tmp_path / "d", *pieces(table, 2, 4, 6), rows=10)
    found = plan(ParquetData(tmp_path / "d", n_features=7, **as_lists))
    assert [ref.name for ref, _ in found.items[0].spans] == [f"f{i}.parquet" for i in range(4)]
    assert all(len(item.spans) == 1 for item in found.items[1:])
    assert sum(found.rows) == 60 and len(found.items) >= 4
    assert len({item.key for item in found.items}) == len(found.items)
    np.testing.assert_array_equal(
        np.concatenate([item.load().y for item in found.items]), plan(small.X, small.y).items[0].y
    )
    monkeypatch.setattr(memory, "BLOCK_COST", 60)
    again = plan(ParquetData(tmp_path / "d", n_features=7, **as_lists))
    assert (again.rows, again.fingerprint) == (found.rows, found.fingerprint)


def test_list_columns_are_not_copied(small, write, lists, tmp_path):
    X = small.X.astype(np.float32)
    write(tmp_path, lists(X, small.y), rows=60)
    path = str(tmp_path / "f0.parquet")
    layout = Layout("lists", ("indices", "values"), 7, np.dtype(np.float32))
    with open_file(path) as file:
        table = read_group(file, path, 0, ["indices", "values"])
    [piece] = decode_features(table, layout, path, 0)
    for name, array in (("indices", piece.indices), ("values", piece.values)):
        child = table.column(name).chunk(0).values
        buffer = np.frombuffer(child.buffers()[1], dtype=array.dtype)
        assert np.shares_memory(array, buffer)
        assert array.shape[0] == X.nnz
    np.testing.assert_array_equal(piece.indptr, X.indptr)


def test_sliced_lists_are_read_from_their_offsets(small, lists):
    table = lists(small.X, small.y).slice(10, 20)
    layout = Layout("lists", ("indices", "values"), 7, np.dtype(np.float64))
    [piece] = decode_features(table, layout, "f", 0)
    part = small.X[10:30]
    np.testing.assert_array_equal(piece.indices, part.indices)
    np.testing.assert_array_equal(piece.values, part.data)
    np.testing.assert_array_equal(piece.indptr, part.indptr)


def test_empty_files_and_one_class_partitions(small, plan, same, write, lists, as_lists, tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_plan, "BLOCK_COST", 30)
    monkeypatch.setattr(memory, "BLOCK_COST", 10**9)
    order = np.argsort(small.y, kind="stable")
    table = lists(small.X[order], small.y[order])
    nothing = table.slice(0, 0)
    write(tmp_path / "d", nothing, *pieces(table, 25), nothing, rows=5)
    found = plan(ParquetData(tmp_path / "d", n_features=7, **as_lists))
    assert len(found.items) > 5 and all(found.rows)
    monkeypatch.setattr(parquet_plan, "BLOCK_COST", 10**9)
    same(plan(ParquetData(tmp_path / "d", n_features=7, **as_lists)), plan(small.X[order], small.y[order]))
    write(tmp_path / "e", nothing, nothing)
    with pytest.raises(DataError, match="no rows"):
        plan(ParquetData(tmp_path / "e", n_features=7, **as_lists))


def test_a_block_of_weight_zero_is_left_out(small, plan, write, lists, as_lists, tmp_path, monkeypatch):
    monkeypatch.setattr(parquet_plan, "BLOCK_COST", 30)
    weight = np.ones(60)
    weight[20:40] = 0
    labels = small.y.copy()
    labels[25] = "unseen"
    write(tmp_path / "d", lists(small.X, labels, weight=weight), rows=10)
    found = plan(ParquetData(tmp_path / "d", n_features=7, weight="weight", **as_lists))
    assert found.n_rows == 40 and found.classes.tolist() == ["ant", "bee", "cat"]
    assert sum(item.load().n_rows for item in found.items) == 40


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]
)
def test_string_labels_of_all_encodings(small, plan, same, write, lists, as_lists, tmp_path, kind):
    plain = lists(small.X, small.y)
    other = lists(small.X, pa.array(small.y).cast(kind))
    write(tmp_path / "d", plain.slice(0, 30), other.slice(30))
    write(tmp_path / "e", plain.slice(0, 30), plain.slice(30))
    same(
        plan(ParquetData(tmp_path / "d", n_features=7, **as_lists)),
        plan(ParquetData(tmp_path / "e", n_features=7, **as_lists)),
    )


def test_tasks_in_columns_and_in_lists(small, plan, write, tmp_path):
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


def test_reading_rows_for_a_prediction(small, write, lists, as_lists, tmp_path):
    write(tmp_path / "d", lists(small.X, small.y).drop_columns(["label"]))
    data = ParquetData(tmp_path / "d", features=("indices", "values"), label="label")
    [block] = data.blocks(n_features=9)
    assert block.read().csr(9).toarray()[:, :7].tolist() == small.X.toarray().tolist()
    with pytest.raises(DataError, match="missing.*'label'"):
        data.blocks(n_features=9, labels=True)
    write(tmp_path / "e", lists(small.X, small.y))
    [block] = ParquetData(tmp_path / "e", **as_lists).blocks(labels=True)
    rows = block.read(label=True)
    assert rows.label_array().tolist() == small.y.tolist()
    assert rows.weight_array().tolist() == [1.0] * 60


ACTIVE = np.array([1, 4, 6])


@pytest.mark.parametrize("layout", ["lists", "columns", "columns by name", "fixed"])
def test_some_features_of_every_row(small, write, lists, as_lists, tmp_path, layout, monkeypatch):
    monkeypatch.setattr(parquet_plan, "BLOCK_COST", 60)
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
    [*none] = scan_features(ParquetData(tmp_path, **options), active=ACTIVE[:0], n_features=7, names=[])
    assert sum(batch.shape[0] for batch in none) == 60 and {batch.shape[1] for batch in none} == {0}


def test_rows_that_do_not_fit_the_model(small, write, lists, as_lists, tmp_path):
    write(tmp_path / "l", lists(small.X))
    with pytest.raises(DataError, match="expected 0 to 4"):
        list(scan_features(ParquetData(tmp_path / "l", **as_lists), active=ACTIVE[:2], n_features=5))
    write(tmp_path / "f", fixed_table(small.X, small.y))
    with pytest.raises(DataError, match="has 7 features, the model was fitted on 8"):
        list(scan_features(ParquetData(tmp_path / "f", features="x"), active=ACTIVE, n_features=8))
    write(tmp_path / "c", column_table(small.X, small.y).drop_columns(["x4"]))
    data = ParquetData(tmp_path / "c")
    with pytest.raises(DataError, match="missing.*'x4'"):
        list(scan_features(data, active=ACTIVE, n_features=7, names=["x1", "x4", "x6"]))


# -- drift -------------------------------------------------------------------------------------------------------------

TASK = {"columns": {"features": ["x0", "x1"], "label": "label"}}


def three_files(tmp_path, write, position, change):
    """Three good files of two columns, one of them changed."""
    good = pa.table({"x0": [1.0, 0.0, 2.0], "x1": [0.5, 1.5, 0.0], "label": ["a", "b", "a"]})
    tables = [good, good, good]
    tables[position] = change(good)
    write(tmp_path / "d", *tables)
    return ParquetData(tmp_path / "d", features=["x0", "x1"], label="label")


def replace(table, name, values):
    return table.set_column(table.column_names.index(name), name, values)


DRIFTS = {
    "missing feature": (lambda t: t.drop_columns(["x1"]), "x1"),
    "missing label": (lambda t: t.drop_columns(["label"]), "label"),
    "renamed by case": (lambda t: t.rename_columns(["x0", "X1", "label"]), "x1"),
    "int for float": (lambda t: replace(t, "x1", pa.array([1, 2, 3])), "x1"),
    "float32 for float64": (lambda t: replace(t, "x1", pa.array([1, 2, 3], pa.float32())), "x1"),
    "text for float": (lambda t: replace(t, "x1", pa.array(["1", "2", "3"])), "x1"),
    "bool for float": (lambda t: replace(t, "x1", pa.array([True, False, True])), "x1"),
    "list for float": (lambda t: replace(t, "x1", pa.array([[1.0], [2.0], [3.0]])), "x1"),
    "decimal for float": (lambda t: replace(t, "x1", pa.array([1, 2, 3]).cast(pa.decimal128(21, 2))), "x1"),
    "time for float": (lambda t: replace(t, "x1", pa.array([1, 2, 3], pa.timestamp("s"))), "x1"),
    "only nulls": (lambda t: replace(t, "x1", pa.nulls(3)), "x1"),
    "int label": (lambda t: replace(t, "label", pa.array([1, 2, 1])), "label"),
    "null label": (lambda t: replace(t, "label", pa.nulls(3)), "label"),
}


@pytest.mark.parametrize("position", [0, 1, 2])
@pytest.mark.parametrize("drift", DRIFTS)
def test_drift_is_refused_before_anything_is_read(tmp_path, write, plan, drift, position):
    change, column = DRIFTS[drift]
    data = three_files(tmp_path, write, position, change)
    with pytest.raises(DataError) as caught:
        plan(data)
    # The first file is the reference: where it is the odd one, the second is named.
    named = {caught.value.file} & {str(tmp_path / "d" / f"f{i}.parquet") for i in (position, 1)}
    assert named and caught.value.column == column
    assert caught.value.row_group is None
    if drift == "renamed by case" and position:
        assert "found 'X1'" in str(caught.value)


@pytest.mark.parametrize("position", [0, 1, 2])
def test_duplicate_names_are_refused(tmp_path, write, plan, position):
    data = three_files(tmp_path, write, position, lambda t: t.append_column("x1", pa.array([1.0, 2.0, 3.0])))
    with pytest.raises(DataError, match="same name") as caught:
        plan(data)
    assert (caught.value.column, caught.value.file) == ("x1", str(tmp_path / "d" / f"f{position}.parquet"))


@pytest.mark.parametrize("position", [0, 1, 2])
def test_order_of_columns_changes_nothing(tmp_path, write, plan, same, position):
    reference = plan(three_files(tmp_path / "a", write, 0, lambda t: t))
    same(plan(three_files(tmp_path / "b", write, position, lambda t: t.select(["label", "x1", "x0"]))), reference)


@pytest.mark.parametrize("position", [1, 2])
def test_extra_columns_are_said_once_and_ignored(tmp_path, write, plan, same, position):
    reference = plan(three_files(tmp_path / "a", write, 0, lambda t: t))
    data = three_files(tmp_path / "b", write, position, lambda t: t.append_column("new", pa.array([1, 2, 3])))
    with pytest.warns(DboostWarning, match=rf"'new' of f{position}.parquet") as caught:
        found = plan(data)
    assert len(caught) == 1
    same(found, reference)


@pytest.mark.parametrize("position", [0, 1, 2])
def test_an_empty_file_of_null_types_is_no_drift(tmp_path, write, plan, position):
    empty = pa.table({"x0": pa.nulls(0), "x1": pa.nulls(0), "label": pa.nulls(0)})
    assert plan(three_files(tmp_path, write, position, lambda t: empty)).n_rows == 6


def test_widths_of_integers_are_no_drift(tmp_path, write, plan):
    tables = [
        pa.table({"x": pa.array([1, 2, 3], kind), "label": ["a", "b", "a"]})
        for kind in (pa.int8(), pa.uint64(), pa.int32())
    ]
    write(tmp_path, *tables)
    loaded = plan(ParquetData(tmp_path, features=["x"], label="label")).items[0].load()
    assert loaded.values.tolist() == [1, 2, 3] * 3 and loaded.values.dtype == np.float64


# -- bad values --------------------------------------------------------------------------------------------------------


def bad_lists(indices, values, kind=None):
    return pa.table(
        {
            "indices": pa.array(indices, kind or pa.list_(pa.int32())),
            "values": pa.array(values, pa.list_(pa.float64())),
            "label": ["a", "b"] * (len(indices) // 2),
        }
    )


GOOD_I, GOOD_V = [[0], [1], [0, 1], []], [[1.0], [2.0], [1.0, 2.0], []]


@pytest.mark.parametrize(
    "i, v, column, words",
    [
        ([[0], [1], [0, 1], [2]], [[1.0], [2.0], [1.0, 2.0], [np.nan]], "values", "NaN for feature '2' in row 1"),
        ([[0], [1], [0, 1], [2]], [[1.0], [2.0], [1.0, 2.0], [-np.inf]], "values", "-infinity for feature '2'"),
        ([[0], [1], [0, 1], [3]], [[1.0], [2.0], [1.0, 2.0], [1.0]], "indices", "index 3 in row 1, expected 0 to 2"),
        ([[0], [1], [0, 1], [-1]], [[1.0], [2.0], [1.0, 2.0], [1.0]], "indices", "index -1 in row 1"),
        ([[0], [1], [0, 1], None], [[1.0], [2.0], [1.0, 2.0], []], "indices", "1 nulls"),
        ([[0], [1], [0, 1], []], [[1.0], [2.0], [1.0, 2.0], None], "values", "1 nulls"),
        ([[0], [1], [0, None], []], [[1.0], [2.0], [1.0, 2.0], []], "indices", "1 nulls"),
        ([[0], [1], [0, 1], []], [[1.0], [2.0], [1.0, None], []], "values", "1 nulls"),
        ([[0], [1], [0, 1], [2]], [[1.0], [2.0], [1.0, 2.0], []], "values", "row 1 has 1 indices and 0 values"),
    ],
)
def test_bad_lists_name_file_column_and_row_group(tmp_path, write, plan, as_lists, i, v, column, words):
    good = bad_lists(GOOD_I, GOOD_V)
    write(tmp_path, good, bad_lists(i, v), rows=2)
    found = plan(ParquetData(tmp_path, n_features=3, **as_lists))
    with pytest.raises(DataError, match=words) as caught:
        for item in found.items:
            item.load()
    assert caught.value.file == str(tmp_path / "f1.parquet")
    assert (caught.value.column, caught.value.row_group) == (column, 1)
    assert pickle.loads(pickle.dumps(caught.value)).row_group == 1


@pytest.mark.parametrize(
    "change, column, words",
    [
        (lambda t: replace(t, "x1", pa.array([0.0, 1.0, np.nan])), "x1", "NaN in row 0"),
        (lambda t: replace(t, "x1", pa.array([0.0, 1.0, None])), "x1", "1 nulls"),
        (lambda t: replace(t, "label", pa.array(["a", "b", None])), "label", "1 labels are missing"),
    ],
)
def test_bad_columns_name_file_column_and_row_group(tmp_path, write, plan, change, column, words):
    good = pa.table({"x0": [1.0, 0.0, 2.0], "x1": [0.5, 1.5, 0.0], "label": ["a", "b", "a"]})
    write(tmp_path, good, change(good), good, rows=2)
    with pytest.raises(DataError, match=words) as caught:
        for item in plan(ParquetData(tmp_path, features=["x0", "x1"], label="label")).items:
            item.load()
    assert caught.value.file == str(tmp_path / "f1.parquet")
    assert (caught.value.column, caught.value.row_group) == (column, 1)


def test_bad_weights_and_widths(tmp_path, write, plan):
    base = {"x": pa.array([[1.0, 2.0]] * 4), "label": ["a", "b"] * 2}
    for name, weight, words in (
        ("n", [1.0, 1.0, -1.0, 1.0], "-1.0 in row 0"),
        ("z", [0.0] * 4, "weights are zero"),
        ("m", [1.0, 1.0, None, 1.0], "nulls"),
        ("t", ["1"] * 4, "string"),
    ):
        fixed = {**base, "x": pa.array([[1.0, 2.0]] * 4, pa.list_(pa.float64(), 2))}
        write(tmp_path / name, pa.table({**fixed, "w": weight}), rows=2)
        with pytest.raises(DataError, match=words):
            plan(ParquetData(tmp_path / name, features="x", label="label", weight="w"))
    write(
        tmp_path / "width",
        pa.table({**base, "x": pa.array([[1.0, 2.0]] * 4, pa.list_(pa.float64(), 2))}),
        pa.table({**base, "x": pa.array([[1.0, 2.0, 3.0]] * 4, pa.list_(pa.float64(), 3))}),
    )
    with pytest.raises(DataError, match=r"fixed\[3\].*fixed\[2\]") as caught:
        plan(ParquetData(tmp_path / "width", features="x", label="label"))
    assert caught.value.file == str(tmp_path / "width" / "f1.parquet")


def test_wrong_uses(tmp_path, write, plan, small, lists, as_lists):
    write(tmp_path / "d", lists(small.X, small.y))
    cases = [
        ({"features": ("indices", "values")}, UsageError, "no label column"),
        ({"features": ["indices", "indices"], "label": "label"}, UsageError, "twice"),
        ({"features": ["label"], "label": "label"}, UsageError, "also the label"),
        ({"features": ["nothing"], "label": "label"}, DataError, "missing"),
        ({"features": ["label"], "label": "indices"}, DataError, "type str, expected numbers"),
        ({"features": ("values", "indices"), "label": "label"}, DataError, "integer indices"),
        ({"features": ("indices", "values"), "label": "label", "n_features": 0}, UsageError, "n_features=0"),
        ({"features": ("indices", "values"), "label": "label", "split": "x"}, UsageError, "no manifest"),
    ]
    for options, error, words in cases:
        with pytest.raises(error, match=words):
            plan(ParquetData(tmp_path / "d", **options))
    with pytest.raises(DataError, match="expected 7 features|have 1 features"):
        write(tmp_path / "c", pa.table({"x": [1.0, 2.0], "label": ["a", "b"]}))
        plan(ParquetData(tmp_path / "c", features=["x"], label="label", n_features=7))
    with pytest.raises(UsageError, match="s3:// URL"):
        plan(ParquetData("s3://bucket/key", **as_lists))
    with pytest.raises(DataError, match="no such file"):
        plan(ParquetData(tmp_path / "absent", **as_lists))
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="holds no"):
        plan(ParquetData(tmp_path / "empty", **as_lists))
    with pytest.raises(UsageError, match="empty list"):
        plan(ParquetData([], **as_lists))
    with pytest.raises(UsageError, match="beside ParquetData"):
        plan(ParquetData(tmp_path / "d", **as_lists), small.y)


# -- damage ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("content", [b"", b"a,b\n1,2\n", b"PAR1" + bytes(50), bytes(200), b"PAR1" * 10])
def test_garbage_is_refused_by_name(tmp_path, write, plan, small, lists, as_lists, content):
    write(tmp_path, lists(small.X, small.y))
    bad = tmp_path / "f1.parquet"
    bad.write_bytes(content)
    with pytest.raises(DataError) as caught:
        plan(ParquetData(tmp_path, n_features=7, **as_lists))
    assert caught.value.file == str(bad) and len(str(caught.value)) < 400


def test_truncated_files(tmp_path, write, plan, small, lists, as_lists):
    write(tmp_path, lists(small.X, small.y))
    path = tmp_path / "f0.parquet"
    whole = path.read_bytes()
    for length in (len(whole) - 1, len(whole) // 2, 5):
        path.write_bytes(whole[:length])
        with pytest.raises(DataError) as caught:
            plan(ParquetData(tmp_path, n_features=7, **as_lists))
        assert caught.value.file == str(path)


def test_names_that_are_not_text(tmp_path, write, plan, as_lists):
    write(tmp_path, pa.table({"qqqq": [1.0], "label": ["a"]}), checksum=False)
    path = tmp_path / "f0.parquet"
    path.write_bytes(path.read_bytes().replace(b"qqqq", b"q\xff\xfeq"))
    with pytest.raises(DataError) as caught:
        plan(ParquetData(tmp_path, features=["q"], label="label"))
    assert caught.value.file == str(path)


def change_content(path, whole):
    table = pq.read_table(path)
    pq.write_table(table.slice(0, 40), path)


def change_keeping_the_time(path, whole):
    state = os.stat(path)
    change_content(path, whole)
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))


CHANGES = {
    "rewritten": (change_content, "changed since"),
    "rewritten, time kept": (change_keeping_the_time, "changed since"),
    "touched": (lambda path, whole: os.utime(path, ns=(1, 1)), "changed since"),
    "truncated": (lambda path, whole: os.truncate(path, len(whole) // 2), "truncated"),
    "deleted": (lambda path, whole: os.unlink(path), "gone"),
    "garbage": (lambda path, whole: path.write_bytes(b"x" * len(whole)), "no Parquet file"),
}


@pytest.mark.parametrize("kind", CHANGES)
def test_a_file_that_changes_after_planning_is_refused(tmp_path, write, plan, small, lists, as_lists, kind):
    write(tmp_path, lists(small.X, small.y))
    path = tmp_path / "f0.parquet"
    found = plan(ParquetData(tmp_path, n_features=7, **as_lists))
    change, words = CHANGES[kind]
    change(path, path.read_bytes())
    with pytest.raises(DataError, match=words) as caught:
        found.items[0].load()
    assert caught.value.file == str(path)


@pytest.mark.parametrize("codec", ["none", "snappy", "zstd", "gzip", "lz4"])
def test_flipped_bits_are_found_where_pages_carry_checksums(tmp_path, write, plan, small, lists, as_lists, codec):
    write(tmp_path, lists(small.X, small.y), rows=60, compression=codec)
    path = tmp_path / "f0.parquet"
    whole = path.read_bytes()
    plain = plan(ParquetData(tmp_path, n_features=7, **as_lists)).items[0].load()
    end = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    rng = np.random.default_rng(5)
    refused = 0
    for position, bit in zip(rng.integers(4, end, 40), rng.integers(0, 8, 40)):
        damaged = bytearray(whole)
        damaged[position] ^= 1 << bit
        path.write_bytes(bytes(damaged))
        try:
            found = plan(ParquetData(tmp_path, n_features=7, **as_lists)).items[0].load()
        except DataError as fault:
            assert fault.file == str(path)
            refused += 1
        else:
            # A flip in a part of a page header that is not used (statistics, say) changes nothing.
            np.testing.assert_array_equal(found.values, plain.values)
            np.testing.assert_array_equal(found.rows, plain.rows)
            np.testing.assert_array_equal(found.y, plain.y)
    assert refused >= 25


def test_files_without_checksums_are_mentioned(tmp_path, write, plan, small, lists, as_lists):
    table = lists(small.X, small.y)
    write(tmp_path / "a", table)
    write(tmp_path / "b", table, checksum=False)
    assert plan(ParquetData(tmp_path / "a", n_features=7, **as_lists)).notes == ()
    [note] = plan(ParquetData(tmp_path / "b", n_features=7, **as_lists)).notes
    assert "1 of 1 files carry no page checksums (f0.parquet first)" in note
    for options in ({"use_dictionary": False}, {"use_dictionary": True}, {"data_page_version": "2.0"}):
        for checksum in (True, False):
            write(tmp_path / "c", table, checksum=checksum, **options)
            assert inspect_file((str(tmp_path / "c" / "f0.parquet"), "f0.parquet")).checksums == checksum


def test_memory_budget_decides_streaming_and_refuses_giants(tmp_path, write, small, lists, as_lists, monkeypatch):
    from dboost.data import build_plan

    class Small(InProcess):
        memory_budget = 2500

    monkeypatch.setattr(parquet_plan, "BLOCK_COST", 50)
    write(tmp_path / "d", lists(small.X, small.y), rows=10)
    data = ParquetData(tmp_path / "d", n_features=7, **as_lists)
    assert build_plan(data, task="classification", engine=Small()).streams
    assert not build_plan(data, task="classification", engine=InProcess()).streams
    write(tmp_path / "e", lists(small.X, small.y), rows=60)
    with pytest.raises(DataError, match="memory budget") as caught:
        build_plan(ParquetData(tmp_path / "e", n_features=7, **as_lists), task="classification", engine=Small())
    assert caught.value.row_group == 0


def test_no_warnings_on_good_data(tmp_path, write, plan, small, lists, as_lists):
    write(tmp_path, lists(small.X, small.y))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plan(ParquetData(tmp_path, n_features=7, **as_lists)).items[0].load()
