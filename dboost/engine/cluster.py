"""A Dask cluster inside this machine.

Covers: ``embedded_cluster``: as many workers as the machine (or container) has room for, on loopback only, that
replaces lost workers and closes quietly.
Does not cover: clusters of several machines (folder ``cluster/`` of the repository).

Workers are processes started anew, which import the main module: a script that opens a cluster needs the usual
``if __name__ == "__main__":``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import dask
from distributed import LocalCluster

from dboost.engine.machine import available_cores, available_memory
from dboost.errors import UsageError

MAX_WORKERS = 4
"""More processes hold more copies of sums and weights; threads inside a worker share them."""

MIN_MEMORY = 2**30
DRIVER_SHARE = 0.2
LOST_WORKER_TIMEOUT = "1 day"

WITHOUT_PROFILER = {"distributed.worker.profile.enabled": False}
"""Seen in CPython 3.11: a worker whose profiler asked for the frames of all threads while garbage was collected, as it
does a hundred times a second, waited for ever, and the fit with it."""

_LOGGERS = ("distributed", "asyncio", "tornado")


def worker_shape(cores: int, memory: int, n_workers: int | None = None) -> tuple[int, int, int]:
    """Return the number of workers, and threads and bytes of memory for each.

    Parameters
    ----------
    cores, memory : int
        What the machine has.
    n_workers : int, optional
        Number of workers (default: one per core up to four, with at least 1 GiB each).
    """
    usable = int((1 - DRIVER_SHARE) * memory)
    if n_workers is None:
        n_workers = max(1, min(MAX_WORKERS, cores, usable // MIN_MEMORY))
    return n_workers, max(1, cores // n_workers), usable // n_workers


class EmbeddedCluster(LocalCluster):
    """A `LocalCluster` that replaces lost workers and closes without tracebacks; made by `embedded_cluster`."""

    def __init__(self, **options: Any) -> None:
        # A worker that is away for longer than this timeout (15 s by default) is struck from the list for good; a
        # machine under load takes that long to restart one. The cluster reads the value when a worker is lost.
        self._settings = ExitStack()
        patience = {"distributed.deploy.lost-worker-timeout": LOST_WORKER_TIMEOUT}
        self._settings.enter_context(dask.config.set(patience | WITHOUT_PROFILER))
        try:
            super().__init__(**options)
        except BaseException:
            self._settings.close()
            raise

    def close(self, timeout: float | None = None) -> Any:
        """Stop workers and scheduler; a second call does nothing."""
        # The loop may end between a timeout and the coroutine that waits for it; its future is then reported when it
        # is collected, after the loggers below speak again.
        self.loop.asyncio_loop.set_exception_handler(_report)
        with _hushed(), suppress(AssertionError, OSError):
            # A nanny that is just restarting its worker trips over its own process; the process ends all the same.
            # Timeouts and ended connections are errors of the system.
            super().close(timeout)
        self._settings.close()


def _report(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Report what went wrong in a loop whose cluster is closed or closing, but no timeouts or ended connections."""
    if not isinstance(context.get("exception"), OSError):
        loop.default_exception_handler(context)


@contextmanager
def _hushed() -> Iterator[None]:
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def embedded_cluster(n_workers: int | None = None, memory_limit: int | str | None = None) -> EmbeddedCluster:
    """Start a cluster in this machine; use it as a context manager, with ``get_client()``.

    Parameters
    ----------
    n_workers : int, optional
        Worker processes (default: one per core up to four, with at least 1 GiB each). The cores are shared out as
        their threads.
    memory_limit : int or str, optional
        Memory of each worker in bytes or as ``"4 GiB"`` (default: 80 % of the machine's, shared out).

    Returns
    -------
    EmbeddedCluster
        Scheduler, workers and dashboard listen on the loopback interface only. Its workers have no statistical
        profiler, so that the profile page of the dashboard is empty.
    """
    if n_workers is not None and n_workers < 1:
        raise UsageError(f"n_workers is {n_workers}; expected a positive number, or None to size it to the machine")
    workers, threads, memory = worker_shape(available_cores(), available_memory(), n_workers)
    return EmbeddedCluster(
        n_workers=workers,
        threads_per_worker=threads,
        memory_limit=memory if memory_limit is None else memory_limit,
        processes=True,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        silence_logs=logging.CRITICAL,
    )
