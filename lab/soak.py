"""Hours of retraining on a stream of small files, with workers killed at random: what grows, and what does not.

Run with ``python -m lab soak [--minutes M]`` (two hours). One driver, one cluster, one home: in every cycle a file of
documents arrives and the oldest goes, a worker may be killed, and `retrain` makes, judges and promotes or declines a
challenger. Writes ``runs/soak.md`` with the curves; exit code 1 where something grew.

Covers: memory of driver, workers and scheduler, open files, tasks that the scheduler knows, bytes of the home.
Does not cover: drivers that die (``lab.run_kills``).

The scheduler is a process of its own. Its memory is told and not judged: Dask keeps a record of every span and group of
tasks for as long as a scheduler lives, some tenths of a megabyte for each retraining (docs/upstream/spans-are-kept.md).
"""

from __future__ import annotations

import argparse
import math
import os
import random
import signal
import tempfile
import threading
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil

import pipelines
from lab import tables
from lab.campaign.cluster_faults import outside
from lab.run_kills import RETRAIN_RUN, write_documents

MINUTES = 120.0
WORKERS = 2
FILES, ROWS = 6, 300
"""Files of the window, and documents of each."""

KILL = 0.3
"""Share of the cycles in which a worker is killed."""

WARM = 0.2
"""Share of the cycles after which nothing may grow any more: by then everything was imported, compiled and cached."""

GROWTH = {
    "driver MiB": 0.10, "workers MiB": 0.10, "scheduler MiB": math.inf, "open files": 0.10, "tasks": 0.0,
    "home MiB": 0.10,
}  # fmt: skip
"""By how much the median of the last tenth may be above that of the tenth after the warm part."""

SLACK = {"tasks": 1.0, "home MiB": 1.0}
"""What may be more of a figure that is small: three to five versions are kept, by which of them are champions."""

RETRAIN = '[retrain]\nrun = "run.toml"\nkeep = 3\n[gates]\nclass_rows = 20\n'


@dataclass(frozen=True)
class Look:
    """What is seen after a cycle."""

    # Since the beginning.
    seconds: float
    # Of the retraining.
    outcome: str
    # By the names of ``GROWTH``.
    figures: dict[str, float]


def look(client: Any, home: Path) -> dict[str, float]:
    """Measure everything once."""
    me = psutil.Process()
    workers = client.run(lambda: psutil.Process(os.getpid()).memory_info().rss, on_error="ignore")
    return {
        "driver MiB": me.memory_info().rss / 2**20,
        "workers MiB": sum(workers.values()) / max(1, len(workers)) * WORKERS / 2**20,
        "scheduler MiB": client.run_on_scheduler(lambda: psutil.Process(os.getpid()).memory_info().rss) / 2**20,
        "open files": float(me.num_fds()),
        "tasks": float(client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks))),
        "home MiB": sum(path.stat().st_size for path in home.rglob("*") if path.is_file()) / 2**20,
    }


def cycle(folder: Path, number: int, client: Any, rng: random.Random) -> str:
    """Let a file arrive and the oldest go, retrain, and perhaps kill a worker meanwhile; returns the outcome."""
    write_documents(folder / "documents" / f"{number:06d}.parquet", ROWS, number)
    (folder / "documents" / f"{number - FILES:06d}.parquet").unlink(missing_ok=True)
    over, killer = threading.Event(), None
    if rng.random() < KILL:
        killer = threading.Thread(target=_kill, args=(client, rng.uniform(0.0, 3.0), over))
        killer.start()
    with warnings.catch_warnings():
        # That a pass is submitted again after a kill is told to whoever looks; here it is what is asked for.
        warnings.simplefilter("ignore")
        outcome: str = pipelines.retrain(folder / "nightly.toml", client=client).outcome
    over.set()
    if killer is not None:
        killer.join()
    client.wait_for_workers(WORKERS, timeout=60)
    return outcome


def _kill(client: Any, seconds: float, over: threading.Event) -> None:
    if not over.wait(seconds):
        os.kill(random.choice(list(client.run(os.getpid, on_error="ignore").values())), signal.SIGKILL)


def soak(folder: Path, minutes: float, say: Any = print) -> list[Look]:
    """Retrain for so many minutes."""
    (folder / "documents").mkdir(parents=True)
    (folder / "run.toml").write_text(RETRAIN_RUN.replace('"documents.parquet"', '"documents"'), encoding="utf-8")
    (folder / "nightly.toml").write_text(RETRAIN, encoding="utf-8")
    write_documents(folder / "test.parquet", 400, 10**6)
    rng, seen, begun = random.Random(0), [], time.monotonic()
    with outside(WORKERS, nanny=True) as client:
        number = 0
        while time.monotonic() - begun < 60 * minutes or number < 10:
            number += 1
            outcome = cycle(folder, number, client, rng)
            seen.append(Look(time.monotonic() - begun, outcome, look(client, folder / "retraining")))
            if number % 10 == 0:
                words = ", ".join(f"{name} {value:.0f}" for name, value in seen[-1].figures.items())
                say(f"cycle {number}, {seen[-1].seconds:.0f} s: {words}")
    return seen


def grown(seen: Sequence[Look]) -> list[dict[str, Any]]:
    """For each figure, its median after the warm part and at the end, and whether it grew."""
    start, tenth = int(WARM * len(seen)), max(1, len(seen) // 10)
    rows = []
    for name, most in GROWTH.items():
        values = np.array([one.figures[name] for one in seen])
        before, after = float(np.median(values[start : start + tenth])), float(np.median(values[-tenth:]))
        good = after <= before * (1 + most) + SLACK.get(name, 0.0)
        rows.append({"figure": name, "after the warm part": f"{before:.1f}", "at the end": f"{after:.1f}",
                     "largest": f"{values.max():.1f}",
                     "flat": "not judged" if math.isinf(most) else "yes" if good else "NO"})  # fmt: skip
    return rows


def main(arguments: Sequence[str] = ()) -> int:
    """Soak, and write the page; 1 where something grew."""
    parser = argparse.ArgumentParser(prog="python -m lab soak", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--minutes", type=float, default=MINUTES, help=f"how long (default: {MINUTES:g})")
    parser.add_argument("--out", type=Path, default=Path("runs/soak.md"))
    given = parser.parse_args(list(arguments))
    with tempfile.TemporaryDirectory(prefix="dboost-soak-") as folder:
        seen = soak(Path(folder), given.minutes, lambda line: print(line, flush=True))
    rows = grown(seen)
    outcomes = {one.outcome: sum(other.outcome == one.outcome for other in seen) for one in seen}
    about = f"{len(seen)} retrainings in {seen[-1].seconds / 60:.0f} minutes: {outcomes}."
    curve = [
        {"minute": f"{one.seconds / 60:.1f}", **{name: f"{value:.1f}" for name, value in one.figures.items()}}
        for one in seen[:: max(1, len(seen) // 40)]
    ]
    text = tables.markdown(rows, list(rows[0]))
    print(f"{text}\n\n{about}")
    tables.write(given.out, "Soak", [about, text, tables.markdown(curve, list(curve[0]))])
    return 1 if any(row["flat"] == "NO" for row in rows) else 0
