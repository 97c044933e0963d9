"""Runs that a file describes: what is refused, what is done, what is skipped and why, and what a break leaves.

Covers: the run file, the stages, the folder and its lock, the list of runs, broken-off trainings.
Does not cover: kills (test_kills.py), what a stage computes (the tests of its command).
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dboost
import pipelines
from dboost.errors import DataError, UsageError
from dboost.model.fitted import read_model
from pipelines.cli import main
from pipelines.runs.fingerprints import of_model
from pipelines.runs.lock import held, holder_of
from pipelines.runs.run_file import TABLES, checked, keys_of, read_run_file
from tests.pipelines.conftest import write_documents

ROOT = Path(__file__).resolve().parents[2]
FILE = """
[data]
data = "documents.parquet"
label = "label"
[prepare]
split = "split"
[model]
penalty = "l1/l2"
alpha = 0.005
[predict]
[cluster]
workers = 0
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    write_documents(tmp_path / "documents.parquet")
    path = tmp_path / "trees.toml"
    path.write_text(FILE)
    return path


def states(result: Any) -> dict[str, str]:
    return {name: one.state for name, one in result.stages.items()}


ALL = ("prepare", "train", "evaluate", "predict", "report")


def done(*names: str) -> dict[str, str]:
    return {name: "done" if name in names else "skipped" for name in ALL}


def test_a_run_does_all_stages_once_and_a_second_call_does_none(file: Path) -> None:
    result = pipelines.run(file)
    assert states(result) == done(*ALL) and result.converged
    assert result.folder == file.parent / "runs" / "trees"
    names = {"run.toml", "events.jsonl", "stages.json", "lock", "prepared", "model", "evaluation", "predictions"}
    assert {path.name for path in result.folder.iterdir()} == names | {"report.json", "report.html"}
    assert result.evaluation is not None and result.evaluation["error"] < 0.2
    # the model is that of the estimator itself
    data = dboost.ParquetData(result.folder / "prepared", split="train")
    peer = dboost.BoostedClassifier(penalty="l1/l2", alpha=0.005).fit(data)
    np.testing.assert_array_equal(result.model.coef_, peer.coef_)
    before = {path: path.stat().st_mtime_ns for path in result.folder.rglob("*.parquet")}
    again = pipelines.run(file)
    assert states(again) == done() and again.evaluation == result.evaluation
    assert before == {path: path.stat().st_mtime_ns for path in result.folder.rglob("*.parquet")}
    assert states(pipelines.resume(result.folder)) == done()


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("model.alpha=0.01", done("train", "evaluate", "predict", "report")),
        ("prepare.min_df=50", done(*ALL)),
        ("predict.probabilities=true", done("predict")),
        ("report.top=3", done("report")),
        ("cluster.workers=0", done()),
    ],
)
def test_a_change_does_the_stages_that_depend_on_it(file: Path, change: str, expected: dict[str, str]) -> None:
    pipelines.run(file)
    changed = pipelines.run(file, overrides=[change])
    assert states(changed) == expected
    table = change.partition("=")[0].replace(".", " ")
    whys = [one.why for one in changed.stages.values() if one.state == "done"]
    assert not whys or whys[0] == f"changed: settings {table.split()[1]}"


def test_other_data_is_noticed_and_copied_data_is_not(file: Path, tmp_path: Path) -> None:
    folder = pipelines.run(file).folder
    documents = tmp_path / "documents.parquet"
    os.utime(documents)
    assert states(pipelines.run(file)) == done()
    write_documents(documents, seed=1)
    changed = pipelines.run(file)
    assert states(changed) == done(*ALL)
    assert changed.stages["prepare"].why == "changed: data documents.parquet"
    # what was deleted or damaged is made again, and nothing before it
    shutil.rmtree(folder / "model")
    missing = pipelines.run(file)
    assert states(missing) == done("train") and missing.stages["train"].why == "model is not what it wrote"
    part = next((folder / "predictions").glob("*.parquet"))
    part.write_bytes(part.read_bytes()[:-1])
    assert states(pipelines.run(file)) == done("predict")


def test_a_stage_whose_outputs_a_kill_left_without_their_names_is_done(file: Path) -> None:
    folder = pipelines.run(file).folder
    (folder / "model").rename(folder / ".model.next")
    assert states(pipelines.run(file)) == done()
    assert read_model(folder / "model").certificate.gap <= 1e-4


def test_stages_without_a_table_or_data_are_left_out_with_the_reason(file: Path, tmp_path: Path) -> None:
    folder = pipelines.run(file).folder / "prepared"
    tables = {
        "data": {"data": str(folder), "split": "train"},
        "model": {"alpha": 0.01},
        "cluster": {"workers": 0},
    }
    result = pipelines.run(tables, out=tmp_path / "one")
    assert states(result) == {
        "prepare": "left out", "train": "done", "evaluate": "done", "predict": "left out", "report": "done",
    }  # fmt: skip
    assert result.stages["predict"].why == "there is no table [predict]"
    tables["data"]["split"] = "test"
    alone = pipelines.run(tables, out=tmp_path / "two")
    assert "no data is held out: set data.test" in alone.stages["evaluate"].why and alone.evaluation is None


