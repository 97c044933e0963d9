"""Documents in CSV and JSON lines give what the same rows in Parquet give; held-out documents need no labels."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from dboost.data import ParquetData, load_manifest, prepare_text
from dboost.data.parquet.plan import blocks_of
from dboost.data.prepared import chunk, copies, documents, prepare
from dboost.data.prepared.documents import Wanted, column_types, joint_kinds
from dboost.errors import DataError, UsageError
from tests.data.test_prepare import Threads

ODD = [
    'a, "quoted" word',
    "two\nlines of words",
    "",
    "naïve Übung 日本",
    "tab\tand 'quote'",
    "\\ back/slash",
    "NA",
    "null",
]


def corpus(n: int = 300, seed: int = 0) -> pa.Table:
    """Documents with everything that a format has to quote, whole numbers, text labels and a split."""
    rng = np.random.default_rng(seed)
    text = [" ".join(f"w{int(60 * r * r):02d}" for r in rng.random(rng.integers(1, 12))) for _ in range(n)]
    text = [f"{t} {ODD[i % len(ODD)]}" if i % 3 else ODD[i % len(ODD)] for i, t in enumerate(text)]
    label = np.array(["red", "null", "NA"])[rng.integers(0, 3, n)].tolist()
    split = np.where(rng.random(n) < 0.25, "test", "train").tolist()
    return pa.table({"id": np.arange(n), "other": [[1]] * n, "text": text, "label": label, "split": split})


def write_as(path: Path, table: pa.Table) -> Path:
    """The rows in the format of the file's name."""
    if path.suffix == ".parquet":
        pq.write_table(table, path)
    elif path.suffix == ".csv":
        pa_csv.write_csv(table.drop_columns(["other"]) if "other" in table.column_names else table, path)
    else:
        path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in table.to_pylist()))
    return path


def prepared(source: object, out: Path, **options: object) -> dict[str, bytes]:
    """Every file of the prepared folder."""
    prepare_text(source, out, text="text", min_df=1, **options)  # type: ignore[arg-type]
    return {str(path.relative_to(out)): path.read_bytes() for path in sorted(out.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".ndjson"])
@pytest.mark.parametrize("rows", [50, 10**6])
def test_the_same_rows_give_the_same_bytes_as_from_parquet(
    suffix: str, rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (prepare, chunk, copies):
        monkeypatch.setattr(module, "GROUP_ROWS", rows)
    # Blocks end within quoted lines and within letters of several bytes.
    monkeypatch.setattr(documents, "BLOCK_BYTES", 997)
    table = corpus()
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=rows)
    options = {"label": "label", "keep": ["id"], "split": "split"}
    expected = prepared(tmp_path / "a.parquet", tmp_path / "out", **options)
    found = prepared(write_as(tmp_path / f"b{suffix}", table), tmp_path / "other", engine=Threads(), **options)
    assert found == expected
    assert (len(expected) > 6) == (rows == 50)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["a.parquet", f"b{suffix}", "out", "other"])


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_a_folder_of_files_is_read_in_the_order_of_names(suffix: str, tmp_path: Path) -> None:
    table = corpus(90)
    for kind in (".parquet", suffix):
        (tmp_path / kind[1:]).mkdir()
        for i in range(3):
            write_as(tmp_path / kind[1:] / f"part-{i}{kind}", table.slice(30 * i, 30))
    options = {"label": "label", "keep": ["id"]}
    expected = prepared(tmp_path / "parquet", tmp_path / "a", **options)
    assert prepared(tmp_path / suffix[1:], tmp_path / "b", **options) == expected
    files = sorted((tmp_path / suffix[1:]).iterdir())
    assert prepared({"train": files}, tmp_path / "c", **options) == expected


