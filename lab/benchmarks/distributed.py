"""``python -m lab bench distributed``: our solver in-process and on Dask, Spark MLlib and dask-ml, on the same cores.

Multinomial l1 on the arXiv abstracts against Spark, binary l1 on the film reviews against both. Time to a relative
suboptimality of 1e-4. Starting clusters, the JVM and bringing the data to where it is wanted is not timed for anyone;
our fit on Dask gets a Dask array in the workers' memory.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import dboost
from lab import tables
from lab.benchmarks.against import time_of
from lab.benchmarks.climb import Found, climb
from lab.benchmarks.curve import Time, median, named, ratio, short, suboptimality
from lab.benchmarks.measure import Case
from lab.benchmarks.peers import DISTRIBUTED, OURS
from lab.benchmarks.peers.base import Task
from lab.benchmarks.plots import draw
from lab.benchmarks.process import COMPILE, Failed, Missing, PeerProcess, TimeUp
from lab.benchmarks.sets import SETS
from lab.oracle import plain
from lab.oracle.peers import store
from lab.oracle.problems import Encoded
from lab import machine
from pipelines.console import finite

TARGET = 1e-4
GOAL = 20.0
"""Show 2: how many times faster than Spark MLlib."""
ON_DASK = "dboost on Dask"
FLOOR, FACTOR, CEILING = 20.0, 25.0, 120.0
START = 300.0
"""Seconds for a JVM to start and for the data to get into its frame."""


@dataclass(frozen=True)
class Question:
    """A problem of this benchmark.

    Parameters
    ----------
    data, penalty : str
    ratio : float
    peers : tuple of str
        Keys of ``DISTRIBUTED``.
    """

    data: str
    penalty: str
    ratio: float
    peers: tuple[str, ...]

    @property
    def name(self) -> str:
        """As it is shown."""
        return f"{self.data} {self.penalty} {self.ratio:g}"


QUESTIONS = (
    Question("arxiv-archives", "l1", 0.1, ("spark",)),
    Question("arxiv-archives", "l1", 0.01, ("spark",)),
    Question("imdb", "l1", 0.1, ("dask-ml", "spark")),
)


def on_dask(data: Encoded, penalty: str, alpha: float, threads: int, repeats: int) -> list[tuple[float, np.ndarray]]:
    """Seconds and W of fits on an embedded cluster of single-threaded workers, to a certified gap of 1e-4.

    The data is a Dask array of two sparse blocks a worker, persisted. The first fit on the cluster, in which every
    worker loads what is compiled, is not counted.
    """
    import dask.array as da

    from dboost.engine.dask.cluster import embedded_cluster

    kind = dboost.MultiTaskBoostedClassifier if data.loss == "multitask" else dboost.BoostedClassifier
    m = data.X.shape[0]
    rows = -(-m // (2 * threads))
    found = []
    with embedded_cluster(n_workers=threads) as cluster, cluster.get_client() as client:
        # block by block and straight to the workers: the graph holds no data
        parts = [
            da.from_delayed(_held(client, data.X[i : i + rows]), (min(rows, m - i), data.X.shape[1]), data.X.dtype)
            for i in range(0, m, rows)
        ]
        X = client.persist(da.concatenate(parts))
        y = client.persist(da.from_array(data.y, chunks=rows))
        model = kind(penalty=penalty, alpha=alpha, fit_intercept=False, tol=TARGET, client=client)
        for turn in range(repeats + 1):
            began = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model.fit(X, y)
            if turn:
                found.append((time.perf_counter() - began, np.asarray(model.coef_).T))
    return found


def _held(client: Any, block: Any) -> Any:
    import dask

    return dask.delayed(client.scatter(block))


def measure(question: Question, data: Encoded, folder: Path, threads: int, repeats: int, quick: bool) -> dict[str, Any]:
    """One problem, everyone in turn; returns its record."""
    high = plain.alpha_max(data.X, data.y, question.penalty, data.loss, False)
    alpha = question.ratio * high
    opening = {"loss": data.loss, "penalty": question.penalty, "alpha_max": high, "threads": threads}
    case = Case(data, question.penalty, alpha, False, folder / "answer.npz")
    with PeerProcess(OURS, folder, opening, folder / "dboost.log") as own:
        own.ready(COMPILE)
        case.optimum(own)
        for _ in range(repeats):
            case.curve(own)
            case.certificate(own)
    ours = case.our_time(TARGET)
    cluster = on_dask(data, question.penalty, alpha, threads, repeats)
    objective = plain.objective(
        data.X, data.y, cluster[-1][1], np.zeros(cluster[-1][1].shape[1]), alpha, question.penalty, data.loss
    )
    solvers: dict[str, Any] = {
        OURS.name: _solver(ours, case.best, [[[s, v, p] for p, s, v in trace] for trace in case.traces]),
        ON_DASK: {
            "times": {named(TARGET): _plain(median([Time(seconds) for seconds, _ in cluster]))},
            "runs": [{"rung": {}, "seconds": [seconds for seconds, _ in cluster], "objective": objective}],
            "best": case.best,
            "certified": statistics.median(run["seconds"] for run in case.certified),
            "note": "",
        },
    }
    limit = min(max(FACTOR * ours.seconds, 2.0 if quick else FLOOR), 10.0 if quick else CEILING)
    task = Task(data.X, data.y, data.loss, question.penalty, alpha, high, threads)
    for name in question.peers:
        found = _peer(name, case, task, folder, opening, limit)
        solvers[name] = {
            "times": {named(TARGET): _plain(found.time(case.best, TARGET))},
            "runs": [{"rung": run.rung, "seconds": run.seconds, "objective": run.objective} for run in found.runs],
            "best": case.best,
            "peak": found.peak,
            "limit": found.limit,
            "version": found.version,
            "note": found.note,
        }
    return {
        "problem": question.name,
        "alpha": alpha,
        "alpha_max": high,
        "best": case.best,
        "certified": max(0.0, (case.best - case.lower) / case.best),
        "suboptimality on Dask": suboptimality(objective, case.best),
        "solvers": solvers,
    }


def _peer(name: str, case: Case, task: Task, folder: Path, opening: dict[str, Any], limit: float) -> Found:
    """A distributed peer: its ladder up to 1e-4, no run longer than the limit."""
    peer = DISTRIBUTED[name]
    with PeerProcess(peer, folder, opening, folder / f"{name}.log") as process:
        try:
            process.ready(START)
            # a ladder of doubling settings takes up to twice the limit before the one that is as long as it, and a run
            # that turns out slower than the ones before it must not take that one's place
            deadline = time.monotonic() + 4.0 * limit
            ladder = [dict(rung) for rung in peer.ladder(task)]
            return climb(peer, process, case, ladder, limit, deadline, target=TARGET)
        except (Missing, Failed, TimeUp) as error:
            return Found(name, note=str(error))


def _solver(found: Time, best: float, curves: list[list[list[float]]]) -> dict[str, Any]:
    return {"times": {named(TARGET): _plain(found)}, "curves": curves, "best": best, "note": ""}


def _plain(found: Time) -> dict[str, Any]:
    return {"seconds": found.seconds, "bound": found.bound}


COLUMNS = ("problem", "solver", "seconds to 1e-4", "ratio to dboost", "goal", "met", "reached", "note")


def lines(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The lines of the table."""
    rows = []
    for record in records:
        ours = time_of(record["solvers"][OURS.name], TARGET)
        for name, solver in record["solvers"].items():
            found = time_of(solver, TARGET)
            against = ratio(found, ours)
            goal = GOAL if name in DISTRIBUTED else None
            met = "-"
            if goal is not None and against is not None:
                met = "yes" if against.value >= goal else "cannot be judged" if against.bound else "NO"
            reached = [suboptimality(run["objective"], solver["best"]) for run in solver.get("runs", [])]
            note = solver["note"]
            if name == ON_DASK:
                note = f"whole fit to a certified 1e-4; in-process {short(solver['certified'])} s"
            rows.append(
                {
                    "problem": record["problem"],
                    "solver": name,
                    "seconds to 1e-4": str(found),
                    "ratio to dboost": "-" if against is None else str(against),
                    "goal": "-" if goal is None else f"{goal:g}",
                    "met": met,
                    "reached": f"{min(reached):.0e}" if reached else "-",
                    "note": note,
                }
            )
    return rows


