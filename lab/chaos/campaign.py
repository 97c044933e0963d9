"""All trials, and their table.

Covers: the undisturbed bits, a process with a time limit for each trial, the verdicts, the exit code.
Does not cover: what happens inside a trial (``trial``).
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dboost.errors import ClusterError, SchedulerLostError
from lab.chaos.scenarios import SCENARIOS, UNDISTURBED, Scenario
from lab.chaos.work import DATA, fit, write

LIMIT = 60.0
"""Seconds from the fault to the undisturbed bits or the error."""

HANGS_AFTER = 150.0
"""Seconds after which a trial's processes are ended from outside: starting, the fit before the fault, and `LIMIT`."""

BESIDE = 2
"""Trials at once: most of their time is waiting for workers to start, or to be missed."""

LATE_TRIALS = 3
"""A fault that comes when the fit is over shows nothing, and is tried again so many times, each time earlier."""

ROOT = Path(__file__).resolve().parents[2]
HEADINGS = ("scenario", "trial", "outcome", "seconds", "same bits", "verdict")
WIDTHS = (30, 5, 9, 8, 9, 7)


@dataclass(frozen=True)
class Outcome:
    """What came of a trial.

    Parameters
    ----------
    outcome : {"fit", "error", "hung", "broken", "too late"}
    seconds : float
        From the fault to the end.
    same : bool
        The undisturbed bits.
    words : str
        The error, the engine's warnings, or what a trial wrote that came to no end.
    rounds : float
        Seconds from the first round to the end.
    """

    outcome: str
    seconds: float
    same: bool
    words: str = ""
    rounds: float = 0.0


def attempts(name: str, moment: float, folder: Path, expected: str) -> Outcome:
    """Run one trial, and again where its fault came when the fit was over."""
    for again in range(LATE_TRIALS):
        outcome = attempt(name, moment / 2**again, folder, expected)
        if outcome.outcome != "too late":
            break
    return outcome


def attempt(name: str, moment: float, folder: Path, expected: str) -> Outcome:
    """Run one trial in a process group of its own, and end the group when it is over or takes too long."""
    command = [sys.executable, "-m", "lab.chaos.trial", name, str(moment), str(folder)]
    start = time.monotonic()
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    timer = threading.Timer(HANGS_AFTER, _end, [process])
    timer.start()
    try:
        assert process.stdout is not None and process.stderr is not None
        line = process.stdout.readline()
    finally:
        timer.cancel()
        if process.poll() is None:
            _end(process)
    wrote = process.communicate()[1]
    seconds = time.monotonic() - start
    if not line:
        hung = seconds >= HANGS_AFTER
        return Outcome("hung" if hung else "broken", seconds, False, " ".join(wrote.split())[-300:])
    return judged(json.loads(line), expected)


def _end(process: subprocess.Popen[str]) -> None:
    # The trial, its workers and their nannies are one group, and nobody else is in it.
    os.killpg(process.pid, signal.SIGKILL)


def judged(found: dict[str, Any], expected: str) -> Outcome:
    """Return the outcome of a trial that came to an end."""
    if found["error"] is not None:
        return Outcome("error", found["after"], False, found["error"])
    same = found["bits"] == expected
    late = found["struck"] is None
    words = "; ".join(found["warnings"])
    return Outcome("too late" if late else "fit", found["after"], same, words, found["rounds"])


CLEAR = tuple(f"{kind.__name__}: " for kind in (ClusterError, SchedulerLostError))
"""How the words of an error begin that says what became of the cluster."""


def passed(outcome: Outcome, scenario: Scenario) -> bool:
    """Tell whether a trial came to the undisturbed bits, or to one clear error where that is all it can, in time."""
    if outcome.seconds > LIMIT:
        return False
    if outcome.outcome == "fit":
        return outcome.same and scenario.ends != "error"
    # An error of another kind, or of more than one line, is not clear.
    clear = outcome.words.startswith(CLEAR) and "\n" not in outcome.words
    return outcome.outcome == "error" and clear and scenario.ends != "bits"


def main(arguments: Sequence[str]) -> int:
    """Run all trials, or those whose scenario holds a word; return 1 when one failed."""
    parser = argparse.ArgumentParser(prog="python -m lab chaos", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", help="run scenarios whose name holds this")
    parser.add_argument("--trials", type=int, help="trials of each scenario (default: its own number)")
    parser.add_argument("--seed", type=int, default=0, help="of the moments at which faults come")
    asked = parser.parse_args(list(arguments))
    chosen = {name: scenario for name, scenario in SCENARIOS.items() if asked.only in name}
    rng, begun, failures = random.Random(asked.seed), time.monotonic(), 0
    with tempfile.TemporaryDirectory(prefix="dboost-chaos-") as made, ThreadPoolExecutor(BESIDE) as pool:
        folder = Path(made)
        write(folder / DATA)
        expected = fit(folder / DATA, None, threading.Event())
        calm = attempt(UNDISTURBED, 0.0, folder, expected)
        print(f"undisturbed on threads: {expected[:16]}; rounds on two workers: {calm.rounds:.1f} s", flush=True)
        print(_line(HEADINGS), flush=True)
        trials = [(name, t) for name, scenario in chosen.items() for t in range(asked.trials or scenario.trials)]
        moments = [rng.uniform(0.0, 0.7) * calm.rounds for _ in trials]
        running = [
            pool.submit(attempts, name, moment, folder, expected) for (name, _), moment in zip(trials, moments)
        ]
        for (name, trial), future in zip(trials, running):
            outcome = future.result()
            good = passed(outcome, SCENARIOS[name])
            failures += not good
            same = "yes" if outcome.same else "-" if outcome.outcome == "error" else "no"
            words = (str(trial + 1), outcome.outcome, f"{outcome.seconds:.1f}", same, "ok" if good else "FAILED")
            print(_line((name, *words)), flush=True)
            if outcome.words and (trial == 0 or not good):
                print(f"    {outcome.words}", flush=True)
    print(f"{len(trials)} trials, {failures} failed, {time.monotonic() - begun:.0f} s")
    return 1 if failures else 0


def _line(cells: Sequence[str]) -> str:
    return "  ".join(cell.ljust(width) for cell, width in zip(cells, WIDTHS)).rstrip()
