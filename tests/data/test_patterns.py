"""Patterns of paths, columns in the names of folders, filters of rows, tables of Delta Lake.

Covers: what each means beside the rows picked by hand, on the command line too; refusals. Does not cover: stores
(tests/pipelines/test_stores.py), the passes of ``prepare``.
"""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

import dboost
from dboost.data import prepare_text
from dboost.data.meaning import folder_columns, folder_values
from dboost.data.patterns import matches, regex_of
from dboost.data.prepared.where import parsed
from dboost.errors import DataError, DboostWarning, UsageError
from dboost.files.stores import any_path
from pipelines.cli import main

RNG = np.random.default_rng(0)


def documents(rows: int, seed: int) -> pa.Table:
    rng = np.random.default_rng(seed)
    topics = [("sea", "sky")[i] for i in rng.integers(0, 2, rows)]
    texts = [" ".join([topic, *rng.choice([f"w{i}" for i in range(9)], 4)]) for topic in topics]
    number = pa.array(rng.integers(0, 10, rows))
    missing = pa.array([None if i % 7 == 0 else float(i) for i in range(rows)])
    return pa.table({"text": texts, "label": topics, "number": number, "odd name": missing})


@pytest.fixture
def years(tmp_path: Path) -> Path:
    for seed, (year, lang) in enumerate([(2019, "en"), (2020, "en"), (2020, "d%20e"), (2021, "en")]):
        folder = tmp_path / "years" / f"year={year}" / f"lang={lang}"
        folder.mkdir(parents=True)
        pq.write_table(documents(30, seed), folder / "part.parquet")
    (tmp_path / "years" / "_notes.parquet").write_bytes(b"no data")
    return tmp_path / "years"


def between(table: pa.Table, low: int, high: int) -> Any:
    number = np.array(table["number"])
    return (number > low) & (number <= high)


def rows_of(prepared: Path) -> list[dict[str, Any]]:
    return pq.read_table(prepared / "train", columns=None, partitioning=None).to_pylist()


def test_columns_of_folders_are_columns(years: Path, tmp_path: Path) -> None:
    manifest = prepare_text(years, tmp_path / "p", text="text", label="year", keep=["lang"], min_df=1, max_df=1.0)
    assert manifest.schema["year"] == "int" and manifest.schema["lang"] == "str"
    assert manifest.splits["train"]["classes"] == [[2019, 30], [2020, 60], [2021, 30]]
    assert {row["lang"] for row in rows_of(tmp_path / "p")} == {"en", "d e"}


@pytest.mark.parametrize(
    ("where", "picked"),
    [
        ("year >= 2020", lambda t, year, lang: np.full(len(t), year >= 2020)),
        ('lang in ("en", "fr") and number > 4', lambda t, year, lang: (np.array(t["number"]) > 4) & (lang == "en")),
        ("not (2 < number <= 7) or year == 2019", lambda t, year, lang: ~between(t, 2, 7) | (year == 2019)),
        ('column("odd name") is None', lambda t, year, lang: np.array([v is None for v in t["odd name"].to_pylist()])),
        ('column("odd name") > -1', lambda t, year, lang: np.array([v is not None for v in t["odd name"].to_pylist()])),
    ],
)  # fmt: skip
def test_a_filter_picks_the_rows_that_it_says(where: str, picked: Any, years: Path, tmp_path: Path) -> None:
    manifest = prepare_text(years, tmp_path / "p", text="text", label="label", where=where, min_df=1, max_df=1.0)
    in_order = [(documents(30, 0), 2019, "en"), (documents(30, 2), 2020, "d e")]
    in_order += [(documents(30, 1), 2020, "en"), (documents(30, 3), 2021, "en")]
    whole = pa.concat_tables([one[0].filter(pa.array(picked(*one))) for one in in_order])
    pq.write_table(whole, tmp_path / "whole.parquet")
    peer = prepare_text(tmp_path / "whole.parquet", tmp_path / "q", text="text", label="label", min_df=1, max_df=1.0)
    assert manifest.splits["train"]["rows"] == len(whole) > 0
    assert rows_of(tmp_path / "p") == rows_of(tmp_path / "q") and peer.vocabulary == manifest.vocabulary