@pytest.mark.parametrize(
    ("values", "label", "kept"),
    [
        (["1", "-20", "0"], "int", "int"),
        (["007", "1"], "str", "str"),
        (["1.5", "2"], "float", "float"),
        (["12.50", "2.00"], "float", "str"),
        (["1e5", "2"], "str", "str"),
        (["1e-05", "2.0", "1e+16", "0.1"], "float", "float"),
        (["9007199254740993", "0.5"], "str", "str"),
        (["9223372036854775807", "-9223372036854775808"], "int", "int"),
        (["18446744073709551615", "7"], "uint", "uint"),
        (["18446744073709551615", "-7"], "str", "str"),
        (["1." + "0" * 400 + "1"], "float", "str"),
        (["1" * 400 + ".5"], "str", "str"),
        (["+5"], "str", "str"),
        (["true", "false"], "str", "str"),
        (["2020-01-01"], "str", "str"),
        (["1", "x"], "str", "str"),
        (["NaN", "1"], "str", "str"),
        (["123456789012345678901"], "str", "str"),
    ],
)
def test_types_of_csv_are_found_by_reading_every_row(
    values: list[str], label: str, kept: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documents, "BLOCK_BYTES", 2000 if "0" * 400 in values[0] or len(values[0]) > 64 else 64)
    rows = [f"{v},t,{v}" for v in ["1" if label == "int" else values[0]] * 40 + values]
    (tmp_path / "d.csv").write_text("y,text,k\n" + "\n".join(rows) + "\n")
    found = column_types((str(tmp_path / "d.csv"), ()), Wanted(("text",), ("y",), ("k",)))
    assert joint_kinds([found], ["d.csv"]) == {"text": "str", "y": label, "k": kept}


def test_numbers_of_json_stay_numbers(tmp_path: Path) -> None:
    rows = [{"text": "some words", "y": i % 2, "k": 1 if i else 0.5, "t": i > 2} for i in range(6)]
    (tmp_path / "d.jsonl").write_text("\n\n".join(map(json.dumps, rows)))
    manifest = prepare_text(
        tmp_path / "d.jsonl", tmp_path / "o", text="text", label="y", keep=["k", "t"], min_df=1, max_df=1.0
    )
    assert dict(manifest.splits["train"]["classes"]) == {0: 3, 1: 3}
    stored = pq.read_table(tmp_path / "o" / "train")
    assert stored["k"].to_pylist() == [0.5, 1, 1, 1, 1, 1] and stored["t"].to_pylist() == [False] * 3 + [True] * 3


