"""A model reads raw documents: its folder holds the transform, and nothing else is needed; parts are written once."""

import json
import os
import shutil
import threading

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import dboost
from dboost.engine.machine import available_cores
from pipelines.predicting import parts
from tests.pipelines.conftest import LOCAL, give, write_documents


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A model of prepared documents, its predictions of their features, and the raw documents; nothing else."""
    folder = tmp_path_factory.mktemp("raw")
    write_documents(folder / "d.parquet")
    raw = pq.read_table(folder / "d.parquet")
    raw = raw.append_column("id", pa.array(np.arange(raw.num_rows) + 1000))
    give("prepare", folder / "d.parquet", "--label", "label", "--out", folder / "p")
    give("train", folder / "p", "--alpha", "0.003", "--out", folder / "m")
    give("predict", folder / "m", folder / "p", "--out", folder / "expected", "--split", "train", "--probabilities")
    expected = pq.read_table(folder / "expected")
    shutil.rmtree(folder / "p")
    os.unlink(folder / "d.parquet")
    return folder / "m", raw.drop_columns(["label"]), expected


def write(raw, path):
    """The documents in the format that the name tells, in several files or row groups."""
    if path.suffix == ".csv":
        pyarrow.csv.write_csv(raw, path)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in raw.to_pylist()))
    else:
        pq.write_table(raw, path, row_group_size=37, write_page_checksum=True)
    return path


def test_documents_of_every_format_are_labelled_as_their_features_were(made, tmp_path):
    model, raw, expected = made
    for name in ("new.parquet", "new.csv", "new.jsonl"):
        data, out = write(raw, tmp_path / name), tmp_path / f"out-{name}"
        give("predict", model, data, "--out", out, "--probabilities", "--keep", "id")
        found = pq.read_table(out)
        for column in ("prediction", "probability", "probabilities"):
            assert found[column].to_pylist() == expected[column].to_pylist(), name
        assert found["id"].to_pylist() == raw["id"].to_pylist()
        assert found["row"].to_pylist() == list(range(raw.num_rows)) and set(found["file"].to_pylist()) == {name}
        about = json.loads((out / "_predictions.json").read_text())
        assert about["rows"] == raw.num_rows and about["columns_read"] == 2 and about["bytes_read"] > 0
    assert not list(tmp_path.glob("*.unfinished"))


def test_in_python_the_model_reads_documents(made):
    model, raw, expected = made
    pipeline = dboost.load_pipeline(model)
    assert pipeline.predict(raw["text"].to_pylist()).tolist() == expected["prediction"].to_pylist()
    assert pipeline.predict(raw).tolist() == expected["prediction"].to_pylist()
    chances = pipeline.predict_proba(raw.to_pandas())
    assert chances.tolist() == expected["probabilities"].to_pylist()
    assert chances.max(axis=1).tolist() == expected["probability"].to_pylist()
    # rows of a prepared folder are told by its own files
    assert expected["row"].to_pylist() == list(range(raw.num_rows))
    assert set(expected["file"].to_pylist()) == {"part-00000.parquet"}


@pytest.mark.full
def test_two_workers_write_the_same_files(made, tmp_path):
    model, raw, _ = made
    data = write(raw, tmp_path / "new.parquet")
    for workers in ("0", "2"):
        give("predict", model, data, "--out", tmp_path / workers, "--workers", workers, "--top", "2")
    first, second = (sorted((tmp_path / one).glob("part-*")) for one in ("0", "2"))
    assert [file.read_bytes() for file in first] == [file.read_bytes() for file in second]


def test_parts_that_stand_are_not_written_again(made, tmp_path, monkeypatch):
    model, raw, _ = made
    monkeypatch.setattr("dboost.data.prepared.prepare.GROUP_ROWS", 40)
    data = write(raw, tmp_path / "new.parquet")
    label = parts.label_part
    # pieces are labelled side by side, where there are two processors for them
    together = threading.Barrier(min(2, available_cores()))

    def breaks(piece, number, *arguments):
        if number > 1:
            raise KeyboardInterrupt
        together.wait(10)
        return label(piece, number, *arguments)

    monkeypatch.setattr(parts, "label_part", breaks)
    with pytest.raises(KeyboardInterrupt):
        give("predict", model, data, "--out", tmp_path / "out")
    standing = tmp_path / "out.unfinished" / "parts"
    assert sorted(file.name for file in standing.glob("part-*")) == ["part-00000.parquet", "part-00001.parquet"]
    torn = standing / ".part-00002.parquet.abc"
    torn.write_bytes(b"torn")
    inodes = [os.stat(file).st_ino for file in sorted(standing.glob("part-*"))]
    monkeypatch.setattr(parts, "label_part", label)
    give("resume", tmp_path / "out")
    written = sorted((tmp_path / "out").glob("part-*"))
    assert len(written) > 2 and [os.stat(file).st_ino for file in written[:2]] == inodes
    assert pq.read_table(tmp_path / "out").num_rows == raw.num_rows and not standing.parent.exists()


def test_parts_of_another_question_are_removed(made, tmp_path):
    model, raw, _ = made
    data, out = write(raw, tmp_path / "new.parquet"), tmp_path / "out"
    standing = tmp_path / "out.unfinished" / "parts"
    standing.mkdir(parents=True)
    (standing / "of").write_text("something else")
    pq.write_table(pa.table({"prediction": ["wrong"]}), standing / "part-00000.parquet")
    give("predict", model, data, "--out", out)
    assert "wrong" not in pq.read_table(out)["prediction"].to_pylist()


def test_documents_that_the_model_cannot_read(made, tmp_path, refused):
    model, raw, _ = made
    assert raw.column_names[0] == "text"
    for rows, arguments, code, said in (
        (raw.rename_columns(["words", *raw.column_names[1:]]), [], 3, "column 'text'"),
        (raw.set_column(0, "text", pa.array(range(raw.num_rows))), [], 3, "type int"),
        (raw, ["--keep", "nobody"], 3, "column 'nobody'"),
        (raw, ["--keep", "row"], 2, "is a column of predictions"),
    ):
        data = write(rows, tmp_path / "new.parquet")
        assert said in refused("predict", model, data, "--out", tmp_path / "out", *LOCAL, *arguments, code=code)
        assert [path.name for path in tmp_path.iterdir()] == ["new.parquet"], said
