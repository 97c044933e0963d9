"""What a pass costs on Dask above the work of its slowest worker.

Run with ``python -m lab bench overhead``; writes ``overhead.md`` and ``overhead.json``.

Covers: two worker processes, and 64 workers inside this process (the load of a large cluster on scheduler and driver);
each kind of pass that a fit has; small sums that the driver merges and large ones that workers reduce.
Does not cover: whole fits (``suite``).

The overhead of a pass is the wall time of ``Engine.map_reduce`` less the longest time that a worker computed in it. In
one process 64 workers share one interpreter: nothing is pickled between them, but the work of all of them for the
scheduler is in the figure, which on a real cluster is spread over 64 machines. So is their housekeeping (load monitor,
ticks), which Dask does once per process and here 64 times, whether or not there is anything to do. The goal is judged
with Dask's settings as they come, but without its profiler, as in every cluster that this project sets up; what is left
without the housekeeping is shown beside it.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import dask
import numpy as np
from distributed import Client, LocalCluster
from scipy import sparse

from dboost.engine.dask.cluster import CALM, embedded_cluster
from dboost.engine.dask.engine import DaskEngine
from dboost.partition import Partition
from dboost.penalties import get_penalty
from dboost.problem.problem import Problem, ProblemSettings
from dboost.problem.sample import rows_of_some
from dboost.problem.stored import StoredProblem
from lab import tables

GOALS = {2: 0.020, 64: 0.150}
SHARES = ("wall", "kernels", "network", "scheduler", "driver")
COLUMNS = ("workers", "pass", "sums", "passes", *SHARES, "overhead", "goal")
HOUSEKEEPING = {
    **CALM,
    "distributed.admin.system-monitor.interval": "1 hour",
    "distributed.admin.tick.interval": "1 minute",
}


@dataclass(frozen=True)
class Drawn:
    """A partition of random sparse rows, drawn where it is needed."""

    number: int
    n_rows: int
    n_features: int
    n_classes: int
    # Stored values of a row.
    per_row: int = 10

    @property
    def key(self) -> str:
        """Name of the partition."""
        return f"drawn-{self.number}"

    @property
    def nbytes_estimate(self) -> int:
        """Bytes of the decoded partition, about."""
        return 8 * self.n_features + self.n_rows * (12 * self.per_row + 12)

    def load(self) -> Partition:
        """Draw it."""
        rng = np.random.default_rng(self.number)
        shape = (self.n_rows, self.n_features)
        X = sparse.random_array(shape, density=self.per_row / self.n_features, format="csc", rng=rng, dtype=np.float32)
        X.sort_indices()
        y = rng.integers(0, self.n_classes, self.n_rows).astype(np.int32)
        indptr, rows = X.indptr.astype(np.int64), X.indices.astype(np.int32)
        return Partition(indptr, rows, X.data, y, np.ones(self.n_rows), self.key)


class Stopwatch:
    """An engine that notes what each pass took.

    `passes`: name of each ``map_reduce`` and its seconds: wall, kernels, network, scheduler, driver.
    """

    def __init__(self, engine: Any) -> None:
        self.passes: list[dict[str, Any]] = []
        self._engine = engine

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def map_reduce(self, *args: Any, name: str, **kwargs: Any) -> Any:
        """As ``Engine.map_reduce``."""
        before = replace(self._engine.seconds)
        start = time.perf_counter()
        total = self._engine.map_reduce(*args, name=name, **kwargs)
        wall = time.perf_counter() - start
        spent = {name: getattr(self._engine.seconds, name) - getattr(before, name) for name in vars(before)}
        spent["driver"] = wall - spent["kernels"] - spent["network"] - spent["scheduler"]
        self.passes.append({"name": name, "wall": wall, **spent})
        return total


def kinds(problem: Problem, rows: int) -> dict[str, Callable[[], Any]]:
    """The passes of a fit at a model with `rows` rows of W, by name."""
    rng = np.random.default_rng(0)
    active = np.sort(rng.choice(problem.n, size=min(rows, problem.n), replace=False)).astype(np.int64)
    W = 0.1 * rng.standard_normal((active.shape[0], problem.k))
    at = replace(problem.null(), active=active, W=W)
    product = problem.curvature_at(at)
    return {
        "score": lambda: problem.score(at, None, 1.0, 200),
        "gradient": lambda: problem.evaluate(active, W, at.intercept),
        "grid": lambda: problem.losses_along(at, W, at.intercept, np.array([0.5, 0.25, 0.1])),
        "hessian": lambda: product(W, at.intercept),
        "sample": lambda: rows_of_some(problem, active, 0.1, 0),
    }


def measure(client: Any, parts: Sequence[Drawn], repeats: int, rows: int = 200) -> list[dict[str, Any]]:
    """Seconds of each kind of pass: the median of each share over `repeats` passes."""
    n, k = parts[0].n_features, parts[0].n_classes
    with DaskEngine(client) as engine:
        watched = Stopwatch(engine)
        engine.set_plan(parts, [part.n_rows for part in parts], "overhead")
        problem = StoredProblem(watched, ProblemSettings("multinomial", get_penalty("l1/l2"), n, k), "overhead")
        passes = kinds(problem, rows)
        found: dict[str, list[dict[str, Any]]] = {name: [] for name in passes}
        # In turn, as in a fit: each pass finds the scheduler as another one left it.
        for turn in range(repeats + 2):
            for name, run in passes.items():
                watched.passes.clear()
                run()
                if turn >= 2:
                    found[name] += watched.passes
        workers = engine.n_workers
    lines = []
    for name, given in found.items():
        middle = {share: statistics.median(one[share] for one in given) for share in SHARES}
        overhead = statistics.median(one["wall"] - one["kernels"] for one in given)
        line = {"workers": workers, "pass": name, "sums": f"{n:,} x {k}", "passes": len(given)}
        lines.append({**line, **middle, "overhead": overhead})
    return lines


def in_process(workers: int, settings: dict[str, Any], parts: Sequence[Drawn], repeats: int) -> list[dict[str, Any]]:
    """The same with many workers inside this process."""
    with (
        dask.config.set(settings),
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            processes=False,
            memory_limit=0,
            dashboard_address="127.0.0.1:0",
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        return measure(client, parts, repeats)


def run(out: Path, quick: bool) -> int:
    """Measure and write the page; 0 always: a goal that is missed is for the reader of the page.

    `out`: folder for ``overhead.md`` and ``overhead.json``. `quick`: few passes.
    """
    repeats = 5 if quick else 40
    small = [Drawn(i, 500, 5_000, 20) for i in range(64)]
    large = [Drawn(i, 2_000, 25_000, 37) for i in range(8)]
    groups: list[tuple[str, list[dict[str, Any]]]] = []
    with embedded_cluster(2) as cluster, Client(cluster, set_as_default=False) as client:
        lines = measure(client, small, repeats) + measure(client, large, repeats)
        groups.append(("Two worker processes", lines))
    count = 8 if quick else 64
    repeats = 3 if quick else 15
    groups.append((f"{count} workers in this process", in_process(count, CALM, small, repeats)))
    spared = in_process(count, HOUSEKEEPING, small, repeats)
    groups.append((f"{count} workers in this process, without their housekeeping", spared))
    shown = []
    for title, lines in groups:
        table = tables.markdown([in_ms(line) for line in lines], COLUMNS)
        shown += [f"## {title}", table]
        print(f"\n{title}\n{table}", flush=True)
    about = (
        "Milliseconds, medians over the passes. overhead = wall - kernels, the longest time a worker computed. "
        "sums: features x classes of the scoring pass; up to 4 MB they go to the driver, above that workers reduce "
        "them. " + " ".join((__doc__ or "").split("\n\n")[-1].split())
    )
    tables.write(out / "overhead.md", "What a pass costs above its kernels", [about, *shown])
    (out / "overhead.json").write_text(json.dumps(dict(groups), indent=1) + "\n", encoding="utf-8")
    return 0


def in_ms(line: dict[str, Any]) -> dict[str, Any]:
    """A line as it is shown, with the goal where there is one."""
    goal = GOALS.get(line["workers"])
    shown = {name: f"{1e3 * value:.1f}" if isinstance(value, float) else value for name, value in line.items()}
    if goal is not None:
        shown["goal"] = f"{1e3 * goal:.0f}: {'met' if line['overhead'] <= goal else 'MISSED'}"
    return shown
