"""What ``dboost train`` says of memory and seconds before it begins, beside what the training then takes.

Run with ``python -m lab preflight``. Prints and writes ``runs/preflight.md``: for three kinds of data, on threads of
one process and on two workers, the estimate, the peak that was sampled, and how many times the peak the estimate is.
Exit code 1 where an estimate of memory is below the peak or above ``MOST`` times it.

Covers: sparse text of many columns, a dense table, many classes. Does not cover: data beyond the memory of the workers,
which is read again in every pass.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lab.memory import PeakMemory
from lab.tables import markdown, write

MOST = 2.5
"""How many times the measured peak an estimate of memory may be; it may never be below the peak."""
COLUMNS = ["data", "where", "process", "estimate MiB", "peak MiB", "times the peak"]
COLUMNS += ["s a pass", "estimate s", "times the seconds"]
MIB = 2**20


@dataclass(frozen=True)
class Kind:
    """A kind of data."""

    name: str
    # Writes it as one Parquet file; at scale 1 it has some ten million stored values.
    write: Callable[[Path, float], None]


def _sparse(path: Path, rows: int, features: int, stored: int, classes: int) -> None:
    """Sparse rows whose labels follow from the columns of the last stored values, and from chance."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    width = features // stored
    # One column of each of `stored` equal ranges, low ones far more often, as words are.
    places = (width * rng.random((rows, stored)) ** 4).astype(np.int64)
    indices = (places + np.arange(stored) * width).astype(np.int32)
    values = rng.exponential(1.0, (rows, stored)).astype(np.float32)
    labels = (indices[:, 0] + (rng.random(rows) < 0.3) * rng.integers(0, classes, rows)) % classes
    offsets = pa.array(np.arange(rows + 1, dtype=np.int32) * stored)
    columns = {
        "indices": pa.ListArray.from_arrays(offsets, pa.array(indices.ravel())),
        "values": pa.ListArray.from_arrays(offsets, pa.array(values.ravel())),
        "label": pa.array([f"class {c}" for c in labels]),
    }
    pq.write_table(pa.table(columns), path, row_group_size=max(1, 1_000_000 // stored), write_page_checksum=True)


def write_text(path: Path, scale: float) -> None:
    """Sparse rows of 100,000 columns in 4 classes."""
    _sparse(path, int(200_000 * scale), 100_000, 50, 4)


def write_classes(path: Path, scale: float) -> None:
    """Sparse rows of 5,000 columns in 100 classes."""
    _sparse(path, int(100_000 * scale), 5_000, 50, 100)


def write_table(path: Path, scale: float) -> None:
    """A dense table of 40 columns in two classes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    rows = int(250_000 * scale)
    X = rng.standard_normal((rows, 40))
    label = X[:, :5].sum(1) + rng.standard_normal(rows) > 0
    columns = {f"x{j}": X[:, j] for j in range(40)} | {"label": np.where(label, "yes", "no")}
    pq.write_table(pa.table(columns), path, row_group_size=25_000, write_page_checksum=True)


KINDS = (Kind("sparse text", write_text), Kind("dense table", write_table), Kind("many classes", write_classes))


def measured(data: Path, workers: int, out: Path) -> dict[str, Any]:
    """Train on `data` in a process of its own; what it said before, and what it then took.

    It gives ``said``: the event of the pre-flight; ``driver`` and ``worker``: sampled peaks in bytes, the latter that
    of the largest worker (0 without workers, whatever else it starts); ``seconds``: of a pass.
    """
    command = [sys.executable, "-m", "dboost_pipelines", "train", str(data), "--label", "label", "--out", str(out)]
    command += ["--workers", str(workers), "--alpha", "0.001", "--tol", "1e-3", "--force", "--log-format", "json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with PeakMemory(0.05, process.pid) as peak:
        told, errors = process.communicate()
    if process.returncode not in (0, 6):
        raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}: {errors}")
    events = [json.loads(line) for line in told.splitlines()]
    rounds = [event for event in events if event["event"] == "round"]
    return {
        "said": next((event for event in events if event["event"] == "preflight"), {}),
        "driver": peak.driver,
        "worker": max(peak.children.values(), default=0) if workers else 0,
        "seconds": _seconds_of_a_pass(rounds),
    }


def _seconds_of_a_pass(rounds: Sequence[dict[str, Any]]) -> float:
    """Seconds of a pass after the first round, which also decodes the data and loads compiled loops."""
    later = rounds[1:] if len(rounds) > 1 else rounds
    before = rounds[0]["passes"] if len(rounds) > 1 else 0
    return float(sum(one["seconds"] for one in later) / max(1, later[-1]["passes"] - before))


def rows_of(name: str, where: str, found: dict[str, Any]) -> list[dict[str, Any]]:
    """Rows of the table: one for the driver, and one for the largest worker where there are some.

    The estimate of a worker is the largest of all, as its peak is.
    """
    said = found["said"]
    one = {"data": name, "where": where, "s a pass": found["seconds"], "estimate s": said["seconds_per_pass"]}
    one["times the seconds"] = one["estimate s"] / max(one["s a pass"], 1e-9)
    processes = [("driver", said["driver_needed"], found["driver"])]
    if found["worker"]:
        processes.append(("worker", max(place["needed"] for place in said["places"]), found["worker"]))
    return [
        one
        | {"process": process, "estimate MiB": needed // MIB, "peak MiB": peak // MIB, "times the peak": needed / peak}
        for process, needed, peak in processes
    ]


def main(arguments: Sequence[str]) -> int:
    """Measure, print, write; 1 where the promise is not kept."""
    parser = argparse.ArgumentParser(prog="python -m lab preflight", description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="1 is some ten million stored values")
    parser.add_argument("--out", type=Path, default=Path("runs/preflight.md"))
    asked = parser.parse_args(arguments)
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        for kind in KINDS:
            data = Path(folder) / "rows.parquet"
            kind.write(data, asked.scale)
            for workers in (0, 2):
                where = f"{workers} workers" if workers else "threads"
                rows += rows_of(kind.name, where, measured(data, workers, Path(folder) / "model"))
                print(rows[-1], flush=True)
    kept = all(1.0 <= row["times the peak"] <= MOST for row in rows)
    verdict = f"Every estimate of memory is between the peak and {MOST:g} times it: {'yes' if kept else 'NO'}."
    found = [markdown(rows, COLUMNS), verdict]
    print("\n\n".join(found))
    write(asked.out, "What is said before a training, and what it takes", found)
    return 0 if kept else 1
