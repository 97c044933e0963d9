"""What is watched of a pass, for how long, and what ends the watch: the terms of the watchdog.

Covers: ``Limits``, ``Watched``, ``Stuck``. Does not cover: watching (``watchdog``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any

from dboost.engine.dask.restrictions import Restrictions


@dataclass(frozen=True)
class Limits:
    """How long to wait for what, in seconds."""

    no_worker: float = 30.0  # Without any worker that may be used.
    silent: float = 10.0  # Until a worker without a sign of life is left out.
    stall: float = 600.0  # Without one finished task or partition.


class Stuck(Exception):
    """Tasks of a pass wait for workers that will not do them; others may, once it is submitted again.

    `reason`: what happened to which worker. `key`: a task that waits for a worker that is gone; None where a worker is
    merely silent.
    """

    def __init__(self, reason: str, key: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.key = key


@dataclass(frozen=True)
class Watched:
    """The tasks of a pass, and what they need."""

    name: str  # Name of the pass, for messages.
    wanted: Sequence[Any]  # Whose results are collected.
    keys: Sequence[str]  # All tasks: each that is wanted and finishes, and each leaf in any, counts as progress.
    # Returns tasks of earlier passes whose results these need; they are submitted anew with the pass. It is called when
    # the pass makes no progress, as is `given`: there may be one for each partition.
    held: Callable[[], list[str]] = list
    # Returns tasks of others whose results these need, and what each is, in words.
    given: Callable[[], dict[str, str]] = dict
    places: Collection[str] = ()  # Workers that the tasks were meant for.
    left_out: frozenset[str] = frozenset()  # Silent workers that were left out.
    restrictions: Restrictions = Restrictions()  # What the caller asks of workers.
    # Is told, while the pass is waited for, how many of the wanted tasks are done and how many there are.
    tell: Callable[[int, int], None] | None = None
