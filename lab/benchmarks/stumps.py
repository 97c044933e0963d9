"""``python -m lab bench stumps``: a million rows and 200 columns, every round the best of all thresholds, at what time.

Classical boosting with the logistic loss moves one stump per round, chosen from all thresholds between neighbouring
distinct values (up to 200 million), on Dask and in-process. Beside it LightGBM's rounds with two leaves and 255 bins on
the same arrays, where the peers' interpreter has it.

Covers: seconds and processor seconds per round and per kind of pass, memory. Does not cover: that the stump is the best
of all (tests/hypotheses), accuracy.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import time
import warnings
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from dboost.boosting.fit import FitSettings, Fitting
from dboost.data.plan import build_plan
from dboost.engine.dask.cluster import embedded_cluster
from dboost.engine.dask.engine import DaskEngine
from dboost.engine.local import LocalEngine
from dboost.errors import ConvergenceWarning
from dboost.hypotheses.stumps.family import Stumps
from lab import machine, tables
from lab.benchmarks.overhead import Stopwatch
from lab.memory import PeakMemory
from lab.oracle.peers import peer_python

ROWS, COLUMNS, BLOCKS, ROUNDS, WORKERS = 1_000_000, 200, 8, 12, 2
MIB = float(2**20)
PASSES = ("what", "rounds", "seconds per round", "processor seconds per round")


def block(number: int, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """One block of the data: X float32 (rows, 200) and labels -1 and 1.

    Half of the columns are normal, a quarter has a heavy tail, and a quarter is rounded to hundredths.
    """
    rng = np.random.default_rng([5, number])
    X = rng.normal(size=(rows, COLUMNS)).astype(np.float32)
    X[:, 100:150] = np.exp(1.5 * X[:, 100:150])
    X[:, 150:] = np.round(X[:, 150:], 2)
    score = 1.5 * (X[:, 3] < 0.3) - 1.2 * (X[:, 117] < 0.7) + 0.8 * (X[:, 160] < 1.1) + np.tanh(X[:, 90]) - 0.4
    score = score + 0.4 * X[:, 20] * (X[:, 151] > 0)
    return X, np.where(score + rng.logistic(size=rows) > 0, 1, -1)


def boosted(plan: Any, engine: Any, rounds: int, processor: Callable[[], float]) -> dict[str, Any]:
    """Classical boosting; its times."""
    watched = Stopwatch(engine)
    began, spent = time.perf_counter(), processor()
    settings = FitSettings("log", "none", update="forward", tol=0.0, max_rounds=rounds, hypotheses=Stumps())
    fitting = Fitting(plan, watched, settings)
    # loads the kernels, and is the first sight of the data: no part of a round
    fitting.null()
    prepared = {"prepare": time.perf_counter() - began, "prepare processor": processor() - spent}
    marks = [processor()]

    def mark(record: dict[str, Any], state: Any) -> bool:
        marks.append(processor())
        return False

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        result = fitting.fit("auto", callback=mark)
    passes: dict[str, list[float]] = {}
    for one in watched.passes:
        passes.setdefault(one["name"], []).append(one["wall"])
    return prepared | {
        "listed": len(fitting.problem.pool.thresholds),
        "seconds": [record["seconds"] for record in result.history],
        "processor": [after - before for before, after in pairwise(marks)],
        "loss": result.objective,
        "passes": passes,
    }


def lightgbm(folder: Path, rounds: int, threads: int) -> dict[str, Any]:
    """LightGBM's rounds in the peers' interpreter; the reason where there are none."""
    script = Path(__file__).with_name("lightgbm_rounds.py")
    command = [peer_python(), str(script), str(folder), str(rounds), str(threads)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=1200, check=False)
    if ended.returncode:
        return {"missing": (ended.stderr.strip().splitlines() or ["it ended without a word"])[-1]}
    found: dict[str, Any] = json.loads(ended.stdout.strip().splitlines()[-1])
    return found


def run(out: Path, quick: bool) -> int:
    """Measure, write ``stumps.md`` and ``stumps.json``; 0 always.

    `out`: folder for the page, and for the arrays while it runs. `quick`: 40,000 rows and 5 rounds.
    """
    rows, rounds = (40_000, 5) if quick else (ROWS, ROUNDS)
    folder = out / "arrays"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        found = _measured(folder, rows, rounds)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    (out / "stumps.json").write_text(json.dumps(found, indent=1, default=float) + "\n", encoding="utf-8")
    parts = page(found)
    print("\n\n".join(parts), flush=True)
    tables.write(out / "stumps.md", "Stumps over a million rows", parts)
    return 0


def _measured(folder: Path, rows: int, rounds: int) -> dict[str, Any]:
    blocks = [block(number, rows // BLOCKS) for number in range(BLOCKS)]
    X, y = (np.concatenate([part[i] for part in blocks]) for i in range(2))
    del blocks
    np.save(folder / "X.npy", X)
    np.save(folder / "y.npy", y)
    found: dict[str, Any] = {"rows": rows, "columns": COLUMNS, "machine": machine.describe()}
    found["lightgbm"] = lightgbm(folder, rounds, WORKERS)
    with PeakMemory() as peak, embedded_cluster(WORKERS) as cluster, cluster.get_client() as client:
        pids = client.run(os.getpid)

        def processor() -> float:
            return time.process_time() + sum(client.run(time.process_time).values())

        with DaskEngine(client) as engine:
            plan = build_plan(*_lazy(rows), task="binary", engine=engine)
            found["dask"] = boosted(plan, engine, rounds, processor)
    found["worker peak"] = [peak.children.get(pid, 0) for pid in pids.values()]
    with LocalEngine(WORKERS) as threads:
        plan = build_plan(X, y, task="binary", engine=threads)
        found["local"] = boosted(plan, threads, rounds, time.process_time)
    return found


def _lazy(rows: int) -> tuple[Any, Any]:
    """X and y as Dask arrays whose blocks are made on the workers."""
    import dask
    import dask.array as da

    size = rows // BLOCKS
    made = [dask.delayed(block)(number, size) for number in range(BLOCKS)]
    X = da.concatenate([da.from_delayed(part[0], (size, COLUMNS), np.float32) for part in made])
    y = da.concatenate([da.from_delayed(part[1], (size,), np.int64) for part in made])
    return X, y


def page(found: dict[str, Any]) -> list[str]:
    """The page: what was asked, times, passes, the machine."""
    dask, local, peer = found["dask"], found["local"], found["lightgbm"]
    lines = [_line("dboost on Dask, 2 workers", dask), _line("dboost in-process, 2 threads", local)]
    if "rounds" in peer:
        name = f"LightGBM {peer['version']}, 2 leaves, 255 bins, 2 threads"
        lines.append(_line(name, {"seconds": peer["rounds"], "processor": peer["processor"]}))
    said = (
        f"{found['rows']:,} rows, {found['columns']} columns, {dask['listed']:,} thresholds summed in every round. "
        f"Preparing took {dask['prepare']:.1f} s on Dask and {local['prepare']:.1f} s in-process "
        f"({dask['prepare processor']:.1f} and {local['prepare processor']:.1f} processor seconds). Peak memory of the "
        f"workers: {', '.join(f'{size / MIB:.0f}' for size in found['worker peak'])} MiB."
    )
    if "missing" in peer:
        said += f" LightGBM could not be measured: {peer['missing']}."
    else:
        said += f" LightGBM built its data in {peer['build']:.1f} s and took {peer['peak'] / MIB:.0f} MiB."
    passes = [
        {"pass": name, "Dask, number": len(walls), "Dask, s": statistics.median(walls),
         "in-process, number": len(local["passes"].get(name, [])),
         "in-process, s": statistics.median(local["passes"].get(name, [0.0]))}
        for name, walls in dask["passes"].items()
    ]  # fmt: skip
    columns = ("pass", "Dask, number", "Dask, s", "in-process, number", "in-process, s")
    about = (
        "Seconds are medians; a round of dboost is all of its passes, the choice of the stump and its step. LightGBM's "
        "round also sums second derivatives and knows only the ends of its bins."
    )
    facts = "\n".join(f"- {name}: {value}" for name, value in found["machine"].items())
    return [said, tables.markdown(lines, PASSES), tables.markdown(passes, columns), about, facts]


def _line(what: str, given: dict[str, Any]) -> dict[str, Any]:
    return {
        "what": what,
        "rounds": len(given["seconds"]),
        "seconds per round": statistics.median(given["seconds"]),
        "processor seconds per round": statistics.median(given["processor"]),
    }
