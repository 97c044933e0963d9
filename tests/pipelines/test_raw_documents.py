"""A model reads raw documents: its folder holds the transform, and nothing else is needed; parts are written once."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import dboost
from pipelines.cli import main
from pipelines.predicting import parts
from tests.pipelines.conftest import write_documents


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A model of prepared documents, its predictions of their features, and the raw documents; nothing else."""
    folder = tmp_path_factory.mktemp("raw")
    write_documents(folder / "d.parquet")
    raw = pq.read_table(folder / "d.parquet")
    raw = raw.append_column("id", pa.array(np.arange(raw.num_rows) + 1000))
    assert main(["prepare", str(folder / "d.parquet"), "--label", "label", "--out", str(folder / "p")]) == 0
    assert main(["train", str(folder / "p"), "--alpha", "0.003", "--out", str(folder / "m"), "--workers", "0"]) == 0
    arguments = ["--out", str(folder / "expected"), "--workers", "0", "--split", "train", "--probabilities"]
    assert main(["predict", str(folder / "m"), str(folder / "p"), *arguments]) == 0
    expected = read(folder / "expected")
    shutil.rmtree(folder / "p")
    os.unlink(folder / "d.parquet")
    return folder / "m", raw.drop_columns(["label"]), expected


def read(folder):
    return pa.concat_tables(pq.read_table(file) for file in sorted(Path(folder).glob("part-*.parquet")))


def write(raw, path):
    """The documents in the format that the name tells, in several files or row groups."""
    if path.suffix == ".csv":
        pyarrow.csv.write_csv(raw, path)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in raw.to_pylist()))
    else:
        pq.write_table(raw, path, row_group_size=37)
    return path


@pytest.mark.parametrize("name", ["new.parquet", "new.csv", "new.jsonl"])
def test_documents_of_every_format_are_labelled_as_their_features_were(made, tmp_path, name):
    model, raw, expected = made
    data = write(raw, tmp_path / name)
    arguments = ["--out", str(tmp_path / "out"), "--workers", "0", "--probabilities", "--keep", "id"]
    assert main(["predict", str(model), str(data), *arguments]) == 0
    found = read(tmp_path / "out")
    for column in ("prediction", "probability", "probabilities"):
        assert found[column].to_pylist() == expected[column].to_pylist()
    assert found["id"].to_pylist() == raw["id"].to_pylist()
    assert found["row"].to_pylist() == list(range(raw.num_rows)) and set(found["file"].to_pylist()) == {name}
    about = json.loads((tmp_path / "out" / "_predictions.json").read_text())
    assert about["rows"] == raw.num_rows and about["columns_read"] == 2 and about["bytes_read"] > 0
    assert not list(tmp_path.glob("*.unfinished"))


def test_in_python_the_model_reads_documents(made):
    model, raw, expected = made
    pipeline = dboost.load_pipeline(model)
    assert pipeline.predict(raw["text"].to_pylist()).tolist() == expected["prediction"].to_pylist()
    assert pipeline.predict(raw).tolist() == expected["prediction"].to_pylist()
    chances = pipeline.predict_proba(raw.to_pandas())
    assert chances.tolist() == expected["probabilities"].to_pylist()


@pytest.mark.full
def test_two_workers_write_the_same_files(made, tmp_path):
    model, raw, _ = made
    data = write(raw, tmp_path / "new.parquet")
    for workers in ("0", "2"):
        arguments = ["--out", str(tmp_path / workers), "--workers", workers, "--top", "2"]
        assert main(["predict", str(model), str(data), *arguments]) == 0
    first, second = (sorted((tmp_path / one).glob("part-*")) for one in ("0", "2"))
    assert [file.read_bytes() for file in first] == [file.read_bytes() for file in second]


def test_parts_that_stand_are_not_written_again(made, tmp_path, monkeypatch):
    model, raw, _ = made
    monkeypatch.setattr("dboost.data.prepared.prepare.GROUP_ROWS", 40)
    data = write(raw, tmp_path / "new.parquet")
    label, done = parts.label_part, []

    def breaks(*arguments):
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(label(*arguments))
        return done[-1]

    monkeypatch.setattr(parts, "label_part", breaks)
    arguments = ["predict", str(model), str(data), "--out", str(tmp_path / "out"), "--workers", "0"]
    with pytest.raises(KeyboardInterrupt):
        main(arguments)
    standing = tmp_path / "out.unfinished" / "parts"
    assert sorted(file.name for file in standing.glob("part-*")) == ["part-00000.parquet", "part-00001.parquet"]
    torn = standing / ".part-00002.parquet.abc"
    torn.write_bytes(b"torn")
    inodes = [os.stat(file).st_ino for file in sorted(standing.glob("part-*"))]
    monkeypatch.setattr(parts, "label_part", label)
    assert main(["resume", str(tmp_path / "out"), "--workers", "0"]) == 0
    written = sorted((tmp_path / "out").glob("part-*"))
    assert len(written) > 2 and [os.stat(file).st_ino for file in written[:2]] == inodes
    assert read(tmp_path / "out").num_rows == raw.num_rows and not standing.parent.exists()


def test_parts_of_another_question_are_removed(made, tmp_path, monkeypatch):
    model, raw, _ = made
    data, out = write(raw, tmp_path / "new.parquet"), tmp_path / "out"
    standing = tmp_path / "out.unfinished" / "parts"
    standing.mkdir(parents=True)
    (standing / "of").write_text("something else")
    pq.write_table(pa.table({"prediction": ["wrong"]}), standing / "part-00000.parquet")
    assert main(["predict", str(model), str(data), "--out", str(out), "--workers", "0"]) == 0
    assert "wrong" not in read(out)["prediction"].to_pylist()


@pytest.mark.parametrize(
    ("change", "arguments", "said"),
    [
        (lambda raw: raw.rename_columns(["words", *raw.column_names[1:]]), [], "column 'text'"),
        (lambda raw: raw.set_column(0, "text", pa.array(range(raw.num_rows))), [], "type int"),
        (lambda raw: raw, ["--keep", "nobody"], "column 'nobody'"),
        (lambda raw: raw, ["--keep", "row"], "is a column of predictions"),
    ],
)
def test_documents_that_the_model_cannot_read(made, tmp_path, capsys, change, arguments, said):
    model, raw, _ = made
    assert raw.column_names[0] == "text"
    data = write(change(raw), tmp_path / "new.parquet")
    code = main(["predict", str(model), str(data), "--out", str(tmp_path / "out"), "--workers", "0", *arguments])
    error = capsys.readouterr().err
    assert code in (2, 3) and said in error and len(error.splitlines()) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new.parquet"]
