"""Notes on labels that are valid and may still be a mistake, and on files that cannot be checked: said once, at fit."""

from __future__ import annotations

import warnings

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dboost import BoostedClassifier, DboostWarning, ParquetData
from dboost.data.labels.labels import label_notes


def rows(labels):
    """A table whose column x is large for the first label; the label in column y."""
    rng = np.random.default_rng(0)
    labels = np.array(labels, dtype=object)
    x = rng.normal(size=len(labels)) + 3.0 * (labels == labels[0])
    return pd.DataFrame({"x": x, "z": rng.normal(size=len(labels)), "y": labels})


def write(folder, tables, checksums=True):
    folder.mkdir()
    for number, table in enumerate(tables):
        pq.write_table(pa.Table.from_pandas(table), folder / f"part-{number}.parquet", write_page_checksum=checksums)
    return ParquetData(folder, label="y")


def said(*data, **params):
    """The model of a fit, and what it warned of."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        model = BoostedClassifier(alpha=0.1, **params).fit(*data)
    assert all(warning.category is DboostWarning and warning.filename == __file__ for warning in seen)
    messages = [str(warning.message) for warning in seen]
    return model, [message for message in messages if not message.startswith("no feature is used")]


BLANKS = [*["a"] * 20, *["b"] * 20, *["a "] * 3, "b\u00a0"]


@pytest.mark.parametrize("source", ["memory", "dask", "files"])
def test_labels_that_differ_by_blanks_are_named_with_their_rows(source, tmp_path):
    table = rows(BLANKS)
    data = {
        "memory": lambda: (table, "y"),
        "dask": lambda: (dd.from_pandas(table, npartitions=2), "y"),
        "files": lambda: (write(tmp_path / "data", [table]),),
    }[source]()
    model, notes = said(*data)
    assert len(model.classes_) == 4
    assert notes == [
        "labels that differ by blanks only are different classes: 'a' (20 rows) and 'a ' (3 rows); 'b' (20 rows) and "
        "'b\\xa0' (1 row). Strip them if they mean the same"
    ]
    assert list(model.model_.manifest["data"]["notes"]) == notes


def test_labels_that_the_user_lists_are_meant():
    assert said(rows(BLANKS), "y", classes=["a", "a ", "b", "b\u00a0"])[1] == []


def test_a_class_without_rows_does_not_say_it_twice(tmp_path):
    table = rows(BLANKS)
    table["y"] = table["y"].astype(pd.CategoricalDtype([*sorted(set(BLANKS)), "none"]))
    assert len(said(table, "y")[1]) == 1


def test_a_class_of_one_file_only_is_named_with_the_file(tmp_path):
    many = ["a", "b", "c"] * 10
    _, notes = said(write(tmp_path / "data", [rows(many), rows(many), rows([*many, "C", "C"])]))
    assert notes == [
        "1 of 4 classes are in one file only: 'C' (2 rows) in part-2.parquet. Check that they are no misspelling"
    ]


@pytest.mark.parametrize(
    "parts",
    [[["a", "b"] * 10], [["a"] * 10, ["b"] * 10, ["c"] * 10], [["a", "b"] * 10, ["b", "a"] * 10]],
    ids=["one file", "sorted by class", "all in all"],
)
def test_files_that_say_nothing_of_a_class_are_no_reason_for_a_note(tmp_path, parts):
    assert said(write(tmp_path / "data", [rows(part) for part in parts]))[1] == []


def test_a_class_that_may_be_a_missing_label_is_named():
    said = "a class is called 'NA' (1 row), ' - ' (2 rows). Drop these rows if it means that the label is missing"
    assert label_notes({"NA": 1, "sea": 5, " - ": 2}, {}) == (said,)
    assert label_notes({"NAC": 1, "sea": 5, 0: 3}, {}) == ()


def test_many_are_counted():
    count = dict.fromkeys([f"{letter}{blank}" for letter in "abcde" for blank in ("", " ")], 1)
    (note,) = label_notes(count, {})
    assert note.endswith("'c' (1 row) and 'c ' (1 row); and 2 more groups. Strip them if they mean the same")
    where = {f"c{number}": "one.parquet" if number < 5 else None for number in range(12)}
    (note,) = label_notes(dict.fromkeys(where, 7), where)
    assert note.startswith("5 of 12 classes are in one file only: 'c0' (7 rows) in one.parquet, ")
    assert note.endswith("'c2' (7 rows) in one.parquet and 2 more. Check that they are no misspelling")
    assert label_notes({b"a": 1, b"a ": 2}, {}) != ()
    assert label_notes({1: 1, 2: 2}, {}) == ()


def test_files_without_checksums_are_said_once_at_fit(tmp_path, monkeypatch):
    monkeypatch.setattr("dboost.data.parquet.plan.WORTH_CHECKSUMS", 0)
    data = write(tmp_path / "data", [rows(["a", "b"] * 10)] * 2, checksums=False)
    _, notes = said(data)
    assert notes == [
        "2 of 2 files carry no page checksums (part-0.parquet first): damage inside them cannot be detected. Write "
        "them with write_page_checksum=True"
    ]
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("default")
        for _ in range(2):
            BoostedClassifier(alpha=0.1).fit(data)
    assert len(seen) == 1
