"""How far work has come, who is told of it, and how long it still takes.

Covers: the listener of the thread that begins a pass, estimates of the time that is left, and how they are said.
Does not cover: where they are drawn (``dboost.estimators.rounds``, the command line).

A pass tells how many of its items are done when somebody listens, and pays nothing otherwise. The listener is found
through a context variable and not through the engine, which is opened by those who do not know who listens.

An estimate is for a person who decides whether to wait. It is rounded so that nobody reads more into it, and there is
none where the past says nothing of the rest: a gap that has not fallen, or two rounds only.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

T = TypeVar("T")

# The rate is taken from the last third of the rounds, and from so many at least: older ones say little of a fit that
# has come closer since. Of more than MOST rounds every second is forgotten, again and again.
SHARE, ROUNDS, FEWEST, MOST = 3, 8, 4, 256
# The logarithm of the gap must have fallen by so much over them, or the fall is no rate.
LEAST_FALL = 0.5
# A share says nothing before so much is done, in seconds and as a part of all.
FIRST_SECONDS, FIRST_SHARE = 1.0, 0.02

Tell = Callable[[str, int, int], None]
"""Called with the name of a pass, how many of its items are done, and how many there are; from any thread."""

_listener: ContextVar[Tell | None] = ContextVar("listener", default=None)


@contextmanager
def telling(tell: Tell) -> Iterator[None]:
    """Let `tell` know of the passes that this thread begins inside.

    Examples
    --------
    >>> from dboost.engine.local import LocalEngine
    >>> with telling(lambda name, done, of: print(name, done, of)), LocalEngine(1) as engine:
    ...     found = engine.map(abs, [-1, -2], name="sizes")
    sizes 1 2
    sizes 2 2
    """
    token = _listener.set(tell)
    try:
        yield
    finally:
        _listener.reset(token)


def listener() -> Tell | None:
    """Who is to be told, or None."""
    return _listener.get()


def counted(fn: Callable[..., T], name: str, of: int) -> Callable[..., T]:
    """The same function, which tells the listener of each item that is done; itself where nobody listens."""
    tell = listener()
    if tell is None:
        return fn
    seen = itertools.count(1)

    def told(*args: Any) -> T:
        value = fn(*args)
        tell(name, next(seen), of)
        return value

    return told


class Remaining:
    """Seconds that a fit still takes to a certified gap of `tol`.

    Newton steps and first-order steps alike bring the gap down by about the same factor in a second, once a fit knows
    its features: its logarithm falls along a line, which is fitted to the last rounds.

    Parameters
    ----------
    tol : float

    Examples
    --------
    >>> left = Remaining(tol=1e-4)
    >>> for seconds, gap in ((1, 1e-1), (2, 3e-2), (3, 1e-2), (4, 3e-3)):
    ...     estimate = left.after(seconds, gap)
    >>> words(estimate)
    'a few seconds'
    """

    def __init__(self, tol: float) -> None:
        self._goal = math.log(tol) if tol > 0 else -math.inf
        self._seen: list[tuple[float, float]] = []

    def after(self, seconds: float, gap: float) -> float | None:
        """What is left after a round, or None while that is not known.

        Parameters
        ----------
        seconds : float
            Since the fit began.
        gap : float
            Certified after the round; nan or infinity where there is none yet.
        """
        if not (math.isfinite(gap) and gap > 0):
            return None
        # a gap may rise for a round, and what was certified before still holds
        best = min(math.log(gap), self._seen[-1][1]) if self._seen else math.log(gap)
        self._seen.append((seconds, best))
        if len(self._seen) > MOST:
            del self._seen[1::2]
        seen = self._seen[-max(ROUNDS, len(self._seen) // SHARE) :]
        if len(seen) < FEWEST or seen[0][1] - best < LEAST_FALL or math.isinf(self._goal):
            return None
        mean_t = sum(t for t, _ in seen) / len(seen)
        mean_h = sum(h for _, h in seen) / len(seen)
        spread = sum((t - mean_t) ** 2 for t, _ in seen)
        if spread <= 0:
            return None
        rate = -sum((t - mean_t) * (h - mean_h) for t, h in seen) / spread
        return max(0.0, (best - self._goal) / rate) if rate > 0 else None


def of_share(done: float, of: float, seconds: float) -> float | None:
    """Seconds left of work whose parts take about the same time each, or None while too little is done."""
    share = done / of if of > 0 else 0.0
    if seconds < FIRST_SECONDS or share < FIRST_SHARE:
        return None
    return seconds * (1.0 - share) / share


def words(seconds: float | None) -> str:
    """An estimate as it is said: ``"about 40 s"``, ``"about 3 min"``; empty where there is none."""
    if seconds is None or not math.isfinite(seconds):
        return ""
    if seconds < 7.5:
        return "a few seconds"
    if seconds < 57.5:
        return f"about {5 * round(seconds / 5)} s"
    if seconds < 59.5 * 60:
        return f"about {max(1, round(seconds / 60))} min"
    if seconds < 48 * 3600:
        return f"about {max(1, round(seconds / 3600))} h"
    return "days"
