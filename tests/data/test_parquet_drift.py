"""ParquetData: files that differ in schema are refused before anything is read; what is no drift is read."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from dboost.data import ParquetData
from dboost.errors import DataError, DboostWarning
from tests.data.conftest import plan, replace, same, write

POSITIONS = (0, 1, 2)
NUMBERS = pa.table({"x0": [1.0, 0.0, 2.0], "x1": [0.5, 1.5, 0.0], "label": ["a", "b", "a"]})
LISTS = pa.table(
    {
        "indices": pa.array([[0], [1, 2], []], pa.list_(pa.int32())),
        "values": pa.array([[1.0], [2.0, 3.0], []], pa.list_(pa.float64())),
        "label": ["a", "b", "a"],
    }
)


def three_files(folder, write, position, change, good=NUMBERS):
    """Three good files of two columns or of lists, one of them changed."""
    tables = [good, good, good]
    tables[position] = change(good)
    write(folder, *tables)
    if good is LISTS:
        return ParquetData(folder, features=("indices", "values"), label="label", n_features=3)
    return ParquetData(folder, features=["x0", "x1"], label="label")


def cast(name, kind):
    """The same values of a column as another type."""
    return lambda t: replace(t, name, t[name].cast(kind))


def other(name, values, kind=None):
    """Other values in a column."""
    return lambda t: replace(t, name, pa.array(values, kind))


DRIFTS = {
    "missing feature": (lambda t: t.drop_columns(["x1"]), "x1"),
    "missing label": (lambda t: t.drop_columns(["label"]), "label"),
    "renamed by case": (lambda t: t.rename_columns(["x0", "X1", "label"]), "x1"),
    "renamed by a blank": (lambda t: t.rename_columns(["x0", "x1 ", "label"]), "x1"),
    "int for float": (other("x1", [1, 2, 3]), "x1"),
    "text for float": (other("x1", ["1", "2", "3"]), "x1"),
    "bool for float": (other("x1", [True, False, True]), "x1"),
    "list for float": (other("x1", [[1.0], [2.0], [3.0]]), "x1"),
    "decimal for float": (other("x1", [1, 2, 3], pa.decimal128(21, 2)), "x1"),
    "time for float": (other("x1", [1, 2, 3], pa.timestamp("s")), "x1"),
    "only nulls": (other("x1", [None] * 3, pa.null()), "x1"),
    "int label": (other("label", [1, 2, 1]), "label"),
    "null label": (other("label", [None] * 3, pa.null()), "label"),
    "float indices": (cast("indices", pa.list_(pa.float64())), "indices"),
    "missing indices": (lambda t: t.drop_columns(["indices"]), "indices"),
    "int values": (cast("values", pa.list_(pa.int64())), "values"),
    "values that are no lists": (other("values", [1.0, 2.0, 3.0]), "values"),
}
SAME = {
    "float32": (NUMBERS, cast("x1", pa.float32())),
    # 0.5, 1.5 and 0 are the same numbers in it
    "float16": (NUMBERS, cast("x1", pa.float16())),
    "label as dictionary": (NUMBERS, lambda t: replace(t, "label", t["label"].dictionary_encode())),
    "label of large text": (NUMBERS, cast("label", pa.large_string())),
    "another order": (NUMBERS, lambda t: t.select(["label", "x1", "x0"])),
    "indices of int64": (LISTS, cast("indices", pa.list_(pa.int64()))),
    "large lists": (LISTS, cast("indices", pa.large_list(pa.int32()))),
    "float32 values": (LISTS, cast("values", pa.list_(pa.float32()))),
}


@pytest.mark.parametrize("drift", DRIFTS)
def test_drift_is_refused_before_anything_is_read(tmp_path, drift):
    change, column = DRIFTS[drift]
    good = LISTS if column in ("indices", "values") else NUMBERS
    for position in POSITIONS:
        folder = tmp_path / str(position)
        data = three_files(folder, write, position, change, good)
        with pytest.raises(DataError) as caught:
            plan(data)
        # The first file is the reference: where it is the odd one, the second is named. What is wrong with a list in
        # any file is told of the first.
        odd, columns = (position, 1), (column,)
        if good is LISTS:
            odd, columns = POSITIONS, ("indices", "values")
        named = {caught.value.file} & {str(folder / f"f{i}.parquet") for i in odd}
        assert named and caught.value.column in columns and len(str(caught.value).splitlines()) == 1
        assert caught.value.row_group is None
        if drift.startswith("renamed by case") and position:
            assert "found 'X1'" in str(caught.value)


def test_what_means_the_same_is_no_drift(tmp_path):
    empty = pa.table({"x0": pa.nulls(0), "x1": pa.nulls(0), "label": pa.nulls(0)})
    for name, (good, change) in SAME.items():
        reference = plan(three_files(tmp_path / f"{name}-good", write, 0, lambda t: t, good))
        for position in POSITIONS:
            same(plan(three_files(tmp_path / f"{name}-{position}", write, position, change, good)), reference)
    for position in POSITIONS:
        assert plan(three_files(tmp_path / f"empty-{position}", write, position, lambda t: empty)).n_rows == 6


def test_names_twice_are_refused_and_columns_more_are_said_once(tmp_path):
    reference = plan(three_files(tmp_path / "good", write, 0, lambda t: t))
    for position in POSITIONS:
        twice = tmp_path / f"twice-{position}"
        with pytest.raises(DataError, match="same name") as refused:
            plan(three_files(twice, write, position, lambda t: t.append_column("x1", pa.array([1.0, 2.0, 3.0]))))
        assert (refused.value.column, refused.value.file) == ("x1", str(twice / f"f{position}.parquet"))
        if position:
            more = three_files(
                tmp_path / f"more-{position}", write, position, lambda t: t.append_column("new", t["x0"])
            )
            with pytest.warns(DboostWarning, match=rf"'new' of f{position}.parquet") as caught:
                found = plan(more)
            assert len(caught) == 1
            same(found, reference)


def test_widths_of_integers_are_no_drift(tmp_path):
    tables = [
        pa.table({"x": pa.array([1, 2, 3], kind), "label": ["a", "b", "a"]})
        for kind in (pa.int8(), pa.uint64(), pa.int32())
    ]
    write(tmp_path, *tables)
    loaded = plan(ParquetData(tmp_path, features=["x"], label="label")).items[0].load()
    assert loaded.values.tolist() == [1, 2, 3] * 3 and loaded.values.dtype == np.float64
