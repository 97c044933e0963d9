"""How much memory the processes of a run take at most.

Covers: a thread that samples this process and all its children. Does not cover: what the memory is used for.
"""

from __future__ import annotations

import os
import threading
from types import TracebackType

import psutil


class PeakMemory:
    """Sample resident memory until the ``with`` block ends.

    Parameters
    ----------
    every : float
        Seconds between two samples.

    Attributes
    ----------
    driver : int
        Largest resident size of this process, bytes.
    children : dict of int to int
        Largest resident size of each descendant process, bytes, by process id.
    """

    def __init__(self, every: float = 0.2) -> None:
        self.every = every
        self.driver = 0
        self.children: dict[int, int] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="peak-memory", daemon=True)

    def _watch(self) -> None:
        me = psutil.Process(os.getpid())
        while not self._stop.is_set():
            self.driver = max(self.driver, me.memory_info().rss)
            for child in me.children(recursive=True):
                try:
                    size = child.memory_info().rss
                except (psutil.NoSuchProcess, psutil.AccessDenied):
                    # It ended between the listing and the question.
                    continue
                self.children[child.pid] = max(self.children.get(child.pid, 0), size)
            self._stop.wait(self.every)

    def __enter__(self) -> PeakMemory:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
