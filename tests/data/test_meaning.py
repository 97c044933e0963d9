"""What a folder, a column and a value mean: nothing is left out or changed without a word.

Covers: files of every ending, compressed ones, links, hidden names; columns of an index and of folders; bytes of CSV at
the ends of blocks; the one type of several files. Does not cover: every type in every command
(tests/pipelines/test_values_kept.py).
"""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import os
import random
import warnings
from pathlib import Path

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dboost.data import ParquetData, prepare_text
from dboost.data.meaning import CSV, JSON_LINES, PARQUET, Dialect, files_below, fits, format_of, joint_type
from dboost.data.prepared import documents
from dboost.data.prepared.documents import csv_tables, document_files
from dboost.errors import DataError, DboostWarning
from tests.data.conftest import plan

TABLE = pa.table({"text": ["sea wave", "sky cloud"] * 10, "y": ["a", "b"] * 10})
TEXT = TABLE.to_pandas().to_csv(index=False).encode()


def rows(source: Path, out: Path) -> int:
    manifest = prepare_text(source, out, text="text", label="y", min_df=1, max_df=1.0)
    return int(manifest.splits["train"]["rows"])


def pack(path: Path, content: bytes) -> None:
    """Write bytes with the compression that a name tells; two members, as `cat a.gz b.gz` makes them, where that is."""
    half = len(content) // 2
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(content[:half]) + gzip.compress(content[half:]))
    elif path.suffix == ".bz2":
        path.write_bytes(bz2.compress(content[:half]) + bz2.compress(content[half:]))
    else:
        codec = {".zst": "zstd", ".lz4": "lz4", ".br": "brotli"}[path.suffix]
        with pa.CompressedOutputStream(str(path), codec) as stream:
            stream.write(content)


def test_every_file_of_a_folder_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "d"
    (folder / "2024").mkdir(parents=True)
    (folder / "a.csv").write_bytes(TEXT)
    (folder / "B.CSV").write_bytes(TEXT)
    (folder / "c.tsv").write_bytes(TEXT.replace(b",", b"\t"))
    for ending in ("gz", "bz2", "zst", "lz4", "br"):
        pack(folder / "2024" / f"d.csv.{ending}", TEXT)
    for hidden in ("_notes.csv", ".a.csv.swp", "_old/x.csv"):
        (folder / hidden).parent.mkdir(exist_ok=True)
        (folder / hidden).write_bytes(b"no data")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "e.csv").write_bytes(TEXT)
    (folder / "link").symlink_to(tmp_path / "elsewhere")
    assert rows(folder, tmp_path / "p") == 9 * len(TABLE)
    names = [name for _, name in document_files(folder)]
    assert names == sorted(names) and "link/e.csv" in names
    for i, name in enumerate(("r.csv.gz", "r.CSV.GZ", "r.tsv.bz2")):
        content = TEXT.replace(b",", b"\t") if ".tsv" in name else TEXT
        (tmp_path / name).write_bytes((bz2 if name.endswith("bz2") else gzip).compress(content))
        assert rows(tmp_path / name, tmp_path / f"one{i}") == len(TABLE)


def test_parquet_is_read_whatever_it_is_called(tmp_path: Path) -> None:
    for name in ("a.parquet", "b.PARQUET", "c.parq", "d.pq", "part-00000", "e.snappy.parquet"):
        pq.write_table(pa.table({"x": [1.0, 2.0], "y": ["a", "b"]}), tmp_path / name)
    assert len(ParquetData(tmp_path).files()) == 6
    assert format_of("a.csv.gz") == format_of("s3://b/a.TSV?region=x") == CSV and format_of("a.ndjson") == JSON_LINES
    assert format_of("a.parquet") == PARQUET and format_of("a.parquet.gz") is None


REFUSED = {
    "a.json": r"\.json are not read",
    "a.csv.xz": r"\.xz are not read",
    "a.csv.zip": r"\.zip are not read",
    "a.xlsx": r"\.xlsx are not read",
    "a.parquet.gz": "packed once more is not read",
    "a.jsonl": "files of several formats: 2025.csv .CSV., a.jsonl .JSON lines.",
}


@pytest.mark.parametrize("name", REFUSED)
def test_tables_that_are_not_read_are_named(name: str, tmp_path: Path) -> None:
    (tmp_path / "2025.csv").write_bytes(TEXT)
    (tmp_path / name).write_bytes(b"anything")
    with pytest.raises(DataError, match=REFUSED[name]) as caught:
        document_files(tmp_path)
    assert caught.value.file in (str(tmp_path), str(tmp_path / name)) and caught.value.hint


