"""``python -m lab bench distributed``: our solver in-process and on Dask, and Spark MLlib, on the same cores.

Multinomial l1 on the arXiv abstracts against Spark, binary l1 on the film reviews against both. Time to a relative
suboptimality of 1e-4. Starting clusters, the JVM and bringing the data to where it is wanted is not timed for anyone;
our fit on Dask gets a Dask array in the workers' memory, and is set beside the same fit in-process, both to a certified
gap of 1e-4.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import dboost
from lab import machine, tables
from lab.benchmarks.curve import Time, ratio, short, suboptimality
from lab.benchmarks.measure import Case, Found, climb
from lab.benchmarks.peers import DISTRIBUTED, OURS
from lab.benchmarks.peers.base import Task
from lab.benchmarks.problems import Group, Problem, laid_out
from lab.benchmarks.process import COMPILE, Failed, Missing, PeerProcess, TimeUp
from lab.oracle.problems import Encoded
from pipelines.console import finite

TARGET = 1e-4
GOAL = 20.0
"""How many times faster than a peer."""
ON_DASK = "dboost on Dask"
FLOOR, FACTOR, CEILING = 20.0, 25.0, 120.0
START = 300.0
"""Seconds for a JVM to start and for the data to get into its frame."""
QUESTIONS = {
    Problem("distributed", "arxiv-archives", "l1", 0.1): ("spark",),
    Problem("distributed", "arxiv-archives", "l1", 0.01): ("spark",),
    Problem("distributed", "imdb", "l1", 0.1): ("spark",),
}
"""Problems, and the keys of ``DISTRIBUTED`` that are asked."""
COLUMNS = ("problem", "solver", "seconds to 1e-4", "ratio to dboost", "goal", "met", "reached", "note")


def on_dask(data: Encoded, penalty: str, alpha: float, threads: int, repeats: int) -> list[tuple[float, np.ndarray]]:
    """Seconds and W of fits on an embedded cluster of single-threaded workers, to a certified gap of 1e-4.

    The data is a Dask array of two sparse blocks a worker, persisted. The first fit on the cluster, in which every
    worker loads what is compiled, is not counted.
    """
    import dask
    import dask.array as da

    from dboost.engine.dask.cluster import embedded_cluster

    m = data.X.shape[0]
    rows = -(-m // (2 * threads))
    found = []
    with embedded_cluster(n_workers=threads) as cluster, cluster.get_client() as client:
        # block by block and straight to the workers: the graph holds no data
        parts = [
            da.from_delayed(
                dask.delayed(client.scatter(data.X[i : i + rows])), (min(rows, m - i), data.X.shape[1]), data.X.dtype
            )
            for i in range(0, m, rows)
        ]
        X = client.persist(da.concatenate(parts))
        y = client.persist(da.from_array(data.y, chunks=rows))
        model = dboost.BoostedClassifier(penalty=penalty, alpha=alpha, fit_intercept=False, tol=TARGET, client=client)
        for turn in range(repeats + 1):
            began = time.perf_counter()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model.fit(X, y)
            if turn:
                found.append((time.perf_counter() - began, np.asarray(model.coef_).T))
    return found


def measure(group: Group, problem: Problem, threads: int, quick: bool) -> list[dict[str, Any]]:
    """One problem, one after the other; returns the lines of the table."""
    data, opening = group.data, group.opening(threads)
    alpha = problem.ratio * float(opening["alpha_max"])
    case = Case(data, group.penalty, alpha, group.folder / "answer.npz")
    with PeerProcess(OURS, group.folder, opening, group.folder / "dboost.log") as own:
        own.ready(COMPILE)
        case.optimum(own)
        for _ in range(2):
            case.curve(own)
            case.certificate(own)
    ours = case.our_time(TARGET)
    cluster = on_dask(data, group.penalty, alpha, threads, 2)
    W = cluster[-1][1]
    np.savez(case.answer, W=W, b=np.zeros(W.shape[1]))
    reached = suboptimality(case.objective(), case.best)
    lines = [_line(problem, OURS.name, ours, ours, None, "")]
    seconds = Time(statistics.median(seconds for seconds, _ in cluster))
    note = f"whole fit to a certified 1e-4; in-process {short(statistics.median(case.certified))} s"
    lines.append(_line(problem, ON_DASK, seconds, ours, reached, note))
    limit = min(max(FACTOR * ours.seconds, 2.0 if quick else FLOOR), 10.0 if quick else CEILING)
    task = Task(data.X, data.y, data.loss, group.penalty, alpha, float(opening["alpha_max"]), threads)
    for name in QUESTIONS[problem]:
        found = _peer(name, case, task, group, opening, limit)
        levels = [suboptimality(objective, case.best) for _, _, objective in found.runs]
        lines.append(
            _line(problem, name, found.time(case.best, TARGET), ours, min(levels, default=None), found.note, GOAL)
        )
    return lines


def _peer(name: str, case: Case, task: Task, group: Group, opening: dict[str, Any], limit: float) -> Found:
    """A distributed peer: its ladder up to 1e-4, no run longer than the limit."""
    peer = DISTRIBUTED[name]
    with PeerProcess(peer, group.folder, opening, group.folder / f"{name}.log") as process:
        try:
            process.ready(START)
        except (Missing, Failed, TimeUp) as error:
            return Found(name, note=str(error))
        # A ladder of doubling settings takes up to twice the limit before the one that is as long as it.
        return climb(peer, process, case, peer.ladder(task), 4.0 * limit, most=limit, target=TARGET)


def _line(
    problem: Problem, solver: str, found: Time, ours: Time, reached: float | None, note: str, goal: float | None = None
) -> dict[str, Any]:
    against = ratio(found, ours)
    met = None
    if goal is not None and against is not None:
        met = "yes" if against.value >= goal else "cannot be judged" if against.bound else "NO"
    return {
        "problem": problem.name,
        "solver": solver,
        "seconds to 1e-4": str(found),
        "ratio to dboost": None if against is None else str(against),
        "goal": goal,
        "met": met,
        "reached": None if reached is None else f"{reached:.0e}",
        "note": note,
    }


def run(out: Path, quick: bool, settings: Any) -> int:
    """Measure every question; `quick` takes the twins."""
    lines: list[dict[str, Any]] = []
    asked = [p for p in QUESTIONS if not settings.problems or any(word in p.name for word in settings.problems)]
    with tempfile.TemporaryDirectory(prefix="dboost-distributed-") as scratch:
        for group in laid_out(asked, Path(scratch), quick):
            for problem in group.problems:
                lines += measure(group, problem, settings.threads, quick)
                print(tables.markdown(lines, COLUMNS), flush=True)
    facts = "; ".join(f"{what} {value}" for what, value in machine.describe().items())
    about = (__doc__ or "").split("\n\n", 1)[1]
    title = "dboost and distributed peers on the same cores"
    tables.write(out / "distributed.md", title, [about, tables.markdown(lines, COLUMNS), facts])
    (out / "distributed.json").write_text(json.dumps(finite({"lines": lines, "machine": facts}), indent=1))
    return 0
