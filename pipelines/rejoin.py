"""Work on a cluster whose scheduler may go away and come back.

Covers: ``Cluster``: the client of a command or a run, made when it is first asked for; waiting for a lost scheduler
that the manager of the cluster starts again at its address, and doing the work again from what it has kept.
Does not cover: connecting (``cluster``), what work keeps of itself (checkpoints, parts of predictions, stages).

A scheduler that comes back knows no task and no worker of before, so nothing is asked of it: the work starts anew with
a client of its own, and goes on from its last state.
"""

from __future__ import annotations

import contextlib
import dataclasses
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, TypeVar

from dboost.errors import ClusterError, SchedulerLostError

from .cluster import CONNECT_SECONDS, REJOIN_SECONDS, address_of, connect
from .config import ClusterSettings
from .console import Console

T = TypeVar("T")

REJOINS = 5
"""Times that a scheduler may be lost in one piece of work: one that dies of the work itself would die for ever."""

TRY_AGAIN = 0.5
"""Seconds between two tries to reach a scheduler that refuses at once."""


class Cluster:
    """The cluster of a command; use it as a context manager."""

    def __init__(
        self, settings: ClusterSettings, console: Console, client: Any = None, data: Sequence[str | None] = ()
    ) -> None:
        self.settings = settings
        self.console = console
        self.data = data
        self.patience = REJOIN_SECONDS if settings.rejoin_seconds is None else settings.rejoin_seconds
        self._given = client
        self._made: list[Any] = []
        self._opened = contextlib.ExitStack()

    def __enter__(self) -> Cluster:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._opened.__exit__(kind, error, where)

    def client(self) -> Any:
        """The client, or None for threads of this process; the first call makes it."""
        if self._given is not None:
            return self._given
        return self._connected(self.settings)

    def _connected(self, settings: ClusterSettings) -> Any:
        if not self._made:
            self._made.append(self._opened.enter_context(connect(settings, self.console, self.data)))
        return self._made[0]

    def do(self, work: Callable[[Any], T]) -> T:
        """Return ``work(client)``; where the scheduler is lost and comes back, the work is called again."""
        losses = 0
        while True:
            try:
                return work(self.client())
            except SchedulerLostError as error:
                losses += 1
                address = address_of(self.settings)
                brought_back = address and self._given is None
                if not brought_back or not self.patience or losses > REJOINS:
                    raise
                self._rejoin(str(address), error)

    def _rejoin(self, address: str, lost: SchedulerLostError) -> None:
        """Wait until the scheduler is there again and has a worker, or raise the error by which it was lost."""
        seconds = self.patience
        self.console.event("scheduler_lost", text=lost.what, seconds=seconds)
        self.console.say(f"lost the scheduler {address}; waiting up to {seconds:g} s for it to come back")
        until = time.monotonic() + seconds
        self._leave()
        while True:
            left = until - time.monotonic()
            patience = max(0.1, min(self.settings.connect_timeout or CONNECT_SECONDS, left))
            try:
                client = self._connected(dataclasses.replace(self.settings, connect_timeout=patience))
                client.wait_for_workers(1, timeout=max(0.1, until - time.monotonic()))
            except (ClusterError, TimeoutError, OSError):
                self._leave()
                if time.monotonic() >= until:
                    raise lost from None
                time.sleep(TRY_AGAIN)
            else:
                self.console.event("scheduler_rejoined", seconds=round(seconds - left, 3))
                self.console.say("the scheduler is back; the work goes on from its last state")
                return

    def _leave(self) -> None:
        """Close the client of a scheduler that is gone; it has nobody to take leave of."""
        self._made.clear()
        opened, self._opened = self._opened, contextlib.ExitStack()
        with contextlib.suppress(Exception):
            opened.close()