def test_what_is_no_data_is_said_and_links_to_nowhere_are_refused(tmp_path: Path) -> None:
    for name in ("a.csv", "README.md", "LICENSE", "x.csv.2019"):
        (tmp_path / name).write_bytes(TEXT)
    with pytest.warns(DboostWarning, match="as they are no CSV: LICENSE, README.md, x.csv.2019$") as caught:
        assert [name for _, name in files_below(tmp_path, [CSV])] == ["a.csv"]
    assert len(caught) == 1
    (tmp_path / "gone.csv").symlink_to(tmp_path / "nowhere.csv")
    with pytest.raises(DataError, match="a link to a file that is not there"):
        document_files(tmp_path)
    (tmp_path / "gone.csv").unlink()
    (tmp_path / "round").symlink_to(tmp_path)
    with pytest.raises(DataError, match="leads back"):
        document_files(tmp_path)
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / "a.csv").write_bytes(TEXT)
    with pytest.raises(DataError, match="holds no files of Parquet, but CSV"):
        files_below(tmp_path / "c", [PARQUET])


def test_a_packed_file_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(os.urandom(2000).hex().encode() * 3 + b"\n" + TEXT)[:-20])
    with pytest.raises(DataError, match="cannot be read") as caught:
        rows(tmp_path / "a.csv.gz", tmp_path / "p")
    assert caught.value.file == str(tmp_path / "a.csv.gz")


def test_no_byte_of_csv_is_lost_at_the_end_of_a_block(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(0)
    schema, path = pa.schema([("a", pa.string()), ("b", pa.string())]), str(tmp_path / "d.csv")
    for _ in range(150):
        signs = ["x", "\r", "\n", "\r\n", '"', ",", "é"]
        written = [
            ["".join(rng.choices(signs, k=rng.randrange(12))), rng.choice("pq")] for _ in range(rng.randrange(9))
        ]
        stream = io.StringIO(newline="")
        lines = csv.writer(stream, quoting=csv.QUOTE_ALL, lineterminator=rng.choice(["\n", "\r\n"]))
        lines.writerows([["a", "b"], *written])
        Path(path).write_bytes(stream.getvalue().encode())
        monkeypatch.setattr(documents, "BLOCK_BYTES", rng.randrange(60, 120))
        tables = csv_tables(path, schema, ["a"], Dialect())
        found = [list(row.values()) for table in tables for row in table.to_pylist()]
        assert found == written


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # of Dask, to pandas
def test_the_index_of_a_table_is_no_feature_and_may_be_named(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.normal(size=40), "b": rng.normal(size=40), "y": ["p", "q"] * 20})
    dd.from_pandas(frame, npartitions=2).to_parquet(tmp_path / "dask")
    named = frame.set_index(pd.Index([7 * i % 41 for i in range(40)], name="customer_id"))
    named.to_parquet(tmp_path / "named.parquet")
    frame.sample(frac=1.0, random_state=0).to_parquet(tmp_path / "bare.parquet")
    frame.set_index([[7 * i % 41 for i in range(40)], [5 * i % 41 for i in range(40)]]).to_parquet(
        tmp_path / "two.parquet"
    )
    frame.to_parquet(tmp_path / "none.parquet")
    for name in ("dask", "named.parquet", "bare.parquet", "two.parquet", "none.parquet"):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = plan(ParquetData(tmp_path / name, label="y"))
        said = [str(one.message) for one in caught if "no features" in str(one.message)]
        assert name != "named.parquet" or "customer_id" in said[0]
        assert found.feature_names == ("a", "b") == tuple(pd.read_parquet(tmp_path / name).columns[:2]), name
        assert len(said) == (name != "none.parquet"), name
    chosen = ParquetData(tmp_path / "named.parquet", label="y", features=["a", "customer_id"])
    assert plan(chosen).feature_names == ("a", "customer_id")


def test_columns_of_folders_are_features_labels_and_weights(tmp_path: Path) -> None:
    table = pa.table({"a": [0.5, 1.5] * 20, "y": ["p", "q"] * 20, "hour": [0, 1, 2, 3] * 10, "w": [1, 2] * 20})
    pq.write_to_dataset(table, tmp_path / "t", partition_cols=["hour", "w"])
    data = ParquetData(tmp_path / "t", label="y", weight="w")
    assert plan(data).feature_names == ("a", "hour")
    found = plan(ParquetData(tmp_path / "t", label="hour", weight="w", features=["a"]))
    assert found.classes.tolist() == [0, 1, 2, 3] and found.class_counts is not None
    dense = plan(ParquetData(tmp_path / "t", label="y", features=["hour"]))
    hours = [float(v) for item in dense.items for v in item.read().csr(1).toarray().ravel()]
    assert hours == pd.read_parquet(tmp_path / "t").hour.astype(float).tolist()
    moved = tmp_path / "moved"
    os.rename(tmp_path / "t", moved)
    before = plan(ParquetData(moved, label="y")).digest
    os.rename(moved / "hour=3", moved / "hour=4")
    assert plan(ParquetData(moved, label="y")).digest != before, "another value is another data set"
    pq.write_table(table.select(["a", "y", "w"]), moved / "z.parquet")
    with pytest.raises(DataError, match="missing"):
        plan(ParquetData(moved, label="y"))


