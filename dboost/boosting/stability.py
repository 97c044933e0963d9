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
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dboost.boosting.cross_validation import GivenUp, one_at_a_time, side_by_side
from dboost.boosting.fit import Callback, Fitting, warn_if_dropped
from dboost.boosting.path import strengths
from dboost.boosting.planned import Planned, placed
from dboost.boosting.progress import Nothing, along
from dboost.engine.base import Engine
from dboost.errors import DataError
from dboost.passes.draws import Groups
from dboost.passes.folds import Folds, Left, label_masses
from dboost.problem.state import FitSettings

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class HalfFits:
    """The path that was fitted to one half."""

    pair: int
    half: int
    alphas: NDArray[np.float64]  # The strengths, falling.
    supports: tuple[Rows, ...]  # The features whose weights are not all zero, ascending, at each strength.
    gaps: NDArray[np.float64]  # (number of strengths,): Certified relative gaps.


def drawn(plan: Planned, engine: Engine, seed: int, n_pairs: int) -> list[Folds]:
    """Draw pairs of halves of the rows of a plan that the engine has, each class split evenly, or groups kept whole.

    A pair is two folds: a fit without the one is a fit to the other. A half without a row, without one of some class,
    or without one of both labels of a task is a DataError.
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
    """Fit a path to each half of each pair: those of pair 0 first, both halves of every pair that has begun.

    The callback is told of each round of each fit, one call at a time: ``"pair"`` and ``"half"`` say which half,
    ``"strength"`` the place of the strength; a true result ends that one fit. `ended` is called with what each half
    came to, in no certain order. After `max_seconds` no pair but the first begins; one that has begun is fitted to its
    end.
    """
    deadline = None if max_seconds is None else time.monotonic() + max_seconds
    whole = Fitting(plan, engine, settings)
    warn_if_dropped(whole)
    grid = strengths(whole, alphas, n_alphas, eps)
    pairs = drawn(plan, engine, seed, n_pairs)
    stop, turn, told = threading.Event(), threading.Lock(), one_at_a_time(callback)
    begun: dict[int, bool] = {}

    def begins(place: tuple[int, int]) -> bool:
        # The half that comes first decides for both, or the time would cut a pair in two.
        in_time = place[0] == 0 or deadline is None or time.monotonic() < deadline
        return begun.setdefault(place[0], in_time)

    def of_half(place: tuple[int, int], lane: int) -> HalfFits:
        pair, half = place
        # what is left without the one half is the other
        view = engine.through(Left(pairs[pair], 1 - half, lane=lane), f"half {half} of pair {pair}")
        fits = along(Fitting(plan, view, settings), grid.tolist(), Nothing(), told(pair=pair, half=half), stop)
        if len(fits) < len(grid):
            raise GivenUp
        supports = tuple(np.asarray(fit.active, np.int64)[np.any(fit.W != 0.0, axis=1)] for fit in fits)
        found = HalfFits(pair, half, grid, supports, np.array([fit.gap for fit in fits]))
        if ended is not None:
            with turn:
                ended(found)
        return found

    return side_by_side(engine, of_half, [(pair, half) for pair in range(n_pairs) for half in (0, 1)], stop, begins)
