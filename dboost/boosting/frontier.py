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

# The search judges by so many rows, or all: thirds are held out in turn until they have them, and of little data all
# fifths. The model that would be taken from it, the best one and one between are judged by more rows, since a standard
# error of few is about what users see as worse. Of much data no more than `_MOST_HELD_OUT` rows are held out at once.
_JUDGED, _JUDGED_LAST = 700, 2_000
_MOST_HELD_OUT = 10_000
FOLDS, _FEWEST_FOLDS = 5, 3
LEAST_ROWS = 10
# Nobody sees a difference of this share of what the best point tells, though it may be more than a standard error where
# all examples are told apart.
_UNSEEN = 1e-3
# Standard errors are those of the sums of so many blocks of the held-out rows.
BLOCKS = 32
# Certified gaps of the fits that are only judged: of a path, whose supports are those of a fit that is certified only
# where columns that resemble each other are told apart; and of a ridge, of which the order counts, or what this share
# of the loss without features is of its objective, which may be next to nothing.
_SUPPORT_TOL = 2e-3
_RIDGE_TOL = 5e-2
_RIDGE_SHARE = 5e-3
# Strengths next to each other, of a path, one that is refitted, a ridge, and a path of hypotheses, which ends at
# a share of the first; of the ridges of all columns the second is far from the first, which ranks.
_STEP = 0.5
REFITTED_STEP = 0.25
_RIDGE_STEP = 0.25
_SECOND_RIDGE = 1.0 / 16.0
INDUCED_STEP = 0.25
INDUCED_LEAST = 1e-4
# The first ridge lowers the loss by at most this share of it.
_RIDGE_START = 0.3
_MOST_STRENGTHS = 30
# The weakest is this share of the first: where features separate the classes, weaker ones go on lowering the loss.
_RIDGE_END = 1e-5
# Columns are ranked by the strongest ridge of all of them that tells so much of what one tells at most.
_RANKS = 1.0 / 3.0
# Ranked supports have the first share of all columns, and then the other of the features of the one before; they end
# with the one that no preference takes beside all columns. Other ridges are tried of models that are worse than the
# best by at most so many of its standard errors.
_FIRST_SHARE, _SHARE = 0.5, 0.25
_FAR = 2.0
# Between the model that is taken and the next with fewer features others are tried until the one has at most so many
# times the features of the other, or so many were; supports of the path, where a number was asked for, until one has
# nearly as many.
_DENSE = 1.5
_CLOSE = 1.1
_MOST_BETWEEN = 4
# A point of the path is below the line between its neighbours by so many of its standard errors, or the path ends.
_BELOW = 0.5
# A path ends after so many strengths that brought nothing.
_PATIENCE = 2
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
    # Without the first fold: the fit that selected the features, and their ridge; the fits to all rows begin there.
    fits: tuple[FitResult, ...] = ()

    @property
    def bare(self) -> Point:
        """The point without its fits."""
        return replace(self, fits=())


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

    def better(self, one: Point, other: Point) -> bool:
        """Whether of two ridges of the same columns the first is the better one.

        A weaker ridge must also lower the loss. Labels are told best by one that is stronger than the best for the
        loss; one that is weaker may have a wrong label less, by chance, while it fits noise, and of fewer columns it
        fits it all the more.
        """
        lower = self.rank(one) < self.rank(other)
        return lower and (one.ridge >= other.ridge or self.mean(one.loss) < self.mean(other.loss))

    @property
    def best(self) -> Point:
        """The best point; of several the one with the fewest features."""
        return self._best(self.points)

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
        return self.rank(point)[0] < line - _BELOW * self.error_of(point.error if self.labels else point.loss)

    def chosen(self, prefer: str | None = None, most: int | None = None) -> Point:
        """The point that is taken.

        It has the fewest features of those that are worse than the best point by at most one standard error of the
        difference, in the loss and, where there are any, in wrong labels. For "few" it may be one standard error of the
        best point itself where that is more; "accurate" takes the best. Where the point has more than half of all
        features, and the best with at most half is as good as "few" asks for, the rule is applied to these alone.
        `most`: the most features up to that number, where they are as good as fewer, whatever `prefer` is.
        """
        if most is not None:
            few = [point for point in self.points if point.most <= most]
            if not few:
                return self.envelope()[0]
            best = self._best(few)
            alike = (point for point in few if self.above(point, best, own=True) <= 1.0)
            return min(alike, key=lambda point: (-point.features, self.rank(point)))
        best = self.best
        if prefer == "accurate":
            return best
        taken = self._fewest(self.points, best, prefer == "few")
        few = [point for point in self.points if point.features <= self.half]
        if taken.features > self.half and few and self.above(self._best(few), best, own=True) <= 1.0:
            return self._fewest(few, self._best(few), prefer == "few")
        return taken

    def _best(self, points: list[Point]) -> Point:
        return min(points, key=lambda point: (self.rank(point), point.features))

    def _fewest(self, points: list[Point], best: Point, own: bool) -> Point:
        """The point with the fewest features that is as good as the best."""
        as_good = (point for point in points if self.above(point, best, own) <= 1.0)
        return min(as_good, key=lambda point: (point.features, self.rank(point)))

    def above(self, point: Point, best: Point, own: bool = False) -> float:
        """By how much a point is worse than the best, as a share of how much worse it may be; see `chosen`.

        Wrong labels alone tell little: they are few, and a model that knows nothing of a rare class has hardly more.
        """
        seen = self._above(point.loss, best.loss, own, _UNSEEN * max(self.told(best), 0.0))
        return max(seen, self._above(point.error, best.error, own)) if self.labels else seen

    def _above(self, mine: Array, other: Array, own: bool, unseen: float = 0.0) -> float:
        apart = self.mean(mine) - self.mean(other)
        allowed = max(self.error_of(mine - other), own * self.error_of(other), unseen)
        return apart / allowed if allowed > 0.0 else math.inf if apart > 0.0 else 0.0