def test_one_type_holds_the_values_of_both_files() -> None:
    """Each pair has a type to which both cast and come back with the same values, or is refused."""
    whole = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
    ends = {kind: [-(1 << kind.bit_width - 1), (1 << kind.bit_width - 1) - 1] for kind in whole[:4]}
    ends |= {kind: [0, (1 << kind.bit_width) - 1] for kind in whole[4:]}
    for one in whole:
        for other in whole:
            joint = joint_type(one, other)
            assert (joint is None) == (
                {one, other} != {pa.uint64()}
                and pa.uint64() in (one, other)
                and (pa.types.is_signed_integer(one) or pa.types.is_signed_integer(other))
            )
            for kind in (one, other) if joint is not None else ():
                values = pa.array(ends[kind], kind)
                assert values.cast(joint).to_pylist() == ends[kind] and joint == joint_type(other, one)
    for kind in (pa.int32(), pa.uint32(), pa.float32()):
        assert joint_type(kind, pa.float64()) == pa.float64() and fits(kind, "float64")
    assert joint_type(pa.int64(), pa.float64()) is None and not fits(pa.int64(), "float64")
    same = [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.large_string())]
    assert {joint_type(a, b) for a in same for b in same} == {pa.string()}
    assert joint_type(pa.large_list(pa.int32()), pa.list_(pa.int64())) == pa.list_(pa.int64())
    assert joint_type(pa.timestamp("s", "UTC"), pa.timestamp("ns", "UTC")) == pa.timestamp("ns", "UTC")
    assert (
        joint_type(pa.timestamp("s", "UTC"), pa.timestamp("s")) is None
        and joint_type(pa.null(), pa.bool_()) == pa.bool_()
    )
    assert joint_type(pa.string(), pa.int8()) is None


def test_a_file_counts_once_whatever_it_is_called(tmp_path: Path) -> None:
    """Links within a folder, and lists of folders and patterns."""
    table = pa.table({"x": [1.0, 2.0], "y": ["a", "b"]})
    for name in ("d/2023", "d/2024", "e"):
        (tmp_path / name).mkdir(parents=True)
        pq.write_table(table.set_column(0, "x", [[float(len(name)), 3.0]]), tmp_path / name / "a.parquet")
    (tmp_path / "d" / "2022-and-newest").symlink_to("2024")
    (tmp_path / "d" / "1-newest.parquet").symlink_to("2023/a.parquet")
    (tmp_path / "d" / "other").symlink_to(tmp_path / "e")
    names = ["2023/a.parquet", "2024/a.parquet", "other/a.parquet"]
    with pytest.warns(DboostWarning, match="as a link: 1-newest.parquet, 2022-and-newest/a.parquet"):
        assert [name for _, name in ParquetData(tmp_path / "d").files()] == names
    with pytest.warns(DboostWarning, match="under a second name"):
        assert [name for _, name in ParquetData(str(tmp_path / "d/**/*.parquet")).files()] == names
    listed = [tmp_path / "e", tmp_path / "d" / "2023" / "a.parquet", str(tmp_path / "d/2024/*.parquet")]
    files = [str(tmp_path / name / "a.parquet") for name in ("e", "d/2023", "d/2024")]
    assert [path for path, _ in ParquetData(listed).files()] == files
    assert [path for path, _ in document_files(listed)] == files
    with pytest.raises(DataError, match="no such file or folder"):
        ParquetData([tmp_path / "e", tmp_path / "gone"]).files()
    (tmp_path / "e" / "b.parquet.gz").write_bytes(b"packed")
    with pytest.raises(DataError, match=r"packed once more is not read.*b.parquet.gz.*unpack it"):
        ParquetData(tmp_path / "e").files()


def test_a_full_disk_is_not_the_fault_of_the_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "d.csv").write_bytes(TEXT)

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("dboost.data.prepared.copies.pq.ParquetWriter.write_table", full)
    with pytest.raises(Exception, match="cannot write: No space left on device") as caught:
        rows(tmp_path / "d.csv", tmp_path / "p")
    assert type(caught.value).__name__ == "StorageError" and "d.csv" not in str(caught.value.file)
    assert not (tmp_path / "p").exists()


def test_an_integer_that_no_type_holds_is_refused(tmp_path: Path) -> None:
    for value, words in (("1" * 25, "25 digits, more than 64 bits"), ("9007199254740993", "does not hold exactly")):
        (tmp_path / "d.jsonl").write_text(f'{{"text": "a", "y": 0.5}}\n{{"text": "b", "y": {value}}}\n')
        with pytest.raises(DataError, match=words) as caught:
            rows(tmp_path / "d.jsonl", tmp_path / "p")
        assert caught.value.column == "y"