REFUSED = [
    ("[modle]\n", "unknown table 'modle'; did you mean 'model'?"),
    ("[model]\nalhpa = 1\n", "unknown key 'alhpa' in [model]; did you mean 'alpha'?"),
    ("[model]\nworkers = 1\n", "unknown key 'workers' in [model]; it belongs to [cluster]"),
    ("[model]\nalpha = -1\n", "model.alpha: found -1, expected a finite number"),
    ("[model]\nestimator = 'shareboots'\n", "did you mean 'shareboost'?"),
    ("[model]\nnu = 0.5\n", "nu has no meaning for estimator 'boosted'; it belongs to estimator adaboost_l1"),
    ("[model]\nestimator = 'jointboost'\npenalty = 'l1'\n", "penalty has no meaning for estimator 'jointboost'"),
    ("[model]\ncv = 5\npath = 5\n", "cv=5 beside path=5"),
    ("[model]\npath = 5\nalpha = 0.1\n", "a path goes through strengths, and alpha=0.1 was given"),
    ("[model]\nestimator = 'shareboost'\npath = 5\n", "has no path of strengths"),
    ("[model]\nalphas = [0.1]\neps = 0.1\n", "eps=0.1 beside alphas="),
    ("[model]\nhypotheses = 'product'\n", "product"),
    ("model = 3\n", "expected a table [model]"),
    ("[model\n", "not valid TOML"),
    ("[model]\n", "data.data is missing"),
]


@pytest.mark.parametrize(("text", "said"), REFUSED)
def test_a_file_without_meaning_is_refused_in_one_line_and_nothing_is_written(
    text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "run.toml").write_text(text if said.startswith("data") else f"{text}[data]\ndata='x'\n")
    assert main(["run", str(tmp_path / "run.toml")]) == 2
    error = capsys.readouterr().err
    assert said in error and len(error.splitlines()) == 1, error
    assert [path.name for path in tmp_path.iterdir()] == ["run.toml"]


