"""Handing tasks to the Dask scheduler.

Covers: the one form in which dboost submits tasks, values that several tasks share, and releasing futures.
Does not cover: which tasks a pass has (``dask``).
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import Any

import dask.config
from distributed import Future
from distributed.protocol import pickle

from dboost.engine import tasks

HOLD_BYTES = 4 * 2**20
"""Arguments that would put more than this into the tasks of a pass travel once, as the result of a task.

That costs another turn through the scheduler, about 15 ms, which copies inside the tasks undercut up to this size."""

PLAN_HOLD_BYTES = 64 * 1024
"""The same for descriptions of partitions, which would be sent again in every pass."""

NAMES_SHOWN = 8


class Submission:
    """Submit tasks that the scheduler may run again, and elsewhere.

    Parameters
    ----------
    client : distributed.Client
    token : str
        Part of every key, unique to the engine.
    retries : int
        Times a task is run again after an error.

    Attributes
    ----------
    bytes_sent : int
        Bytes of arguments sent so far.
    """

    def __init__(self, client: Any, token: str, retries: int) -> None:
        self.client = client
        self.token = token
        self.retries = retries
        self.bytes_sent = 0

    def submit(self, fn: Callable[..., Any], *args: Any, key: str, address: str | None = None) -> Future[Any]:
        """Submit one task, for the worker at `address` if that is still there, otherwise for any."""
        future: Future[Any] = self.client.submit(
            fn,
            *args,
            key=key,
            workers=None if address is None else [address],
            allow_other_workers=address is not None,
            retries=self.retries,
            pure=False,
        )
        return future

    def argument(self, value: Any, name: str, address: str | None, copies: int = 1, limit: int | None = None) -> Any:
        """Return `value`, or a future of it when its copies in the tasks would be larger than the limit."""
        size = len(pickle.dumps(value))
        if size * copies <= (HOLD_BYTES if limit is None else limit):
            self.bytes_sent += size * copies
            return value
        self.bytes_sent += size
        return self.hold(value, f"hold-{name}", address)

    def hold(self, value: Any, role: str, address: str | None) -> Future[Any]:
        """Submit a value as a task that returns it. Dask's advice against large graphs is to do just this."""
        key = f"dboost-{role}-{self.token}-{uuid.uuid4().hex[:12]}"
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 PiB"}):
            return self.submit(tasks.hold, value, key=key, address=address)


def release(values: Sequence[Any]) -> None:
    """Release those of the values that are futures."""
    for value in values:
        if isinstance(value, Future):
            value.release()


def names(items: Sequence[Any]) -> str:
    """Name partitions, or the first few of many."""
    keys = [str(getattr(item, "key", item)) for item in items]
    shown = ", ".join(keys[:NAMES_SHOWN])
    if len(keys) == 1:
        return f"partition {shown}"
    more = f" and {len(keys) - NAMES_SHOWN} more" if len(keys) > NAMES_SHOWN else ""
    return f"one of the partitions {shown}{more}"
