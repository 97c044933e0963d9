"""Fits of a path to both halves of the rows, again and again, and which features each of them uses.

Covers: drawing complementary pairs of half samples over any engine, and the fits to them, each strength from the ones
before. Does not cover: what of a row decides its half (``dboost.passes.halves``), or what is made of the supports
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
from dboost.boosting.planned import Planned
from dboost.boosting.progress import Nothing, along
from dboost.engine.base import Engine
from dboost.errors import DataError
from dboost.passes.folds import Left
from dboost.passes.halves import KEY_BITS, STEP_BITS, Halves, masses_of_halves, weights_by_key
from dboost.problem.engine_view import EngineView
from dboost.problem.state import FitSettings, FitState

Rows = NDArray[np.int64]

# Pairs are drawn together as long as the sums of a pass over them take no more bytes than this.
_DRAWN_BYTES = 8_000_000


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


class HalfEngine(EngineView):
    """An engine that sees the partitions of another with one half of the rows.

    Parameters
    ----------
    engine : Engine
        Its plan is set.
    left : Left
        A pair of halves without one of them.
    words : str
        Names the half in the labels of the passes.
    """

    def __init__(self, engine: Engine, left: Left, words: str) -> None:
        super().__init__(engine, left)
        self._words = words

    def label(self, *words: str) -> None:
        """As ``Engine.label``, with the half before all."""
        super().label(self._words, *words)


def drawn(plan: Planned, engine: Engine, seed: int, n_pairs: int) -> list[Halves]:
    """Draw pairs of halves of the rows of a plan that the engine has, each class split evenly.

    Raises
    ------
    DataError
        A half has no row, none of some class, or none with one of both labels of a task.
    """
    classes = {"multiclass": plan.n_outputs, "binary": 2}.get(plan.task, 1)
    size = max(1, _DRAWN_BYTES // (8 * classes * 2**STEP_BITS))
    found: list[Halves] = []
    for start in range(0, n_pairs, size):
        pairs = tuple(range(start, min(start + size, n_pairs)))
        cuts = _cuts(engine, seed, pairs, classes)
        some = [Halves(seed=seed, pair=pair, cuts=tuple(row)) for pair, row in zip(pairs, cuts.tolist(), strict=True)]
        counted = 0 if plan.task == "multitask" else classes
        masses = engine.map_reduce(masses_of_halves, tuple(some), counted, name="halves").add["mass"]
        _refuse_lacking(plan, masses, start)
        found += some
    return found


def _cuts(engine: Engine, seed: int, pairs: Sequence[int], k: int) -> NDArray[np.int64]:
    """Where the second half of each class begins in the order of each pair, (number of pairs, k).

    The bits of a cut are found some at a time, as those of the place at which the weights of the rows before it reach
    half of the whole. The row at that place goes to the side that leaves the halves more alike, so that none of them is
    empty as long as two rows differ.
    """
    prefixes = np.zeros((len(pairs), k), np.uint64)
    below = np.zeros((len(pairs), k))
    half = at = below
    for shift in range(KEY_BITS - STEP_BITS, -1, -STEP_BITS):
        weight = engine.map_reduce(weights_by_key, seed, tuple(pairs), prefixes, shift, name="halves").add["weight"]
        if shift == KEY_BITS - STEP_BITS:
            half = weight.sum(axis=2) / 2.0
        reached = below[:, :, None] + np.cumsum(weight, axis=2) >= half[:, :, None]
        # The last sum is all there is among these rows, which reached the half before, up to rounding.
        reached[:, :, -1] = True
        chosen = np.argmax(reached, axis=2)
        at = np.take_along_axis(weight, chosen[:, :, None], axis=2)[:, :, 0]
        below = below + np.where(np.arange(2**STEP_BITS) < chosen[:, :, None], weight, 0.0).sum(axis=2)
        prefixes = (prefixes << np.uint64(STEP_BITS)) | chosen.astype(np.uint64)
    return prefixes.astype(np.int64) + (half - below > below + at - half)


def _refuse_lacking(plan: Planned, masses: NDArray[np.float64], first: int) -> None:
    """Refuse pairs, from number `first` on, one of whose halves lacks labels that the whole has."""
    lacking = np.argwhere((masses <= 0.0) & (masses.sum(axis=1, keepdims=True) > 0.0))
    if not lacking.size:
        return
    pair, half, column = lacking[0].tolist()
    if plan.task == "multitask":
        sign, task = divmod(column, masses.shape[2] // 2)
        names = list(range(masses.shape[2] // 2)) if plan.classes is None else plan.classes.tolist()
        what = f"no {'positive' if sign else 'negative'} label of task {names[task]!r}"
        hint = "leave the task out, or collect more examples of it"
    elif plan.classes is not None:
        what = f"no row of class {plan.classes.tolist()[column]!r}"
        hint = "each class needs two rows that differ: equal rows stay together"
    else:
        what, hint = "no row", "give two rows or more that differ: equal rows stay together"
    raise DataError(f"half {half} of pair {first + pair} has {what} (n_samples = {plan.n_rows})", hint=hint)


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
    places = [(halves, half) for halves in pairs for half in (0, 1)]
    free = list(range(max(1, min(getattr(engine, "n_threads", 1), len(places)))))
    asked = interruption.current()
    begun: dict[int, bool] = {}

    def begins(pair: int) -> bool:
        # The half that comes first decides for both, or the time would cut a pair in two.
        in_time = pair == pairs[0].pair or deadline is None or time.monotonic() < deadline
        return begun.setdefault(pair, in_time)

    def one(place: tuple[Halves, int]) -> HalfFits | None:
        with lock:
            if not begins(place[0].pair):
                return None
            lane = free.pop()
        try:
            with interruption.heeded(asked):
                interruption.check()
                return of_half(*place, lane)
        finally:
            with lock:
                free.append(lane)

    def of_half(halves: Halves, half: int, lane: int) -> HalfFits:
        # what is left without the one half is the other
        view = HalfEngine(engine, Left(halves, 1 - half, lane=lane), f"half {half} of pair {halves.pair}")
        fitting = Fitting(plan, view, settings)

        def told(record: dict[str, Any], state: FitState) -> bool:
            with turn:
                return bool(callback is not None and callback(record | {"pair": halves.pair, "half": half}, state))

        fits = along(fitting, grid.tolist(), Nothing(), told, stop)
        if len(fits) < len(grid):
            raise _Ended
        supports = tuple(np.asarray(fit.active, np.int64)[np.any(fit.W != 0.0, axis=1)] for fit in fits)
        found = HalfFits(halves.pair, half, grid, supports, np.array([fit.gap for fit in fits]))
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
