"""Short passes as one call to each worker, past the scheduler's queues.

Covers: which passes may go this way, the call, and what runs on a worker.
Does not cover: passes as tasks (``engine``), by which all is done that is not done here.

Dask collects messages for up to 10 ms at each of its stops, so that a pass of tasks takes 20 to 30 ms in which nothing
is computed. A call has no such stops. It goes from this process to the worker; where workers cannot be reached from
here, as those of a cluster behind a gateway, the scheduler passes it on, which opens a connection to each worker for
every call. A call is not retried, watched or shown on the dashboard, so only passes that were short as tasks take it,
for a limited time; whatever does not answer with sums (a worker that is gone, silent, new or has lost what it held, any
error) is done again as tasks. A pass is a pure function of partitions and arguments, so doing it twice costs time only,
and both ways merge the same sums along the same tree.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from distributed.core import Status
from distributed.protocol import pickle, to_serialize

from dboost import interruption
from dboost.engine.dask import tasks
from dboost.engine.dask.questions import Questions
from dboost.engine.dask.wire_format import Blob

OPERATION = "dboost_sum"
"""What workers know the call as."""

SHORT_PASS = 0.2
"""A pass of a name that took so many seconds the last time is short; in longer ones the way of tasks weighs little."""

LIMIT = 1.0
"""Seconds after which a call is given up."""

WORKERS = 32
"""More workers than this are not called: one process would open a connection to each, and merge the sums of all."""

REACHED = 0.5
"""Seconds in which new workers have to answer this process for the first time; else calls go through the scheduler."""

CALL_BYTES = 2**23
"""Arguments and sums of all workers that are larger than this go by tasks, which hand them from worker to worker."""


@dataclass(frozen=True)
class Part:
    """What one worker is asked to sum."""

    part: Blob | str  # The bundle (``tasks.bundle_task``), or the key of a task whose result it is.
    constants: tuple[str, ...]  # Keys of tasks that hold what was left out of the common arguments.
    partitions: str | None  # Key of the task that holds the partitions, where they are results of tasks.


def answer_calls(dask_worker: Any) -> None:
    """Let a worker answer calls; runs in its event loop.

    ``Client.run`` can make each call, too, but a worker writes a line into its log for every use of that.
    """

    async def answer(asked: bytes) -> Any:
        return to_serialize(await _sum_part(dask_worker, *pickle.loads(asked)))

    dask_worker.handlers[OPERATION] = answer


async def _sum_part(worker: Any, common: Blob, parts: Mapping[str, Part], seconds: float) -> tasks.Done | None:
    """Sum a worker's part of a pass in one of its threads; None where it lacks what that needs, or a leaf failed."""
    mine, data = parts[worker.address], worker.data
    wanted = [*mine.constants, *(key for key in (mine.part, mine.partitions) if isinstance(key, str))]
    if worker.status != Status.running or any(key not in data for key in wanted):
        return None
    part = data[mine.part] if isinstance(mine.part, str) else mine.part
    partitions = None if mine.partitions is None else data[mine.partitions]
    constants = [data[key] for key in mine.constants]
    work = partial(_sum_here, worker, common, part, constants, partitions, time.monotonic() + seconds)
    return await asyncio.get_running_loop().run_in_executor(worker.executors["default"], work)


def _sum_here(
    worker: Any, common: Blob, part: Blob, constants: Sequence[Any], partitions: Sequence[Any] | None, end: float
) -> tasks.Done | None:
    clock = tasks.Clock()
    try:
        done = tasks.sum_bundle(
            worker, clock, common, part, constants, partitions, lambda: time.monotonic() > end, lambda: None
        )
    except Exception:
        # The same pass as tasks meets the error again, names the partition and retries what can be retried.
        return None
    return done if isinstance(done, tasks.Done) else None


class DirectCalls:
    """Which passes are called directly, and calling them.

    `questions`: runs the call in the client's event loop, with its limit.
    """

    def __init__(self, client: Any, questions: Questions) -> None:
        self._client = client
        self._questions = questions
        self._short: set[str] = set()
        self._answering: set[str] = set()
        self._reached = True  # Whether this process can connect to the workers.

    def note(self, name: str, seconds: float, nbytes: int) -> None:
        """A pass of this name took so many seconds, and its sums so many bytes."""
        if seconds < SHORT_PASS and nbytes <= CALL_BYTES:
            self._short.add(name)
        else:
            self._short.discard(name)

    def forget(self) -> None:
        """Workers or data are not what they were: every pass has to be short as tasks again first."""
        self._short.clear()
        self._answering.clear()

    def wanted(self, name: str, workers: int) -> bool:
        """Whether a pass of this name is called directly on so many workers."""
        return name in self._short and workers <= WORKERS

    def call(self, common: Blob, parts: Mapping[str, Part]) -> list[tasks.Done] | None:
        """Return what each worker gives, in the order of `parts`; None where any of them gives nothing in time."""
        interruption.check()
        try:
            new = [address for address in parts if address not in self._answering]
            if new:
                self._ask(lambda: self._client.run(answer_calls, workers=new, asynchronous=True))
                self._answering.update(new)
                self._reached = self._reached and self._reaches(new)
            answers = self._ask(partial(self._answers, common, parts))
        except (TimeoutError, OSError):
            answers = {}
        results = [answers.get(address) for address in parts]
        done = [result for result in results if isinstance(result, tasks.Done)]
        if len(done) < len(results):
            self.forget()
            return None
        return done

    def _reaches(self, addresses: Sequence[str]) -> bool:
        """Whether this process can connect to these workers."""

        async def greet() -> bool:
            # What comes too late ends by itself: Dask leaves a connection open that is cancelled while it is made.
            calls = (self._client.rpc(address).identity() for address in addresses)
            asked = asyncio.gather(*calls, return_exceptions=True)
            _, late = await asyncio.wait([asked], timeout=REACHED)
            return not late and not any(isinstance(answer, BaseException) for answer in asked.result())

        return bool(self._questions.ask(greet, LIMIT))

    async def _answers(self, common: Blob, parts: Mapping[str, Part]) -> dict[str, Any]:
        """What each worker gives; nothing of those that cannot be reached."""

        def asked(some: Sequence[str]) -> bytes:
            return bytes(pickle.dumps((common, {address: parts[address] for address in some}, LIMIT)))

        addresses = list(parts)
        if not self._reached:
            message = {"op": OPERATION, "asked": asked(addresses)}
            through = self._client.scheduler.broadcast
            return dict(await through(msg=message, workers=addresses, on_error="ignore"))
        calls = (getattr(self._client.rpc(address), OPERATION)(asked=asked([address])) for address in addresses)
        return dict(zip(addresses, await asyncio.gather(*calls, return_exceptions=True), strict=True))

    def _ask(self, question: Callable[[], Any]) -> Any:
        return self._questions.ask(question, LIMIT)
