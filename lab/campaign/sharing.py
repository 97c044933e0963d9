"""Several fits on one cluster at the same time, and one of a thousand rounds: bits, memory, tasks.

Covers: two jobs in processes of their own and three threads of one process, with the bits of each alone; afterwards no
task and no data of a fit is left; a long fit, in which the memory of the driver and of the workers and the number of
tasks that the scheduler knows stay what they were after a tenth of it. Does not cover: hours (``lab.soak``).

``python -m lab.campaign.sharing ADDRESS FOLDER NUMBER`` is one job.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import psutil

import dboost
from dboost.engine.dask.cluster import embedded_cluster
from lab.campaign.tally import Tally
from lab.chaos.work import DATA, weights_digest, write

ROOT = Path(__file__).resolve().parents[2]
JOBS, THREADS = 2, 3
ALPHAS = (1e-3, 3e-3, 1e-2)
"""Each fit of those at the same time has a strength of its own, and so bits of its own."""

LONG_ROUNDS = 1000
DRIFT = 0.05
"""By how much memory may grow after the first tenth of a long fit."""

MORE_TASKS = 40
"""Tasks beside the two that a partition may have at any time, in a fit of any length."""

LEFT_SECONDS = 10.0
"""Seconds after which the scheduler has forgotten what a fit that is over has released."""


def fit(folder: Path, number: int, client: Any) -> str:
    """Fit with one of the strengths; returns the digest of the weights."""
    data = dboost.ParquetData(str(folder / DATA), label="label")
    model = dboost.BoostedClassifier(penalty="l1/l2", alpha=ALPHAS[number], tol=1e-8, client=client)
    return weights_digest(model.fit(data))


def jobs(folder: Path, client: Any) -> list[str]:
    """Digests of fits in processes of their own, at the same time."""
    command = [sys.executable, "-m", __name__, client.scheduler.address, str(folder)]
    running = [
        subprocess.Popen([*command, str(number)], cwd=ROOT, stdout=subprocess.PIPE, text=True) for number in range(JOBS)
    ]
    return [process.communicate(timeout=300)[0].strip() for process in running]


def threads(folder: Path, client: Any) -> list[str]:
    """Digests of fits in threads of this process, with one client, at the same time."""
    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(lambda number: fit(folder, number, client), range(THREADS)))


def left(client: Any) -> list[str]:
    """Tasks that the scheduler still knows, once it had time to forget."""
    until = time.monotonic() + LEFT_SECONDS
    while True:
        found: list[str] = client.run_on_scheduler(lambda dask_scheduler: [str(key) for key in dask_scheduler.tasks])
        if not found or time.monotonic() > until:
            return found
        time.sleep(0.2)


class Probe:
    """A callback that looks at memory and tasks now and then.

    Attributes
    ----------
    seen : list of (int, int, int)
        Bytes of the driver, bytes of all workers, tasks.
    """

    def __init__(self, client: Any, every: int) -> None:
        self.client = client
        self.every = every
        self.seen: list[tuple[int, int, int]] = []

    def __call__(self, record: dict[str, Any]) -> None:
        """Look."""
        if record["round"] % self.every == 0:
            driver = psutil.Process().memory_info().rss
            workers = sum(self.client.run(lambda: psutil.Process(os.getpid()).memory_info().rss).values())
            tasks = self.client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks))
            self.seen.append((driver, workers, tasks))


def long_fit(folder: Path, client: Any, rounds: int, tally: Tally) -> None:
    """One fit of so many rounds."""
    probe = Probe(client, max(1, rounds // 50))
    data = dboost.ParquetData(str(folder / DATA), label="label")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dboost.ConvergenceWarning)
        model = dboost.BoostedClassifier(
            penalty="l1/l2", alpha=1e-5, tol=1e-14, update="gradboost", sweeps=1, max_rounds=rounds, client=client,
            callbacks=[probe],
        ).fit(data)  # fmt: skip
    seen = np.array(probe.seen)
    after, end = seen[len(seen) // 10], np.median(seen[-5:], axis=0)
    growth = end / after - 1
    partitions = 10
    most = int(seen[:, 2].max())
    figures = f"{growth[0]:+.1%} driver, {growth[1]:+.1%} workers, at most {most} tasks in {model.n_iter_} rounds"
    tally.figures["a long fit"] = figures
    good = bool(growth[:2].max() <= DRIFT) and most <= 2 * partitions + MORE_TASKS and model.n_iter_ == rounds
    tally.check(good, "a long fit stays as it is", figures)


def run(count: int, folder: Path, tally: Tally) -> None:
    """Fits at the same time, several times, and one long one."""
    write(folder / DATA)
    alone = [fit(folder, number, None) for number in range(max(JOBS, THREADS))]
    with embedded_cluster(2) as cluster, cluster.get_client() as client:
        for trial in range(max(2, count - 2)):
            kind, together = (("two jobs", jobs), ("three threads", threads))[trial % 2]
            found = together(folder, client)
            tally.check(found == alone[: len(found)], f"{kind}: the bits of each alone", f"{kind}: {found}")
        remains = left(client)
        tally.check(not remains, "nothing is left on the cluster", f"left on the cluster: {remains[:5]}")
        long_fit(folder, client, LONG_ROUNDS if count >= 8 else 100, tally)


if __name__ == "__main__":
    from distributed import Client

    with Client(sys.argv[1], set_as_default=False) as mine:
        print(fit(Path(sys.argv[2]), int(sys.argv[3]), mine))
