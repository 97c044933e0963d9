"""Every call that changes a file fails once, or is the last that a process does: what is left, what goes on.

The work is a fit that goes on from its checkpoint, a model over an older one, and a prepared folder over an older one.
``faults.c`` is preloaded into one process, which imports everything and then forks for each trial; in the child, one
call of C's library fails with "no space left on device" (and so do all later ones that need space) or an input/output
error, or the child is killed at it. Covers: all files that Python and Arrow write below one folder.
Does not cover: power failures, of which a flush that is told to have worked is all that one can see.

``python -m lab.campaign.torn_writes COUNT FOLDER`` runs within the preloaded process.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import shutil
import subprocess
import sys
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import dboost
from dboost.data import load_manifest, prepare_text
from dboost.data.parquet.plan import blocks_of
from dboost.errors import StorageError
from lab.campaign.command import Tally
from lab.campaign.work import weights_digest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = Path(__file__).with_name("faults.c")
LIMIT = 1800
"""Seconds for all trials."""

KINDS = {"no space": errno.ENOSPC, "input/output error": errno.EIO, "killed": 0}
FIT: dict[str, Any] = {"penalty": "l1/l2", "alpha": 1e-3, "tol": 1e-10, "update": "gradboost", "sweeps": 1}
FIRST, BEFORE, AFTER = 2, 4, 8
"""Rounds of the two generations of the checkpoint that is there, and of the fit that goes on."""

DELETING = ("unlink", "rmdir")
"""Calls whose failure leaves what was to be deleted."""

WHOLE = {"state", "state.previous", "model", "prepared"}
"""What may be in the folder when nothing is half-written."""


def data() -> tuple[Any, Any]:
    """Rows of a fit of some hundredths of a second."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 12))
    return X, np.argmax(X[:, :3] + rng.standard_normal((300, 3)), axis=1)