def _nearly(told: float, share: float) -> float:
    """A share of what the best point tells; all of it where even that is less than nothing, as of labels of noise."""
    return min(share * told, told)


class _Fold:
    """The rows without those that are held out once, and what is fitted to them."""

    def __init__(self, paths: FoldPaths, number: int) -> None:
        present = paths.present[number] if paths.plan.task == "multiclass" else None
        self.left = Left(paths.folds, number, present)
        self.engine = paths.engine.through(self.left, f"without fold {number}")
        self.fitting = without_fold(paths.plan, self.engine, paths.settings, self.left)
        self.path: list[FitResult] = []
        self.ridged: RidgeRefits | None = None
        self.start: FitResult | None = None
        self.ranking: Rows = np.zeros(0, np.int64)
        self._best: dict[int, FitResult] = {}

    def follow(self, alpha: float, callback: Callback | None) -> FitResult:
        """The next model of the path."""
        self.path.append(self.fitting.fit(alpha, predicted(self.path, alpha), callback))
        del self.path[:-2]
        return self.path[-1]

    def open(self, columns: Rows | None, start: FitResult | None) -> None:
        """Some columns, or all, to be fitted with a ridge, at first from the rows of a model."""
        self.ridged = RidgeRefits(self.fitting, self.engine, columns, _RIDGE_TOL)
        self.start = start

    def open_first(self, size: int) -> None:
        """The first columns of the ranking, or with 0 all, from the best fit of the fewest that hold them all."""
        size = size or self.fitting.plan.n_features
        start = self._best[min(more for more in self._best if more >= size)] if self._best else None
        self.open(np.sort(self.ranking[:size]) if size < self.fitting.plan.n_features else None, start)

    def keep(self, size: int) -> None:
        """Remember the last fit as the best of the first so many columns of the ranking, or with 0 of all."""
        assert self.start is not None
        self._best[size or self.fitting.plan.n_features] = self.start

    def fit(self, ridge: float, callback: Callback | None) -> FitResult:
        """The ridge of the columns that are open."""
        assert self.ridged is not None
        fitting, start = self.ridged.fitting, self.start
        if start is not None and start.objective > 0.0:
            null = fitting.null().iterate.loss / fitting.problem.statistics.weight
            tol = max(_RIDGE_TOL, _RIDGE_SHARE * null / start.objective, self.fitting.settings.tol)
            fitting.settings = replace(fitting.settings, tol=tol)
        self.start = self.ridged.fit(ridge, start, callback)
        return self.start


