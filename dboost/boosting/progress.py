"""Fits one after another along falling strengths, and how far they have come, so that others can keep that.

Covers: ``Progress``, what a path goes on from with the bits of the undisturbed run; the two seams through which it is
kept; the loop over the strengths that ``path`` and ``cross_validation`` share.
Does not cover: files (``dboost.estimators.checkpoint``).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

from dboost.boosting.fit import Callback, Fitting, Remembered
from dboost.boosting.fold_scores import FoldScores
from dboost.boosting.starts.along_path import predicted
from dboost.problem.accelerators import allowed
from dboost.problem.state import FitResult, FitState


@dataclass(frozen=True)
class Progress:
    """How far a path has come."""

    finished: tuple[FitResult, ...] = ()  # The fits that have ended, strongest penalty first.
    remembered: Remembered | None = None  # What the last of them leaves to the next; see ``Fitting.remembered``.
    running: FitState | None = None  # After the last round of the fit that comes next.


class PathKeeper(Protocol):
    """Keeps the progress of one path."""

    def progress(self, fitting: Fitting, alphas: Sequence[float]) -> Progress:
        """What was kept of the same path."""
        ...

    def offer(self, progress: Progress) -> None:
        """Keep this in place of what was offered before, now or later."""
        ...

    def keeping(self) -> AbstractContextManager[None]:
        """Keep the last of what was offered inside, also where an error or an interrupt ends it."""
        ...


class FoldKeeper(Protocol):
    """Keeps the progress of a cross-validation."""

    def path(self, fold: int | None) -> PathKeeper:
        """For the path without a fold, or for that of all rows."""
        ...

    def scores(self, fold: int, alphas: Sequence[float]) -> FoldScores | None:
        """What the path without a fold is worth on it, if that was kept."""
        ...

    def judged(self, fold: int, alphas: Sequence[float], scores: FoldScores) -> None:
        """Keep the scores of a fold that is done."""
        ...


class Nothing:
    """Keeps no path."""

    def progress(self, fitting: Fitting, alphas: Sequence[float]) -> Progress:
        """None."""
        return Progress()

    def offer(self, progress: Progress) -> None:
        """Forget it."""

    def keeping(self) -> AbstractContextManager[None]:
        """Nothing to keep."""
        return nullcontext()


class KeepsNoFold:
    """Keeps no cross-validation."""

    def path(self, fold: int | None) -> PathKeeper:
        """No path either."""
        return Nothing()

    def scores(self, fold: int, alphas: Sequence[float]) -> FoldScores | None:
        """None."""
        return None

    def judged(self, fold: int, alphas: Sequence[float], scores: FoldScores) -> None:
        """Forget them."""


def along(
    fitting: Fitting,
    alphas: Sequence[float],
    keeper: PathKeeper,
    callback: Callback | None = None,
    stop: threading.Event | None = None,
    before: Callable[[float], None] | None = None,
    after: Callable[[FitResult], None] | None = None,
) -> list[FitResult]:
    """Fit each strength from the ones before (docs/math.md 8 (iv)).

    Parameters
    ----------
    alphas : sequence of float
        Falling.
    keeper : PathKeeper
        Fits that it has kept are not made again; a fit that had begun goes on.
    callback : callable, optional
        Called with each round's record (``"strength"`` is its place among `alphas`) and the state after it; a true
        result ends the fit at this strength.
    stop : threading.Event, optional
        Once it is set, the path ends after the round, with the fits that have ended.
    before : callable, optional
        Called with each strength that is about to be fitted; may refuse it.
    after : callable, optional
        Called with each result that was not kept before.

    Returns
    -------
    list of FitResult
        As many as there are strengths, unless `stop` was set.
    """
    begun = keeper.progress(fitting, alphas)
    results, running = list(begun.finished), begun.running
    if results:
        fitting.go_on_after(results[-1], begun.remembered)

    def ended() -> bool:
        return stop is not None and stop.is_set()

    with keeper.keeping():
        for place in range(len(results), len(alphas)):
            if ended():
                break

            def on_round(record: dict[str, Any], state: FitState, place: int = place) -> bool:
                # as of a single fit: a finished one ends again, with the same bits, from the state before the last
                if record["step"] != "certificate" and not state.cut:
                    keeper.offer(Progress(tuple(results), fitting.remembered, state))
                return ended() or (callback is not None and bool(callback(record | {"strength": place}, state)))

            if before is not None:
                before(alphas[place])
            start = predicted(results, alphas[place], allowed(fitting.settings))
            result = fitting.fit(alphas[place], start, on_round, running)
            running = None
            if ended():
                break
            if after is not None:
                after(result)
            results.append(result)
            keeper.offer(Progress(tuple(results), fitting.remembered))
    return results
