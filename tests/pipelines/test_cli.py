"""The command line: exit codes, one-line errors, that a refused run changes nothing, and early ends."""

import io
import json
import os
import shlex
import signal
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dboost.model.fitted import read_model
from pipelines import unfinished
from pipelines.cli import main
from pipelines.commands import train
from pipelines.console import Console
from tests.pipelines.conftest import CLASSES, LOCAL, give, write_documents

# A command line, and what its refusal says.
USAGE = {
    "": "which command?",
    "bench all --quick": "`python -m lab bench` in a checkout",
    "trian": "did you mean 'train'?",
    "train --alhpa 1": "did you mean '--alpha'?",
    "train --alpha": "expected one argument",
    "train data --alpha -1 --out x": "--alpha: found '-1'",
    "train data --alpha=nan --out x": "--alpha: found 'nan'",
    "train data": "out is missing",
    "train --out x": "data is missing",
    "train data --out x --penalty l1/l3": "l1/l3",
    "train data --out x --loss hinge": "hinge",
    "train data --out x --update sgd": "sgd",
    "train data --out x --select best": "best",
    "train data --out x --penalty none --alpha 1": "none",
    "train data --out x --penalty l1 --alpha 0": "alpha",
    "evaluate": "model is missing",
    "inspect": "model is missing",
    "predict model data": "out is missing",
    "prepare docs --tokenizer word --out x": "did you mean 'words'?",
    "prepare docs --text text --label text --out x --workers 0": "features too",
    "prepare a.csv --missing zero --out x": "--missing zero has no effect without --column; leave --missing out",
    "prepare a.csv --min-count 3 --out x": "--min-count 3 has no effect without --column",
    "prepare a.csv --column a=text --hashing 64 --max-features 9 --out x":
        "--max-features 9 has no effect beside --column and --hashing",
    "demo --data imdb": "one of installed, arxiv",
    # hypotheses and losses
    "train data --out x --hypotheses everything": "known families",
    """train data --out x --hypotheses '{"family": "products", "degree": 2}'""": "no parameter 'degree'",
    """train data --out x --hypotheses '{"family": "products", "max_degree": 0}'""": "max_degree",
    "train data --out x --hypotheses '{family: products}'": "as a flag a name, or JSON",
    """train data --out x --label y --loss squared --hypotheses '["columns", 3]'""": "hypotheses",
    "train data --out x --epsilon 0.5": "belongs to epsilon_insensitive, huber",
    "train data --out x --loss huber --quantile 0.5": "belongs to quantile",
    "train data --out x --loss quantile --quantile 1.5": "quantile must be a number between 0 and 1",
    "train data --out x --loss squared --class-weight balanced": "--class-weight has no meaning for loss 'squared'",
    "train data --out x --loss tukey": "expected one of log, multinomial",
    # cross-validation
    "train data --out x --cv 5 --estimator one_vs_rest": "has no cross-validation",
    "train data --out x --cv 5 --loss squared --alpha 0.1": "--cv 5 chooses alpha",
    "train data --out x --cv 5 --alpha 0.1": "--cv 5 chooses alpha",
    "train data --out x --cv 1": "an integer of at least 2",
    "train data --out x --cv 5 --eps 2": "--eps 2",
    "train data --out x --cv 5 --penalty none": "penalty 'none'",
    "train data --out x --eps 0.1": "without --cv",
    "train data --out x --rule best": "without --cv",
    # clusters that cannot be, and keys of a cluster that could have no effect
    "doctor --workers 500": "500 workers were asked for; this machine has",
    "doctor --memory-limit=2XiB": "--memory-limit is '2XiB'",
    "doctor --memory-limit=-1": "--memory-limit is '-1'",
    "doctor --memory-limit 1000": "--memory-limit is '1000'",
    "doctor --workers 2 --connect-timeout 5": "--connect-timeout is of a scheduler that is there",
    "doctor --workers 0 --rejoin-seconds 5": "--rejoin-seconds is of a scheduler that is there",
    "doctor --workers 2 --hosts a,b": "--hosts has no effect on this kind",
    "doctor --to slurm --workers 2 --hosts a,b": "--hosts has no effect on this kind",
    "doctor --to gateway --workers 2 --memory-limit 2GiB": "--memory-limit has no effect on this kind",
    "doctor --to gateway --workers 2 --tls temporary": "--tls has no effect on this kind",
    """doctor --to ssh --hosts a,b --workers 2 --options '{"worker_options": {"n_workers": 3}}'""":
        "--workers beside options.worker_options",
    """doctor --to slurm --workers 2 --options '{"n_workers": 3}'""": "--workers beside options.n_workers",
    "resume folder --connect-timeout 5": "--connect-timeout without the cluster it is of",
} | {
    f"doctor --scheduler tcp://127.0.0.1:1 {flag} {value}":
        f"{flag} is of a cluster that is made, and --scheduler names one"
    for flag, value in (("--workers", "2"), ("--workers", "0"), ("--memory-limit", "1GiB"), ("--hosts", "a,b"))
}  # fmt: skip


