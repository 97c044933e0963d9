"""ParquetData: files that differ in schema are refused before anything is read; what is no drift is read."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from dboost.data import ParquetData
from dboost.errors import DataError, DboostWarning
from tests.data.tables import replace

TASK = {"columns": {"features": ["x0", "x1"], "label": "label"}}


def three_files(tmp_path, write, position, change):
    """Three good files of two columns, one of them changed."""
    good = pa.table({"x0": [1.0, 0.0, 2.0], "x1": [0.5, 1.5, 0.0], "label": ["a", "b", "a"]})
    tables = [good, good, good]
    tables[position] = change(good)
    write(tmp_path / "d", *tables)
    return ParquetData(tmp_path / "d", features=["x0", "x1"], label="label")


DRIFTS = {
    "missing feature": (lambda t: t.drop_columns(["x1"]), "x1"),
    "missing label": (lambda t: t.drop_columns(["label"]), "label"),
    "renamed by case": (lambda t: t.rename_columns(["x0", "X1", "label"]), "x1"),
    "int for float": (lambda t: replace(t, "x1", pa.array([1, 2, 3])), "x1"),
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
def test_widths_that_hold_the_same_values_are_no_drift(tmp_path, write, plan, same, position):
    reference = plan(three_files(tmp_path / "a", write, 0, lambda t: t))
    for i, kind in enumerate([pa.float32(), pa.float16()]):
        # 0.5, 1.5 and 0 are the same numbers in each of them
        narrow = lambda t, kind=kind: replace(t, "x1", t["x1"].cast(kind))  # noqa: E731
        same(plan(three_files(tmp_path / f"b{i}", write, position, narrow)), reference)


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
