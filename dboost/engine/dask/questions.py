"""Questions to the scheduler, each with a time limit.

Covers: workers, tasks and their progress, as the scheduler sees them. Does not cover: what follows from the answers
(``watchdog``).
"""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from dboost.engine.dask.tasks import PROGRESS_TOPIC
from dboost.errors import SchedulerLostError

V = TypeVar("V")

ANSWER_TIMEOUT = 5.0


@dataclass(frozen=True)
class Answers:
    """What the scheduler tells of some tasks."""

    busy: set[str]  # Workers that have any of them.
    workers: Mapping[str, Mapping[str, Any]]  # What it says of every worker, by address.
    leaves: Mapping[str, int]  # Partitions that tasks have told they have finished, by key.
    states: Mapping[str, str | None]  # Dask's state of each task, by key.


class Questions:
    """Ask the scheduler."""

    def __init__(self, client: Any) -> None:
        self.client = client

    def start(self, coroutine: Coroutine[Any, Any, V]) -> concurrent.futures.Future[V]:
        """Run a coroutine in the client's event loop."""
        if self.client.status == "closed":
            coroutine.close()
            raise scheduler_lost(self.client, "the client is closed")
        return asyncio.run_coroutine_threadsafe(coroutine, self.client.loop.asyncio_loop)

    def ask(self, question: Callable[[], Any], timeout: float | None = None) -> Any:
        """Return the answer to ``await question()``, made in the client's event loop, within `timeout` seconds.

        Raises TimeoutError, OSError: no answer.
        """
        limit = ANSWER_TIMEOUT if timeout is None else timeout

        async def within() -> Any:
            return await asyncio.wait_for(question(), limit)

        job = self.start(within())
        try:
            return job.result(limit + 1)
        except concurrent.futures.CancelledError as error:
            raise OSError("the question was cancelled") from error
        finally:
            job.cancel()

    def running(self) -> dict[str, int]:
        """Return address and threads of the workers that take tasks."""
        return dict(self.ask(self.client.scheduler.ncores_running))

    def workers(self) -> dict[str, dict[str, Any]]:
        """Return what the scheduler knows of every worker, by address."""
        return dict(self.ask(partial(self.client.scheduler.identity, n_workers=-1))["workers"])

    def tasks(self, keys: Sequence[str]) -> Answers:
        """Return how some tasks go."""
        return Answers(*self.ask(partial(self._tasks, keys)))

    def states(self, keys: Sequence[str]) -> dict[str, str | None]:
        """Return Dask's state of each task, None where the scheduler does not know it."""
        return dict(self.ask(partial(self.client.scheduler.get_task_status, keys=list(keys))))

    def holders(self, keys: Sequence[str]) -> dict[str, list[str]]:
        """Return the workers that have the result of each task."""
        return dict(self.ask(partial(self.client.scheduler.who_has, keys=list(keys))))

    async def _tasks(self, keys: Sequence[str]) -> tuple[Any, ...]:
        scheduler, mine = self.client.scheduler, set(keys)
        processing = await scheduler.processing(workers=None)
        leaves: dict[str, int] = {}
        for _, event in await scheduler.events(topic=PROGRESS_TOPIC):
            if event["key"] in mine:
                leaves[event["key"]] = max(event["leaves"], leaves.get(event["key"], 0))
        return (
            {address for address, theirs in processing.items() if not mine.isdisjoint(theirs)},
            (await scheduler.identity(n_workers=-1))["workers"],
            leaves,
            await scheduler.get_task_status(keys=list(keys)),
        )


def address_of(client: Any) -> str:
    """Return the scheduler's address, or a word where there is none."""
    return str(client.scheduler.address) if client.scheduler is not None else "(none)"


def scheduler_lost(client: Any, reason: str) -> SchedulerLostError:
    """Return the error for a scheduler that is gone, or for a client that was closed and does not know its address."""
    if client.scheduler is None:
        return SchedulerLostError(
            f"the client is closed, by its owner or because its scheduler is gone ({reason})",
            hint="connect a new one and resume the run",
        )
    return SchedulerLostError(
        f"lost the scheduler {address_of(client)}: {reason}",
        hint="a scheduler does not remember its tasks; start the cluster again and resume the run",
    )
