"""How much memory the processes of a run take at most.

Covers: a thread that samples a process and all its children. Does not cover: what the memory is used for.
"""

from __future__ import annotations

import os
import threading
from types import TracebackType

import psutil


class PeakMemory:
    """Sample resident memory until the ``with`` block ends.

    `every`: seconds between two samples. `of`: process whose descendants are watched. Default: this one. `driver`:
    largest resident size of that process, bytes. `children`: largest resident size of each descendant process, bytes,
    by process id.
    """

    def __init__(self, every: float = 0.2, of: int | None = None) -> None:
        self.every = every
        self.of = os.getpid() if of is None else of
        self.driver = 0
        self.children: dict[int, int] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="peak-memory", daemon=True)

    def _watch(self) -> None:
        while not self._stop.is_set():
            try:
                me = psutil.Process(self.of)
                self.driver = max(self.driver, me.memory_info().rss)
                children = me.children(recursive=True)
            except psutil.NoSuchProcess:
                # It has ended, before whoever measures it.
                return
            for child in children:
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
