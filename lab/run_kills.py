"""SIGKILL at random instants of drivers: what is left, what goes on.

Covers: `dboost run`, also of a cross-validation, killed once in each trial and resumed in a new process: the same model
and predictions, no stage done twice; `dboost train` and `path`: the same models; `dboost retrain`: one sound champion
at every moment, and the decision of the undisturbed retraining.
Does not cover: workers that die (``lab.campaign.cluster_faults``), signals that are heard
(tests/pipelines/test_signals.py).
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import dboost
from lab.campaign.command import Tally
from pipelines.retraining.home import Home
from pipelines.runs.fingerprints import of_model

ROOT = Path(__file__).resolve().parents[1]
TREES = ("apple", "birch", "cedar", "dogwood")
STAGES = ["evaluate", "predict", "prepare", "report", "train"]
LIMIT = 300  # seconds that a process may take

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
TRAIN = ("--penalty", "l1/linf", "--alpha", "0.0005", "--tol", "1e-8", "--update", "gradboost", "--sweeps", "1",
         "--max-rounds", "400")  # fmt: skip
PATH = ("--penalty", "l1/l2", "--n-alphas", "25", "--tol", "1e-8")
CV = "cv = 5\nn_alphas = 12\ntol = 1e-6"
RETRAIN_RUN = """
[data]
data = "documents.parquet"
test = "test.parquet"
label = "label"
[prepare]
min_df = 2
[model]
penalty = "l1/l2"
alpha = 0.003
tol = 1e-6
[cluster]
workers = 0
"""
RETRAIN = '[retrain]\nrun = "run.toml"\n[gates]\nclass_rows = 20\n'


def command(*arguments: str) -> list[str]:
    """The command line of this checkout."""
    return [sys.executable, "-m", "pipelines", *arguments, "--log-format", "json"]


def finished(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(command(*arguments), cwd=ROOT, capture_output=True, text=True, timeout=LIMIT)


def write_documents(path: Path, rows: int, seed: int = 0) -> None:
    """Documents of four trees: each has its own word, and two of them share one."""
    rng = np.random.default_rng(seed)
    kinds = rng.integers(0, len(TREES), rows)
    texts = []
    for kind in kinds.tolist():
        words = rng.choice([f"noise{i}" for i in range(40)], 8).tolist()
        words += [f"word_{TREES[kind]}"] * int(rng.random() < 0.8) + ["orchard"] * int(kind < 2)
        texts.append(" ".join(words))
    labels = [TREES[kind] for kind in kinds.tolist()]
    split = ["test" if i % 4 == 0 else "train" for i in range(rows)]
    pq.write_table(pa.table({"text": texts, "label": labels, "split": split}), path, row_group_size=100)


def write_run(folder: Path, model: str, rows: int = 3000) -> Path:
    """A run file with its documents."""
    folder.mkdir(parents=True, exist_ok=True)
    write_documents(folder / "documents.parquet", rows)
    file = folder / "trees.toml"
    file.write_text(RUN.format(model=model), encoding="utf-8")
    return file


def events(run: Path) -> list[dict[str, Any]]:
    """What a run has told so far; a line that a kill has cut is passed over."""
    file = run / "events.jsonl"
    found = []
    for line in file.read_text().splitlines() if file.is_file() else []:
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found


def rows_of(run: Path) -> list[Any]:
    """The predictions of a run."""
    return list(pq.read_table(run / "predictions").to_pylist())


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
        self.predictions = rows_of(self.run)

    def trial(self, run: Path, seed: int) -> dict[str, Any]:
        """Kill a run at a random instant after its first event, go on, and compare; returns what was seen."""
        instant = random.Random(seed).random() * self.seconds
        killed_at(["run", str(self.file), "--out", str(run)], lambda: bool(events(run)), instant)
        before = events(run)
        done = finished("resume", str(run))
        assert done.returncode == self.code, done.stderr
        told = events(run)
        stages = [event["stage"] for event in told if event["event"] == "stage_done"]
        assert sorted(stages) == STAGES, f"stages that were done: {stages}"
        assert of_model(run / "model") == self.model, "another model"
        assert rows_of(run) == self.predictions, "other predictions"
        assert not (run / "checkpoint").exists() and not list(run.glob(".*.next")), "something was left"
        fitted = [event for event in told if event["event"] == "round"]
        rounds = [(event.get("fold"), event.get("strength"), event["round"]) for event in fitted]
        return {
            "in": next((e["stage"] for e in reversed(before) if e["event"] == "stage_start"), "the beginning"),
            "rounds again": len(rounds) - len(set(rounds)),
        }


def killed_at(arguments: list[str], begun: Callable[[], bool], seconds: float) -> None:
    """Start a process, and kill it so many seconds after it has begun its work; it may have ended by then."""
    process = subprocess.Popen(command(*arguments), cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        limit = time.monotonic() + 60
        while not begun() and process.poll() is None:
            assert time.monotonic() < limit, "the process did not begin within 60 s"
            time.sleep(0.002)
        time.sleep(seconds)
    finally:
        process.kill()
        process.wait()


class Training:
    """A `dboost train` or `path` of a prepared folder that nobody killed."""

    def __init__(self, folder: Path, name: str, flags: Sequence[str]) -> None:
        folder.mkdir(parents=True)
        write_documents(folder / "documents.parquet", 3000)
        prepare = ["prepare", str(folder / "documents.parquet"), "--label", "label", "--split", "split"]
        done = finished(*prepare, "--out", str(folder / "prepared"), "--workers", "0")
        assert done.returncode == 0, done.stderr
        self.arguments = [name, str(folder / "prepared"), "--workers", "0", *flags]
        start = time.monotonic()
        done = finished(*self.arguments, "--out", str(folder / "undisturbed"))
        self.seconds = time.monotonic() - start
        assert done.returncode in (0, 6), done.stderr
        self.code = done.returncode
        self.digests = digests(folder / "undisturbed")

    def trial(self, folder: Path, seed: int) -> dict[str, Any]:
        """Kill it at a random instant, go on, and compare."""
        target = folder / "out"
        folder.mkdir()
        instant = random.Random(seed).random() * self.seconds
        killed_at([*self.arguments, "--out", str(target)], lambda: True, instant)
        work = target.with_name(f"{target.name}.unfinished")
        found = "the fit" if work.exists() else "the end" if target.exists() else "the beginning"
        # Where nothing was begun there is nothing to go on with, and the command is given again.
        goes_on = ["resume", str(target)] if work.exists() else [*self.arguments, "--out", str(target), "--force"]
        done = finished(*goes_on)
        assert done.returncode == self.code, done.stderr
        assert digests(target) == self.digests, "another model"
        assert [path.name for path in folder.iterdir()] == ["out"], "something was left"
        return {"in": found}


def digests(folder: Path) -> dict[str, str]:
    """The digests of all models below a folder."""
    return {str(file.parent.relative_to(folder)): of_model(file.parent) for file in sorted(folder.rglob("model.json"))}


class Retraining:
    """A champion, new data, and what an undisturbed retraining makes of it."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self.before = folder / "before"
        self.before.mkdir()
        (self.before / "run.toml").write_text(RETRAIN_RUN, encoding="utf-8")
        (self.before / "nightly.toml").write_text(RETRAIN, encoding="utf-8")
        write_documents(self.before / "documents.parquet", 600)
        write_documents(self.before / "test.parquet", 400, 9)
        self.retrain(self.before)
        self.champion = of_model(self.before / "retraining" / "versions" / "v0001" / "model")
        write_documents(self.before / "documents.parquet", 1500, 1)
        after = folder / "after"
        shutil.copytree(self.before, after)
        start = time.monotonic()
        self.retrain(after)
        self.seconds = time.monotonic() - start
        home = Home(after / "retraining")
        assert home.champion == "v0002"
        self.challenger = of_model(home.folder("v0002") / "model")

    @staticmethod
    def retrain(folder: Path) -> None:
        done = finished("retrain", str(folder / "nightly.toml"))
        assert done.returncode == 0, done.stderr

    def trial(self, folder: Path, seed: int) -> dict[str, Any]:
        """Kill a retraining at a random instant, look at the champion, go on, and compare."""
        shutil.copytree(self.before, folder)
        home = Home(folder / "retraining")
        instant = random.Random(seed).random() * self.seconds
        killed_at(["retrain", str(folder / "nightly.toml")], lambda: True, instant)
        known = {"v0001": self.champion, "v0002": self.challenger}
        there = home.champion
        assert there is not None and of_model(home.folder(there) / "model") == known[there], "no sound champion"
        dboost.load_pipeline(home.folder(there) / "model").predict(["word_birch"])
        left = [path.name for path in sorted((folder / "retraining").rglob("*")) if path.name == "decision.json"]
        self.retrain(folder)
        assert home.champion == "v0002" and home.versions() == ["v0001", "v0002"], "another decision"
        assert of_model(home.folder("v0002") / "model") == self.challenger, "another challenger"
        return {"in": f"champion {there}, {len(left)} decisions"}


