"""The command line: exit codes, one-line errors, and that a refused run changes nothing."""

import io
import json
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dboost.model.fitted import read_model
from pipelines.cli import main
from tests.pipelines.conftest import CLASSES

LOCAL = ["--workers", "0"]


def error_line(capsys):
    """The one line on stderr."""
    captured = capsys.readouterr()
    lines = captured.err.splitlines()
    assert len(lines) == 1, captured.err
    assert lines[0].startswith("dboost: error[")
    assert "Traceback" not in captured.out + captured.err
    return lines[0]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "which command?"),
        (["bench", "all", "--quick"], "`python -m lab bench` in a checkout"),
        (["trian"], "did you mean 'train'?"),
        (["train", "--alhpa", "1"], "did you mean '--alpha'?"),
        (["train", "--alpha"], "expected one argument"),
        (["train", "data", "--alpha", "-1", "--out", "x"], "--alpha: found '-1'"),
        (["train", "data", "--alpha=nan", "--out", "x"], "--alpha: found 'nan'"),
        (["train", "data"], "out is missing"),
        (["train", "--out", "x"], "data is missing"),
        (["train", "data", "--out", "x", "--penalty", "l1/l3"], "l1/l3"),
        (["train", "data", "--out", "x", "--loss", "hinge"], "hinge"),
        (["train", "data", "--out", "x", "--update", "sgd"], "sgd"),
        (["train", "data", "--out", "x", "--select", "best"], "best"),
        (["train", "data", "--out", "x", "--penalty", "none", "--alpha", "1"], "none"),
        (["train", "data", "--out", "x", "--penalty", "l1", "--alpha", "0"], "alpha"),
        (["evaluate"], "model is missing"),
        (["inspect"], "model is missing"),
        (["predict", "model", "data"], "out is missing"),
        (["prepare", "docs", "--tokenizer", "word", "--out", "x"], "did you mean 'words'?"),
        (["prepare", "docs", "--text", "text", "--label", "text", "--out", "x", "--workers", "0"], "features too"),
        (["demo", "--data", "imdb"], "one of installed, arxiv"),
    ],
)
def test_usage_is_refused_before_any_cluster(arguments, said, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # A cluster that is asked for would fail at once: the address answers nobody.
    monkeypatch.setenv("DASK_SCHEDULER_ADDRESS", "tcp://127.0.0.1:9")
    assert main(arguments) == 2
    line = error_line(capsys)
    assert line.startswith("dboost: error[usage]: ") and said in line
    assert list(tmp_path.iterdir()) == []


def table(**columns):
    """40 rows of two features and a label of three classes, with some columns replaced."""
    rng = np.random.default_rng(0)
    default = {"a": rng.normal(size=40), "b": rng.normal(size=40), "y": [i % 3 for i in range(40)]}
    return pa.table({name: value for name, value in {**default, **columns}.items() if value is not None})


def one_file(content):
    # With checksums: of files without there is a warning, and here the error is to be the only line.
    return lambda folder: pq.write_table(content, folder / "part-0.parquet", write_page_checksum=True)


def two_files(first, second):
    def write(folder):
        pq.write_table(first, folder / "part-0.parquet")
        pq.write_table(second, folder / "part-1.parquet")

    return write


def damaged(folder):
    pq.write_table(table(), folder / "part-0.parquet")
    content = (folder / "part-0.parquet").read_bytes()
    (folder / "part-0.parquet").write_bytes(content[: len(content) // 2])


BAD_DATA = {
    "NaN feature": (one_file(table(a=[1.0] * 39 + [float("nan")])), 3, "'a'"),
    "infinite feature": (one_file(table(b=[1.0] * 39 + [float("inf")])), 3, "'b'"),
    "text feature": (one_file(table(a=["word"] * 40)), 3, "'a'"),
    "one class": (one_file(table(y=[1] * 40)), 3, "class"),
    "no rows": (one_file(table().slice(0, 0)), 3, "row"),
    "missing label column": (one_file(table(y=None)), 3, "'y'"),
    "missing label": (one_file(table(y=[None, *[i % 3 for i in range(39)]])), 3, "'y'"),
    "mixed types": (two_files(table(), table(a=["1"] * 40)), 3, "'a'"),
    "missing column": (two_files(table(), table(b=None)), 3, "'b'"),
    "labels of mixed types": (two_files(table(), table(y=["x", "y"] * 20)), 3, "'y'"),
    "damaged file": (damaged, 3, "part-0.parquet"),
    "empty folder": (lambda folder: None, 3, "folder"),
}


def test_bad_data_is_one_line_and_nothing_is_written(tmp_path, capsys):
    for number, (name, (write, code, said)) in enumerate(BAD_DATA.items()):
        at = tmp_path / str(number)
        folder = at / "data"
        folder.mkdir(parents=True)
        write(folder)
        before = sorted(path.name for path in at.rglob("*"))
        assert main(["train", str(folder), "--label", "y", "--out", str(at / "model"), *LOCAL]) == code, name
        line = error_line(capsys)
        assert line.startswith("dboost: error[data]: ") and said in line, name
        assert sorted(path.name for path in at.rglob("*")) == before, name


def test_absent_data_models_and_work_are_named(tmp_path, capsys):
    absent = str(tmp_path / "absent")
    for arguments in (
        ["train", absent, "--label", "y", "--out", absent + "2"],
        ["inspect", absent],
        ["resume", absent],
    ):
        assert main(arguments) == 3
        assert absent in error_line(capsys)


@pytest.mark.parametrize("command", ["prepare", "train", "predict", "evaluate", "demo"])
def test_a_folder_that_exists_is_left_alone(command, prepared, trained, tmp_path, capsys):
    out = tmp_path / "out"
    out.mkdir()
    (out / "mine.txt").write_text("precious")
    inputs = {
        "prepare": [str(prepared.parent / "documents.parquet")],
        "train": [str(prepared)],
        "predict": [str(trained), str(prepared)],
        "evaluate": [str(trained), str(prepared)],
        "demo": [],
    }
    for force in ([], ["--force"]):
        # Force replaces the result of an earlier run, not whatever a mistyped path names.
        assert main([command, *inputs[command], "--out", str(out), *LOCAL, *force]) == 2
        assert str(out) in error_line(capsys)
        assert [path.name for path in tmp_path.rglob("*")] == ["out", "mine.txt"]
        assert (out / "mine.txt").read_text() == "precious"


def test_force_replaces_an_earlier_model(prepared, tmp_path, capsys):
    arguments = ["train", str(prepared), "--out", str(tmp_path / "model"), *LOCAL]
    assert main([*arguments, "--penalty", "l1"]) == 0
    assert main([*arguments, "--penalty", "l1/l2", "--force"]) == 0
    assert read_model(tmp_path / "model").penalty == "l1/l2"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model"]
    capsys.readouterr()


class CommClosedError(OSError):
    """Stands for what Dask raises when a connection breaks; an OSError by type."""


CommClosedError.__module__ = "distributed.comm.core"


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (CommClosedError("in connect"), 4, "error[cluster]: the connection to the cluster broke (CommClosedError"),
        (TimeoutError("no answer"), 4, "error[cluster]"),
        (PermissionError(13, "Permission denied", "/data/x"), 5, "error[storage]: Permission denied; file /data/x"),
        (OSError(28, "No space left on device"), 5, "error[storage]: No space left on device"),
        (MemoryError(), 4, "error[memory]"),
        (ZeroDivisionError("division by zero"), 1, "error[defect]: ZeroDivisionError"),
    ],
)
def test_every_other_error_has_its_code_too(error, code, said, monkeypatch, capsys):
    from pipelines.commands import models

    def fail(*_):
        raise error

    monkeypatch.setitem(models.COMMANDS, "inspect", (models.InspectSettings, fail))
    assert main(["inspect", "model"]) == code
    assert said in error_line(capsys)
    assert main(["inspect", "model", "--debug"]) == code
    assert "Traceback (most recent call last):" in capsys.readouterr().err


def test_a_model_folder_tells_how_it_was_made(trained):
    run = json.loads((trained / "run.json").read_text(encoding="utf-8"))
    assert run["settings"]["penalty"] == "l1/l2" and run["settings"]["alpha"] == 0.005
    assert run["versions"]["dboost"] and run["stop_reason"] == "tol"
    # What was not given is there too: a default may change with a version.
    used = run["parameters"]
    assert used["tol"] == 1e-4 and used["max_rounds"] == 1000 and used["update"] == "newton"
    assert used["alpha"] == 0.005 and used["loss"]["name"] == "multinomial" and used["penalty"]["name"] == "l1/l2"


def test_evaluate_reports_every_figure(trained, prepared, capsys):
    assert main(["evaluate", str(trained), str(prepared), *LOCAL, "--log-format", "json"]) == 0
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    (found,) = [event for event in events if event["event"] == "evaluation"]
    assert found["examples"] == 100 and found["classes"] == list(CLASSES)
    confusion = np.array(found["confusion"])
    assert confusion.shape == (4, 4) and confusion.sum() == 100
    assert found["error"] == pytest.approx(1 - np.trace(confusion) / 100)
    assert 0 < found["coverage"] < 1.5 and 0 < found["log_loss"] < np.log(4)
    model = read_model(trained)
    assert found["zero_rows"] == pytest.approx(1 - len(model.active) / model.n_features)
    assert found["zero_entries"] == pytest.approx(1 - np.count_nonzero(model.W) / (4 * model.n_features))


def test_predictions_are_those_of_the_model(trained, prepared, tmp_path):
    out = tmp_path / "predictions"
    arguments = ["predict", str(trained), str(prepared), "--out", str(out), *LOCAL, "--probabilities"]
    assert main([*arguments, "--log-format", "json"]) == 0
    found = pq.read_table(out)
    assert json.loads((out / "_predictions.json").read_text())["rows"] == found.num_rows == 100
    files = sorted((prepared / "test").glob("*.parquet"))
    rows = pq.read_table(files[0]) if len(files) == 1 else pa.concat_tables(map(pq.read_table, files))
    model = read_model(trained)
    dense = np.zeros((100, model.n_features))
    for i, (columns, values) in enumerate(zip(rows["indices"].to_pylist(), rows["values"].to_pylist())):
        dense[i, columns] = values
    assert found["prediction"].to_pylist() == model.predict(dense).tolist()
    chances = model.predict_proba(dense)
    np.testing.assert_array_equal(np.array(found["probabilities"].to_pylist()), chances)
    np.testing.assert_array_equal(found["probability"].to_numpy(), chances.max(axis=1))
    assert found["row"].to_pylist()[:3] == [0, 1, 2] and set(found["file"].to_pylist()) == {f.name for f in files}


def test_another_vocabulary_is_refused(trained, tmp_path, capsys):
    from tests.pipelines.conftest import write_documents

    write_documents(tmp_path / "documents.parquet", seed=1)
    documents = ["prepare", str(tmp_path / "documents.parquet"), "--label", "label", "--split", "split"]
    assert main([*documents, "--out", str(tmp_path / "other"), *LOCAL, "--max-features", "20"]) == 0
    capsys.readouterr()
    for command in (["evaluate"], ["predict", "--out", str(tmp_path / "p")]):
        assert main([command[0], str(trained), str(tmp_path / "other"), *command[1:], *LOCAL]) == 3
        error_line(capsys)
    assert not (tmp_path / "p").exists()


def test_a_terminal_without_the_letters_shows_them_escaped(tmp_path, monkeypatch):
    texts = ["naïve Übung" if i % 2 else "plain text" for i in range(40)]
    pq.write_table(pa.table({"text": texts, "label": [i % 2 for i in range(40)]}), tmp_path / "d.parquet")
    steps = (
        ["prepare", str(tmp_path / "d.parquet"), "--label", "label", "--out", str(tmp_path / "p"), "--max-df", "1.0"],
        ["train", str(tmp_path / "p"), "--out", str(tmp_path / "m"), "--alpha", "quick"],
    )
    for step in steps:
        assert main([*step, *LOCAL]) == 0
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="ascii", write_through=True) for _ in range(2))
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    assert main(["inspect", str(tmp_path / "m")]) == 0
    assert b"\\xfc" in out.buffer.getvalue() and err.buffer.getvalue() == b""


def test_the_embedded_cluster_gives_the_same_bits(prepared, trained, tmp_path, capfd):
    out = tmp_path / "model"
    code = main(["train", str(prepared), "--out", str(out), "--penalty", "l1/l2", "--alpha", "0.005", "--workers", "1"])
    assert (code, capfd.readouterr().err) == (0, "")
    ours, theirs = read_model(out), read_model(trained)
    np.testing.assert_array_equal(ours.W, theirs.W)
    assert ours.certificate.objective == theirs.certificate.objective
