"""SIGKILL at any instant of a run: it goes on to the same model and predictions, and does no stage twice.

Covers: `dboost run` and a cross-validation in it, killed and resumed in new processes.
Does not cover: signals that are heard (test_signals.py), the fits alone (tests/estimators/test_path_checkpoints.py).
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from pipelines.runs.fingerprints import of_model
from tests.pipelines.conftest import write_documents

ROOT = Path(__file__).resolve().parents[2]

RUN = """
[data]
data = "documents.parquet"
label = "label"
[prepare]
split = "split"
[model]
penalty = "l1/linf"
{model}
[predict]
probabilities = true
[cluster]
workers = 0
"""
# Small steps at a small tolerance: rounds enough to be killed in.
FIT = 'alpha = 0.0005\ntol = 1e-8\nupdate = "gradboost"\nsweeps = 1\nmax_rounds = 400'
CV = "cv = 5\nn_alphas = 12\ntol = 1e-6"


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "pipelines", *arguments, "--log-format", "json"]


def finished(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(*arguments), cwd=ROOT, capture_output=True, text=True, timeout=100)


def write_run(folder: Path, model: str, rows: int = 3000) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    write_documents(folder / "documents.parquet", rows=rows)
    file = folder / "trees.toml"
    file.write_text(RUN.format(model=model), encoding="utf-8")
    return file


def events(run: Path) -> list[dict[str, Any]]:
    file = run / "events.jsonl"
    found = []
    for line in file.read_text().splitlines() if file.is_file() else []:
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found


class Undisturbed:
    """A run that nobody killed, and how long it took from its first event to its last."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.run = file.parent / "undisturbed"
        done = finished("run", str(file), "--out", str(self.run))
        assert done.returncode in (0, 6), done.stderr
        self.code = done.returncode
        told = events(self.run)
        self.seconds = told[-1]["time"] - told[0]["time"]
        self.model = of_model(self.run / "model")
        self.predictions = rows(self.run)


def rows(run: Path) -> list[Any]:
    return pq.read_table(run / "predictions").to_pylist()


def killed_and_resumed(plain: Undisturbed, run: Path, seed: int) -> dict[str, Any]:
    """Kill a run at a random instant after its first event, go on, and compare; returns what was seen."""
    instant = random.Random(seed).random() * plain.seconds
    process = subprocess.Popen(
        command("run", str(plain.file), "--out", str(run)),
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        limit = time.monotonic() + 60
        while not events(run):
            assert process.poll() is None and time.monotonic() < limit
            time.sleep(0.002)
        time.sleep(instant)
    finally:
        process.kill()
        process.wait()
    before = events(run)
    done = finished("resume", str(run))
    assert done.returncode == plain.code, done.stderr
    told = events(run)
    stages = [event["stage"] for event in told if event["event"] == "stage_done"]
    assert sorted(stages) == ["evaluate", "predict", "prepare", "report", "train"], stages
    assert of_model(run / "model") == plain.model
    assert rows(run) == plain.predictions
    assert not (run / "checkpoint").exists() and not list(run.glob(".*.next"))
    rounds = [(event.get("fold"), event.get("strength"), event["round"]) for event in told if event["event"] == "round"]
    return {
        "in": next((e["stage"] for e in reversed(before) if e["event"] == "stage_start"), "the beginning"),
        "seconds": round(instant, 2),
        "rounds": len(rounds),
        "again": len(rounds) - len(set(rounds)),
    }


@pytest.fixture(scope="module")
def fit(tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    return Undisturbed(write_run(tmp_path_factory.mktemp("fit"), FIT))


@pytest.fixture(scope="module")
def cv(tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    return Undisturbed(write_run(tmp_path_factory.mktemp("cv"), CV))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_a_killed_run_goes_on_to_the_same_model(fit: Undisturbed, seed: int, tmp_path: Path) -> None:
    killed_and_resumed(fit, tmp_path / "run", seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1))
def test_a_killed_cross_validation_goes_on_to_the_same_model(cv: Undisturbed, seed: int, tmp_path: Path) -> None:
    killed_and_resumed(cv, tmp_path / "run", 100 + seed)
