"""A Dask cluster inside this machine.

Covers: ``embedded_cluster``: as many workers as the machine (or container) has room for, on loopback only, that
replaces lost workers, leaves Ctrl-C to its driver, and closes quietly.
Does not cover: clusters of several machines (folder ``cluster/`` of the repository).

Workers are processes started anew, which import the main module: a script that opens a cluster needs the usual
``if __name__ == "__main__":``.
"""

from __future__ import annotations

import asyncio
import atexit
import logging
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from multiprocessing import resource_tracker
from typing import Any

import dask
from dask.utils import parse_bytes
from distributed import LocalCluster

from dboost.engine.machine import available_cores, available_memory, refuse_daemonic
from dboost.errors import UsageError

MAX_WORKERS = 4
"""More processes hold more copies of sums and weights; threads inside a worker share them."""

MIN_MEMORY = 2**30
DRIVER_SHARE = 0.2

WORKERS_PER_CORE = 4
"""More processes than this on one core only wait for each other, and hundreds, asked for by a slip of the hand, bring a
machine down; so they are refused."""

LEAST_MEMORY = 160 * 2**20
"""Bytes. A worker takes 125 MiB with its libraries and without any data (measured), and is paused at 80 % of its limit:
below this it would never do a task."""

LOST_WORKER_TIMEOUT = "1 day"

CALM = {"distributed.worker.profile.enabled": False, "distributed.admin.tick.interval": "500 ms"}
"""No profiler: seen in CPython 3.11, a worker whose profiler asked for the frames of all threads while garbage was
collected, as it does a hundred times a second, waited for ever, and the fit with it. And every part of a cluster looks
twice a second, not fifty times, whether it has been held up for seconds: two workers with nothing to do and their
scheduler took 12 % of a core, and take 5 %."""

_LOGGERS = ("distributed", "asyncio", "tornado")

_ending = False


@atexit.register
def _end() -> None:
    """Note that Python ends: Dask closes what is still open after this, since it asked to be called before.

    What ends a worker is told by its nanny when its process is gone, which under load is after the cluster is closed.
    """
    global _ending
    _ending = True


