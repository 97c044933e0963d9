"""prepare_text: the folder it makes, independence of the cut, and what it refuses."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer

from dboost.data import ParquetData, build_plan, load_manifest, prepare_text
from dboost.data.manifest import MANIFEST, VOCABULARY, fingerprint_of
from dboost.data.parquet.plan import blocks_of
from dboost.data.prepared import chunk, prepare
from dboost.data.prepared.mapper import InProcess
from dboost.errors import DataError, UsageError
from tests.data.conftest import write


def corpus(n=400, seed=0):
    rng = np.random.default_rng(seed)
    words = np.array([f"w{i:02d}" for i in range(80)])
    text = [" ".join(words[(80 * rng.random(rng.integers(0, 12)) ** 2).astype(int)]) for _ in range(n)]
    label = np.array(["red", "green", "blue"])[rng.integers(0, 3, n)]
    split = np.where(rng.random(n) < 0.25, "test", "train")
    return pa.table({"id": np.arange(n), "text": text, "label": label, "split": split})


@pytest.fixture
def source(tmp_path):
    table = corpus()
    write(tmp_path / "raw", table.slice(0, 150), table.slice(150, 0), table.slice(150, 30), table.slice(180), rows=70)
    return tmp_path / "raw"


class Threads(InProcess):
    """Another engine, whose tasks end in any order."""

    def map(self, fn, items, *args, name):
        with ThreadPoolExecutor(3) as pool:
            return list(pool.map(lambda item: fn(item, *args), items))


def matrix(data):
    blocks = blocks_of(data)
    n = blocks[0].layout.n_features
    return np.vstack([block.read().csr(n).toarray() for block in blocks])


def test_the_file_of_a_row_is_kept_where_it_is_asked_for(tmp_path):
    table = corpus(60)
    for name, lines in (("a.csv", table.slice(0, 20)), ("b.csv", table.slice(20, 30)), ("c.csv", table.slice(50))):
        (tmp_path / "csv").mkdir(exist_ok=True)
        pa.csv.write_csv(lines.select(["text", "label"]), tmp_path / "csv" / name)
    (tmp_path / "own").mkdir()
    for first in (0, 30):
        part = table.slice(first, 30).append_column("file", pa.array([f"mine{first}"] * 30))
        pq.write_table(part, tmp_path / "own" / f"{first}.parquet")
    names = ["a.csv"] * 20 + ["b.csv"] * 30 + ["c.csv"] * 10
    for source, more, expected in (
        ("csv", {}, names),
        ("csv", {"on_bad_rows": "quarantine", "where": "label != 'red'"}, None),
        ("own", {}, ["mine0"] * 30 + ["mine30"] * 30),
    ):
        rule = {"text": "text", "label": "label", "keep": ["file"], "min_df": 1, "force": True}
        manifest = prepare_text(tmp_path / source, tmp_path / "out", **rule, **more)
        data = ParquetData(tmp_path / "out", groups="file")
        found = pa.concat_tables([pq.read_table(path) for path, _ in data.files()])
        assert manifest.schema["file"] == "str"
        kept = [file for file, label in zip(names, table["label"].to_pylist(), strict=True) if label != "red"]
        assert found["file"].to_pylist() == (kept if expected is None else expected)
    plan = build_plan(data, task="classification", engine=InProcess())
    groups = np.concatenate([item.load().group for item in plan.items])
    assert len(np.unique(groups[:30])) == len(np.unique(groups[30:])) == 1 and groups[0] != groups[-1]


@pytest.mark.full
@pytest.mark.parametrize("rows", [30, 10**6])
def test_features_are_those_of_scikit_learn_for_any_cut(source, tmp_path, monkeypatch, rows):
    monkeypatch.setattr(prepare, "GROUP_ROWS", rows)
    monkeypatch.setattr(chunk, "GROUP_ROWS", rows)
    table = corpus()
    train = np.array(table["split"].to_pylist()) == "train"
    texts = np.array(table["text"].to_pylist(), dtype=object)
    peer = TfidfVectorizer(sublinear_tf=True, min_df=5, max_df=0.5)
    peer.fit(texts[train])
    manifest = prepare_text(
        source, tmp_path / "out", text="text", label="label", keep=["id"], split="split", engine=Threads()
    )
    assert manifest.feature_names() == tuple(peer.get_feature_names_out())
    assert sorted(manifest.splits) == ["test", "train"]
    for split, mask in (("train", train), ("test", ~train)):
        data = ParquetData(tmp_path / "out", split=split)
        np.testing.assert_allclose(matrix(data), peer.transform(texts[mask]).toarray(), atol=1e-6)
        entry = manifest.splits[split]
        assert entry["rows"] == mask.sum() and sum(file["rows"] for file in entry["files"]) == mask.sum()
        stored = pa.concat_tables([pq.read_table(path) for path, _ in data.files()])
        assert stored["id"].to_pylist() == np.flatnonzero(mask).tolist()
        labels = np.array(table["label"].to_pylist())[mask]
        assert stored["label"].to_pylist() == labels.tolist()
        assert dict(entry["classes"]) == {name: int((labels == name).sum()) for name in ("blue", "green", "red")}
        assert entry["nnz"] == np.count_nonzero(matrix(data))
    assert (len(manifest.splits["train"]["files"]) > 5) == (rows == 30)


def test_the_result_trains(source, tmp_path):
    prepare_text(source, tmp_path / "out", text="text", label="label")
    plan = build_plan(ParquetData(tmp_path / "out"), task="classification", engine=InProcess())
    assert plan.classes.tolist() == ["blue", "green", "red"] and plan.n_rows == 400
    assert plan.feature_names == load_manifest(tmp_path / "out").feature_names()
    assert plan.notes == () and plan.items[0].load().values.dtype == np.float32
    same = build_plan(ParquetData(tmp_path / "out" / "train"), task="classification", engine=InProcess())
    assert same.fingerprint == plan.fingerprint


def test_a_source_per_split_and_several_text_columns(tmp_path):
    a, b = corpus(100, 1), corpus(60, 2)
    write(tmp_path / "a", a)
    write(tmp_path / "b", b)
    manifest = prepare_text(
        {"train": tmp_path / "a", "test": tmp_path / "b"}, tmp_path / "out", text=["text", "label"], min_df=1
    )
    assert manifest.label is None and manifest.splits["train"]["classes"] is None
    assert {"red", "green", "blue"} <= set(manifest.feature_names())
    assert [manifest.splits[name]["rows"] for name in ("train", "test")] == [100, 60]
    with pytest.raises(UsageError, match="no split was chosen .*use split= one of test, train"):
        ParquetData(tmp_path / "out").files()
    with pytest.raises(UsageError, match="split='dev' does not exist"):
        ParquetData(tmp_path / "out", split="dev").files()
    with pytest.raises(UsageError, match="no split is named 'train'"):
        prepare_text({"u": tmp_path / "a", "v": tmp_path / "b"}, tmp_path / "x", text="text")


def test_large_row_groups_are_sliced(tmp_path, monkeypatch):
    write(tmp_path / "raw", corpus(), rows=400)
    whole = prepare_text(tmp_path / "raw", tmp_path / "a", text="text", min_df=1)
    monkeypatch.setattr(prepare, "SLICE_BYTES", 1000)
    monkeypatch.setattr(chunk, "GROUP_ROWS", 20)
    sliced = prepare_text(tmp_path / "raw", tmp_path / "b", text="text", min_df=1)
    assert len(whole.splits["train"]["files"]) == 1 and len(sliced.splits["train"]["files"]) == 7
    np.testing.assert_array_equal(matrix(ParquetData(tmp_path / "a")), matrix(ParquetData(tmp_path / "b")))
    first = pq.ParquetFile(tmp_path / "b" / "train" / "part-00000.parquet").metadata
    assert (first.num_rows, first.num_row_groups) == (64, 4)


def test_a_column_of_splits_gives_the_rows_that_whole_files_give(tmp_path):
    """The first reads the text again in its second pass, the other keeps the counts of its first."""
    table = corpus(300, 5)
    train = table.filter(pa.compute.equal(table["split"], "train"))
    test = table.filter(pa.compute.equal(table["split"], "test"))
    for name, rows in (("whole", table), ("train", train), ("test", test)):
        write(tmp_path / name, rows, rows=40)
    options = {"text": ["text", "label"], "keep": ["id"], "min_df": 2}
    prepare_text(tmp_path / "whole", tmp_path / "a", split="split", **options)
    prepare_text({"train": tmp_path / "train", "test": tmp_path / "test"}, tmp_path / "b", **options)
    for split in ("train", "test"):
        one, other = (
            pa.concat_tables([pq.read_table(path) for path, _ in ParquetData(tmp_path / out, split=split).files()])
            for out in ("a", "b")
        )
        assert one.num_rows > 50 and one.combine_chunks().equals(other.combine_chunks())
    # Nothing of what is kept between the passes is left.
    assert sorted(path.name for path in (tmp_path / "b").iterdir()) == ["_dboost.json", VOCABULARY, "test", "train"]


@pytest.mark.parametrize("split", [None, "split"])
def test_strings_that_are_no_text_name_file_and_row_group(tmp_path, split):
    texts = [b"first", b"se\xffcond", b"third"]
    offsets = np.cumsum([0, *map(len, texts)]).astype(np.int32)
    text = pa.Array.from_buffers(pa.string(), 3, [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(texts))])
    table = pa.table({"text": text, "split": ["train", "test", "train"]})
    pq.write_table(table, tmp_path / "raw.parquet", row_group_size=1)
    with pytest.raises(DataError, match=r"(UTF-8|UTF8).*raw.parquet.*row group 1"):
        prepare_text(tmp_path / "raw.parquet", tmp_path / "out", text="text", split=split, min_df=1)
    assert not (tmp_path / "out").exists()


def test_an_existing_folder(source, tmp_path):
    out = tmp_path / "out"
    prepare_text(source, out, text="text")
    before = sorted(path.read_bytes() for path in out.rglob("*") if path.is_file())
    with pytest.raises(UsageError, match=r"exists.*--force"):
        prepare_text(source, out, text="text")
    with pytest.raises(UsageError, match="max_df is .* documents, min_df 10000"):
        prepare_text(source, out, text="text", min_df=10_000, force=True)
    assert sorted(path.read_bytes() for path in out.rglob("*") if path.is_file()) == before
    prepare_text(source, out, text="text", label="label", force=True)
    assert load_manifest(out).label == "label"
    other = tmp_path / "mine"
    other.mkdir()
    (other / "thesis.txt").write_text("precious")
    with pytest.raises(UsageError, match="not a prepared data set"):
        prepare_text(source, other, text="text", force=True)
    assert (other / "thesis.txt").read_text() == "precious"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine", "out", "raw"]


def missing_text(table):
    return table.set_column(1, "text", pa.array([None, *table["text"].to_pylist()[1:]]))


def missing_label(table):
    return table.set_column(2, "label", pa.array([None, *table["label"].to_pylist()[1:]]))


@pytest.mark.parametrize(
    "change, options, column, words",
    [
        (missing_text, {}, "text", "1 documents are missing"),
        (missing_label, {}, "label", "1 labels are missing"),
        (lambda t: t.drop_columns(["label"]), {}, "label", "no such column"),
        (lambda t: t.drop_columns(["id"]), {}, "id", "no such column"),
        (lambda t: t.set_column(2, "label", pa.array(range(t.num_rows))), {}, "label", "type int"),
        (lambda t: t.set_column(1, "text", pa.array(range(t.num_rows))), {}, "text", "type int"),
        (
            lambda t: t.set_column(3, "split", pa.array(["../up"] * t.num_rows)),
            {"split": "split"},
            "split",
            "name a split",
        ),
        (
            lambda t: t.set_column(3, "split", pa.nulls(t.num_rows, pa.string())),
            {"split": "split"},
            "split",
            "no split",
        ),
    ],
)
def test_bad_sources_name_file_and_column(tmp_path, change, options, column, words):
    table = corpus(40)
    write(tmp_path / "raw", table.slice(0, 20), change(table.slice(20)))
    with pytest.raises(DataError, match=words) as caught:
        prepare_text(tmp_path / "raw", tmp_path / "out", text="text", label="label", keep=["id"], **options)
    assert caught.value.file == str(tmp_path / "raw" / "f1.parquet") and caught.value.column == column
    assert sorted(path.name for path in tmp_path.iterdir()) == ["raw"]


@pytest.mark.parametrize(
    "options, words",
    [
        ({"min_df": -1}, "min_df=-1"),
        ({"max_df": 1.5}, "max_df=1.5"),
        ({"min_df": float("nan")}, "min_df=nan"),
        ({"max_features": 0}, "max_features=0"),
        ({"hashing": 1}, "hashing=1"),
        ({"text": []}, "names no column"),
        ({"keep": ["values"]}, "'values' would clash"),
    ],
)
def test_bad_settings(source, tmp_path, options, words):
    with pytest.raises(UsageError, match=words):
        prepare_text(source, tmp_path / "out", **{"text": "text", **options})


# -- the manifest ------------------------------------------------------------------------------------------------------


@pytest.fixture
def prepared(source, tmp_path):
    prepare_text(source, tmp_path / "out", text="text", label="label")
    return tmp_path / "out"


def edit(folder: Path, change, seal=True):
    path = folder / MANIFEST
    content = json.loads(path.read_text())
    change(content)
    if seal:
        content["fingerprint"] = fingerprint_of(content)
    path.write_text(json.dumps(content))


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda c: c.update(format_version=2), "format version 2, expected 1"),
        (lambda c: c.pop("splits"), r"\['splits'\] are missing"),
        (lambda c: c.update(extra=1), r"\['extra'\] are missing or unknown"),
        (lambda c: c.update(schema=[]), "schema is a list"),
        (lambda c: c["features"].update(n_features=-1), "n_features is not a count"),
        (lambda c: c["features"].pop("values"), "no list columns"),
        (lambda c: c["splits"]["train"]["files"][0].update(name="../../etc/x"), "not a plain file name"),
        (lambda c: c["splits"]["train"]["files"][0].pop("size"), "incomplete"),
        (lambda c: c["vocabulary"].update(file="/etc/passwd"), "not a plain file name"),
        (lambda c: c["splits"].update({"..": c["splits"]["train"]}), "not a plain file name"),
        (lambda c: c["splits"].update(dev={}), "lists no files"),
    ],
)
def test_damaged_manifests(prepared, change, words):
    edit(prepared, change)
    with pytest.raises(DataError, match=words) as caught:
        load_manifest(prepared)
    assert caught.value.file == str(prepared / MANIFEST)


def test_a_manifest_vouches_for_its_files(prepared):
    edit(prepared, lambda c: c["settings"].update(min_df=1), seal=False)
    with pytest.raises(DataError, match="does not match its fingerprint"):
        load_manifest(prepared)


@pytest.mark.parametrize("content", ["", "[]", "{", '{"a": 1}', "\x00"])
def test_files_that_are_no_manifest(tmp_path, content):
    (tmp_path / MANIFEST).write_text(content)
    with pytest.raises(DataError) as caught:
        load_manifest(tmp_path)
    assert caught.value.file == str(tmp_path / MANIFEST)


def test_files_other_than_the_prepared_ones(prepared):
    path = prepared / "train" / "part-00000.parquet"
    table = pq.read_table(path)
    pq.write_table(table.slice(0, 10), path)
    with pytest.raises(DataError, match="not the one of the manifest") as caught:
        build_plan(ParquetData(prepared), task="classification", engine=InProcess())
    assert caught.value.file == str(path)
    os.unlink(path)
    with pytest.raises(DataError, match="gone"):
        build_plan(ParquetData(prepared), task="classification", engine=InProcess())


def test_another_vocabulary(prepared):
    path = prepared / VOCABULARY
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(DataError, match="not the one of the manifest") as caught:
        load_manifest(prepared).feature_names()
    assert caught.value.file == str(path)


# -- real documents ----------------------------------------------------------------------------------------------------


def test_arxiv_titles(data_home, tmp_path):
    table = (
        pq.ParquetFile(data_home / "arxiv" / "arxiv_titles.parquet")
        .read(columns=["primary_cat", "title"])
        .slice(0, 20_000)
    )
    pq.write_table(table, tmp_path / "raw.parquet", row_group_size=6000)
    manifest = prepare_text(tmp_path / "raw.parquet", tmp_path / "out", text="title", label="primary_cat")
    peer = TfidfVectorizer(sublinear_tf=True, min_df=5, max_df=0.5)
    expected = peer.fit_transform(table["title"].to_pylist())
    assert manifest.feature_names() == tuple(peer.get_feature_names_out())
    [block] = blocks_of(ParquetData(tmp_path / "out"))
    assert abs(block.read().csr(expected.shape[1]) - expected).max() < 1e-6