def fit(folder: Path, rounds: int) -> Any:
    """Fit up to so many rounds, from the checkpoint where there is one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dboost.DboostWarning)
        return dboost.BoostedClassifier(**FIT, max_rounds=rounds, checkpoint=folder / "state").fit(*data())


def work(folder: Path, documents: Path, rounds: int) -> str:
    """All that is written; returns the digest of the model."""
    model = fit(folder, rounds)
    dboost.save_model(model, folder / "model", force=True)
    prepare_text(documents, folder / "prepared", text="text", label="label", min_df=rounds, max_df=1.0, force=True)
    return weights_digest(model)


class Judge:
    """What is expected, from runs without faults."""

    def __init__(self, folder: Path) -> None:
        self.base, self.documents = folder / "base", folder / "documents.parquet"
        # Rare words, so that another least number of documents leaves others out.
        words = np.random.default_rng(1).choice([f"word{i}" for i in range(40)], (200, 6), p=np.arange(1, 41) / 820)
        texts = [" ".join(row) for row in words.tolist()]
        pq.write_table(pa.table({"text": texts, "label": ["a", "b"] * 100}), self.documents)
        self.base.mkdir()
        fit(self.base, FIRST)
        self.models = [work(self.base, self.documents, BEFORE)]
        plain = folder / "plain"
        shutil.copytree(self.base, plain)
        self.models.append(work(plain, self.documents, AFTER))
        self.terms = [load_manifest(where / "prepared").features["n_features"] for where in (self.base, plain)]
        assert len(set(self.models)) == len(set(self.terms)) == 2, "before and after look the same"

    def after(self, folder: Path, may_leave: bool) -> str:
        """What is wrong with a folder after a fault; empty where nothing is.

        `may_leave`: whether something unfinished may be there: after a kill, and where deleting was what failed. What
        goes on afterwards removes it.
        """
        there = {path.name for path in folder.iterdir()}
        if not may_leave and there - WHOLE:
            return f"left behind: {sorted(there - WHOLE)}"
        if missing := {"state", "model", "prepared"} - there:
            return f"gone: {sorted(missing)}"
        if weights_digest(dboost.load_model(folder / "model")) not in self.models:
            return "a model that is neither the old one nor the new one"
        manifest = load_manifest(folder / "prepared")
        rows = sum(block.n_rows for block in blocks_of(dboost.ParquetData(folder / "prepared", split="train")))
        if manifest.features["n_features"] not in self.terms or rows != manifest.splits["train"]["rows"]:
            return "prepared data that are neither the old ones nor the new ones"
        rounds = []
        kept = folder / "kept"
        for name in ("state", "state.previous"):
            if (folder / name).exists():
                shutil.copy(folder / name, folder / ("kept" + name.removeprefix("state")))
        dboost.BoostedClassifier(
            **FIT, max_rounds=AFTER, checkpoint=kept, callbacks=[lambda record: rounds.append(record["round"])]
        ).fit(*data())
        for path in folder.glob("kept*"):
            path.unlink()
        if rounds and rounds[0] <= BEFORE:
            return f"a checkpoint from before round {BEFORE}: the fit went on with round {rounds[0]}"
        if work(folder, self.documents, AFTER) != self.models[1]:
            return "another model after going on"
        there = {path.name for path in folder.iterdir()}
        return f"left behind after going on: {sorted(there - WHOLE)}" if there - WHOLE else ""


def in_a_child(do: Callable[..., Any], *arguments: Any) -> tuple[int | None, Any]:
    """Call something in a fork of this process; returns the signal that ended it, and what it returned, as JSON."""
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            told = json.dumps(do(*arguments))
        except BaseException as error:
            told = json.dumps({"error": f"{type(error).__name__}: {error}", "where": traceback.format_exc()[-600:]})
        os.write(writes, told.encode())
        os._exit(0)
    os.close(writes)
    with os.fdopen(reads) as pipe:
        text = pipe.read()
    status = os.waitpid(child, 0)[1]
    return (os.WTERMSIG(status) if os.WIFSIGNALED(status) else None), (json.loads(text) if text else None)


def faulted(folder: Path, documents: Path, call: int, error: int) -> dict[str, Any]:
    """Do the work with one fault; tells how it ended."""
    faults = ctypes.CDLL(None)
    faults.faults_calls.restype = ctypes.c_long
    faults.faults_arm(os.fsencode(folder), ctypes.c_long(call), error)
    try:
        work(folder, documents, AFTER)
        told = "done"
    except StorageError as fault:
        told = "refused" if len(str(fault).splitlines()) == 1 else f"an error of several lines: {fault}"
    faults.faults_failed.restype = ctypes.c_char_p
    found = {"told": told, "calls": faults.faults_calls(), "failed": faults.faults_failed().decode()}
    faults.faults_disarm()
    return found


def trials(count: int, folder: Path) -> None:
    """Within the preloaded process: try calls and kinds, and print one JSON line for each."""
    # Arrow's threads, and those of a fit, do not live on in a fork: everything before the fork keeps to one.
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    judge = Judge(folder)
    shutil.copytree(judge.base, folder / "counted")
    _, counted = in_a_child(faulted, folder / "counted", judge.documents, -1, 0)
    print(json.dumps({"calls": counted["calls"]}), flush=True)
    for trial in range(count):
        kind = list(KINDS)[trial % len(KINDS)]
        call = (trial // len(KINDS)) * counted["calls"] // max(1, -(-count // len(KINDS)))
        target = folder / f"trial-{trial}"
        shutil.copytree(judge.base, target)
        ended, found = in_a_child(faulted, target, judge.documents, call, KINDS[kind])
        killed = ended is not None
        may_leave = killed or found.get("failed") in DELETING
        _, wrong = in_a_child(judge.after, target, may_leave)
        if not killed and found.get("told") not in ("done", "refused"):
            wrong = found
        elif killed != (kind == "killed"):
            wrong = f"ended by signal {ended}"
        outcome = "killed" if killed else found.get("told")
        print(json.dumps({"kind": kind, "call": call, "outcome": outcome, "wrong": wrong}), flush=True)
        shutil.rmtree(target)


def run(count: int, folder: Path, tally: Tally) -> None:
    """Build the faults, and run the trials in a process that they are preloaded into."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or not sys.platform.startswith("linux"):
        tally.left_out = "it needs Linux and a C compiler (Debian: apt-get install gcc libc6-dev)"
        return
    library = folder / "faults.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(SOURCE), "-ldl"], check=True)
    environment = {**os.environ, "LD_PRELOAD": str(library), "NUMBA_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "ignore", "-m", __name__, str(count), str(folder)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=LIMIT)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    if done.returncode or not lines:
        tally.broke(f"the process ended with {done.returncode}: {done.stderr[-600:]}")
        return
    tally.figures["calls that change files"] = str(lines[0]["calls"])
    for line in lines[1:]:
        what = f"{line['kind']} at call {line['call']}"
        tally.check(not line["wrong"], f"{line['kind']}: {line['outcome']}", f"{what}: {line['wrong']}")


if __name__ == "__main__":
    trials(int(sys.argv[1]), Path(sys.argv[2]).resolve())
