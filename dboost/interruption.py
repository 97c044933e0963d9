"""A request to end what runs, looked for where work can end: before a pass, before a partition, while waiting.

Covers: ``Interruption``, made by who may ask; the places that look for it call `check`; moments in which the exception
of a signal would do harm (``deferred``).
Does not cover: handlers of signals, which belong to the program: the command line installs some, the library none.

An exception that a signal handler raises may come to nothing. It arrives between any two instructions of the main
thread, and Python drops it where these are part of a ``__del__`` or of a callback of the garbage collector. The request
stays, and whoever looks next finds it. Without a request, as in a notebook, there is nothing to find, and an interrupt
is the exception that Python raises.
"""

from __future__ import annotations

# The functions of ``signal`` make enumerations of what they take and give: 30 microseconds, twice in each pass.
import _signal  # type: ignore[import-not-found]
import contextlib
import contextvars
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["Interruption", "as_raised", "check", "current", "deferred", "heeded"]

# The signals whose handlers raise: that of Python, and those of the command line; Windows has no SIGHUP.
_RAISING = [int(getattr(signal, name)) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


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


@contextlib.contextmanager
def deferred() -> Iterator[None]:
    """Let the signals that arrive inside, in the main thread, be handled at the end; for moments only.

    The locks of ``threading`` and ``concurrent.futures`` are Python code, in which an exception that arrives between
    two instructions leaves a lock that nobody holds and nobody gets: a thread that waits for it never ends, and neither
    does who waits for that thread. Handing work to other threads, and waiting for their end, is therefore done in here.
    """
    came: list[int] = []
    handlers: list[tuple[int, Callable[[int, Any], Any]]] = []
    try:
        if threading.current_thread() is threading.main_thread():
            # a second interpreter of the process has a main thread too, which may not ask for signals
            with contextlib.suppress(ValueError):
                for number in _RAISING:
                    handler = _signal.getsignal(number)
                    if callable(handler):
                        handlers.append((number, handler))
                        _signal.signal(number, lambda number, _: came.append(number))
        yield
    finally:
        _give_back(handlers)
        for number, handler in handlers:
            if number in came:
                handler(number, None)


def _give_back(handlers: list[tuple[int, Callable[[int, Any], Any]]]) -> None:
    """Install handlers again, all of them also where one that is back raises at once."""
    try:
        if len(handlers) > 1:
            _give_back(handlers[1:])
    finally:
        if handlers:
            _signal.signal(*handlers[0])
