"""Receiving the results of futures, in the client's event loop.

Covers: results in order, the first error as a value, how long results travelled.
Does not cover: watching that they come at all (``watchdog``).
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import time
from typing import Any


class CancelledTask(Exception):
    """A task was cancelled; a plain exception, since a CancelledError means the coroutine that sees it."""


class Arrivals:
    """When results were ready, and how long they then took to arrive.

    `seconds`: from the moment all results were ready to the moment all were here.
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
        raise CancelledTask(" ".join(str(error).split())) from error
    except OSError as error:
        if future.status == "error":
            raise
        # The task has its result, and on the way to it the connection ended: that of a client that was closed, say.
        raise CancelledTask(f"the connection to the scheduler ended ({type(error).__name__})") from error


async def gather(futures: list[Any], arrivals: Arrivals) -> Any:
    """Return the results of the futures, in order, or the first error as a value.

    Errors are returned, so that the watchdog's own cannot be mistaken for them. Results are awaited one by one: the
    first travel while others are computed, and the first error ends the wait.
    """
    try:
        results = await asyncio.gather(*(_result(future, arrivals) for future in futures))
    except Exception as error:
        return error
    arrivals.here()
    return results
