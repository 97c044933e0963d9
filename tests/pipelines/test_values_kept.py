"""Formats x types x commands: every value goes from a file through prepare, train and predict as it was."""

import datetime
import decimal
import gzip
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from tests.pipelines.conftest import LOCAL, give

N = 24
BIG = (1 << 53) + 1
# Terms of few documents, and of all of them, are features too.
ALL_TERMS = ["--min-df", "1", "--max-df", "1.0"]


def cycled(*values):
    return [values[i % len(values)] for i in range(N)]


TEXTS = cycled("sea wave salt", "sky cloud wind")
# Columns that all formats have; the type is that of Parquet.
COMMON: dict[str, pa.Array] = {
    "int8": pa.array(cycled(-128, 127, 0), pa.int8()),
    "int64": pa.array(cycled(-(1 << 63), (1 << 63) - 1, BIG), pa.int64()),
    "uint64": pa.array(cycled((1 << 64) - 1, 0, BIG), pa.uint64()),
    "snowflake": pa.array([1294030472427835393 + 7 * i for i in range(N)], pa.int64()),
    "missing": pa.array(cycled(1, None, BIG), pa.int64()),
    "padded": pa.array(cycled("007", "0010", "7")),
    "digits": pa.array(cycled("123456789012345678901234567890", "1")),
    "exponent": pa.array(cycled("1e3", "2E10")),
    "plus": pa.array(cycled("+49301", "+1")),
    "float": pa.array(cycled(0.1, -1e-7, 1e22, 3.0), pa.float64()),
    "text": pa.array(TEXTS),
    "odd": pa.array(cycled("a\r\nb", 'say "x", y', "é\n", "NA", "null", "")),
    "empty": pa.array([""] * N),
}
# Columns that Parquet alone has types for.
RICH: dict[str, pa.Array] = {
    "bool": pa.array(cycled(True, False, None)),
    "float32": pa.array(cycled(0.1, np.nan, np.inf), pa.float32()),
    "date": pa.array(cycled(datetime.date(2020, 2, 29), None)),
    "time": pa.array(cycled(datetime.datetime(2020, 2, 29, 1, 2, 3, 4)), pa.timestamp("us", "UTC")),
    "decimal": pa.array(cycled(decimal.Decimal("12.50"), decimal.Decimal("-0.01")), pa.decimal128(20, 2)),
    "bytes": pa.array(cycled(b"\x00\xff", b""), pa.binary()),
    "uuid": pa.array([bytes([i] * 16) for i in range(N)], pa.binary(16)),
    "dictionary": pa.array(cycled("007", "x", None)).dictionary_encode(),
    "large": pa.array(cycled("1", None), pa.large_string()),
    "list": pa.array(cycled([1, 2], [], None), pa.list_(pa.int32())),
}


def as_csv(table, path):
    table.to_pandas(types_mapper=pd.ArrowDtype).to_csv(path, index=False, sep="\t" if ".tsv" in path.name else ",")


def as_json(table, path):
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in table.to_pylist()).encode()
    with pa.CompressedOutputStream(str(path), "zstd") if path.suffix == ".zst" else path.open("wb") as stream:
        stream.write(text)


def as_folder(table, path):
    """Two files, of which the second has wider types and other encodings of the same values."""
    path.mkdir()
    half = table.num_rows // 2
    pq.write_table(table.slice(0, half), path / "a.parquet")
    columns = {}
    for name in table.column_names:
        column = table.column(name).slice(half)
        wider = {pa.int8(): pa.int32(), pa.string(): pa.large_string(), pa.float32(): pa.float64()}
        columns[name] = column.cast(wider.get(column.type, column.type))
    pq.write_table(pa.table(columns), path / "b.parquet")


WRITERS: dict[str, tuple[Callable[[pa.Table, Path], None], dict[str, pa.Array]]] = {
    "one.parquet": (pq.write_table, COMMON | RICH),
    "folder": (as_folder, COMMON | RICH),
    "plain.csv": (as_csv, COMMON),
    "packed.csv.gz": (as_csv, COMMON),
    "tabs.tsv": (as_csv, COMMON),
    "plain.jsonl": (as_json, COMMON),
    "packed.jsonl.zst": (as_json, COMMON),
}


def alike(one, other):
    return one == other or (one != one and other != other)


