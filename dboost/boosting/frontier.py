"""What accuracy costs in features: models of more and more features, judged on rows that their fits do not see.

A penalty chooses features and shrinks their weights, and it is the shrinking that costs accuracy. So features are
chosen, and fitted again with a ridge, in two ways. The path of the penalty chooses the first few. Past its end, columns
are ranked by the ridge of all of them: by what a step of column j alone would gain if it were left out,
``||W_j||^2 (h v_j + rho_j)^2 / v_j``, with the variance v_j of the column, the strength rho_j of its ridge and the
curvature h of the loss. For a strong ridge that is the score test of each column alone, as chi2 is, and for a weak one
the test beside all others.

Covers: the search, the frontier that it finds, which of its points is taken, and the fits of that point to all rows.
Does not cover: estimators (``dboost.estimators.selecting``), the draw of the rows (``dboost.passes.draws``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.boosting.cross_validation import FoldPaths, one_at_a_time, without_fold
from dboost.boosting.fit import Callback, Fitting
from dboost.boosting.planned import Planned
from dboost.boosting.relaxed import RidgeRefits, Run, plain_fit
from dboost.boosting.starts import predicted
from dboost.engine.base import Engine
from dboost.losses import get_loss
from dboost.partition import NUMBERS
from dboost.passes.folds import Folds, Left
from dboost.passes.held_out import held_out_blocks
from dboost.penalties import get_penalty
from dboost.problem.state import FitResult, FitSettings

Array = NDArray[np.float64]
Rows = NDArray[np.int64]

# Every fifth row is held out, and of much data no more than these; of little data so many of the five fifths in turn
# that this many rows, or all, are judged once.
_MOST_HELD_OUT = 10_000
_JUDGED = 700
FOLDS = 5
LEAST_ROWS = 10
# Standard errors are those of the sums of so many blocks of the held-out rows.
BLOCKS = 32
# Certified gaps of the fits that are only judged: of a path, whose supports are those of a fit that is certified only
# where columns that resemble each other are told apart, and of a ridge, of which the order counts.
_SUPPORT_TOL = 2e-3
_RIDGE_TOL = 5e-2
# Strengths next to each other, of a path, of a ridge, and of a path of hypotheses, which ends at a share of the first.
_STEP = 0.5
_RIDGE_STEP = 0.25
INDUCED_STEP = 0.25
INDUCED_LEAST = 1e-4
# The first ridge lowers the loss by at most this share of it.
_RIDGE_START = 0.3
_MOST_STRENGTHS = 30
# The weakest is this share of the first: where features separate the classes, weaker ones go on lowering the loss.
_RIDGE_END = 1e-5
# Columns are ranked by the strongest ridge of all of them that tells so much of what one tells at most.
_RANKS = 1.0 / 3.0
# Supports with less than this share of the columns choose a ridge of their own.
_WALKS = 0.6
# Ranked supports end with the one that tells less than this share of what the best tells, and those that are worse than
# the best by so many times what a model with fewer features may be are few and keep the ridge of the one before.
_TOLD = 0.6
_FAR = 4.0
# A model with fewer features tells at least so much of what the best one tells.
_TELLS = 0.8
# Standard errors of the best point that a model with fewer features may be above it.
_OF_OWN = 0.5
# A path ends after so many strengths that brought nothing.
_PATIENCE = 2
# Each ranked support has this share of the features of the one before, and one far below the best the second.
_SHARES = (0.5, 0.25)
# A support of a path is refitted where it has so many times the features of the last that was.
_GROWTH = 1.5

PREFER = ("few", "accurate")


def refits(settings: FitSettings) -> bool:
    """Whether selected features are refitted: where nothing but the penalty holds their weights.

    Elsewhere the models of the path are judged as they are.
    """
    bound = (settings.hypotheses, settings.system, settings.signs, settings.penalty_factors, settings.column_groups)
    penalty = get_penalty(settings.penalty)
    sparse = penalty.threshold and penalty.separable
    return all(one is None for one in bound) and sparse and settings.update == "newton" and settings.offset is None


@dataclass(frozen=True)
class Point:
    """A model of the frontier, judged."""

    features: float  # How many it uses; the mean over the folds
    most: int  # The most over the folds
    alpha: float  # Strength of the penalty that chose them; 0 where they were ranked, or are all there are
    ridge: float  # Strength of the ridge they were refitted with, on the mean loss; 0 where they were not
    size: int  # Of features that were ranked: how many; 0 of others
    # `loss`, `error`: (BLOCKS,), sums over the held-out rows of each block.
    loss: Array
    error: Array


@dataclass
class Frontier:
    """All points that were judged."""

    weight: Array  # (BLOCKS,): Weight of the held-out rows of each block
    half: float  # A model with more features than that is no selection; infinite where features are few
    labels: bool  # Whether there are wrong labels to count
    null_loss: float = math.nan  # The held-out loss of the models without features
    points: list[Point] = field(default_factory=list)

    def mean(self, sums: Array) -> float:
        """Per unit of weight."""
        return float(sums.sum() / self.weight.sum())

    def error_of(self, sums: Array) -> float:
        """The standard error of `mean`; whole groups of rows may leave blocks empty."""
        apart = sums - self.mean(sums) * self.weight
        filled = max(2, int(np.count_nonzero(self.weight)))
        return float(math.sqrt(filled / (filled - 1.0) * np.sum(apart**2)) / self.weight.sum())

    def rank(self, point: Point) -> tuple[float, float]:
        """What the least of is best: the share of wrong labels and then the loss, or where there are none the loss."""
        loss = self.mean(point.loss)
        return (self.mean(point.error) if self.labels else loss), loss

    @property
    def best(self) -> Point:
        """The best point; of several the one with the fewest features."""
        return min(self.points, key=lambda point: (self.rank(point), point.features))

    def told(self, point: Point) -> float:
        """What the features of a point tell: by how much the loss is below that of the models without any."""
        return self.null_loss - self.mean(point.loss)

    def envelope(self) -> list[Point]:
        """The points that no other beats with as few features, by their number of features."""
        found: list[Point] = []
        for point in sorted(self.points, key=lambda point: (point.features, self.rank(point))):
            if not found or self.rank(point) < self.rank(found[-1]):
                found.append(point)
        return found

    def gains(self, point: Point) -> bool:
        """Whether a point is well below the line from the best with fewer features to the next with more."""
        others = [one for one in self.points if one is not point]
        fewer = [one for one in others if one.features <= point.features]
        more = [one for one in others if one.features > point.features]
        if not fewer or not more:
            return True
        a, b = min(fewer, key=self.rank), min(more, key=lambda one: one.features)
        low, here, high = (math.log1p(one.features) for one in (a, point, b))
        share = (here - low) / (high - low)
        line = (1.0 - share) * self.rank(a)[0] + share * self.rank(b)[0]
        return self.rank(point)[0] < line - _OF_OWN * self.error_of(point.error if self.labels else point.loss)

    def chosen(self, prefer: str | None = None, most: int | None = None) -> Point:
        """The point that is taken.

        Parameters
        ----------
        prefer : {None, "few", "accurate"}
            None: the fewest features whose share of wrong labels, or loss where there are none, is above that of the
            best point by at most one standard error of the difference, or half of one of the best point's own, and that
            tell nearly as much; where that is more than half of all features, the best with at most so many, if it is
            above by at most one of the best point's own. "few": by at most one of the best point's own; "accurate": the
            best point.
        most : int, optional
            The most features up to that number, where they are as good as fewer, whatever `prefer` is.
        """
        if most is not None:
            few = [point for point in self.points if point.most <= most]
            if not few:
                return self.envelope()[0]
            best = min(few, key=lambda point: (self.rank(point), point.features))
            alike = (point for point in few if self.above(point, best) <= 1.0)
            return min(alike, key=lambda point: (-point.features, self.rank(point)))
        best = self.best
        if prefer == "accurate":
            return best
        taken = next(point for point in self.envelope() if self._as_good(point, best, prefer == "few"))
        if taken.features > self.half:
            fewer = min((point for point in self.points if point.features <= self.half), key=self.rank, default=taken)
            return fewer if self._as_good(fewer, best, True) else taken
        return taken

    def _as_good(self, point: Point, best: Point, alone: bool) -> bool:
        # a rare class may be told apart without a label that is right
        tells = not self.labels or self.told(point) >= _nearly(self.told(best), _TELLS)
        return tells and self.above(point, best, 1.0 if alone else _OF_OWN) <= 1.0

    def above(self, point: Point, best: Point, own: float = _OF_OWN) -> float:
        """By how much a point is worse than the best, as a share of how much worse it may be."""
        mine, other = (point.error, best.error) if self.labels else (point.loss, best.loss)
        apart = self.mean(mine) - self.mean(other)
        # A best point without a wrong label has no error of its own.
        allowed = max(self.error_of(mine - other), own * self.error_of(other))
        return apart / allowed if allowed > 0.0 else math.inf if apart > 0.0 else 0.0


def _nearly(told: float, share: float) -> float:
    """A share of what the best point tells; all of it where even that is less than nothing, as of labels of noise."""
    return min(share * told, told)


class _Fold:
    """The rows without those that are held out once, and what is fitted to them."""

    def __init__(self, paths: FoldPaths, number: int, settings: FitSettings) -> None:
        present = paths.present[number] if paths.plan.task == "multiclass" else None
        self.left = Left(paths.folds, number, present)
        self.engine = paths.engine.through(self.left, f"without fold {number}")
        self.fitting = without_fold(paths.plan, self.engine, settings, self.left)
        self.path: list[FitResult] = []
        self.ridged: RidgeRefits | None = None
        self.start: FitResult | None = None
        self.ranking: Rows = np.zeros(0, np.int64)

    def follow(self, alpha: float, callback: Callback | None) -> FitResult:
        """The next model of the path."""
        self.path.append(self.fitting.fit(alpha, predicted(self.path, alpha), callback))
        del self.path[:-2]
        return self.path[-1]

    def open(self, columns: Rows | None, start: FitResult | None) -> None:
        """Some columns, or all, to be fitted with a ridge, at first from the rows of a model."""
        self.ridged = RidgeRefits(self.fitting, self.engine, columns, _RIDGE_TOL)
        self.start = start

    def fit(self, ridge: float, callback: Callback | None) -> FitResult:
        """The ridge of the columns that are open."""
        assert self.ridged is not None
        self.start = self.ridged.fit(ridge, self.start, callback)
        return self.start


class Search:
    """The search for the frontier; the first of the folds are held out in turn.

    The callback is told of each round, ``"fold"`` the fold that is held out; at `most` features there is to be a point.
    """

    def __init__(
        self, plan: Planned, engine: Engine, settings: FitSettings, folds: Folds, callback: Callback | None = None,
        most: int | None = None,
    ) -> None:  # fmt: skip
        self._engine, self.plan, self._most = engine, plan, most
        self._told = one_at_a_time(callback)
        paths = FoldPaths.of(plan, engine, replace(settings, tol=max(_SUPPORT_TOL, settings.tol)), folds)
        self._paths = paths
        judged = math.ceil(_JUDGED * folds.count / plan.n_rows) if folds.count == FOLDS else 1
        # hypotheses are made anew in every fit, which is most of its price
        judged = 1 if settings.hypotheses is not None else min(FOLDS, judged)
        self._folds = [_Fold(paths, number, paths.settings) for number in list(paths.present)[:judged]]
        rows = paths.masses["weight"]
        # the share of the weight that a fit of the search sees
        self.share = float(1.0 - np.mean([rows[fold.left.number] for fold in self._folds]) / rows.sum())
        self.rank_ridge, self._turn, self._rests, self._least = math.nan, _RIDGE_STEP, False, 0.0
        weight, _, _ = self._judge([()] * len(self._folds))
        # tables, whose columns are standardised, have few
        half = math.inf if settings.standardize or settings.hypotheses is not None else plan.n_features / 2.0
        self.frontier = Frontier(weight, half, plan.task not in NUMBERS)
        self.frontier.null_loss = self._null()

    def path_alone(self, alphas: Iterator[float]) -> Frontier:
        """Judge the models of the path, as they are, until the best is inside."""
        idle = 0
        for alpha in alphas:
            results = [fold.follow(alpha, self._told(fold=fold.left.number)) for fold in self._folds]
            self._add(results, alpha, 0.0, 0)
            best = self.frontier.best
            idle = 0 if best is self.frontier.points[-1] else idle + 1
            # the first strengths may use next to nothing
            if idle >= _PATIENCE and (best.most > 0 or idle > 3 * _PATIENCE):
                break
        return self.frontier

    def both(self, alphas: Iterator[float]) -> Frontier:
        """Refit what the ridge of all columns ranks first, and what the path of the penalty chooses."""
        self._all_columns()
        self._ranked()
        self._path(alphas)
        return self.frontier

    def _all_columns(self) -> None:
        """Ridges of all columns, weaker and weaker until the best is inside; the one before it ranks."""
        for fold in self._folds:
            fold.open(None, None)
        first = self._folds[0].ridged
        assert first is not None
        frontier, ridge, best = self.frontier, first.strong(_RIDGE_START), None
        tried: list[tuple[Point, list[Rows]]] = []
        self._least = _RIDGE_END * ridge
        while ridge >= self._least:
            results = self._ridge(ridge, 0)
            ranks = [_rank(fold, ridge, result) for fold, result in zip(self._folds, results, strict=True)]
            point = frontier.points.pop()
            # wrong labels are few, and their number goes up and down on the way to the best: the loss does not
            lower = not tried or frontier.told(point) > frontier.told(tried[-1][0])
            tried.append((point, ranks))
            if best is None or frontier.rank(point) < frontier.rank(best):
                best = point
            elif not lower:
                break
            ridge *= _RIDGE_STEP
        assert best is not None
        frontier.points.append(best)
        enough = _nearly(max(frontier.told(point) for point, _ in tried), _RANKS)
        point, ranks = next(one for one in tried if frontier.told(one[0]) >= enough)
        self.rank_ridge = point.ridge
        for fold, ranking in zip(self._folds, ranks, strict=True):
            fold.ranking = ranking

    def _ranked(self) -> None:
        """The first columns of the ranking, fewer and fewer, until they tell much less than all."""
        best = self.frontier.best
        ridge = best.ridge
        many = size = min(len(fold.ranking) for fold in self._folds)
        share, most = _SHARES[0], many if self._most is None else self._most
        while size > 1:
            # a number that was asked for is one of the sizes
            size = most if size > most > share * size else max(1, int(share * size))
            for fold in self._folds:
                fold.open(np.sort(fold.ranking[:size]), fold.start)
            # most of the price is that of the first few sizes, whose ridge is about that of all columns
            at = self._walk(ridge, size, walks=size <= _WALKS * many and share == _SHARES[0])
            ridge = at.ridge
            if size <= most and self.frontier.told(at) < _nearly(self.frontier.told(best), _TOLD):
                break
            if size <= most and self.frontier.above(at, best) > _FAR:
                share = _SHARES[1]

    def _path(self, alphas: Iterator[float]) -> None:
        """What the path chooses, until it has as many features as the point that would be taken, and gains nothing."""
        frontier = self.frontier
        last, idle, ridge = 0.0, 0, frontier.best.ridge
        for alpha in alphas:
            results = [fold.follow(alpha, self._told(fold=fold.left.number)) for fold in self._folds]
            size = float(np.mean([len(result.active) for result in results]))
            if size == 0.0 and not any(point.most == 0 for point in frontier.points):
                self._add(results, alpha, 0.0, 0)
            elif size >= max(1.0, _GROWTH * last):
                last = size
                for fold, result in zip(self._folds, results, strict=True):
                    fold.open(result.active, result)
                apart = {abs(math.log((point.features or 0.1) / size)): point for point in reversed(frontier.points)}
                near = min(apart)
                point = self._walk(apart[near].ridge or ridge, 0, alpha, walks=near > math.log(2.0))
                idle = 0 if frontier.gains(point) else idle + 1
            elif size > 0.0:
                idle += 1
            if idle >= _PATIENCE or (size >= frontier.chosen().features and frontier.best is not frontier.points[-1]):
                break

    def _walk(self, ridge: float, size: int, alpha: float = 0.0, walks: bool = True) -> Point:
        """The ridge of the columns that are open, from one strength on to where it is best."""
        frontier = self.frontier

        def at(strength: float) -> Point:
            self._ridge(strength, size, alpha)
            return frontier.points.pop()

        best = at(ridge)
        walks, self._rests = walks and not self._rests, False
        while walks and best.ridge * self._turn >= self._least:
            after = at(best.ridge * self._turn)
            if not frontier.rank(after) < frontier.rank(best):
                break
            best = after
        if walks and best.ridge == ridge:
            # the next one keeps the ridge, and the one after it looks on the other side
            self._turn, self._rests = 1.0 / self._turn, True
        frontier.points.append(best)
        return best

    def _ridge(self, ridge: float, size: int, alpha: float = 0.0) -> list[FitResult]:
        results = [fold.fit(ridge, self._told(fold=fold.left.number)) for fold in self._folds]
        self._add(results, alpha, ridge, size)
        return results

    def _null(self) -> float:
        """The loss of the models without features."""
        nulls = []
        for fold in self._folds:
            at = fold.fitting.null().iterate
            intercept = fold.fitting.problem.as_given(at.active, at.W, at.intercept)
            nulls.append((fold.fitting.point_of_model(at.active, at.W, intercept),))
        return self.frontier.mean(self._judge(nulls)[1][0])

    def _add(self, results: list[FitResult], alpha: float, ridge: float, size: int) -> None:
        points = [(fold.fitting.point_of(result),) for fold, result in zip(self._folds, results, strict=True)]
        _, loss, error = self._judge(points)
        counts = [len(result.active) for result in results]
        self.frontier.points.append(Point(float(np.mean(counts)), max(counts), alpha, ridge, size, loss[0], error[0]))

    def _judge(self, points: list[Any]) -> tuple[Array, Array, Array]:
        """Weight of the held-out rows of each block, and sums of the loss and of the wrong labels of each model."""
        found = [
            self._engine.map_reduce(held_out_blocks, fold.left, BLOCKS, mine, name="judge").add
            for fold, mine in zip(self._folds, points, strict=True)
        ]
        weight, loss, error = (np.sum([sums[name] for sums in found], axis=0) for name in ("weight", "loss", "wrong"))
        return weight, loss, error


def falling(largest: float, least: float = 0.0, step: float = _STEP) -> Iterator[float]:
    """Strengths of a path that whoever reads them may end."""
    if not largest > 0.0:
        # No feature tells anything: of any strength the model without features is the best.
        yield 1.0
        return
    for place in range(_MOST_STRENGTHS):
        alpha = largest * step**place
        if alpha < least or not alpha > 0.0:
            return
        yield alpha


def folds_of(plan: Planned, seed: int) -> Folds:
    """The folds of which some are held out in turn."""
    return Folds(max(FOLDS, math.ceil(plan.n_rows / _MOST_HELD_OUT)), seed, draw="frontier")


def judgeable(plan: Any) -> bool:
    """Whether there are rows enough to hold some out: ten, and two of each of two classes."""
    counts = getattr(plan, "class_counts", None)
    several = counts is None or plan.task in NUMBERS or sum(count >= 2 for count in counts) >= 2
    return plan.n_rows >= LEAST_ROWS and several


def _rank(fold: _Fold, ridge: float, result: FitResult) -> Rows:
    assert fold.ridged is not None
    return ranked(fold.ridged.fitting, ridge, result)


def ranked(fitting: Fitting, ridge: float, result: FitResult) -> Rows:
    """Columns of a ridge by what each alone would gain if left out, the most first; none that gain nothing."""
    problem = fitting.problem
    variance = problem.statistics.deviation()[result.active] ** 2
    strength = problem.objective.bound(result.active, ridge).strength
    size = np.sqrt(np.einsum("ij,ij->i", result.W, result.W))
    gain = np.zeros(len(size))
    held = variance > 0.0
    gain[held] = size[held] * (_curvature(fitting) * variance[held] + strength[held]) / np.sqrt(variance[held])
    order = np.argsort(-gain, kind="stable")
    return np.asarray(result.active[order[gain[order] > 0.0]])


def _curvature(fitting: Fitting) -> float:
    """The mean curvature of the loss in a score, where no feature is used."""
    problem = fitting.problem
    if fitting.plan.task not in NUMBERS:
        share = problem.statistics.mass / np.maximum(problem.statistics.total, np.finfo(float).tiny)
        return float(np.mean(share * (1.0 - share)))
    loss = get_loss(fitting.settings.loss)
    if math.isfinite(loss.kappa):
        return float(loss.kappa)
    return float(np.mean(loss.predicted(problem.null().intercept[None])))


def fitted_to_all(
    fitting: Fitting,
    engine: Engine,
    search: Search,
    point: Point,
    most: int | None = None,
    start: FitResult | None = None,
    callback: Callback | None = None,
    on_refit: Callback | None = None,
    run: Run = plain_fit,
) -> tuple[FitResult, FitResult, float]:
    """A point of the frontier, fitted to all rows: the model, the fit that selected its features, and its ridge.

    Both are certified to the tolerance of the settings. A strength that was best for a share of the rows is multiplied
    by the share, as the ridge of all rows weighs less beside them. The model has at most `most` features; `start` is
    for the fit that selects, `run` makes the last fit, and the callbacks are told of the rounds of each.
    """
    tol = fitting.settings.tol
    ridge = point.ridge * search.share
    if point.alpha > 0.0:
        if not ridge:
            selected = run(fitting, point.alpha, start, callback)
            return selected, selected, 0.0
        selected = fitting.fit(point.alpha, start, callback)
        if most is not None and len(selected.active) > most:
            selected = _fewer(fitting, point.alpha, most)
        columns = selected.active
    elif not point.size:
        selected = RidgeRefits(fitting, engine, None, tol).fit(ridge, start, on_refit, run)
        return selected, selected, ridge
    else:
        every = RidgeRefits(fitting, engine, None, tol)
        strong = search.rank_ridge * search.share
        selected = every.fit(strong, start, on_refit)
        columns = np.sort(ranked(every.fitting, strong, selected)[: point.size])
    return RidgeRefits(fitting, engine, columns, tol).fit(ridge, selected, on_refit, run), selected, ridge


def _fewer(fitting: Fitting, alpha: float, most: int) -> FitResult:
    """The last model of the path with at most so many features: more rows may bring more at the same strength."""
    path: list[FitResult] = []
    for strength in falling(fitting.alpha_max(), alpha):
        after = fitting.fit(strength, predicted(path, strength))
        if len(after.active) > most:
            break
        path.append(after)
    return path[-1]
