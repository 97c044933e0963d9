"""One fit on 24 configurations of processes and threads: one sha256 of its features, weights and intercept.

Covers: threads of this process; 1 to 8 workers of one and two threads; workers within the process; clusters that grow,
shrink, adapt to their load from no worker, lose a worker or carry another program's tasks while the fit goes on.
Does not cover: kills by the hundred (``worker_kills``).
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from lab.campaign.tally import Tally
from lab.same_bits import digest, fit, write_rows

SIZES = (1, 6000, 37, 9000, 2, 3, 5000, 4957, 8000)
"""Rows of the row groups: partitions of very unequal work."""

AT_ROUND = 2
"""The round after which something happens to the cluster."""

Strike = Callable[[Any], None]


@dataclass(frozen=True)
class Shape:
    """A configuration.

    Parameters
    ----------
    workers : int
        0 for the threads of this process.
    threads : int
        Of each worker, or of this process.
    processes : bool
        Whether workers are processes.
    adapts : (int, int), optional
        Least and most workers of a cluster that follows its load.
    strike : callable, optional
        What happens to the cluster after a round.
    """

    workers: int
    threads: int
    processes: bool = True
    adapts: tuple[int, int] | None = None
    strike: Strike | None = None


def grow(client: Any, to: int = 4) -> None:
    """Start more workers."""
    client.cluster.scale(to)


def retire(client: Any, leave: int = 1) -> None:
    """Let all workers but some end in order, their results moved to those that stay."""
    gone = sorted(client.nthreads())[leave:]
    client.cluster.scale(leave)
    client.retire_workers(gone, close_workers=True)


def kill(client: Any) -> None:
    """Kill a worker."""
    os.kill(min(client.run(os.getpid).values()), signal.SIGKILL)


def crowd(client: Any) -> None:
    """Give the workers tasks of another program, with priority."""
    client.neighbours = client.map(time.sleep, [0.02] * 100, pure=False, priority=10)


SHAPES: dict[str, Shape] = {
    "threads of this process, 1": Shape(0, 1),
    "threads of this process, 2": Shape(0, 2),
    **{f"{n} workers of {t} threads": Shape(n, t) for n in (1, 2, 3, 4, 8) for t in (1, 2)},
    "2 workers in this process": Shape(2, 1, processes=False),
    "1 worker in this process, 4 threads": Shape(1, 4, processes=False),
    "adaptive, 0 to 4": Shape(0, 1, adapts=(0, 4)),
    "adaptive, 1 to 4, 2 threads": Shape(0, 2, adapts=(1, 4)),
    "1 worker, then 4": Shape(1, 1, strike=grow),
    "2 workers of 2 threads, then 4": Shape(2, 2, strike=grow),
    "4 workers, 3 retired": Shape(4, 1, strike=retire),
    "4 workers, 2 retired": Shape(4, 1, strike=partial(retire, leave=2)),
    "3 workers, one killed": Shape(3, 1, strike=kill),
    "1 worker of 2 threads, killed": Shape(1, 2, strike=kill),
    "2 workers with other tasks": Shape(2, 1, strike=crowd),
    "4 workers of 2 threads with other tasks": Shape(4, 2, strike=crowd),
}


@contextmanager
def client_of(shape: Shape) -> Iterator[Any]:
    """A client of a configuration; None for the threads of this process."""
    from distributed import Client

    from dboost.engine.dask.cluster import EmbeddedCluster

    if not shape.workers and not shape.adapts:
        cores = os.sched_getaffinity(0)
        os.sched_setaffinity(0, set(sorted(cores)[: shape.threads]))
        try:
            yield None
        finally:
            os.sched_setaffinity(0, cores)
        return
    with EmbeddedCluster(
        n_workers=shape.workers, threads_per_worker=shape.threads, processes=shape.processes, host="127.0.0.1",
        dashboard_address="127.0.0.1:0", silence_logs=50, memory_limit=0, protocol="tcp://",
    ) as cluster:  # fmt: skip
        if shape.adapts:
            cluster.adapt(minimum=shape.adapts[0], maximum=shape.adapts[1])
        with Client(cluster, set_as_default=False) as client:
            yield client


class Struck:
    """A callback that does something to the cluster, once."""

    def __init__(self, client: Any, strike: Strike | None) -> None:
        self.client = client
        self.strike = strike
        self.thread: threading.Thread | None = None

    def __call__(self, record: dict[str, Any]) -> None:
        """Do it beside the fit, which goes on."""
        if self.strike is not None and self.thread is None and record["round"] >= AT_ROUND:
            self.thread = threading.Thread(target=self.strike, args=(self.client,))
            self.thread.start()

    def done(self) -> bool:
        """Wait for its end; whether it happened, where it was to."""
        if self.thread is not None:
            self.thread.join()
        return self.strike is None or self.thread is not None


def run(count: int, folder: Path, tally: Tally) -> None:
    """Fit on each configuration, and compare with the first."""
    path = folder / "rows.parquet"
    write_rows(path, SIZES)
    expected = digest(fit(path, None))
    tally.figures["sha256"] = expected[:16]
    for name, shape in list(SHAPES.items())[:count]:
        with client_of(shape) as client:
            struck = Struck(client, shape.strike)
            found = digest(fit(path, client, struck))
            happened = struck.done()
        tally.check(found == expected and happened, "the same bits", f"{name}: {found[:16]}, struck: {happened}")
