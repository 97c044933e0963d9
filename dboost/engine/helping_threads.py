"""Threads that help the one that calls them, on other processors than its own.

Covers: ``Helpers``, a pool whose threads are kept off the processor of the thread that gives them work, and the one
that waits for the next engine of the process.
Does not cover: what is worked on (``engine.tree``), or how many threads there are (``engine.machine``).
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import Any


@cache
def _getcpu() -> Callable[[], int] | None:
    """The function of the C library that names the processor a thread is on, where it has one."""
    return getattr(ctypes.CDLL(None), "sched_getcpu", None)


class Helpers(ThreadPoolExecutor):
    """A pool of threads whose caller works beside them.

    Linux often wakes a thread on the processor of the one that woke it, and may leave it there for milliseconds, behind
    a caller that works on and beside a processor that is idle. After a pause that was the rule on the machines measured
    (10.7 ms for two jobs of 5.2), and it made passes of short fits take as long on two threads as on one. So helpers
    that are idle wake on any processor but the caller's when they are given work; once awake, each may run on all of
    them again. To tie each to a processor of its own was rejected: it would have to stay there when another program
    takes it. So was keeping them off the caller's while they work: where two processes share two processors, a fit of
    titles then took 103 to 109 ms, and not 85 to 99.

    Where there are no more processors than helpers, or the system has no such calls, they are left alone.

    `count`: threads beside the caller's, at least 1.
    """

    def __init__(self, count: int) -> None:
        self.kind = _kind(count)
        # None where threads cannot be placed
        self._processor = _getcpu() if hasattr(os, "sched_setaffinity") else None
        self._allowed = os.sched_getaffinity(0) if self._processor is not None else set()
        self._placed = count < len(self._allowed)
        self._off: set[int] = set()
        self._helpers: list[int] = []
        self._busy = 0
        self._state = threading.Lock()
        super().__init__(count, thread_name_prefix="dboost", initializer=self._begin)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """As of any executor."""
        if not self._placed:
            return super().submit(fn, *args, **kwargs)
        with self._state:
            # helpers of two callers stay where they work
            if self._busy == 0 and self._processor is not None:
                self._off = {self._processor()}
                self._place(self._helpers, self._allowed - self._off)
            self._busy += 1
        try:
            given = super().submit(self._awake, fn, *args, **kwargs)
        except BaseException:
            self._done(None)
            raise
        given.add_done_callback(self._done)
        return given

    def _done(self, _: Any) -> None:
        with self._state:
            self._busy -= 1

    def _begin(self) -> None:
        """What each thread does first."""
        if self._placed:
            with self._state:
                self._helpers.append(threading.get_native_id())
                self._place(self._helpers[-1:], self._allowed - self._off)

    def _awake(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        self._place([0], self._allowed)
        return fn(*args, **kwargs)

    def _place(self, threads: Sequence[int], processors: set[int]) -> None:
        """Let threads run on some processors; 0 is the one that calls."""
        try:
            for thread in threads:
                os.sched_setaffinity(thread, processors)
        except OSError:
            # the processors of this process are others by now: the system knows better
            self._placed = False


# The pool that was given back last: a thousand small fits, one after the other, start its threads once.
_waiting: list[Helpers] = []
_taking = threading.Lock()


def helpers(count: int) -> Helpers:
    """A pool of so many threads: the one that was given back, where it is like that, or a new one."""
    with _taking:
        found = _waiting.pop() if _waiting else None
    if found is not None and found.kind == _kind(count):
        return found
    if found is not None:
        found.shutdown(wait=False)
    return Helpers(count)


def give_back(pool: Helpers) -> None:
    """Keep a pool for whoever asks for one next, and stop the one that waited so far."""
    with _taking:
        others = [*_waiting]
        _waiting[:] = [pool]
    for other in others:
        other.shutdown(wait=False)


def _kind(count: int) -> tuple[Any, ...]:
    """What a pool must have in common with the one asked for.

    Threads do not survive a fork, and are kept to the processors that the process had when they were started.
    """
    return os.getpid(), count, os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else None