class Search:
    """The search for the frontier; the first of the folds are held out in turn.

    The callback is told of each round, ``"fold"`` the fold that is held out. `prefer` and `most` are those of
    ``Frontier.chosen``: around the point that they name the frontier is looked at closely.
    """

    def __init__(
        self, plan: Planned, engine: Engine, settings: FitSettings, callback: Callback | None = None,
        prefer: str | None = None, most: int | None = None,
    ) -> None:  # fmt: skip
        self._engine, self._prefer, self._most = engine, prefer, most
        self._told = one_at_a_time(callback)
        folds = folds_of(plan.n_rows, settings.random_state)
        paths = FoldPaths.of(plan, engine, replace(settings, tol=max(_SUPPORT_TOL, settings.tol)), folds)
        judged = math.ceil(_JUDGED * folds.count / plan.n_rows)
        # hypotheses are made anew in every fit, which is most of its price
        judged = 1 if settings.hypotheses is not None else min(folds.count, judged)
        numbers = list(paths.present)
        self.folds = [_Fold(paths, number) for number in numbers[:judged]]
        # only the last few points are judged by the others
        self._paths, self._others = paths, numbers[judged : math.ceil(_JUDGED_LAST * folds.count / plan.n_rows)]
        self._last: Point | None = None
        rows = paths.masses["weight"]
        # the share of the weight that a fit of the search sees
        self.share = float(1.0 - np.mean([rows[fold.left.number] for fold in self.folds]) / rows.sum())
        self._least = 0.0
        # by the strength of the path, the most features of a support over the folds
        self._sizes: dict[float, int] = {}
        weight, _, _ = self._judge(self.folds, [()] * len(self.folds))
        # tables, whose columns are standardised, have few
        half = math.inf if settings.standardize or settings.hypotheses is not None else plan.n_features / 2.0
        self.frontier = Frontier(weight, half, plan.task not in NUMBERS)
        self._null = self._without_features()
        # the ridge of all columns that ranks them
        self.ranks = self._null
        self.frontier.null_loss = self.frontier.mean(self._null.loss)

    def chosen(self) -> Point:
        """The point that is taken of those that are known."""
        return self._last or self.frontier.chosen(self._prefer, self._most)

    def path_alone(self, alphas: Iterator[float]) -> Frontier:
        """Judge the models of the path, as they are, until the best is inside."""
        idle = 0
        for alpha in alphas:
            self._add(self._follow(alpha), alpha, 0.0, 0)
            best = self.frontier.best
            idle = 0 if best is self.frontier.points[-1] else idle + 1
            # the first strengths may use next to nothing
            if idle >= _PATIENCE and (best.most > 0 or idle > 3 * _PATIENCE):
                break
        self._release()
        return self.frontier

    def both(self, alphas: Iterator[float]) -> Frontier:
        """Refit what the ridge of all columns ranks first, and what the path of the penalty chooses."""
        largest = next(alphas)
        self._sizes[largest] = 0
        self.frontier.points.append(replace(self._null, alpha=largest))
        self._ranked(self._all_columns())
        self._path(alphas)
        if self._most is None:
            self._between()
        else:
            self._up_to(self._most)
        self._judge_last()
        self._release()
        return self.frontier

    def _release(self) -> None:
        """Let go of all fits but those of the point that is taken: of many outputs each is as large as the model."""
        self._last = taken = self.chosen()
        self.frontier.points[:] = [point if point is taken else point.bare for point in self.frontier.points]
        self.folds.clear()

    def _all_columns(self) -> Point:
        """The best ridge of all columns, of weaker and weaker ones until it is inside; one of the first ranks."""
        for fold in self.folds:
            fold.open_first(0)
        first = self.folds[0].ridged
        assert first is not None
        frontier, ridge, best, idle = self.frontier, first.strong(_RIDGE_START), None, 0
        tried: list[tuple[Point, list[Rows]]] = []
        self._least = _RIDGE_END * ridge
        while ridge >= self._least:
            results = self._ridge(ridge, 0)
            ranks = [_rank(fold, ridge, result) for fold, result in zip(self.folds, results, strict=True)]
            point = frontier.points.pop()
            # wrong labels are few, and their number goes up and down on the way to the best: the loss does not
            fallen = tried[-1][0].loss - point.loss if tried else point.loss
            # the fits of one point at most are needed again
            tried.append((point.bare, ranks))
            idle += 1
            if best is None or frontier.better(point, best):
                best, idle = point, 0
                self._keep(0)
            elif idle >= _PATIENCE or not frontier.mean(fallen) > frontier.error_of(fallen):
                break
            ridge *= _RIDGE_STEP if len(tried) > 1 else _SECOND_RIDGE
        assert best is not None
        frontier.points.append(best)
        enough = _nearly(max(frontier.told(point) for point, _ in tried), _RANKS)
        self.ranks, ranks = next(one for one in tried if frontier.told(one[0]) >= enough)
        for fold, ranking in zip(self.folds, ranks, strict=True):
            fold.ranking = ranking
        return best

    def _ranked(self, every: Point) -> None:
        """The first columns of the ranking, fewer and fewer, until they are far worse than all."""
        ridge = every.ridge
        size = min(len(fold.ranking) for fold in self.folds)
        most = size if self._most is None else self._most
        # where more than half of all columns would be no selection, just half of them is one of the sizes
        share = self.frontier.half / size if self.frontier.half < size else _FIRST_SHARE
        while size > 1:
            # a number that was asked for is one of the sizes
            size = most if size > most > share * size else max(1, int(share * size))
            share = _SHARE
            point = self._first(size, ridge)
            ridge = point.ridge
            if size <= most and self.frontier.above(point, every, own=True) > 1.0:
                break

    def _path(self, alphas: Iterator[float]) -> None:
        """What the path chooses, until it has as many features as the point that would be taken, and gains nothing."""
        frontier, last, idle = self.frontier, 0.0, 0
        for alpha in alphas:
            results = self._follow(alpha)
            size = float(np.mean([len(result.active) for result in results]))
            if size >= max(1.0, _GROWTH * last):
                last = size
                idle = 0 if frontier.gains(self._refitted(results, alpha)) else idle + 1
            elif size > 0.0:
                idle += 1
            if idle or (_GROWTH * size >= self.chosen().features and frontier.best is not frontier.points[-1]):
                break

    def _between(self) -> None:
        """Models between the one that is taken and the next with fewer features, until these have about as many."""
        for _ in range(_MOST_BETWEEN):
            taken = self.chosen()
            if taken.alpha > 0.0:
                stronger = (point for point in self.frontier.points if point.alpha > taken.alpha)
                near = min(stronger, key=lambda point: point.alpha, default=taken)
            else:
                first = (point for point in self.frontier.points if point.alpha == 0.0)
                fewer = (point for point in first if point.features < taken.features)
                near = max(fewer, key=lambda point: point.features, default=self._null)
            if taken.features <= max(_DENSE * near.features, near.features + 1.0):
                break
            # a support that is about as large is fitted with about the same ridge
            if taken.alpha > 0.0:
                alpha = math.sqrt(near.alpha * taken.alpha)
                self._refitted(self._follow(alpha), alpha, walks=False)
            else:
                self._first(round(math.sqrt(taken.features * max(1.0, near.features))), taken.ridge, walks=False)

    def _up_to(self, most: int) -> None:
        """Supports of the path with up to so many features, until one has nearly as many."""
        for _ in range(_MOST_BETWEEN):
            within = [(size, alpha) for alpha, size in self._sizes.items() if size <= most]
            beyond = [alpha for alpha, size in self._sizes.items() if size > most]
            if not beyond or _CLOSE * max(within)[0] >= most:
                break
            alpha = math.sqrt(min(alpha for _, alpha in within) * max(beyond))
            results = self._follow(alpha)
            if 0 < self._sizes[alpha] <= most:
                self._refitted(results, alpha)

    def _judge_last(self) -> None:
        """Judge the point that would be taken, the best and one between with other folds held out too."""
        taken, frontier = self.chosen(), self.frontier
        better = [point for point in frontier.envelope() if point.features > taken.features]
        if self._most is not None or not better or not self._others:
            return
        between = better[(len(better) - 1) // 2 : -1][:1]
        if better[-1].features > frontier.half:
            # The largest point with at most half of the features is the likeliest to be as good as one with more.
            few = [point for point in frontier.points if taken.features < point.features <= frontier.half]
            between = [max(few, key=lambda point: point.features)] if few else []
        # A fit of fewer features begins at one of more.
        points = [better[-1], *between, taken]
        parts = [(frontier.weight, np.stack([p.loss for p in points]), np.stack([p.error for p in points]))]
        for fold in (_Fold(self._paths, number) for number in self._others):
            models = tuple(fold.fitting.point_of(result) for result in self._again(fold, points))
            parts.append(self._judge([fold], [models]))
        weight, loss, error = (np.concatenate(each, axis=-1) for each in zip(*parts, strict=True))
        again = [replace(point, loss=a, error=b) for point, a, b in zip(points, loss, error, strict=True)]
        last = replace(frontier, weight=weight, points=again).chosen(self._prefer)
        self._last = next(point for point, one in zip(points, again, strict=True) if one is last)

    def _again(self, fold: _Fold, points: list[Point]) -> Iterator[FitResult]:
        """Points of the frontier, fitted without another fold.

        No fit begins at a model of the search, which has seen the rows that are held out here and would remember them.
        """
        callback = self._told(fold=fold.left.number)
        if any(point.size for point in points):
            fold.open_first(0)
            fold.ranking = _rank(fold, self.ranks.ridge, fold.fit(self.ranks.ridge, callback))
            fold.keep(0)
        for point in points:
            if point.alpha > 0.0:
                selected = fold.follow(point.alpha, callback)
                fold.open(selected.active, selected)
            else:
                fold.open_first(point.size)
            yield fold.fit(point.ridge, callback) if point.ridge else selected
            if not point.alpha:
                fold.keep(point.size)

    def _follow(self, alpha: float) -> list[FitResult]:
        """The models of the path at a strength."""
        results = [fold.follow(alpha, self._told(fold=fold.left.number)) for fold in self.folds]
        self._sizes[alpha] = max(len(result.active) for result in results)
        return results

    def _first(self, size: int, ridge: float, walks: bool = True) -> Point:
        """The first columns of the ranking."""
        for fold in self.folds:
            fold.open_first(size)
        return self._walk(ridge, size, walks=walks)

    def _refitted(self, results: list[FitResult], alpha: float, walks: bool = True) -> Point:
        """What the path chose at a strength, at first with the ridge of the point that has about as many features."""
        for fold, result in zip(self.folds, results, strict=True):
            fold.open(result.active, result)
        size = math.log(max(0.1, float(np.mean([len(result.active) for result in results]))))
        ridged = [point for point in self.frontier.points if point.ridge > 0.0]
        near = min(ridged, key=lambda point: abs(math.log(max(0.1, point.features)) - size))
        return self._walk(near.ridge, 0, alpha, results[0], walks)

    def _walk(
        self, ridge: float, size: int, alpha: float = 0.0, selected: FitResult | None = None, walks: bool = True
    ) -> Point:
        """The ridge of the columns that are open, from one strength on to where it is best."""
        frontier = self.frontier

        def iterate(strength: float) -> Point:
            self._ridge(strength, size, alpha, selected)
            return frontier.points.pop()

        best = iterate(ridge)
        if size:
            self._keep(size)
        if not walks:
            frontier.points.append(best)
            return best
        # Columns that were chosen by the labels that they are fitted to want a stronger ridge than all; a weaker one is
        # tried where a model is good.
        for step in (1.0 / _RIDGE_STEP, _RIDGE_STEP):
            while best.ridge * step >= self._least:
                after = iterate(best.ridge * step)
                if not frontier.better(after, best):
                    break
                best = after
                if size:
                    self._keep(size)
            if best.ridge != ridge or frontier.above(best, frontier.best, own=True) > _FAR:
                break
        frontier.points.append(best)
        return best

    def _ridge(self, ridge: float, size: int, alpha: float = 0.0, selected: FitResult | None = None) -> list[FitResult]:
        results = [fold.fit(ridge, self._told(fold=fold.left.number)) for fold in self.folds]
        self._add(results, alpha, ridge, size, selected)
        return results

    def _keep(self, size: int) -> None:
        for fold in self.folds:
            fold.keep(size)

    def _without_features(self) -> Point:
        """The models without features, judged."""
        nulls = []
        for fold in self.folds:
            iterate = fold.fitting.null().iterate
            intercept = fold.fitting.problem.as_given(iterate.active, iterate.W, iterate.intercept)
            nulls.append((fold.fitting.point_of_model(iterate.active, iterate.W, intercept),))
        _, loss, error = self._judge(self.folds, nulls)
        return Point(0.0, 0, 0.0, 0.0, 0, loss[0], error[0])

    def _add(
        self, results: list[FitResult], alpha: float, ridge: float, size: int, selected: FitResult | None = None
    ) -> None:
        points = [(fold.fitting.point_of(result),) for fold, result in zip(self.folds, results, strict=True)]
        _, loss, error = self._judge(self.folds, points)
        counts = [len(result.active) for result in results]
        # models of fewer classes, and of hypotheses that were found without the fold, are no start
        lacks = self.folds[0].left.present is not None or results[0].pool is not None
        fits = () if lacks else tuple(fit for fit in (selected, results[0]) if fit is not None)
        point = Point(float(np.mean(counts)), max(counts), alpha, ridge, size, loss[0], error[0], fits)
        self.frontier.points.append(point)

    def _judge(self, folds: list[_Fold], points: list[Any]) -> tuple[Array, Array, Array]:
        """Weight of the held-out rows of each block, and sums of the loss and of the wrong labels of each model."""
        found = [
            self._engine.map_reduce(held_out_blocks, fold.left, BLOCKS, mine, name="judge").add
            for fold, mine in zip(folds, points, strict=True)
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


def folds_of(rows: int, seed: int) -> Folds:
    """The folds of which some are held out in turn."""
    count = FOLDS if rows <= _JUDGED else _FEWEST_FOLDS
    return Folds(max(count, math.ceil(rows / _MOST_HELD_OUT)), seed, draw="frontier")


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

    Both are certified to the tolerance of the settings, and begin where those without the first fold ended. A strength
    that was best for a share of the rows is multiplied by the share, as the ridge of all rows weighs less beside them.
    The model has at most `most` features; `start` is for the fit that selects, `run` makes the last fit, and the
    callbacks are told of the rounds of each.
    """
    tol = fitting.settings.tol
    ridge = point.ridge * search.share
    begin = point.fits[-1] if point.fits else None
    if point.alpha > 0.0:
        first = point.fits[0] if start is None and point.fits else start
        if not ridge:
            selected = run(fitting, point.alpha, first, callback)
            return selected, selected, 0.0
        selected = fitting.fit(point.alpha, first, callback)
        if most is not None and len(selected.active) > most:
            selected = _fewer(fitting, point.alpha, most)
        columns = selected.active
    elif not point.size:
        selected = RidgeRefits(fitting, engine, None, tol).fit(ridge, start or begin, on_refit, run)
        return selected, selected, ridge
    else:
        every = RidgeRefits(fitting, engine, None, tol)
        strong = search.ranks.ridge * search.share
        selected = every.fit(strong, start, on_refit)
        columns = np.sort(ranked(every.fitting, strong, selected)[: point.size])
    return RidgeRefits(fitting, engine, columns, tol).fit(ridge, begin or selected, on_refit, run), selected, ridge


def _fewer(fitting: Fitting, alpha: float, most: int) -> FitResult:
    """The last model of the path with at most so many features: more rows may bring more at the same strength."""
    path: list[FitResult] = []
    for strength in falling(fitting.alpha_max(), alpha):
        after = fitting.fit(strength, predicted(path, strength))
        if len(after.active) > most:
            break
        path.append(after)
    return path[-1]
