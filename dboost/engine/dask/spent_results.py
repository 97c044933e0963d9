"""Results of passes that are over, and when they are let go of.

Covers: which results are released at once, and when the others are. Does not cover: what is held on purpose
(``holdings``).
"""

from __future__ import annotations

from typing import Any

from dboost.engine.dask.submission import release

SPENT_BYTES = 16 * 2**20
"""Results that are larger than this are let go of at once, smaller ones while a later pass is on its way."""

LONG_PASS = 0.03
SHORT_PASSES = 8
SPENT_SECONDS = 0.1
"""That pass is one that took so many seconds the last time, or the next one once there are the results of so many
passes, or of so many seconds of them.

Dask sends no two messages within 10 ms: a pass that ends soon after one that lets go would make the next wait. But what
is kept is done again where a worker is lost, so it must not be much."""

LETS_GO_AFTER = 0.012
"""Seconds after the pass was sent; sooner, the scheduler would tell the workers of that before their tasks."""


class Spent:
    """Futures of passes that are over."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._futures: list[Any] = []
        self._seconds: list[float] = []
        self._walls: dict[str, float] = {}

    def add(self, name: str, futures: list[Any], nbytes: int, seconds: float) -> None:
        """Take the results of a pass of that name, of so many bytes, which took so many seconds."""
        if nbytes > SPENT_BYTES:
            release(futures)
        else:
            self._futures += futures
            self._seconds.append(seconds)
        self._walls[name] = seconds

    def beside(self, name: str) -> None:
        """Let go of them beside a pass that was just sent, where it is likely to last."""
        full = len(self._seconds) >= SHORT_PASSES or sum(self._seconds) > SPENT_SECONDS
        if full or self._walls.get(name, 0.0) > LONG_PASS:
            loop = self._client.loop
            loop.add_callback(loop.call_later, LETS_GO_AFTER, release, self._futures)
            self._futures, self._seconds = [], []

    def release(self) -> None:
        """Let go of all of them now."""
        release(self._futures)
        self._futures, self._seconds = [], []