@pytest.mark.parametrize("text", ["model.alpha", "alpha=1", "modle.alpha=1", "model.alhpa=1", "model.alpha=-1"])
def test_a_bad_override_is_refused(text: str, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", str(file), "--set", text]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert not (file.parent / "runs").exists()


def test_the_printed_file_says_where_values_come_from_and_means_the_same(
    file: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    arguments = ["run", str(file), "--set", "model.alpha=1e-4", "--set", "model.hypotheses=products", "--print"]
    assert main(arguments) == 0
    text = capsys.readouterr().out
    assert 'penalty = "l1/l2"  # trees.toml' in text and "alpha = 0.0001  # --set" in text
    assert "# min_df = 5  # default" in text and "# tol: default 0.0001" in text
    assert set(tomllib.loads(text)) == {"data", "prepare", "model", "evaluate", "predict", "report", "cluster"}
    (tmp_path / "printed.toml").write_text(text)
    overrides = ["model.alpha=1e-4", "model.hypotheses=products"]
    assert read_run_file(str(tmp_path / "printed.toml")).values == read_run_file(str(file), overrides).values
    assert not (file.parent / "runs").exists()


def test_every_key_of_every_table_is_printed_and_read_again() -> None:
    for table in TABLES:
        assert keys_of(table), table
    values = {
        "data": {"data": "/x", "label": ["a", 'b"\\\x7f\n'], "n_features": 3},
        "model": {
            "classes": ["a", 1],
            "class_weight": {"spam mail": 2.0},
            "penalty_factors": {"a b": 0.5, "id": float("inf")},
            "alphas": [1.0, 1e-9],
            "hypotheses": [{"family": "products", "max_degree": 2}, {"family": "columns"}],
            "fit_intercept": False,
        },
    }
    found = checked(values)
    assert checked(tomllib.loads(found.to_toml())).values == found.values


def test_a_folder_in_use_is_refused_and_a_dead_lock_is_taken_over(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = pipelines.run(file).folder
    code = (
        "import sys, pathlib; from pipelines.runs.lock import held\n"
        "with held(pathlib.Path(sys.argv[1])):\n print('held', flush=True); sys.stdin.read()"
    )
    line = [sys.executable, "-c", code, str(folder)]
    with subprocess.Popen(line, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == "held\n"
            assert main(["run", str(file)]) == 2
            error = capsys.readouterr().err
            assert f"process {process.pid} on host {socket.gethostname()} works in this folder since" in error
            assert holder_of(folder) is not None
            assert main(["runs", str(folder.parent), "--log-format", "json"]) == 0
            assert json.loads(capsys.readouterr().out)["runs"][0]["state"] == "running"
        finally:
            process.send_signal(signal.SIGKILL)
    assert json.loads((folder / "lock").read_text())["pid"] == process.pid
    assert holder_of(folder) is None
    assert states(pipelines.run(file)) == done()
    # whether a process of another machine lives cannot be known here
    (folder / "lock").write_text(json.dumps({"host": "elsewhere", "pid": 1, "since": "then"}))
    with pytest.raises(UsageError, match="process 1 on host elsewhere .* give take_over if that process has ended"):
        pipelines.run(file)


def test_two_locks_in_one_process_exclude_each_other(tmp_path: Path) -> None:
    with held(tmp_path), pytest.raises(UsageError, match="works in this folder"), held(tmp_path):
        pass
    with held(tmp_path):
        assert json.loads((tmp_path / "lock").read_text())["pid"] == os.getpid()
    assert (tmp_path / "lock").read_text() == ""


def test_a_folder_of_something_else_is_refused(file: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine.txt").write_text("x")
    with pytest.raises(UsageError, match="is no run folder"):
        pipelines.run(file, out=tmp_path / "other")
    assert [path.name for path in (tmp_path / "other").iterdir()] == ["mine.txt"]
    with pytest.raises(DataError, match=r"holds no run\.toml"):
        pipelines.resume(tmp_path / "other")


def test_runs_are_listed_with_their_state(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pipelines.run(file)
    with pytest.raises(DataError):
        pipelines.run(file, out=file.parent / "runs" / "bad", overrides=["data.label=absent"])
    found = {one.name: one for one in pipelines.list_runs(file.parent / "runs")}
    assert (found["trees"].state, found["trees"].stage) == ("done", "report")
    assert found["trees"].rounds is not None and found["trees"].gap is not None and found["trees"].gap <= 1e-4
    assert found["bad"].state == "failed"
    assert main(["runs", str(file.parent / "runs")]) == 0
    page = capsys.readouterr().out
    assert "trees" in page and "done" in page and "failed" in page
    assert main(["runs", str(file.parent / "nothing")]) == 0
    assert "no runs in" in capsys.readouterr().out


@pytest.mark.full
@pytest.mark.parametrize("more", [["--tol", "1e-12"], ["--cv", "3", "--n-alphas", "8", "--tol", "1e-9"]])
def test_a_training_that_was_broken_off_goes_on_to_the_same_model(
    more: list[str], prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = ["train", str(prepared), "--workers", "0", "--penalty", "l1/l2", *more, "--log-format", "json"]
    if "--cv" not in more:
        line += ["--alpha", "0.001", "--update", "gradboost", "--sweeps", "1", "--max-rounds", "1500"]
    code = main([*line, "--out", str(tmp_path / "whole")])
    out = tmp_path / "out"
    command = [sys.executable, "-m", "pipelines", *line, "--out", str(out)]
    progress = tmp_path / "out.unfinished" / ("several/all/progress" if "--cv" in more else "fit")
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        while process.poll() is None and not progress.exists():
            pass
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 143, errors
    partial = tmp_path / "out.unfinished" / "model.partial"
    if "--cv" not in more:
        assert read_model(partial).certificate.stop_reason == "interrupted"
    elif partial.exists():
        assert read_model(partial).certificate.gap <= 1e-9
    monkeypatch.chdir(tmp_path)
    assert not out.exists() and main(["resume", "out", "--log-format", "json"]) == code
    assert of_model(out) == of_model(tmp_path / "whole")
    assert not (tmp_path / "out.unfinished").exists()
    assert main(["resume", str(out), "--log-format", "json"]) == 3


@pytest.mark.full
def test_force_goes_on_with_the_same_training_and_discards_another(prepared: Path, tmp_path: Path) -> None:
    out, work = tmp_path / "out", tmp_path / "out.unfinished"
    line = ["train", str(prepared), "--workers", "0", "--out", str(out), "--log-format", "json"]
    endless = ["--tol", "1e-300", "--update", "gradboost", "--sweeps", "1", "--max-rounds", "10000000"]

    def broken_off(*more: str) -> None:
        command = [sys.executable, "-m", "pipelines", *line, *endless, *more]
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for told in process.stdout:
                if json.loads(told)["event"] == "round":
                    seen.append(json.loads(told)["round"])
                    break
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=60)
        assert (work / "fit").is_file()

    seen: list[int] = []
    broken_off("--alpha", "0.01", "--force")
    broken_off("--alpha", "0.01", "--force")
    broken_off("--alpha", "0.02", "--force")
    assert seen[0] == 1 and seen[1] > 1 and seen[2] == 1
    # without it, the progress of another training is kept
    assert main([*line, *endless, "--alpha", "0.03"]) == 2
    assert (work / "fit").is_file()
