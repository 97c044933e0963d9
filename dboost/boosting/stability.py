"""Fits of a path to both halves of the rows, again and again, and which features each of them uses.

Covers: drawing complementary pairs of half samples over any engine, and the fits to them, each strength from the ones
before. Does not cover: what decides the half of a row (``dboost.passes.draws``), or what is made of the supports
(``dboost.estimators.stability``).

The fit of a half sees the partitions of the whole data with the weights of the other half at zero, so all of them share
one copy of the data where it is.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost import interruption
from dboost.boosting.fit import Callback, Fitting, warn_if_dropped
from dboost.boosting.grid import strengths
from dboost.boosting.planned import Planned, placed
from dboost.boosting.progress import Nothing, along
from dboost.engine.base import Engine
from dboost.errors import DataError
from dboost.passes.draws import Groups
from dboost.passes.folds import Folds, Left, label_masses
from dboost.problem.state import FitSettings, FitState

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class HalfFits:
    """The path that was fitted to one half.

    Parameters
    ----------
    pair, half : int
    alphas : float64 array
        The strengths, falling.
    supports : tuple of int64 arrays
        The features whose weights are not all zero, ascending, at each strength.
    gaps : float64 array, shape (number of strengths,)
        Certified relative gaps.
    """

    pair: int
    half: int
    alphas: NDArray[np.float64]
    supports: tuple[Rows, ...]
    gaps: NDArray[np.float64]


def drawn(plan: Planned, engine: Engine, seed: int, n_pairs: int) -> list[Folds]:
    """Draw pairs of halves of the rows of a plan that the engine has, each class split evenly, or groups kept whole.

    A pair is two folds: a fit without the one is a fit to the other.

    Raises
    ------
    DataError
        A half has no row, none of some class, or none with one of both labels of a task.
    """
    places = placed(plan, engine)
    whole = isinstance(places, Groups)
    alone = np.flatnonzero(places.sizes == 1)
    if alone.size and not whole:
        what = "rows" if plan.classes is None else f"rows of class {plan.classes.tolist()[alone[0]]!r}"
        raise DataError(f"halves of 1 of the {what} (n_samples = {plan.n_rows})", hint="give two or more")
    pairs = [Folds(2, seed, places=places, draw=f"halves-{pair}") for pair in range(n_pairs)]
    classes = {"multiclass": plan.n_outputs, "binary": 2}.get(plan.task, 0)
    if plan.task == "multitask" or (whole and classes):
        masses = engine.map_reduce(label_masses, tuple(pairs), classes, name="halves").add["mass"]
        _refuse_lacking(plan, masses)
    return pairs


def _refuse_lacking(plan: Planned, masses: NDArray[np.float64]) -> None:
    """Refuse pairs one of whose halves lacks a class, or a label of a task, that the whole has."""
    lacking = np.argwhere((masses <= 0.0) & (masses.sum(axis=1, keepdims=True) > 0.0))
    if lacking.size:
        pair, half, column = lacking[0].tolist()
        if plan.task != "multitask":
            label = column if plan.classes is None else plan.classes.tolist()[column]
            raise DataError(
                f"half {half} of pair {pair} has no row of class {label!r}: all of them are in few groups",
                hint="leave the class out, or give smaller groups",
            )
        positive, task = divmod(column, masses.shape[2] // 2)
        name = task if plan.classes is None else plan.classes.tolist()[task]
        raise DataError(
            f"half {half} of pair {pair} has no {'positive' if positive else 'negative'} label of task {name!r} "
            f"(n_samples = {plan.n_rows})",
            hint="leave the task out, or collect more examples of it",
        )


def fit_halves(
    plan: Planned,
    engine: Engine,
    settings: FitSettings,
    seed: int,
    n_pairs: int,
    alphas: Sequence[float] | None,
    n_alphas: int,
    eps: float,
    callback: Callback | None = None,
    ended: Callable[[HalfFits], None] | None = None,
    max_seconds: float | None = None,
) -> list[HalfFits]:
    """Fit a path to each half of each pair.

    Parameters
    ----------
    plan, engine, settings
        As for a fit to all rows.
    seed, n_pairs : int
        Of the pairs.
    alphas, n_alphas, eps
        Strengths, or how to choose them from the smallest one that leaves W = 0 in a fit to all rows.
    callback : callable, optional
        Called with the record of each round of each fit and the state after it, one call at a time: ``"pair"`` and
        ``"half"`` say which half, ``"strength"`` the place of the strength. A true result ends that one fit.
    ended : callable, optional
        Called with what each half came to, one call at a time, in no certain order.
    max_seconds : float, optional
        No pair but the first begins after so many; one that has begun is fitted to its end.

    Returns
    -------
    list of HalfFits
        Those of pair 0 first; both halves of every pair that has begun.

    Raises
    ------
    DataError
        The strengths are to be chosen, and no feature is used at any; or a half lacks labels that the whole has.
    """
    deadline = None if max_seconds is None else time.monotonic() + max_seconds
    whole = Fitting(plan, engine, settings)
    warn_if_dropped(whole)
    grid = strengths(whole, alphas, n_alphas, eps)
    pairs = drawn(plan, engine, seed, n_pairs)
    stop, turn, lock = threading.Event(), threading.Lock(), threading.Lock()
    places = [(pair, half) for pair in range(n_pairs) for half in (0, 1)]
    free = list(range(max(1, min(getattr(engine, "n_threads", 1), len(places)))))
    asked = interruption.current()
    begun: dict[int, bool] = {}

    def begins(pair: int) -> bool:
        # The half that comes first decides for both, or the time would cut a pair in two.
        in_time = pair == 0 or deadline is None or time.monotonic() < deadline
        return begun.setdefault(pair, in_time)

    def one(place: tuple[int, int]) -> HalfFits | None:
        with lock:
            if not begins(place[0]):
                return None
            lane = free.pop()
        try:
            with interruption.heeded(asked):
                interruption.check()
                return of_half(*place, lane)
        finally:
            with lock:
                free.append(lane)

    def of_half(pair: int, half: int, lane: int) -> HalfFits:
        # what is left without the one half is the other
        view = engine.through(Left(pairs[pair], 1 - half, lane=lane), f"half {half} of pair {pair}")
        fitting = Fitting(plan, view, settings)

        def told(record: dict[str, Any], state: FitState) -> bool:
            with turn:
                return bool(callback is not None and callback(record | {"pair": pair, "half": half}, state))

        fits = along(fitting, grid.tolist(), Nothing(), told, stop)
        if len(fits) < len(grid):
            raise _Ended
        supports = tuple(np.asarray(fit.active, np.int64)[np.any(fit.W != 0.0, axis=1)] for fit in fits)
        found = HalfFits(pair, half, grid, supports, np.array([fit.gap for fit in fits]))
        if ended is not None:
            with turn:
                ended(found)
        return found

    # What a fit does between its passes takes one thread: fits side by side keep the others busy.
    pool = ThreadPoolExecutor(len(free), thread_name_prefix="dboost-half")
    try:
        return [fits for fits in pool.map(one, places) if fits is not None]
    finally:
        # after an error or an interrupt the fits of the other halves end with their round
        stop.set()
        pool.shutdown(wait=True, cancel_futures=True)


class _Ended(Exception):
    """A half was given up because of an error or an interrupt elsewhere, which is what is told."""