@pytest.mark.parametrize(
    "formats", [("folder", "packed.csv.gz"), pytest.param(tuple(WRITERS), marks=pytest.mark.full)], ids=["few", "all"]
)
def test_kept_values_are_those_of_the_file(formats, tmp_path, monkeypatch):
    """Every column of every format, through `prepare` and `predict`."""
    monkeypatch.chdir(tmp_path)
    label = pa.array(cycled("sea", "sky"))
    pq.write_table(pa.table({"text": TEXTS, "y": label}), "train.parquet")
    give("prepare", "train.parquet", "--label", "y", *ALL_TERMS, "--out", "base")
    give("train", "base", "--alpha", "0.01", "--out", "model")
    for name in formats:
        write, columns = WRITERS[name]
        table = pa.table({**columns, "y": label})
        write(table, tmp_path / name)
        keep = [flag for column in columns for flag in ("--keep", column)]
        options = ["--label", "y", *keep, *ALL_TERMS]
        give("prepare", name, *options, "--out", f"prepared-{name}")
        give("predict", "model", name, *keep, "--out", f"labels-{name}")
        for command, folder in (("prepare", f"prepared-{name}/train"), ("predict", f"labels-{name}")):
            # one schema for all parts: pyarrow reads the folder as it is
            found = ds.dataset(folder, format="parquet", exclude_invalid_files=False).to_table()
            for column in columns:
                cell = f"{name}, {column}, {command}: {found[column].type}"
                expected = table[column].to_pylist()
                if ".csv" in name or ".tsv" in name:
                    # nothing between commas is an empty document, and in other columns a value that is missing
                    expected = [None if value == "" and column != "text" else value for value in expected]
                values = found[column].to_pylist()
                assert len(values) == N and all(map(alike, values, expected)), cell
                assert column in RICH or type(values[0]) is type(expected[0]), cell
        if ".csv" in name:
            read = pd.read_csv(name, dtype=str, keep_default_na=False)
            for column in ("snowflake", "padded", "digits", "exponent", "plus", "uint64"):
                assert list(map(str, found[column].to_pylist())) == read[column].tolist(), (name, column)
        elif name == "folder":
            assert found["padded"].to_pylist() == pd.read_parquet(name)["padded"].tolist()


LABELS: dict[str, list[Any]] = {
    "int8": cycled(-3, 4),
    "int64": cycled(-BIG, BIG),
    "int64 ends": cycled(-(1 << 63), (1 << 63) - 1),
    "uint64": cycled((1 << 64) - 1, (1 << 63) + 1),
    "bool": cycled(True, False),
    "whole floats": cycled(0.0, 1.0),
    "padded": cycled("007", "7"),
    "digits": cycled("123456789012345678901", "2"),
    "bytes": cycled(b"\x00", b"\xff"),
    "targets": [0.25 * i for i in range(N)],
    "float32 targets": np.arange(N, dtype=np.float32).tolist(),
}
ARROW = {"int8": pa.int8(), "uint64": pa.uint64(), "float32 targets": pa.float32()}


FEW = (("d.csv", ("uint64", "padded", "targets")), ("d.parquet", ("int64 ends", "whole floats")))
ALL = tuple((name, tuple(LABELS)) for name in ("d.parquet", "d.csv", "d.jsonl"))


@pytest.mark.parametrize("cells", [FEW, pytest.param(ALL, marks=pytest.mark.full)], ids=["few", "all"])
def test_labels_come_back_as_they_were(cells, tmp_path, monkeypatch, prints):
    """Labels of each kind in each format, through `prepare`, `train` and `predict`."""
    monkeypatch.chdir(tmp_path)
    for name, kinds in cells:
        for kind in kinds:
            values = LABELS[kind]
            if kind == "bytes" and name != "d.parquet":
                continue
            table = pa.table({"text": TEXTS, "y": pa.array(values, ARROW.get(kind))})
            {"d.parquet": pq.write_table, "d.csv": as_csv, "d.jsonl": as_json}[name](table, tmp_path / name)
            place = f"{kind}-{name}".replace(" ", "-")
            said = prints("prepare", name, "--label", "y", *ALL_TERMS, "--out", f"p-{place}")
            regression = "targets" in kind
            loss = ["--loss", "squared"] if regression else []
            give("train", f"p-{place}", "--alpha", "0.001", *loss, "--out", f"m-{place}")
            give("predict", f"m-{place}", name, "--out", f"o-{place}")
            found = pq.read_table(f"o-{place}")["prediction"].to_pylist()
            if regression:
                assert kind != "targets" or "targets from 0 to 5.75" in said, said
                assert abs(np.mean(found) - np.mean(values)) < 0.05 and len(set(found)) == 2, place
                continue
            # CSV has no booleans: there the words are the classes, as pandas writes them
            expected = [str(value) for value in values] if kind == "bool" and name == "d.csv" else values
            assert found == expected and type(found[0]) is type(expected[0]), (place, found[:2], expected[:2])
            assert "2 classes" in said


