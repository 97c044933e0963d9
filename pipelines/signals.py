"""Signals that end a run: a request that work looks for, and an exception for what does not look."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

from dboost.interruption import Interruption, heeded

# name in an error line, and what the person or the system did; Windows has no SIGHUP
SIGNALS = {
    number: said
    for name, said in {
        "SIGINT": ("interrupted", "Ctrl-C"),
        "SIGTERM": ("terminated", "SIGTERM"),
        "SIGHUP": ("terminated", "SIGHUP (its terminal was closed)"),
    }.items()
    if (number := getattr(signal, name, None)) is not None
}
# Seconds until a dropped exception is raised again: by then what dropped it has returned.
AGAIN = 0.05


class Interrupted(KeyboardInterrupt):
    """A signal arrived; unwinds the run, so that clusters close and partial folders go."""


class Received:
    """What has arrived so far; the first signal makes the request."""

    def __init__(self) -> None:
        self.interruption = Interruption()
        self.numbers: list[int] = []
        self._dropped = False
        self._again: threading.Timer | None = None

    def handle(self, number: int, frame: FrameType | None) -> None:
        """The handler of all signals."""
        if self._dropped:
            # Not a new signal: Python swallowed the first one's exception, which is raised again.
            self._dropped = False
            if not self.interruption.answered:
                raise Interrupted
            return
        self.numbers.append(number)
        if len(self.numbers) == 1:
            self.interruption.request(Interrupted)
            raise Interrupted
        # A second signal must not interrupt the clean-up of the first; whoever asks a third time means it.
        if len(self.numbers) > 2:
            os._exit(self.code)

    @property
    def code(self) -> int:
        """The exit code after a signal."""
        return 128 + self.numbers[0]

    def dropped(self) -> None:
        """Python has dropped the exception, in a ``__del__`` or a callback of the garbage collector: raise it again."""
        self._dropped = True
        self._again = threading.Timer(AGAIN, signal.pthread_kill, (threading.main_thread().ident, self.numbers[0]))
        self._again.daemon = True
        self._again.start()

    def end(self) -> None:
        """Nothing is raised again from here on: the handler is about to go."""
        if self._again is not None:
            self._again.cancel()
            self._again.join()


@contextlib.contextmanager
def listening(received: Received) -> Iterator[None]:
    """Note the signals of `received`, and let all work look for its request; in the main thread, as Python asks for.

    In another thread nothing is installed: signals there are the business of whoever started it.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before: dict[int, Any] = {}
    hook = sys.unraisablehook

    def unraisable(told: Any) -> None:
        if not isinstance(told.exc_value, Interrupted):
            hook(told)
        elif hasattr(signal, "pthread_kill"):
            received.dropped()

    for number in SIGNALS:
        # `nohup` ignores SIGHUP so that a run goes on after its terminal
        if number == getattr(signal, "SIGHUP", None) and signal.getsignal(number) == signal.SIG_IGN:
            continue
        before[number] = signal.signal(number, received.handle)
    sys.unraisablehook = unraisable
    try:
        with heeded(received.interruption):
            yield
    finally:
        sys.unraisablehook = hook
        received.end()
        for number, handler in before.items():
            signal.signal(number, handler)
