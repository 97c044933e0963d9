"""What goes wrong in a trial. Only processes of the trial's own cluster are killed or stopped.

Covers: the faults, each as a function of the trial's client. Does not cover: when they happen.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

GULP = 2**24
"""Bytes that a greedy task takes at a time: small beside any worker's limit, so that its nanny sees it grow."""


def _signal(client: Any, number: int, count: int | None = None) -> None:
    pids = client.run(os.getpid)
    for address in sorted(pids)[:count]:
        os.kill(pids[address], number)


def kill_one(client: Any, folder: Path) -> None:
    """Kill one worker; its nanny starts another."""
    _signal(client, signal.SIGKILL, 1)


def kill_all(client: Any, folder: Path) -> None:
    """Kill all workers in the same moment."""
    _signal(client, signal.SIGKILL)


def stop_one(client: Any, folder: Path) -> None:
    """Stop one worker for good: it keeps its connections and says nothing."""
    _signal(client, signal.SIGSTOP, 1)


def exhaust(client: Any, folder: Path) -> None:
    """Let another program's task take all memory of a worker, once, so that the nanny kills the worker."""
    _take(client, str(folder / f"taken-{os.getpid()}"))


def exhaust_again(client: Any, folder: Path) -> None:
    """The same on every worker that the task comes to, until Dask gives it up."""
    _take(client, "")


def _take(client: Any, mark: str) -> None:
    future = client.submit(take_all, mark, pure=False, key=f"greedy-{os.getpid()}")
    future.add_done_callback(lambda ended: ended.release())


def take_all(mark: str) -> None:
    """Take memory until the process is ended; with a mark, do nothing the second time."""
    if mark:
        if os.path.exists(mark):
            return
        Path(mark).touch()
    taken = []
    while True:
        taken.append(b"\x01" * GULP)


def _signal_scheduler(client: Any, number: int) -> None:
    os.kill(client.run_on_scheduler(os.getpid), number)


def kill_scheduler(client: Any, folder: Path) -> None:
    """Kill the scheduler, which knows everything."""
    _signal_scheduler(client, signal.SIGKILL)


def stop_scheduler(client: Any, folder: Path) -> None:
    """Stop the scheduler for good: it keeps its connections and says nothing."""
    _signal_scheduler(client, signal.SIGSTOP)


def restart(client: Any, folder: Path) -> None:
    """Restart all workers, as another program on the cluster may; that takes all results away."""
    from distributed import Client

    with Client(client.scheduler.address, set_as_default=False) as other:
        other.restart(wait_for_workers=False)


def close(client: Any, folder: Path) -> None:
    """Close the client that the fit uses."""
    client.close()


def nothing(client: Any, folder: Path) -> None:
    """Leave the fit alone: its cluster is the fault, or nothing is."""
