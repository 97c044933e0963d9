"""Asynchronous clients of Dask: what blocks is done in a thread, by a client of its own at the same scheduler."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])


def serves_asynchronous(function: F) -> F:
    """Let a function be awaited where its `client` is asynchronous; with any other client it is called as it is."""

    @functools.wraps(function)
    def call(*args: Any, client: Any = None, **more: Any) -> Any:
        if getattr(client, "asynchronous", False):
            return _awaited(functools.partial(function, *args, **more), client)
        return function(*args, client=client, **more)

    return cast(F, call)


async def _awaited(work: Callable[..., Any], client: Any) -> Any:
    from distributed import Client

    address, security = client.scheduler.address, client.security

    def blocking() -> Any:
        # The thread has no loop that runs, so that this client gets one of its own.
        with Client(address, security=security, set_as_default=False) as own:
            return work(client=own)

    return await asyncio.to_thread(blocking)
