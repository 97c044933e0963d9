"""Several fits on one cluster at the same time: the bits of each alone, and nothing is left behind.

Covers: two jobs in processes of their own and three threads of one process; afterwards no task and no data of a fit is
left. Does not cover: what grows in hours (``lab.soak``).

``python -m lab.campaign.sharing ADDRESS FOLDER NUMBER`` is one job.
"""

from __future__ import annotations

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import dboost
from dboost.engine.dask.cluster import embedded_cluster
from lab.campaign.command import Tally
from lab.campaign.work import DATA, weights_digest, write

ROOT = Path(__file__).resolve().parents[2]
JOBS, THREADS = 2, 3
ALPHAS = (1e-3, 3e-3, 1e-2)
"""Each fit of those at the same time has a strength of its own, and so bits of its own."""

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


def run(count: int, folder: Path, tally: Tally) -> None:
    """Fits at the same time, several times."""
    write(folder / DATA)
    alone = [fit(folder, number, None) for number in range(max(JOBS, THREADS))]
    with embedded_cluster(2) as cluster, cluster.get_client() as client:
        for trial in range(max(2, count)):
            kind, together = (("two jobs", jobs), ("three threads", threads))[trial % 2]
            found = together(folder, client)
            tally.check(found == alone[: len(found)], f"{kind}: the bits of each alone", f"{kind}: {found}")
        remains = left(client)
        tally.check(not remains, "nothing is left on the cluster", f"left on the cluster: {remains[:5]}")


if __name__ == "__main__":
    from distributed import Client

    with Client(sys.argv[1], set_as_default=False) as mine:
        print(fit(Path(sys.argv[2]), int(sys.argv[3]), mine))
