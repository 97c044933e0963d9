"""Contracts of documents: what is seen, what is expected, and what is done about a difference.

Covers: every kind of difference, refused or noted; contracts that are written and kept again; files without meaning.
Does not cover: documents that cannot be read.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dboost.data import prepare_text
from dboost.data.prepared.contract import read_contract
from dboost.errors import DataError, DboostWarning, UsageError

ROWS = 60
OPTIONS = {"text": "text", "label": "label", "min_df": 1, "max_df": 1.0}


def table(rows: int = ROWS) -> pa.Table:
    rng = np.random.default_rng(0)
    labels = ["wet" if i % 2 else "dry" for i in range(rows)]
    return pa.table(
        {
            "text": [f"{label} w{i % 5}" for i, label in enumerate(labels)],
            "label": labels,
            "year": pa.array(2000 + np.arange(rows) % 20),
            "price": pa.array(rng.random(rows)),
            "note": pa.array([None if i % 6 == 0 else "x" for i in range(rows)]),
        }
    )


def changed(name: str, values: Any) -> pa.Table:
    whole = table()
    return whole.set_column(whole.schema.get_field_index(name), name, pa.array(values))


DRIFTS: dict[str, tuple[Callable[[], pa.Table], str]] = {
    "a column is gone": (lambda: table().drop_columns("year"), "column 'year' is not there"),
    "a column is text": (lambda: changed("year", [str(i) for i in range(ROWS)]), "column 'year' is str, expected int"),
    "a number with a point": (lambda: changed("year", np.arange(ROWS) / 2), "column 'year' is float64, expected int"),
    "above the range": (lambda: changed("year", 2000 + np.arange(ROWS)), "goes from 2000 to 2059, expected 2000"),
    "below the range": (lambda: changed("price", np.linspace(-3, 0.5, ROWS)), "column 'price' goes from -3.0"),
    "more is missing": (lambda: changed("note", [None] * 40 + ["x"] * 20), "66.67% is missing, expected at most 16"),
    "a new label": (lambda: changed("label", ["wet", "dry", "icy"] * 20), "label 'icy' is not expected"),
    "a label is gone": (lambda: changed("label", ["wet"] * ROWS), "label 'dry' does not come"),
    "few rows": (lambda: table(20), "20 rows, expected 30 to 120"),
    "many rows": (lambda: table(200), "200 rows, expected 30 to 120"),
}  # fmt: skip


@pytest.fixture
def contract(tmp_path: Path) -> Path:
    pq.write_table(table(), tmp_path / "first.parquet", row_group_size=25)
    path = tmp_path / "contract.toml"
    prepare_text(tmp_path / "first.parquet", tmp_path / "first", write_contract=path, **OPTIONS)
    return path


@pytest.mark.parametrize("name", DRIFTS)
def test_documents_that_drift_are_refused_or_noted(name: str, contract: Path, tmp_path: Path) -> None:
    make, said = DRIFTS[name]
    pq.write_table(make(), tmp_path / "new.parquet", row_group_size=25)
    with pytest.raises(DataError, match="not as expected") as refused:
        prepare_text(tmp_path / "new.parquet", tmp_path / "p", expect=contract, **OPTIONS)
    assert said in str(refused.value) and not (tmp_path / "p").exists()
    with pytest.warns(DboostWarning, match="not as expected"):
        manifest = prepare_text(tmp_path / "new.parquet", tmp_path / "p", expect=contract, on_drift="note", **OPTIONS)
    assert any(said in one for one in manifest.settings["drift"])


def test_what_keeps_the_contract_is_prepared_without_a_word(contract: Path, tmp_path: Path) -> None:
    again = prepare_text(tmp_path / "first.parquet", tmp_path / "again", expect=contract, **OPTIONS)
    assert again.settings["drift"] == []
    read = read_contract(contract)
    assert read.rows == (30, 120) and read.labels == ("dry", "wet")
    assert read.columns["year"] == {"kind": "int", "range": [2000, 2019], "missing": 0.0}
    assert read.columns["note"] == {"kind": "str", "missing": 0.1667}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("rows = 3", r"rows: expected \[fewest, most\]"),
        ("row = [1, 2]", "unknown key 'row'"),
        ("[columns.a]\nkinds = 'int'", "columns.a: expected a table"),
        ("[columns.a]\nmissing = 2", "missing a share"),
        ("[columns.a]\nrange = [3, 1]", "range is"),
        ("[labels]\nknow = ['a']", "labels: expected a list known"),
        ("rows = ", "cannot be read"),
    ],
)
def test_contracts_without_meaning_are_refused(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text(text)
    with pytest.raises(UsageError, match=said):
        read_contract(tmp_path / "c.toml")
    with pytest.raises(UsageError, match="no such contract"):
        read_contract(tmp_path / "absent.toml")
