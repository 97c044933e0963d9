"""A path of models of falling strengths, each from the ones before (docs/math.md 8 (iv)).

Covers: which strengths, the loop over them that a cross-validation shares, and ``Progress``: what a path goes on from
with the bits of the undisturbed run, and the seams through which others keep it (``dboost.estimators.checkpoint``).
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dboost.boosting.checks import check_settings
from dboost.boosting.fit import Callback, Fitting, Remembered, warn_if_dropped, warn_if_open
from dboost.boosting.planned import Planned
from dboost.boosting.starts import predicted
from dboost.engine.base import Engine
from dboost.errors import DataError, UsageError
from dboost.problem.accelerators import allowed
from dboost.problem.state import FitResult, FitSettings, FitState


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

    def update(self, progress: Progress) -> None:
        """Keep this in place of what was offered before, now or later."""
        ...

    def closing(self) -> AbstractContextManager[None]:
        """Keep the last of what was offered inside, also where an error or an interrupt ends it."""
        ...


def along(
    fitting: Fitting,
    alphas: Sequence[float],
    keeper: PathKeeper | None = None,
    callback: Callback | None = None,
    stop: threading.Event | None = None,
    before: Callable[[float], None] | None = None,
    after: Callable[[FitResult], None] | None = None,
) -> list[FitResult]:
    """Fit each of some falling strengths from the ones before (docs/math.md 8 (iv)).

    Fits that the keeper has kept are not made again; one that had begun goes on. The callback gets each round's record,
    whose ``"strength"`` is its place among `alphas`, and the state after it; a true result ends the fit at this
    strength. Once `stop` is set the path ends after the round, with the fits that have ended. `before` is called with
    each strength that is about to be fitted, and may refuse it, `after` with each result that was not kept before.
    """
    begun = Progress() if keeper is None else keeper.progress(fitting, alphas)
    results, running = list(begun.finished), begun.running
    if results:
        fitting.go_on_after(results[-1], begun.remembered)

    def ended() -> bool:
        return stop is not None and stop.is_set()

    def keep(running: FitState | None = None) -> None:
        if keeper is not None:
            keeper.update(Progress(tuple(results), fitting.remembered, running))

    with nullcontext() if keeper is None else keeper.closing():
        for place in range(len(results), len(alphas)):
            if ended():
                break

            def on_round(record: dict[str, Any], state: FitState, place: int = place) -> bool:
                # as of a single fit: a finished one ends again, with the same bits, from the state before the last
                if record["step"] != "certificate" and not state.cut:
                    keep(state)
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
            keep()
    return results


def path(
    plan: Planned,
    engine: Engine,
    settings: FitSettings,
    alphas: Sequence[float] | None = None,
    n_alphas: int = 50,
    eps: float = 1e-2,
    callback: Callback | None = None,
    keeper: PathKeeper | None = None,
    after: Callable[[FitResult], None] | None = None,
) -> list[FitResult]:
    """Fit a falling sequence of strengths, each from the last; `after` is called with each result not kept before."""
    fitting = Fitting(plan, engine, settings)
    warn_if_dropped(fitting)
    chosen, given = strengths(fitting, alphas, n_alphas, eps, empty=True), alphas is not None

    def ended(result: FitResult) -> None:
        warn_if_open(result, replace(settings, alpha=result.alpha))
        if after is not None:
            after(result)

    return along(
        fitting,
        chosen.tolist(),
        keeper,
        callback,
        # a strength of zero that was found, and not given, is of labels that no feature says anything of
        before=lambda alpha: check_settings(replace(settings, alpha=alpha) if given or alpha > 0.0 else settings),
        after=ended,
    )


def asked(settings: FitSettings, alphas: Sequence[float] | None) -> Sequence[float] | None:
    """The strengths that are asked for, checked; None where they begin at the least that uses no feature."""
    if alphas is None:
        return None if settings.alpha == "auto" else [float(settings.alpha)]
    for alpha in alphas:
        check_settings(replace(settings, alpha=alpha))
    return alphas


def strengths(
    fitting: Fitting, alphas: Sequence[float] | None, n_alphas: int, eps: float, *, empty: bool = False
) -> NDArray[np.float64]:
    """Falling strengths: those that are given, or a geometric grid from alpha_max to `eps` of it.

    Where no feature says anything of the labels, as of a target that does not vary, `empty` asks for the one strength
    0, whose model is the best constant, instead of a DataError; where signs alone keep features out, it is one all the
    same. A penalty that leaves W = 0 at no strength is a UsageError, unless they are given.
    """
    if alphas is not None:
        return np.sort(np.asarray(alphas, np.float64))[::-1]
    largest = fitting.alpha_max()
    if not math.isfinite(largest):
        raise UsageError(
            f"penalty {fitting.problem.penalty.name!r} has no strength at which every weight is zero, where a path "
            "could begin",
            hint="give alphas= for the strengths",
        )
    if not largest > 0.0:
        signs = fitting.settings.signs is not None and fitting.drawn()
        if empty and not signs:
            return np.zeros(1)
        raise DataError(
            "no feature says anything of the labels: alpha_max, the least strength that uses none, is 0",
            hint="check positive=, lower= and upper=: no feature may have the sign that it is drawn to"
            if signs
            else "check that features and labels vary",
        )
    return largest * np.geomspace(1.0, eps, n_alphas)