def worker_shape(cores: int, memory: int, n_workers: int | None = None) -> tuple[int, int, int]:
    """Return the number of workers, and threads and bytes of memory for each.

    `cores`, `memory`: what the machine has. `n_workers`: number of workers (default: one per core up to four, with at
    least 1 GiB each).
    """
    usable = int((1 - DRIVER_SHARE) * memory)
    if n_workers is None:
        n_workers = max(1, min(MAX_WORKERS, cores, usable // MIN_MEMORY))
    return n_workers, max(1, cores // n_workers), usable // n_workers


class EmbeddedCluster(LocalCluster):  # type: ignore[misc]
    """A `LocalCluster` that replaces lost workers and ends without tracebacks; made by `embedded_cluster`."""

    def __init__(self, **options: Any) -> None:
        # A worker that is away for longer than this timeout (15 s by default) is struck from the list for good; a
        # machine under load takes that long to restart one. The cluster reads the value when a worker is lost.
        self._settings = ExitStack()
        patience = {"distributed.deploy.lost-worker-timeout": LOST_WORKER_TIMEOUT}
        self._settings.enter_context(dask.config.set(patience | CALM))
        self._reported: Callable[[asyncio.AbstractEventLoop, dict[str, Any]], None] = _report
        try:
            super().__init__(**options)
        except BaseException:
            # Tasks of a cluster that was broken off while it started fail later, in its loop: nobody waits for them,
            # and the error that goes up from here is what is to be said. Dask closes such a cluster when Python ends.
            self._reported = _report_nothing
            with suppress(AttributeError):
                self.loop.asyncio_loop.set_exception_handler(self._reported)
            self._settings.close()
            raise

    async def _start(self) -> Any:
        _leave_interrupts_to_the_main_thread()
        return await super()._start()

    def close(self, timeout: float | None = None) -> Any:
        """Stop workers and scheduler; a second call does nothing."""
        # The loop may end between a timeout and the coroutine that waits for it; its future is then reported when it
        # is collected, after the loggers below speak again.
        self.loop.asyncio_loop.set_exception_handler(self._reported)
        with hushed(), suppress(AssertionError, OSError):
            # A nanny that is just restarting its worker trips over its own process; the process ends all the same.
            # Timeouts and ended connections are errors of the system.
            super().close(timeout)
        self._settings.close()


def _report(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Report what went wrong in a loop whose cluster is closed or closing, but no timeouts or ended connections."""
    if not isinstance(context.get("exception"), OSError):
        loop.default_exception_handler(context)


def _report_nothing(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Drop what went wrong in the loop of a cluster that never came up."""


def _leave_interrupts_to_the_main_thread() -> None:
    """Block SIGINT in this thread, and so in every process that is started from it or from threads that it starts.

    A terminal sends Ctrl-C to all processes of a group, the workers among them, each of which would print tracebacks.
    The driver gets it in its main thread and ends them in order. A child that is told to ignore the signal once it runs
    is told too late: starting takes a second.
    """
    if hasattr(signal, "pthread_sigmask"):
        # Python's tracker of resources starts with the first child and unblocks the signal; so it is started before.
        resource_tracker.ensure_running()
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})


@contextmanager
def hushed() -> Iterator[None]:
    """Keep the loggers of Dask and its loop silent: what they would tell with tracebacks becomes one error.

    Where Python is ending they stay so.
    """
    # Dask gives some loggers below these a level and a handler of their own.
    known = [name for name in logging.root.manager.loggerDict if name.split(".")[0] in _LOGGERS]
    loggers = [logging.getLogger(name) for name in {*_LOGGERS, *known}]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        if not _ending:
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)


def _check_workers(n_workers: int, cores: int, memory: int) -> None:
    """Refuse more workers than the machine can carry, before any is started."""
    if n_workers < 1:
        raise UsageError(f"n_workers is {n_workers}; expected a positive number, or None to size it to the machine")
    by_cores = max(MAX_WORKERS, WORKERS_PER_CORE * cores)
    by_memory = max(1, int((1 - DRIVER_SHARE) * memory) // LEAST_MEMORY)
    if n_workers > min(by_cores, by_memory):
        word = "core" if cores == 1 else "cores"
        raise UsageError(
            f"{n_workers} workers were asked for; this machine has {cores} {word} and {memory / 2**30:.1f} GiB of "
            f"memory, which carry at most {min(by_cores, by_memory)}",
            hint="ask for fewer (by default their number follows the machine), or use the scheduler of a cluster",
        )


def _bytes_of(memory_limit: int | str) -> int:
    """Return a limit of memory in bytes."""
    try:
        limit = parse_bytes(memory_limit)
    except ValueError:
        limit = -1
    if limit != 0 and limit < LEAST_MEMORY:
        raise UsageError(
            f"memory_limit is {memory_limit!r}; expected bytes of at least {LEAST_MEMORY}, or a size such as '2 GiB'",
            hint=f"a worker needs {LEAST_MEMORY // 2**20} MiB before it holds any data; 0 is no limit",
        )
    return int(limit)


def embedded_cluster(
    n_workers: int | None = None, memory_limit: int | str | None = None, security: Any = None
) -> EmbeddedCluster:
    """Start a cluster in this machine; use it as a context manager, with ``get_client()``.

    `n_workers`: worker processes (default: one per core up to four, with at least 1 GiB each). The cores are shared out
    as their threads. `memory_limit`: memory of each worker in bytes or as ``"4 GiB"``; 0 for no limit (default: 80 % of
    the machine's, shared out). `security`: certificates: all parts of the cluster then speak TLS only. Scheduler,
    workers and dashboard listen on the loopback interface only. Its workers have no statistical profiler, so that the
    profile page of the dashboard is empty. Raises UsageError: the machine cannot carry so many workers, `memory_limit`
    is no size that a worker can live with, or this process may start none.
    """
    refuse_daemonic()
    limit = None if memory_limit is None else _bytes_of(memory_limit)
    cores, memory = available_cores(), available_memory()
    if n_workers is not None:
        _check_workers(n_workers, cores, memory)
    workers, threads, share = worker_shape(cores, memory, n_workers)
    return EmbeddedCluster(
        n_workers=workers,
        threads_per_worker=threads,
        memory_limit=share if limit is None else limit,
        processes=True,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        silence_logs=logging.CRITICAL,
        **({} if security is None else {"security": security, "protocol": "tls://"}),
    )