def test_a_column_of_the_files_that_their_folders_name_too_is_said(years: Path, tmp_path: Path) -> None:
    """Either could be meant, and their values may differ."""
    said = "columns of the files are read in place of those that their folders name: number"
    for number, (name, suffix) in enumerate([("number=1", ".parquet"), ("number=2", ".parquet"), ("number=1", ".csv")]):
        folder = tmp_path / f"both{suffix}" / name
        folder.mkdir(parents=True)
        (pq.write_table if suffix == ".parquet" else pa_csv.write_csv)(documents(30, number), folder / f"p{suffix}")
    given: dict[str, Any] = {"text": "text", "label": "label", "min_df": 1, "max_df": 1.0, "keep": ["number"]}
    for suffix in (".parquet", ".csv"):
        with pytest.warns(DboostWarning, match=said):
            prepare_text(tmp_path / f"both{suffix}", tmp_path / f"p{suffix}", **given)
        assert len({row["number"] for row in rows_of(tmp_path / f"p{suffix}")}) > 5
    with pytest.warns(DboostWarning, match=said):
        dboost.BoostedClassifier(alpha=0.1).fit(
            dboost.ParquetData(tmp_path / "both.parquet", label="label", features=["number"])
        )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        prepare_text(years, tmp_path / "p", text="text", label="year", keep=["lang"], min_df=1, max_df=1.0)


def test_a_filter_of_csv_and_of_the_command_line(tmp_path: Path) -> None:
    pa_csv.write_csv(documents(60, 0), tmp_path / "d.csv")
    arguments = ["--text", "text", "--label", "label", "--min-df", "1", "--max-df", "1.0", "--workers", "0"]
    made = main(["prepare", str(tmp_path / "d.csv"), *arguments, "--where", "number < 5", "--out", str(tmp_path / "p")])
    assert made == 0
    kept = documents(60, 0).filter(pa.compute.less(documents(60, 0)["number"], 5))
    assert len(rows_of(tmp_path / "p")) == len(kept) < 60


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("year = 2020", "two equals signs compare"),
        ("year >", "cannot be read"),
        ("__import__('os').system('x')", "has no meaning here"),
        ("year + 1 > 3", "has no meaning here"),
        ("year in number", "has no meaning here"),
        ("year is 3", "has no meaning here"),
        ("(lambda: 1)() == 1", "has no meaning here"),
    ],
)
def test_filters_without_meaning_are_refused(where: str, said: str, years: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=said):
        prepare_text(years, tmp_path / "p", text="text", where=where)
    assert not (tmp_path / "p").exists()


def test_filters_that_do_not_fit_the_data_are_refused(years: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="nowhere"):
        prepare_text(years, tmp_path / "p", text="text", where="nowhere == 1")
    with pytest.raises(DataError, match="does not fit the columns"):
        prepare_text(years, tmp_path / "p", text="text", where='number == "three"')
    with pytest.raises(DataError, match="no rows"):
        prepare_text(years, tmp_path / "p", text="text", where="year > 3000")


