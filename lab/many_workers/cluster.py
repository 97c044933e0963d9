"""A real scheduler and many thin workers on this machine.

Covers: starting their processes, a client of them, and what each kind of process has taken so far.
Does not cover: what runs in these processes (``process``).
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dask
from distributed import Client

from lab.many_workers import wire
from lab.many_workers.process import SETTINGS

ROOT = Path(__file__).resolve().parents[2]
HOSTS = 2
"""Processes that the workers share: one for each core of the machine this was made on."""


@dataclass(frozen=True)
class Spent:
    """What has been spent so far, or in between.

    Parameters
    ----------
    driver, scheduler, workers : float
        Processor seconds, of all workers together.
    from_driver, from_scheduler, from_workers : int
        Bytes that each kind of process wrote to its connections.
    """

    driver: float
    scheduler: float
    workers: float
    from_driver: int
    from_scheduler: int
    from_workers: int

    def since(self, before: Spent) -> Spent:
        """What was spent since then."""
        return Spent(**{name: value - getattr(before, name) for name, value in vars(self).items()})


class Cluster:
    """Processes that run, and a client of them.

    Parameters
    ----------
    client : distributed.Client
    hosts : list of str
        The address of one worker of each process.
    """

    def __init__(self, client: Any, hosts: list[str]) -> None:
        self.client = client
        self._hosts = hosts

    def spent(self) -> Spent:
        """What driver, scheduler and workers have spent so far; asking costs a few milliseconds."""
        workers = list(self.client.run(wire.spent, workers=self._hosts).values())
        scheduler = self.client.run_on_scheduler(wire.spent)
        driver = wire.spent()
        seconds, nbytes = (sum(one[i] for one in workers) for i in (0, 1))
        return Spent(driver[0], scheduler[0], float(seconds), driver[1], scheduler[1], int(nbytes))


@contextmanager
def running(workers: int) -> Iterator[Cluster]:
    """A cluster of that many thin workers, for as long as the block lasts."""
    with ExitStack() as stack:
        stack.enter_context(dask.config.set(SETTINGS))
        address = _started(stack, "scheduler")()
        shares = [(i + 1) * workers // HOSTS - i * workers // HOSTS for i in range(HOSTS)]
        waits = [_started(stack, "workers", address, str(share)) for share in shares if share]
        hosts = [wait() for wait in waits]
        client = stack.enter_context(Client(address, set_as_default=False))
        client.wait_for_workers(workers, timeout=120)
        yield Cluster(client, hosts)


def _started(stack: ExitStack, *arguments: str) -> Any:
    """Start a process; return a function that waits until it is ready and gives the line it then prints."""
    command = [sys.executable, "-m", "lab.many_workers.process", *arguments]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    assert process.stdin is not None and process.stdout is not None
    stack.callback(_ended, process)
    stream = process.stdout

    def line() -> str:
        found = stream.readline().strip()
        if not found:
            raise RuntimeError(f"the process {arguments[0]!r} ended with {process.wait()} before it was ready")
        return found

    return line


def _ended(process: subprocess.Popen[str]) -> None:
    """Tell a process to end, and make it where it does not."""
    assert process.stdin is not None and process.stdout is not None
    process.stdin.close()
    process.stdout.close()
    # What these processes have left to do is to tell each other good-bye, one connection after the other.
    process.kill()
    process.wait()
