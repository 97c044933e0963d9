"""A request to end what runs, looked for where work can end: before a pass, before a partition, while waiting.

Covers: ``Interruption``, made by who may ask; the places that look for it call `check`.
Does not cover: signals, which belong to the program: the command line installs handlers, the library none.

An exception that a signal handler raises may come to nothing. It arrives between any two instructions of the main
thread, and Python drops it where these are part of a ``__del__`` or of a callback of the garbage collector. The request
stays, and whoever looks next finds it. Without a request, as in a notebook, there is nothing to find, and an interrupt
is the exception that Python raises.
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Iterator

__all__ = ["Interruption", "as_raised", "check", "current", "heeded"]


class Interruption:
    """A request that is made once, from any thread or from a signal handler, and stays.

    Attributes
    ----------
    answered : bool
        Whether someone who looked has raised the exception: what follows is the clean-up.
    """

    def __init__(self) -> None:
        self._wanted: type[BaseException] | None = None
        self.answered = False

    def request(self, error: type[BaseException]) -> None:
        """Ask for the end of what runs, by an exception of that kind."""
        if self._wanted is None:
            self._wanted = error

    def check(self) -> None:
        """Raise the exception if the end was asked for."""
        if self._wanted is not None:
            self.answered = True
            raise self._wanted


# Each thread, and each program in it, has its own: two runs side by side end one by one.
_HEEDED: contextvars.ContextVar[Interruption | None] = contextvars.ContextVar("dboost_interruption", default=None)


def current() -> Interruption | None:
    """The request that this thread looks for, to be handed to the threads that work for it."""
    return _HEEDED.get()


@contextlib.contextmanager
def heeded(interruption: Interruption | None) -> Iterator[None]:
    """Let everything inside, in this thread, look for `interruption`."""
    token = _HEEDED.set(interruption)
    try:
        yield
    finally:
        _HEEDED.reset(token)


def check() -> None:
    """Raise the exception of the request that this thread looks for, if it was made."""
    found = _HEEDED.get()
    if found is not None:
        found.check()


@contextlib.contextmanager
def as_raised() -> Iterator[None]:
    """Raise an interrupt that hit compiled code as the interrupt that it is.

    Compiled code that wraps its results in Python objects runs Python's own code for it, where the handler of a signal
    may raise. The result is then returned beside the exception, and Python turns both into a ``SystemError``, once more
    at each call on the way back: about one interrupt of five in a fit with induced features ended so.
    """
    try:
        yield
    except SystemError as error:
        cause: BaseException | None = error
        while isinstance(cause, SystemError):
            cause = cause.__cause__
        if isinstance(cause, KeyboardInterrupt):
            # of the kind that it was raised as: the command line tells its signals from other interrupts by it
            raise type(cause)(*cause.args) from error
        raise
