"""Fits without some of the rows: a path without each fold of a cross-validation, and a path to each half of the rows.

Covers: the fits over one engine and plan, their starts, what they make of the held-out rows, and how candidates are
judged so on some of the rows (successive halving). Does not cover: which strength is chosen
(``dboost.estimators.cv``), which rows are in a fold or a half (``dboost.passes.draws``), or what is made
of the supports of halves (``dboost.estimators.stability``).

Such a fit sees the partitions of the whole data with the weights of the other rows at zero, so that all folds, halves
and strengths share one copy of the data where it is.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field, fields, replace
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from dboost import interruption
from dboost.boosting.fit import Callback, Fitting, warn_if_dropped
from dboost.boosting.path import PathKeeper, along, strengths
from dboost.boosting.planned import Planned, placed
from dboost.boosting.relaxed import Relaxation
from dboost.engine.base import Engine
from dboost.errors import DataError
from dboost.passes import folds as folding
from dboost.passes import subsamples
from dboost.passes.draws import Groups
from dboost.passes.folds import Folds, Left, label_masses
from dboost.passes.subsamples import Subsample
from dboost.problem.state import FitResult, FitSettings, FitState

Array = NDArray[np.float64]


@dataclass(frozen=True)
class FoldScores:
    """What the F fits without each fold are worth on it, at each of T strengths, or of strengths and shares."""

    # `loss`, `error`: (F, T), mean loss and mean share of wrong labels of the held-out rows, by weight.
    loss: Array
    error: Array
    weight: Array  # (F,): Weight of the held-out rows
    features: NDArray[np.int64]  # (F, T): how many each model has
    gap: Array  # (F, T): Certified relative gaps
    passes: NDArray[np.int64]  # (F,): Passes over the data
    score: Array  # (F, T): What a scorer says of the held-out rows, greater is better; nan where none was asked

    def placed(self, there: Sequence[bool]) -> FoldScores:
        """The same where `there` is true, among others of which nothing is known: nan, and no features."""
        found: dict[str, NDArray[Any]] = {}
        for name, value in self._tables():
            found[name] = np.full((len(value), len(there)), _unknown(value), value.dtype)
            found[name][:, np.flatnonzero(there)] = value
        return replace(self, **found)

    def without(self, places: Sequence[int]) -> FoldScores:
        """The same, where nothing is known at some places."""
        found = {name: value.copy() for name, value in self._tables()}
        for value in found.values():
            value[:, list(places)] = _unknown(value)
        return replace(self, **found)

    def _tables(self) -> list[tuple[str, NDArray[Any]]]:
        pairs = [(item.name, getattr(self, item.name)) for item in fields(self)]
        return [(name, value) for name, value in pairs if value.ndim == 2]


def _unknown(values: NDArray[Any]) -> float:
    return np.nan if values.dtype.kind == "f" else 0


class HeldOutScorer(Protocol):
    """Judges the fits without a fold on its rows by something that is no sum over them."""

    def begin(self, engine: Engine, folds: Folds, masses: dict[str, Any]) -> None:
        """Look at all rows, and at what each fold has (``fold_masses``), before the first fit; may refuse them."""
        ...

    def __call__(self, engine: Engine, fitting: Fitting, left: Left, results: Sequence[FitResult]) -> Array:
        """The score (T,) of each result, greater is better; `engine` has all rows. Several threads may ask at once."""
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


T = TypeVar("T")
S = TypeVar("S")

# Models that travel together to be judged hold about this many bytes.
_JUDGED_BYTES = 4_000_000


def cross_validate(
    plan: Planned,
    engine: Engine,
    settings: FitSettings,
    folds: Folds,
    fold_tol: float,
    alphas: Sequence[float] | None,
    n_alphas: int,
    eps: float,
    callback: Callback | None = None,
    keeper: FoldKeeper | None = None,
    after: Callable[[FitResult], None] | None = None,
    scorer: HeldOutScorer | None = None,
    relaxation: Relaxation | None = None,
) -> tuple[list[FitResult], FoldScores]:
    """Fit a path to all rows, and one without each fold to a gap of `fold_tol`, judged on it.

    The callback is told of each round of each fit, one call at a time: ``"fold"`` is the fold that is held out, None
    for the fits of all rows, ``"strength"`` the place of the strength; a true result ends that one fit. `after` is
    called with each fit of all rows that was not kept before, `scorer` judges the others beside their loss and error,
    and with `relaxation` their blends with their refits are judged: the shares of one strength after each other.

    A DataError where fewer than two folds have rows, or one class only is left without some fold, or no feature is used
    at any strength; a UsageError where strengths are to be chosen, and none is the smallest that leaves W = 0.
    """
    whole = Fitting(plan, engine, settings)
    warn_if_dropped(whole)
    callback_of, stop = one_at_a_time(callback), threading.Event()
    given = {"keeper": keeper, "callback_of": callback_of, "stop": stop, "scorer": scorer, "relaxation": relaxation}
    paths = FoldPaths.of(plan, engine, replace(settings, tol=fold_tol), folds, **given)
    if scorer is not None:
        scorer.begin(engine, paths.folds, paths.masses)
    grid = strengths(whole, alphas, n_alphas, eps, empty=True)
    results = along(
        whole, grid.tolist(), None if keeper is None else keeper.path(None), callback_of(fold=None), stop, after=after
    )
    return results, paths.judged(grid.tolist())


@dataclass(frozen=True)
class FoldPaths:
    """Paths without each fold, judged on it."""

    plan: Planned
    engine: Engine  # It has the plan
    settings: FitSettings  # Of these fits
    folds: Folds
    # The folds that have rows, each with the classes that are left without it; None where all are.
    present: dict[int, tuple[int, ...] | None]
    masses: dict[str, Any]  # What is in each fold (``folds.fold_masses``)
    # `keeper`, `callback_of`, `scorer`, `relaxation`: as for ``cross_validate``; `stop` ends all fits.
    keeper: FoldKeeper | None = None
    callback_of: Callable[..., Callback | None] = lambda **about: None
    stop: threading.Event = field(default_factory=threading.Event)
    scorer: HeldOutScorer | None = None
    relaxation: Relaxation | None = None

    @classmethod
    def of(cls, plan: Planned, engine: Engine, settings: FitSettings, folds: Folds, **given: Any) -> FoldPaths:
        """Those of the folds that have rows; one pass, and one before it where folds are to be drawn.

        A DataError where fewer than two have, or one class only is left without some fold.
        """
        if folds.given is None and folds.places is None:
            folds = replace(folds, places=placed(plan, engine))
        if isinstance(folds.places, Groups) and folds.draw == "folds" and folds.count > len(folds.places.sizes):
            raise DataError(
                f"{folds.count} folds, but groups has {len(folds.places.sizes)} values",
                hint="ask for fewer folds: at most one for each group",
            )
        classes = {"multiclass": plan.n_outputs, "binary": 2}.get(plan.task, 0)
        masses = engine.map_reduce(folding.fold_masses, folds, classes, name="folds").add
        numbers = np.flatnonzero((masses["rows"] > 0.0) & (masses["weight"] > 0.0)).tolist()
        if len(numbers) < 2:
            raise DataError(
                f"{len(numbers)} of {folds.count} folds have rows (n_samples = {plan.n_rows}), expected two or more",
                hint="give more rows, or rows of two folds or more as folds=",
            )
        present = {number: _present(masses, number) if classes else None for number in numbers}
        return cls(plan, engine, settings, folds, present, masses, **given)

    def judged(self, alphas: list[float]) -> FoldScores:
        """Fit the paths along falling strengths, side by side, and judge them."""
        numbers = list(self.present)

        def one(number: int, lane: int) -> FoldScores:
            return self._without(number, lane, alphas)

        scores = side_by_side(self.engine, one, numbers, self.stop)
        return FoldScores(
            **{name: np.concatenate([getattr(s, name) for s in scores]) for name in FoldScores.__dataclass_fields__}
        )

    def _without(self, number: int, lane: int, alphas: list[float]) -> FoldScores:
        """The path without one fold, judged on it."""
        keeper = self.keeper
        found = None if keeper is None else keeper.scores(number, alphas)
        if found is not None:
            return found
        plan, engine, masses = self.plan, self.engine, self.masses
        left = Left(self.folds, number, self.present[number] if plan.task == "multiclass" else None, lane)
        seen = engine.through(left, f"without fold {number}")
        fitting = without_fold(plan, seen, self.settings, left)
        fits: list[FitResult] = along(
            fitting, alphas, None if keeper is None else keeper.path(number), self.callback_of(fold=number), self.stop
        )
        if len(fits) < len(alphas):
            raise GivenUp
        judged: list[FitResult | None] = [*fits]
        passes = sum(fit.passes for fit in fits)
        if self.relaxation is not None:
            rows = int(masses["rows"].sum() - masses["rows"][number])
            refits = self.relaxation.refits(fitting.plan, seen, fitting.settings, fits, rows, self.stop.is_set)
            judged = self.relaxation.blends(fits, refits)
            passes += sum(refit.passes for refit in refits if refit is not None)
            if self.stop.is_set():
                raise GivenUp
        there = [result for result in judged if result is not None]
        scores = _fold_scores(engine, fitting, left, there, masses)
        if self.scorer is not None:
            scores = replace(scores, score=self.scorer(engine, fitting, left, there)[None])
        scores = replace(scores.placed([result is not None for result in judged]), passes=np.array([passes]))
        if keeper is not None:
            keeper.judged(number, alphas, scores)
        return scores


class GivenUp(Exception):
    """Ends a fit because of an error or an interrupt elsewhere, which is the one that is raised."""


def side_by_side(
    engine: Engine, one: Callable[[T, int], S], items: Sequence[T], stop: threading.Event,
    begins: Callable[[T], bool] = lambda item: True,
) -> list[S]:  # fmt: skip
    """``one(item, lane)`` of each item that begins, on as many threads as the engine has, each in a lane of its own.

    What a fit does between its passes takes one thread, and others keep the rest busy. After an error or an interrupt
    `stop` is set, by which the other fits end with their round.
    """
    free = list(range(max(1, min(getattr(engine, "n_threads", 1), len(items)))))
    lock, asked = threading.Lock(), interruption.current()
    beside = getattr(engine, "one_of_several", nullcontext)

    def run(item: T) -> list[S]:
        with lock:
            if not begins(item):
                return []
            lane = free.pop()
        try:
            with interruption.heeded(asked), beside():
                interruption.check()
                return [one(item, lane)]
        finally:
            with lock:
                free.append(lane)

    pool = ThreadPoolExecutor(len(free), thread_name_prefix="dboost-fold")
    try:
        return [found for each in pool.map(run, items) for found in each]
    finally:
        stop.set()
        pool.shutdown(wait=True, cancel_futures=True)


def one_at_a_time(callback: Callback | None) -> Callable[..., Callback | None]:
    """The callback of each fit, whose records say what it is about; fits run side by side, their callbacks do not."""
    turn = threading.Lock()

    def of(**about: Any) -> Callback | None:
        if callback is None:
            return None

        def in_turn(record: dict[str, Any], state: FitState) -> bool:
            with turn:
                return bool(callback(record | about, state))

        return in_turn

    return of


def without_fold(plan: Planned, engine: Engine, settings: FitSettings, left: Left) -> Fitting:
    """The fit of what is left, which is what the engine sees."""
    if left.present is not None:
        plan = plan.of_classes(left.present)
        if settings.offset is not None:
            settings = replace(settings, offset=tuple(settings.offset[r] for r in left.present))
    return Fitting(plan, engine, settings)


def _present(masses: Any, number: int) -> tuple[int, ...] | None:
    """Classes with rows outside a fold, where some have none; as if the others had never been there."""
    others = np.delete(masses["mass"], number, axis=0).sum(axis=0)
    present = np.flatnonzero(others > 0.0)
    if present.size < 2:
        raise DataError(
            f"without fold {number} every label is the same",
            hint="use folds that spread each class, each of which needs two rows",
        )
    return None if present.size == others.shape[0] else tuple(present.tolist())


def _fold_scores(engine: Engine, fitting: Fitting, left: Left, results: Sequence[FitResult], masses: Any) -> FoldScores:
    """A path without one fold, judged on it."""
    loss, wrong, absent = _judged(engine, fitting, left, results)
    weight = float(masses["weight"][left.number])
    if left.present is not None:
        # A class that is not left has the probability of half a row, whatever the strength.
        n_absent = masses["mass"].shape[1] - len(left.present)
        rows_left = float(masses["rows"].sum() - masses["rows"][left.number])
        share = 0.5 / (rows_left + 0.5 * n_absent)
        loss = loss - absent * math.log(share) - (weight - absent) * math.log1p(-n_absent * share)
    return FoldScores(
        loss=loss[None] / weight,
        error=(wrong[None] + absent) / weight,
        weight=np.array([weight]),
        features=np.array([[len(result.active) for result in results]]) + fitting.columns.offset.size,
        gap=np.array([[result.gap for result in results]]),
        passes=np.array([sum(result.passes for result in results)], dtype=np.int64),
        score=np.full((1, len(results)), np.nan),
    )


def _judged(engine: Engine, fitting: Fitting, left: Left, results: Sequence[FitResult]) -> tuple[Array, Array, float]:
    """Sums of the loss and of the wrong labels of each model over the held-out rows, and the weight of absent ones."""
    points = [fitting.point_of(r) for r in results]
    losses, wrongs, absent = [], [], 0.0
    start = 0
    while start < len(points):
        stop, size = start, 0
        while stop < len(points) and (stop == start or size + points[stop].W.nbytes <= _JUDGED_BYTES):
            size += points[stop].W.nbytes
            stop += 1
        sums = engine.map_reduce(folding.judge, left, tuple(points[start:stop]), name="judge").add
        losses.append(sums["loss"])
        wrongs.append(sums["wrong"])
        absent = float(sums["absent"])
        start = stop
    return np.concatenate(losses), np.concatenate(wrongs), absent


@dataclass(frozen=True)
class Rung:
    """One round of halving."""

    share: float  # Of the rows.
    candidates: int  # How many are judged.


def rungs(candidates: int, factor: float, n_rows: int, min_rows: int) -> list[Rung]:
    """The rounds, the one of fewest rows first; the last has all rows and at most `factor` candidates.

    From each to the next the rows become `factor` times as many, and the candidates as many times fewer (Jamieson &
    Talwalkar 2016). Where the first would have fewer than `min_rows` rows, there are fewer rounds, and the first has
    more candidates for its rows.

    Examples
    --------
    >>> [(round(rung.share, 3), rung.candidates) for rung in rungs(9, 3.0, 90_000, 1000)]
    [(0.111, 9), (0.333, 3), (1.0, 1)]
    """
    wanted = 1 + math.floor(math.log(max(candidates, 1)) / math.log(factor) + 1e-9)
    affordable = 1 + math.floor(math.log(max(n_rows / min_rows, 1.0)) / math.log(factor) + 1e-9)
    count = min(wanted, affordable)
    left, found = candidates, []
    for number in range(count):
        found.append(Rung(factor ** (number + 1 - count), left))
        left = kept(left, factor)
    return found


def kept(candidates: int, factor: float) -> int:
    """How many of some candidates go on."""
    return max(1, math.ceil(candidates / factor - 1e-9))


def judged(
    plan: Planned, engine: Engine, settings: FitSettings, alphas: Sequence[float], some: Subsample, cv: int, tol: float
) -> tuple[FoldScores, int]:
    """Fit a path to a subsample without each of `cv` folds, judged on that fold; and the rows of the subsample."""
    seen = engine if some.share >= 1.0 else engine.through(some, f"{100 * some.share:.3g} % of the rows")
    rows = int(seen.map_reduce(subsamples.count_rows, name="rows").add["rows"])
    paths = FoldPaths.of(plan, seen, replace(settings, tol=tol), Folds(cv, settings.random_state))
    return paths.judged(list(alphas)), rows


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
    stop, turn, callback_of = threading.Event(), threading.Lock(), one_at_a_time(callback)
    begun: dict[int, bool] = {}

    def begins(place: tuple[int, int]) -> bool:
        # The half that comes first decides for both, or the time would cut a pair in two.
        in_time = place[0] == 0 or deadline is None or time.monotonic() < deadline
        return begun.setdefault(place[0], in_time)

    def of_half(place: tuple[int, int], lane: int) -> HalfFits:
        pair, half = place
        # what is left without the one half is the other
        view = engine.through(Left(pairs[pair], 1 - half, lane=lane), f"half {half} of pair {pair}")
        fits = along(Fitting(plan, view, settings), grid.tolist(), None, callback_of(pair=pair, half=half), stop)
        if len(fits) < len(grid):
            raise GivenUp
        supports = tuple(np.asarray(fit.active, np.int64)[np.any(fit.W != 0.0, axis=1)] for fit in fits)
        found = HalfFits(pair, half, grid, supports, np.array([fit.gap for fit in fits]))
        if ended is not None:
            with turn:
                ended(found)
        return found

    return side_by_side(engine, of_half, [(pair, half) for pair in range(n_pairs) for half in (0, 1)], stop, begins)
