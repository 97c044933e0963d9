"""Waiting for tasks without ever waiting for ever.

Covers: collecting the results of futures while watching scheduler, workers and progress; turning Dask's errors into
`ClusterError`; questions to the scheduler with a time limit.
Does not cover: what is submitted, or resuming afterwards.

Left alone, Dask waits for ever when no worker is left, and for five minutes when one is silent. Both limits are the
scheduler's, which a client cannot set; so the driver watches for itself, from here.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import time
import warnings
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from dboost import interruption
from dboost.engine.tasks import PROGRESS_TOPIC
from dboost.errors import ClusterError, DboostWarning

V = TypeVar("V")

TICK = 0.5
"""Seconds between looks at the cluster; a pass that is shorter than this is never looked at."""

INQUIRY = 1.0
"""Seconds without progress before the workers themselves are looked at, and between such looks."""

ANSWER_TIMEOUT = 5.0
RECONNECT_SECONDS = 3.0


@dataclass(frozen=True)
class Limits:
    """How long to wait for what, in seconds.

    Parameters
    ----------
    no_worker : float
        Without any worker.
    silent : float
        Until a worker without a sign of life is named in a warning.
    stall : float
        Without one finished task or partition.
    """

    no_worker: float = 30.0
    silent: float = 10.0
    stall: float = 600.0


@dataclass
class _Lookout:
    """What the driver has seen since it began to wait."""

    progress: float
    inquired: float = 0.0
    finished: int = 0
    leaves: dict[str, int] = field(default_factory=dict)
    signs: dict[str, tuple[float, float]] = field(default_factory=dict)
    without_workers: float | None = None
    without_answer: float | None = None
    disconnected: float | None = None
    warned: set[str] = field(default_factory=set)


class Watchdog:
    """Ask and wait, with limits.

    Parameters
    ----------
    client : distributed.Client
    limits : Limits
    """

    def __init__(self, client: Any, limits: Limits) -> None:
        self.client = client
        self.limits = limits

    def _start(self, coroutine: Coroutine[Any, Any, V]) -> concurrent.futures.Future[V]:
        if self.client.status == "closed":
            coroutine.close()
            raise scheduler_lost(self.client, "the client is closed")
        return asyncio.run_coroutine_threadsafe(coroutine, self.client.loop.asyncio_loop)

    def ask(self, question: Callable[[], Any], timeout: float | None = None) -> Any:
        """Return the answer to ``await question()``, made in the client's event loop, within `timeout` seconds.

        Raises
        ------
        TimeoutError, OSError
            No answer.
        """

        limit = ANSWER_TIMEOUT if timeout is None else timeout

        async def within() -> Any:
            return await asyncio.wait_for(question(), limit)

        job = self._start(within())
        try:
            return job.result(limit + 1)
        except concurrent.futures.CancelledError as error:
            raise OSError("the question was cancelled") from error
        finally:
            job.cancel()

    def workers(self) -> dict[str, int]:
        """Return address and threads of the running workers; wait for the first one.

        Raises
        ------
        ClusterError
            No worker within the limit, or no scheduler.
        """
        lookout = _Lookout(progress=time.monotonic())
        while True:
            interruption.check()
            found = self._look_for_workers(lookout)
            if found:
                return found
            time.sleep(0.1)

    def collect(
        self,
        wanted: Sequence[Any],
        keys: Sequence[str],
        name: str,
        describe: Callable[[str], str],
        arrivals: Arrivals | None = None,
    ) -> list[Any]:
        """Return the results of the futures `wanted`, in order.

        Parameters
        ----------
        wanted : sequence of distributed.Future
        keys : sequence of str
            All tasks of the pass: each that is wanted and finishes, and each leaf in any, counts as progress.
        name : str
            Name of the pass, for messages.
        describe : callable
            ``describe(key)`` says in words what a task worked on.
        arrivals : Arrivals, optional
            Is told how long the results travelled.

        Raises
        ------
        ClusterError
            Scheduler or workers are lost, silent, or killed by a task.
        Exception
            What a task raised, unchanged.
        """
        from distributed import KilledWorker

        job = self._start(_gather(list(wanted), arrivals or Arrivals()))
        lookout = _Lookout(progress=time.monotonic())
        try:
            while True:
                interruption.check()
                concurrent.futures.wait([job], timeout=TICK)
                if job.done():
                    outcome = job.result()
                    break
                self._look(lookout, wanted, keys, name)
        except concurrent.futures.CancelledError as error:
            raise scheduler_lost(self.client, "the client was closed") from error
        finally:
            job.cancel()
        if isinstance(outcome, _CancelledTask):
            raise self._cancelled(str(outcome), name) from outcome
        if isinstance(outcome, KilledWorker):
            raise ClusterError(
                f"pass {name!r}: {describe(str(outcome.task))} ended {outcome.allowed_failures + 1} workers, the last "
                f"one {outcome.last_worker.address}; the usual cause is that the worker ran out of memory",
                hint="give workers more memory or write smaller partitions; the worker's log says more",
            ) from outcome
        if isinstance(outcome, BaseException):
            raise outcome
        return list(outcome)

    def _cancelled(self, reason: str, name: str) -> ClusterError:
        if self.client.status != "running" or "connection" in reason:
            return scheduler_lost(self.client, reason)
        return ClusterError(
            f"the tasks of pass {name!r} were cancelled from outside ({reason})",
            hint="another program restarted the cluster, or data that was scattered to a lost worker cannot be rebuilt",
        )

    def _look_for_workers(self, lookout: _Lookout) -> dict[str, int]:
        """Return the workers, and raise when there has been none, or no answer, for too long."""
        now = time.monotonic()
        if self.client.status == "running":
            lookout.disconnected = None
        else:
            lookout.disconnected = lookout.disconnected or now
            if self.client.status == "closed" or now - lookout.disconnected > RECONNECT_SECONDS:
                raise scheduler_lost(self.client, f"the client is {self.client.status}")
            return {}
        try:
            found: dict[str, int] = dict(self.ask(self.client.scheduler.ncores_running))
        except (TimeoutError, OSError) as error:
            lookout.without_answer = lookout.without_answer or now
            if now - lookout.without_answer > self.limits.no_worker:
                reason = f"no answer for {self.limits.no_worker:g} s"
                raise scheduler_lost(self.client, reason) from error
            return {}
        lookout.without_answer = None
        if found:
            lookout.without_workers = None
            return found
        lookout.without_workers = lookout.without_workers or now
        if now - lookout.without_workers > self.limits.no_worker:
            raise ClusterError(
                f"no running worker for {self.limits.no_worker:g} s at scheduler {_address(self.client)}",
                hint="start workers, or look at the logs of those that ended or were paused for lack of memory",
            )
        return {}

    def _look(self, lookout: _Lookout, wanted: Sequence[Any], keys: Sequence[str], name: str) -> None:
        self._look_for_workers(lookout)
        now = time.monotonic()
        finished = sum(f.status == "finished" for f in wanted)
        if finished > lookout.finished:
            lookout.finished, lookout.progress = finished, now
        if now - max(lookout.progress, lookout.inquired) < INQUIRY:
            return
        lookout.inquired = now
        try:
            processing, identity, events = self.ask(self._inquire)
        except (TimeoutError, OSError):
            # A scheduler that does not answer is counted by _look_for_workers at the next tick.
            return
        mine = set(keys) - {f.key for f in wanted if f.done()}
        for _, event in events:
            if event["key"] in mine and event["leaves"] > lookout.leaves.get(event["key"], 0):
                lookout.leaves[event["key"]] = event["leaves"]
                lookout.progress = now
        busy = {address for address, keys in processing.items() if not mine.isdisjoint(keys)}
        silent = []
        for address in sorted(busy):
            last = identity["workers"].get(address, {}).get("last_seen")
            if last is None:
                continue
            if lookout.signs.get(address, (None, 0.0))[0] != last:
                # Clocks differ between machines, so silence is measured from when this process saw the last change.
                lookout.signs[address] = (last, now)
            elif now - lookout.signs[address][1] > self.limits.silent:
                silent.append(address)
        waited = now - lookout.progress
        who = ", ".join(silent or sorted(busy)) or "no worker"
        if waited > self.limits.stall:
            raise ClusterError(
                f"pass {name!r}: no task finished for {waited:.0f} s; {'silent' if silent else 'busy with it'}: {who}",
                hint="look at this worker, or raise stall_timeout when one partition takes that long",
            )
        for address in set(silent) - lookout.warned:
            lookout.warned.add(address)
            warnings.warn(
                f"worker {address} has shown no sign of life for {self.limits.silent:g} s while pass {name!r} waits "
                f"for it; the run ends after {self.limits.stall:g} s",
                DboostWarning,
                stacklevel=2,
            )
        if waited > self.limits.stall / 2 and not silent and "" not in lookout.warned:
            lookout.warned.add("")
            warnings.warn(
                f"pass {name!r}: no task or partition finished for {waited:.0f} s, busy with it: {who}; "
                f"the run ends after {self.limits.stall:g} s",
                DboostWarning,
                stacklevel=2,
            )

    async def _inquire(self) -> tuple[Any, Any, Any]:
        scheduler = self.client.scheduler
        return (
            await scheduler.processing(workers=None),
            await scheduler.identity(n_workers=-1),
            await scheduler.events(topic=PROGRESS_TOPIC),
        )


class _CancelledTask(Exception):
    """A task was cancelled; a plain exception, since a CancelledError means the coroutine that sees it."""


class Arrivals:
    """When results were ready, and how long they then took to arrive.

    Attributes
    ----------
    seconds : float
        From the moment all results were ready to the moment all were here.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self._ready = 0.0

    def ready(self) -> None:
        """One more result is ready."""
        self._ready = time.perf_counter()

    def here(self) -> None:
        """All results are here."""
        self.seconds = time.perf_counter() - self._ready


async def _result(future: Any, arrivals: Arrivals) -> Any:
    try:
        await future.exception()
        arrivals.ready()
        return await future
    except (asyncio.CancelledError, concurrent.futures.CancelledError) as error:
        if future.status != "cancelled":
            raise
        raise _CancelledTask(" ".join(str(error).split())) from error


async def _gather(futures: list[Any], arrivals: Arrivals) -> Any:
    # One by one: the first results travel while others are computed, and the first error ends the wait. Errors are
    # returned, so that the watchdog's own cannot be mistaken for them.
    try:
        results = await asyncio.gather(*(_result(future, arrivals) for future in futures))
    except Exception as error:
        return error
    arrivals.here()
    return results


def _address(client: Any) -> str:
    return str(client.scheduler.address) if client.scheduler is not None else "(none)"


def scheduler_lost(client: Any, reason: str) -> ClusterError:
    """Return the error for a scheduler that is gone."""
    return ClusterError(
        f"lost the scheduler {_address(client)}: {reason}",
        hint="a scheduler does not remember its tasks; start the cluster again and resume the run",
    )
