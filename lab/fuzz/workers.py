"""Cases on processes of their own, so that a fit that does not end is ended, wherever it is.

A signal that raises would land in the compiler or in a callback, and leave a process behind that fails in what follows.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

from lab.fuzz.judge import Outcome, run

Run = Callable[[int], Outcome]

_CONTEXT = multiprocessing.get_context("spawn")
# A process imports and loads compiled code before its first fit counts.
_STARTING = 60.0


@dataclass
class _Worker:
    """A process and the case it is at."""

    process: Any
    pipe: Connection
    seed: int | None = None
    until: float = 0.0

    @classmethod
    def started(cls, run: Run) -> _Worker:
        mine, its = _CONTEXT.Pipe()
        process = _CONTEXT.Process(target=_serve, args=(its, run), daemon=True)
        process.start()
        its.close()
        return cls(process, mine)

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


def outcomes(seeds: Iterable[int], processes: int, seconds: float, run: Run = run) -> Iterator[Outcome]:
    """The outcome of every case, as they come; one that takes longer than so many seconds is "out of time"."""
    left = iter(seeds)
    workers = [_Worker.started(run) for _ in range(processes)]
    fresh = {id(worker) for worker in workers}
    try:
        busy = [worker for worker in workers if _given(worker, left, seconds + _STARTING)]
        while busy:
            ready = wait([worker.pipe for worker in busy], max(0.0, min(w.until for w in busy) - time.monotonic()))
            for worker in list(busy):
                late = time.monotonic() >= worker.until
                if worker.pipe not in ready and not late:
                    continue
                found = _received(worker) if worker.pipe in ready else None
                if found is None:
                    assert worker.seed is not None
                    kind, detail = (
                        ("out of time", f"after {seconds:g} s") if late else ("foreign error", "process died")
                    )
                    found = Outcome(worker.seed, kind, detail, "", seconds)
                    worker.end()
                    workers.remove(worker)
                    busy.remove(worker)
                    worker = _Worker.started(run)
                    workers.append(worker)
                    busy.append(worker)
                    fresh.add(id(worker))
                else:
                    fresh.discard(id(worker))
                if not _given(worker, left, seconds + (_STARTING if id(worker) in fresh else 0.0)):
                    busy.remove(worker)
                yield found
    finally:
        for worker in workers:
            worker.end()


def _given(worker: _Worker, left: Iterator[int], seconds: float) -> bool:
    """Whether there was a case left to give to a worker."""
    seed = next(left, None)
    if seed is not None:
        worker.pipe.send(seed)
        worker.seed, worker.until = seed, time.monotonic() + seconds
    return seed is not None


def _received(worker: _Worker) -> Outcome | None:
    try:
        found: Outcome = worker.pipe.recv()
    except EOFError:
        return None
    return found


def _serve(pipe: Connection, run: Run) -> None:
    """Run cases until there are none."""
    while True:
        try:
            seed = pipe.recv()
        except EOFError:
            return
        pipe.send(run(seed))