PARTS: dict[str, Callable[[Path], Any]] = {
    "fit": lambda folder: Undisturbed(write_run(folder, FIT)),
    "cv": lambda folder: Undisturbed(write_run(folder, CV)),
    "train": lambda folder: Training(folder, "train", TRAIN),
    "path": lambda folder: Training(folder, "path", PATH),
    "retrain": Retraining,
}
"""What is killed: something with ``trial(folder, seed)``."""


BESIDE = 2
"""Parts at once: half of a trial is starting processes."""


def trials(part: str, count: int, folder: Path, tally: Tally) -> None:
    """Run the trials of a part, and count where the kills fell."""
    base = folder / part
    plain = PARTS[part](base)
    for seed in range(count):
        target = base / f"trial-{seed}"
        try:
            seen = plain.trial(target, seed)
        except AssertionError as error:
            tally.broke(f"{part}, trial {seed}: {error}")
            continue
        tally.passed(f"{part}, killed in {seen['in']}")
        shutil.rmtree(target)


def run(count: int, folder: Path, tally: Tally) -> None:
    """Share the kills among the parts."""
    each = max(1, count // len(PARTS))
    with ThreadPoolExecutor(BESIDE) as pool:
        for done in [pool.submit(trials, part, each, folder, tally) for part in PARTS]:
            done.result()