def test_labels_without_meaning_are_refused_with_the_reason(tmp_path, monkeypatch, refused):
    monkeypatch.chdir(tmp_path)
    for kind, values, reason in (
        ("date", RICH["date"].fill_null(datetime.date(2020, 1, 1)), "date32.*cast the column, a date to text"),
        ("decimal", RICH["decimal"], "decimal128.*a decimal to float64"),
        ("list", RICH["list"], "list<int>, expected labels"),
        ("nan", pa.array(cycled(0.5, np.nan)), "labels are missing"),
        ("infinite", pa.array(cycled(0.5, np.inf)), "infinity"),
    ):
        pq.write_table(pa.table({"text": TEXTS, "y": values}), f"{kind}.parquet")
        line = refused("prepare", f"{kind}.parquet", "--label", "y", *ALL_TERMS, "--out", "p", *LOCAL, code=3)
        assert re.search(reason, line) and f"{kind}.parquet" in line, line
    pq.write_table(pa.table({"text": TEXTS, "y": [0.25 * i for i in range(N)]}), "f.parquet")
    give("prepare", "f.parquet", "--label", "y", *ALL_TERMS, "--out", "f")
    line = refused("train", "f", "--out", "m", *LOCAL, code=3)
    assert "fractions, expected classes" in line and "use --loss squared" in line


def test_columns_of_folders_are_columns_for_every_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame({"text": TEXTS, "number": np.arange(N) % 5, "hour": np.arange(N) % 2, "code": "x"})
    for suffix in (".parquet", ".csv.gz", ".jsonl"):
        root = f"t{suffix}"
        for hour, part in frame.groupby("hour"):
            folder = Path(root) / f"hour=0{hour}" / "code=00x"
            folder.mkdir(parents=True)
            rows = pa.Table.from_pandas(part[["text", "number"]], preserve_index=False)
            {".parquet": pq.write_table, ".csv.gz": as_csv, ".jsonl": as_json}[suffix](rows, folder / f"a{suffix}")
        options = ["--label", "hour", "--keep", "code", *ALL_TERMS]
        give("prepare", root, *options, "--out", f"p{suffix}")
        give("train", f"p{suffix}", "--alpha", "0.01", "--out", f"m{suffix}")
        give("predict", f"m{suffix}", root, "--keep", "hour", "--keep", "code", "--out", f"o{suffix}")
        found = pq.read_table(f"o{suffix}").to_pandas()
        assert found.hour.tolist() == sorted(frame.hour) == found.prediction.tolist(), suffix
        assert set(found.code) == {"00x"}, suffix
        picked = ["--where", "hour == 1", *ALL_TERMS, "--keep", "hour"]
        give("prepare", root, *picked, "--out", f"w{suffix}")
        assert ds.dataset(f"w{suffix}/train").to_table()["hour"].to_pylist() == [1] * (N // 2)
    # as numbers, beside what pandas reads: the hour decides the label
    frame["y"] = np.where(frame.hour == 1, "late", "early")
    table = pa.Table.from_pandas(frame[["number", "hour", "y"]], preserve_index=False)
    pq.write_to_dataset(table, "numbers", partition_cols=["hour"])
    give("train", "numbers", "--label", "y", "--alpha", "0.01", "--out", "model")
    give("predict", "model", "numbers", "--keep", "hour", "--keep", "y", "--out", "labels")
    give("evaluate", "model", "numbers", "--label", "y", "--out", "figures")
    found = pq.read_table("labels").to_pandas()
    assert found.prediction.tolist() == found.y.tolist()
    assert found.hour.tolist() == pd.read_parquet("numbers").hour.astype(int).tolist()


def test_statistics_of_csv_are_those_of_arrow(tmp_path):
    """An empty field, quoted or not, is an empty document; the count of rows is pyarrow's."""
    path = tmp_path / "d.csv.gz"
    path.write_bytes(gzip.compress(b'text,y\nsea wave,a\n,b\n"",a\nsky cloud,b\n'))
    give("prepare", str(path), "--label", "y", *ALL_TERMS, "--out", str(tmp_path / "p"))
    found = ds.dataset(tmp_path / "p" / "train").to_table()
    assert [len(row) for row in found["indices"].to_pylist()] == [2, 0, 0, 2]
    assert found.num_rows == pa_csv.read_csv(path).num_rows