def test_patterns_mean_what_a_shell_means(years: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def names(pattern: str) -> list[str]:
        return [name for _, name in matches(any_path(pattern)) or []]

    root = str(years)
    assert names(f"{root}/year=20[2]?/lang=en/*.parquet") == [f"year={y}/lang=en/part.parquet" for y in (2020, 2021)]
    assert len(names(f"{root}/**/*.parquet")) == 4
    assert names(f"{root}/year=2019/*/part.parquet") == ["lang=en/part.parquet"]
    assert matches(any_path(root)) is None
    with pytest.raises(DataError, match="no file fits"):
        matches(any_path(f"{root}/*.csv"))
    monkeypatch.chdir(years.parent)
    data = dboost.ParquetData("years/year=2020/*/*.parquet", features=["number"], label="label")
    assert len(data.files()) == 2
    model = dboost.BoostedClassifier(alpha=0.01).fit(data)
    assert model.n_features_in_ == 1
    manifest = prepare_text("years/year=202?/*/*.parquet", tmp_path / "p", text="text", min_df=1, max_df=1.0)
    assert manifest.splits["train"]["rows"] == 90


def test_patterns_of_keys_mean_what_those_of_files_do() -> None:
    for pattern, fits, fails in [
        ("a/y=202?/*.csv", ["a/y=2021/p.csv"], ["a/y=202/p.csv", "a/y=2021/x/p.csv", "a/y=202//p.csv"]),
        ("a/**/*.csv", ["a/p.csv", "a/b/c/p.csv"], ["b/p.csv", "a/p.csvx"]),
        ("a/[xy]*b.c+", ["a/xqqb.c+", "a/yb.c+"], ["a/zb.c+", "a/x/b.c+", "a/xqqbxc+"]),
        ("a/[!x]?", ["a/yz"], ["a/xz", "a/y/"]),
    ]:
        assert all(re.fullmatch(regex_of(pattern), key) for key in fits)
        assert not any(re.fullmatch(regex_of(pattern), key) for key in fails)


def test_values_of_folders() -> None:
    assert folder_columns("a/year=2020/lang=d%20e/x=y.parquet") == {"year": "2020", "lang": "d e"}
    assert folder_columns("year=__HIVE_DEFAULT_PARTITION__/p.parquet") == {"year": None}
    values, kinds = folder_values(["a=1/b=07/c=03/p", "a=__HIVE_DEFAULT_PARTITION__/b=7/c=04/p"])
    assert kinds == {"a": "int", "b": "str", "c": "int"}, "7 and 07 are two folders, 03 and 04 two months"
    assert values == [{"a": 1, "b": "07", "c": 3}, {"a": None, "b": "7", "c": 4}]
    assert folder_values(["/run=1/t/h=00/p", "/run=1/t/h=01/p"]) == ([{"h": 0}, {"h": 1}], {"h": "int"})
    assert parsed("a == 1 and b in (2, 3) and not c is None")[1] == ("a", "b", "c")


def test_a_delta_table_has_the_rows_of_its_version(tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake")
    where = tmp_path / "table"
    deltalake.write_deltalake(str(where), documents(40, 0).drop_columns("odd name"), partition_by=["label"])
    deltalake.write_deltalake(str(where), documents(20, 1).drop_columns("odd name"), mode="append")
    deltalake.DeltaTable(str(where)).delete("number < 5")
    wanted = pa.concat_tables([documents(40, 0), documents(20, 1)])
    kept = wanted.filter(pa.compute.greater_equal(wanted["number"], 5))
    manifest = prepare_text(where, tmp_path / "p", text="text", label="label", min_df=1, max_df=1.0)
    assert manifest.splits["train"]["rows"] == len(kept) < 60
    data = dboost.ParquetData(where, features=["number"])
    files = data.files()
    deltalake.DeltaTable(str(where)).delete("number < 8")
    assert data.files() == files, "the version that was read first stays"
    assert dboost.ParquetData(where, features=["number"]).files() != files


def test_without_the_package_a_delta_table_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "table" / "_delta_log").mkdir(parents=True)
    pq.write_table(documents(5, 0), tmp_path / "table" / "deleted.parquet")
    monkeypatch.setitem(__import__("sys").modules, "deltalake", None)
    with pytest.raises(UsageError, match=r"dboost\[delta\]"):
        dboost.ParquetData(tmp_path / "table").files()
    with pytest.raises(UsageError, match=r"dboost\[delta\]"):
        prepare_text(tmp_path / "table", tmp_path / "p", text="text")
