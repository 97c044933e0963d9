"""When the state of a fit is written to its checkpoint: often, but never so often that the fit is slow.

Covers: ``Keeper``. Does not cover: the file (``checkpoint``), or where a fit may be cut (``dboost.problem.limits``).

A round of a small fit takes less time than to write a file and flush it to the disk, and the file grows with the number
of rounds. So the states of some rounds are passed over. That changes no bit: a fit goes on from whichever state there
is. Whatever ends a fit but the end of its process, the last state is written.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from dboost.errors import StorageError

Kept = TypeVar("Kept")

# Writing takes at most this share of the time of a fit.
SHARE = 0.05
# Seconds after which a state is written whatever that takes.
MOST_SECONDS = 60.0


class Keeper(Generic[Kept]):
    """Writes some of the states it is offered, the first of them and the last.

    Parameters
    ----------
    write : callable
        Replaces the checkpoint by a state.
    clock : callable
        Seconds, by a clock that never goes back.
    """

    def __init__(self, write: Callable[[Kept], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._write = write
        self._clock = clock
        self._due = -float("inf")
        self._held: Kept | None = None

    def offer(self, state: Kept) -> None:
        """Write the state, or hold it while the last one was written a moment ago."""
        self._held = state
        if self._clock() >= self._due:
            self._settle()

    @contextlib.contextmanager
    def keeping(self) -> Iterator[None]:
        """Write the last state offered inside, also where an error or an interrupt ends the fit."""
        try:
            yield
        except BaseException:
            # the error that ended the fit is the one to be told
            with contextlib.suppress(StorageError):
                self._settle()
            raise
        self._settle()

    def _settle(self) -> None:
        state, self._held = self._held, None
        if state is None:
            return
        started = self._clock()
        self._write(state)
        ended = self._clock()
        self._due = ended + min(MOST_SECONDS, (ended - started) / SHARE)