def run(out: Path, quick: bool, settings: Any) -> int:
    """Measure every question; `quick` takes the twins."""
    records = []
    for question in QUESTIONS:
        if settings.problems and not any(word in question.name for word in settings.problems):
            continue
        data = SETS[question.data].twin() if quick else SETS[question.data].load()
        data.X.sort_indices()
        with tempfile.TemporaryDirectory(prefix="dboost-distributed-") as scratch:
            store(Path(scratch), data.X, data.y)
            records.append(measure(question, data, Path(scratch), settings.threads, settings.repeats or 2, quick))
        print(tables.markdown(lines(records[-1:]), COLUMNS), flush=True)
    (out / "plots").mkdir()
    names = [draw(record, out / "plots") for record in records]
    facts = "; ".join(f"{what} {value}" for what, value in machine.describe().items())
    about = (__doc__ or "").split("\n\n", 1)[1]
    pictures = "\n\n".join(f"![{name.removesuffix('.png')}](plots/{name})" for name in names)
    tables.write(
        out / "distributed.md",
        "dboost and distributed peers on the same cores",
        [about, tables.markdown(lines(records), COLUMNS), facts, pictures],
    )
    (out / "distributed.json").write_text(json.dumps(finite({"records": records, "machine": facts}), indent=1))
    return 0