def test_usage_is_refused_before_any_cluster(refused, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # A cluster that is asked for would fail at once: the address answers nobody.
    monkeypatch.setenv("DASK_SCHEDULER_ADDRESS", "tcp://127.0.0.1:9")
    for command, said in USAGE.items():
        line = refused(*shlex.split(command))
        assert line.startswith("dboost: error[usage]: ") and said in line, (command, line)
        assert list(tmp_path.iterdir()) == [], command


def table(**columns):
    """40 rows of two features and a label of three classes, with some columns replaced."""
    rng = np.random.default_rng(0)
    default = {"a": rng.normal(size=40), "b": rng.normal(size=40), "y": [i % 3 for i in range(40)]}
    return pa.table({name: value for name, value in {**default, **columns}.items() if value is not None})


def files(*contents):
    """What writes one file of each table into a folder, with checksums: without them there is a warning too."""

    def write(folder):
        for number, content in enumerate(contents):
            pq.write_table(content, folder / f"part-{number}.parquet", write_page_checksum=True)

    return write


def damaged(folder):
    pq.write_table(table(), folder / "part-0.parquet")
    content = (folder / "part-0.parquet").read_bytes()
    (folder / "part-0.parquet").write_bytes(content[: len(content) // 2])


BAD_DATA = {
    "NaN feature": (files(table(a=[1.0] * 39 + [float("nan")])), "'a'"),
    "infinite feature": (files(table(b=[1.0] * 39 + [float("inf")])), "'b'"),
    "text feature": (files(table(a=["word"] * 40)), "'a'"),
    "one class": (files(table(y=[1] * 40)), "give --classes"),
    "no rows": (files(table().slice(0, 0)), "row"),
    "missing label column": (files(table(y=None)), "'y'"),
    "missing label": (files(table(y=[None, *[i % 3 for i in range(39)]])), "'y'"),
    "mixed types": (files(table(), table(a=["1"] * 40)), "'a'"),
    "missing column": (files(table(), table(b=None)), "'b'"),
    "labels of mixed types": (files(table(), table(y=["x", "y"] * 20)), "'y'"),
    "damaged file": (damaged, "part-0.parquet"),
    "empty folder": (files(), "folder"),
}


def test_bad_data_is_one_line_and_nothing_is_written(tmp_path, refused):
    for number, (name, (write, said)) in enumerate(BAD_DATA.items()):
        at = tmp_path / str(number)
        (at / "data").mkdir(parents=True)
        write(at / "data")
        before = sorted(path.name for path in at.rglob("*"))
        line = refused("train", at / "data", "--label", "y", "--out", at / "model", *LOCAL, code=3)
        assert line.startswith("dboost: error[data]: ") and said in line, name
        assert sorted(path.name for path in at.rglob("*")) == before, name
    absent = str(tmp_path / "absent")
    for words in (["train", absent, "--label", "y", "--out", absent + "2"], ["inspect", absent], ["resume", absent]):
        assert absent in refused(*words, code=3)


@pytest.mark.parametrize("command", ["prepare", "train", "predict", "evaluate", "demo"])
def test_an_output_that_is_there_or_cannot_be_is_found_before_the_work(
    command, prepared, trained, tmp_path, refused, monkeypatch, capsys
):
    inputs = {
        "prepare": [prepared.parent / "documents.parquet"],
        "train": [prepared],
        "predict": [trained, prepared],
        "evaluate": [trained, prepared],
        "demo": [],
    }[command]
    monkeypatch.chdir(tmp_path)
    Path("out").mkdir()
    Path("out/mine.txt").write_text("precious")
    # Force replaces the result of an earlier run, not whatever a mistyped path names.
    for force in ([], ["--force"]):
        assert "file out" in refused(command, *inputs, "--out", "out", *LOCAL, *force)
    for out in ("/proc/nowhere/out", "out/mine.txt/out", "deep/folders/file/" + "x" * 300):
        line = refused(command, *inputs, "--out", out, *LOCAL, code=5)
        assert "cannot write" in line and out in line and capsys.readouterr().out == ""
    assert [str(path) for path in sorted(Path().rglob("*"))] == ["out", "out/mine.txt"]
    assert Path("out/mine.txt").read_text() == "precious"


def test_force_replaces_an_earlier_model(prepared, tmp_path):
    train = ["train", prepared, "--out", tmp_path / "model", "--alpha", "0.01"]
    give(*train, "--penalty", "l1")
    give(*train, "--penalty", "l1/l2", "--force")
    assert read_model(tmp_path / "model").penalty == "l1/l2"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model"]


class CommClosedError(OSError):
    """Stands for what Dask raises when a connection breaks; an OSError by type."""


CommClosedError.__module__ = "distributed.comm.core"
ERRORS = [
    (CommClosedError("in connect"), 4, "error[cluster]: the connection to the cluster broke (CommClosedError"),
    (TimeoutError("no answer"), 4, "error[cluster]"),
    (PermissionError(13, "Permission denied", "/data/x"), 5, "error[storage]: Permission denied; file /data/x"),
    (OSError(28, "No space left on device"), 5, "error[storage]: No space left on device"),
    (MemoryError(), 4, "error[memory]"),
    (ZeroDivisionError("division\n  by zero"), 1, "error[defect]: ZeroDivisionError: division by zero"),
]


def test_every_other_error_has_its_code_too(monkeypatch, capsys, refused):
    from pipelines.commands import models

    for error, code, said in ERRORS:

        def fail(*_, error=error):
            raise error

        monkeypatch.setitem(models.COMMANDS, "inspect", (models.InspectSettings, fail))
        assert said in refused("inspect", "model", code=code)
        assert main(["inspect", "model", "--debug"]) == code
        assert "Traceback (most recent call last):" in capsys.readouterr().err, said


def test_a_model_folder_tells_how_it_was_made(trained):
    run = json.loads((trained / "run.json").read_text(encoding="utf-8"))
    assert run["settings"]["penalty"] == "l1/l2" and run["settings"]["alpha"] == 0.005
    assert run["versions"]["dboost"] and run["stop_reason"] == "tol"
    # What was not given is there too: a default may change with a version.
    used = run["parameters"]
    assert used["tol"] == 1e-4 and used["max_rounds"] == 1000 and used["update"] == "newton"
    assert used["alpha"] == 0.005 and used["loss"]["name"] == "multinomial" and used["penalty"]["name"] == "l1/l2"


def test_evaluate_reports_every_figure(trained, prepared, tells):
    (found,) = [event for event in tells("evaluate", trained, prepared) if event["event"] == "evaluation"]
    assert found["examples"] == 100 and found["classes"] == list(CLASSES)
    confusion = np.array(found["confusion"])
    assert confusion.shape == (4, 4) and confusion.sum() == 100
    assert found["error"] == pytest.approx(1 - np.trace(confusion) / 100)
    assert 0 < found["coverage"] < 1.5 and 0 < found["log_loss"] < np.log(4)
    model = read_model(trained)
    assert found["zero_rows"] == pytest.approx(1 - len(model.active) / model.n_features)
    assert found["zero_entries"] == pytest.approx(1 - np.count_nonzero(model.W) / (4 * model.n_features))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_top_classes_and_scores_are_those_of_the_model(n_classes, tmp_path, refused):
    from dboost import BoostedClassifier

    X = np.random.default_rng(0).normal(size=(60, 4))
    rows = pa.table({f"c{j}": X[:, j] for j in range(4)})
    model = BoostedClassifier(alpha=1e-2).fit(rows, np.array(["a", "b", "c"])[np.argmax(X[:, :n_classes], axis=1)])
    model.save(tmp_path / "m")
    pq.write_table(rows, tmp_path / "t.parquet", write_page_checksum=True)
    asked = ["predict", tmp_path / "m", tmp_path / "t.parquet", "--out", tmp_path / "p"]
    assert "--top 9, but the model has" in refused(*asked, "--top", "9", *LOCAL)
    assert not (tmp_path / "p").exists()
    give(*asked, "--top", "2", "--scores")
    found, chances = pq.read_table(tmp_path / "p"), model.predict_proba(rows)
    best = np.argsort(-chances, axis=1, kind="stable")[:, :2]
    assert found["top_classes"].to_pylist() == model.classes_[best].tolist()
    assert found["top_probabilities"].to_pylist() == np.take_along_axis(chances, best, axis=1).tolist()
    assert [row[0] for row in found["top_classes"].to_pylist()] == found["prediction"].to_pylist()
    assert found["scores"].to_pylist() == model.decision_function(rows).tolist()


def test_another_vocabulary_is_refused(trained, tmp_path, refused):
    write_documents(tmp_path / "documents.parquet", seed=1)
    documents = ["prepare", tmp_path / "documents.parquet", "--label", "label", "--split", "split"]
    give(*documents, "--out", tmp_path / "other", "--max-features", "20")
    for command in (["evaluate"], ["predict", "--out", tmp_path / "p"]):
        refused(command[0], trained, tmp_path / "other", *command[1:], *LOCAL, code=3)
    assert not (tmp_path / "p").exists()


def test_a_terminal_without_the_letters_shows_them_escaped(tmp_path, monkeypatch):
    texts = ["naïve Übung" if i % 2 else "plain text" for i in range(40)]
    pq.write_table(pa.table({"text": texts, "label": [i % 2 for i in range(40)]}), tmp_path / "d.parquet")
    give("prepare", tmp_path / "d.parquet", "--label", "label", "--out", tmp_path / "p", "--max-df", "1.0")
    give("train", tmp_path / "p", "--out", tmp_path / "m", "--alpha", "quick")
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="ascii", write_through=True) for _ in range(2))
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    assert main(["inspect", str(tmp_path / "m")]) == 0
    assert b"\\xfc" in out.buffer.getvalue() and err.buffer.getvalue() == b""


@pytest.mark.parametrize(("command", "again"), [("train", False), ("path", True), ("predict", False)])
def test_an_end_between_the_output_and_its_work_is_gone_on_from(
    command, again, prepared, trained, tmp_path, monkeypatch, refused
):
    """The output has its name, and the work is not yet removed: going on with it ends well, and leaves the output."""
    asked = {"train": ["--alpha", "0.01"], "path": ["--n-alphas", "3"], "predict": []}[command]
    other = ["--scores"] if command == "predict" else ["--tol", "1e-3"]
    line = [command, *([trained] if command == "predict" else []), prepared, "--out", tmp_path / "out", *asked]
    with monkeypatch.context() as patch:
        patch.setattr(unfinished, "discard", lambda work: signal.raise_signal(signal.SIGINT))
        give(*line, code=130)
    there = [file for file in (tmp_path / "out").rglob("*") if file.is_file() and file.suffix != ".json"]
    files = {file: file.read_bytes() for file in there}
    assert files and sorted(path.name for path in tmp_path.iterdir()) == ["out", "out.unfinished"]
    assert "exists" in refused(*line, *other, *LOCAL)
    give(*(line if again else ["resume", tmp_path / "out"]))
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert all(file.read_bytes() == content for file, content in files.items())
    # and an output without its work is not replaced
    assert "exists" in refused(*line, *LOCAL)


def test_a_model_that_is_not_whole_does_not_appear(prepared, tmp_path, monkeypatch):
    """Its settings are written last."""
    monkeypatch.setattr(train, "write_manifest", lambda *given: signal.raise_signal(signal.SIGINT))
    give("train", prepared, "--out", tmp_path / "model", "--alpha", "0.01", code=130)
    assert [path.name for path in tmp_path.iterdir()] == ["model.unfinished"]


def test_the_embedded_cluster_gives_the_same_bits(prepared, trained, tmp_path, capfd):
    out = tmp_path / "model"
    code = main(["train", str(prepared), "--out", str(out), "--penalty", "l1/l2", "--alpha", "0.005", "--workers", "1"])
    assert (code, capfd.readouterr().err) == (0, "")
    ours, theirs = read_model(out), read_model(trained)
    np.testing.assert_array_equal(ours.W, theirs.W)
    assert ours.certificate.objective == theirs.certificate.objective


def test_a_limit_is_exit_code_6_and_the_model_says_which(prepared, tmp_path):
    more = ["--penalty", "l1", "--alpha", "1e-6", "--tol", "1e-12", "--max-passes", "30"]
    give("train", prepared, "--out", tmp_path / "model", *more, code=6)
    assert read_model(tmp_path / "model").certificate.stop_reason == "max_passes"


def test_an_interrupted_training_leaves_its_progress_and_no_output(prepared, tmp_path, refused, monkeypatch):
    def stops(self, name, **fields):
        if name == "round" and fields["round"] == 1:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(Console, "event", stops)
    out = tmp_path / "model"
    # So many rounds at so small a tolerance that the signal arrives long before the end.
    endless = "--tol 1e-300 --penalty l1 --alpha 1e-6 --update adaboost --max-rounds 10000000".split()
    line = refused("train", prepared, "--out", out, *endless, *LOCAL, code=130)
    assert f"`dboost resume {out}`, goes on" in line
    assert [path.name for path in tmp_path.iterdir()] == ["model.unfinished"]
    work = tmp_path / "model.unfinished"
    assert sorted(path.name for path in work.iterdir() if "previous" not in path.name) == [
        "fit", "lock", "model.partial", "train.toml",
    ]  # fmt: skip
    partial = read_model(work / "model.partial").certificate
    assert partial.stop_reason == "interrupted" and partial.n_iter >= 1