BAD = {
    "a row of other width": (".csv", "text,label\na b,red\na,b,c\n", "Expected 2 columns, got 3", None),
    "no rows at all": (".csv", "", "the file is empty, or has no row", None),
    "no such column": (".csv", "texts,label\na,b\n", "no such column.*did you mean 'texts'", "text"),
    "two columns of one name": (".csv", "text,label,text\na,b,c\n", "two columns have the same name", "text"),
    "a label that is missing in CSV": (
        ".csv",
        "text,label\nsome words,\nsome words,x\n",
        "1 labels are missing",
        "label",
    ),
    "compressed": (".csv", gzip.compress(b"text,label\n"), r"the file is compressed \(.gz\), which its name", None),
    "Parquet": (".jsonl", b"PAR1\x15\x04", r"the file is Parquet \(.parquet\), which its name", None),
    "not UTF-8": (".csv", b"text,label\n\xff\xfe,x\n", "no UTF-8", None),
    "not JSON": (".jsonl", '{"text": "a", "label": "x"}\n{"text": \n', "line 2 is not JSON", None),
    "a list": (".jsonl", "[1, 2]\n", "line 1 is a list, expected an object", None),
    "mixed labels": (
        ".jsonl",
        '{"text": "a", "label": "x"}\n{"text": "a", "label": 1}\n',
        "line 2 holds an int",
        "label",
    ),
    "an object as a label": (".jsonl", '{"text": "a", "label": {"x": "y"}}\n', "line 1 holds a dict", "label"),
    "an object of numbers as a label": (
        ".jsonl",
        '{"text": "a", "label": {"x": 1}}\n',
        "type map.*, expected lab",
        "label",
    ),
    "lists of texts and of numbers": (
        ".jsonl",
        '{"text": "a", "label": ["x"]}\n{"text": "a", "label": [1]}\n',
        "line 2 holds a list, expected list<str> as before",
        "label",
    ),
    "a text that is a number": (".jsonl", '{"text": 1, "label": "x"}\n', "type int, expected text", "text"),
    "a text that is missing": (
        ".jsonl",
        '{"label": "x"}\n{"text": "a", "label": "x"}\n',
        "1 documents are missing",
        "text",
    ),
    "no such key": (".jsonl", '{"label": "x"}\n', "no such column", "text"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files_are_named_and_nothing_is_left(name: str, tmp_path: Path) -> None:
    suffix, content, words, column = BAD[name]
    path = tmp_path / f"d{suffix}"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(DataError, match=words) as caught:
        prepare_text(path, tmp_path / "out", text="text", label="label", min_df=1, max_df=1.0)
    assert caught.value.file == str(path) and (column is None or caught.value.column == column)
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


def test_a_row_that_is_larger_than_a_block_is_not_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "BLOCK_BYTES", 1000)
    for name, content, said in [
        ("d.csv", 'text\n"' + "word " * 1000 + '"\n', "a row is larger than"),
        ("d.jsonl", "[" + '{"text": "a"}, ' * 1000 + "]", "no line ends within"),
    ]:
        (tmp_path / name).write_text(content)
        with pytest.raises(DataError, match=said):
            prepare_text(tmp_path / name, tmp_path / "out", text="text")


@pytest.mark.parametrize("name", ["d.json", "d"])
def test_other_formats_are_named_with_those_that_are_read(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text('[{"text": "a"}]')
    with pytest.raises(DataError, match="are not read.*JSON lines") as caught:
        prepare_text(tmp_path / name, tmp_path / "out", text="text")
    assert caught.value.file == str(tmp_path / name)
    # What is Parquet is read whatever it is called.
    write_as(tmp_path / "a.parquet", corpus(20)).rename(tmp_path / name)
    assert prepared(tmp_path / name, tmp_path / "out")


# -- held-out documents ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".jsonl"])
@pytest.mark.parametrize("how", ["no column", "no value", "some values"])
def test_held_out_documents_need_no_labels(suffix: str, how: str, tmp_path: Path) -> None:
    train = write_as(tmp_path / f"a{suffix}", corpus(80))
    held = corpus(60, 1)
    if how == "no column":
        held = held.drop_columns(["label"])
    else:
        labels = [None if how == "no value" or i % 2 else "red" for i in range(60)]
        held = held.set_column(3, "label", pa.array(labels, pa.string()))
    test = write_as(tmp_path / f"b{suffix}", held)
    manifest = prepare_text({"train": train, "test": test}, tmp_path / "out", text="text", label="label", min_df=1)
    assert sum(n for _, n in manifest.splits["train"]["classes"]) == 80
    expected = [["red", 30]] if how == "some values" else None
    assert manifest.splits["test"]["classes"] == expected and manifest.splits["test"]["rows"] == 60
    assert sum(block.n_rows for block in blocks_of(ParquetData(tmp_path / "out", split="test"))) == 60


def test_documents_that_are_learned_from_need_labels(tmp_path: Path) -> None:
    table = corpus(40)
    write_as(tmp_path / "h.parquet", table)
    for suffix in (".parquet", ".csv", ".jsonl"):
        bare = write_as(tmp_path / f"a{suffix}", table.drop_columns(["label"]))
        with pytest.raises(DataError, match="no such column") as caught:
            prepare_text({"train": bare, "test": tmp_path / "h.parquet"}, tmp_path / "o", text="text", label="label")
        assert caught.value.column == "label"
        bare.unlink()


def test_a_split_without_labels_is_named_where_labels_are_needed(tmp_path: Path) -> None:
    write_as(tmp_path / "a.csv", corpus(80))
    write_as(tmp_path / "b.csv", corpus(60, 1).drop_columns(["label"]))
    source = {"train": tmp_path / "a.csv", "test": tmp_path / "b.csv"}
    prepare_text(source, tmp_path / "out", text="text", label="label", min_df=1)
    with pytest.raises(DataError, match="split 'test' was prepared without labels"):
        blocks_of(ParquetData(tmp_path / "out", split="test"), labels=True)
    assert load_manifest(tmp_path / "out").label == "label"


@pytest.mark.filterwarnings("ignore:left out, each")
def test_one_file_in_two_splits_is_refused(tmp_path: Path) -> None:
    path = write_as(tmp_path / "a.csv", corpus(30))
    (tmp_path / "link.csv").symlink_to(path)
    for other in (path, tmp_path / "link.csv", tmp_path):
        with pytest.raises(UsageError, match="one file is in the splits 'train' and 'test'"):
            prepare_text({"train": path, "test": other}, tmp_path / "out", text="text", label="label")
    assert not (tmp_path / "out").exists()


def test_a_label_that_is_a_text_column_is_refused(tmp_path: Path) -> None:
    path = write_as(tmp_path / "a.parquet", corpus(30))
    with pytest.raises(UsageError, match="'text' is a column of features too"):
        prepare_text(path, tmp_path / "out", text=["split", "text"], label="text")
