"""The relaxed fit: a model fitted again without a penalty on the features that it uses, and what lies between both.

A penalty chooses features and shrinks their weights. Meinshausen (2007, Relaxed Lasso) and Hastie, Tibshirani and
Tibshirani (2020, Best Subset, Forward Stepwise or Lasso?) undo the shrinking: ``gamma W + (1 - gamma) W_refit``, where
W_refit minimises the loss alone over the rows of W that are not zero. Where weights have signs (``columns.given``) it
does so among weights with these signs, as a fit of features that all have a penalty factor of 0, and is certified.

Covers: the refit, how near to its optimum it is, the cases in which there is none, the blend.
Does not cover: estimators (``dboost.estimators.earlier``).
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.boosting.fit import Callback, FitResult, FitSettings, FitState, Fitting
from dboost.boosting.planned import Planned, columns_of
from dboost.columns.given import Signs
from dboost.engine.base import Engine
from dboost.errors import DataError, UsageError
from dboost.losses import get_loss
from dboost.partition import NUMBERS
from dboost.passes import active_gradient, support
from dboost.passes.support import Support
from dboost.penalties.bound import centred, rightly_signed
from dboost.problem.free_rows import NoFiniteOptimum

Array = NDArray[np.float64]
Int8 = NDArray[np.int8]

# A refit is made to its tolerance and then to a hundredth of it. Along a direction that no example is against, the loss
# falls as e^-t with the scores t, so that this takes them log(100) = 4.6 further; near an optimum they hardly move.
_CLOSER = 0.01
_MOVES = 1.0
REACHED = ("gradient", "precision", "tol")
_INFINITE = "the refit without a penalty has no finite optimum"


class NoRefit(DataError):
    """A model whose features have no finite or no unique refit without a penalty; not public."""


@dataclass(frozen=True)
class Refit:
    """A model without a penalty on the features of another."""

    W: Array  # (a, k): Weights of these features, in their order.
    intercept: Array  # (k,)
    objective: float  # Mean loss.
    # The largest derivative of the mean loss by a weight or an intercept; zero at the optimum. A weight of zero whose
    # sign keeps it from falling further has none.
    gradient: float
    # "gradient" or "precision" at the optimum, "tol" where that is certified, or the limit that came first; "none"
    # where there was nothing to fit.
    stop_reason: str
    n_iter: int  # Rounds, and passes over the data.
    passes: int
    lower_bound: float = math.nan  # Certified, of a refit with signs; nan of others.
    gap: float = math.nan


def of_columns(engine: Engine, columns: NDArray[np.int64]) -> Engine:
    """An engine that sees some stored columns, ascending, of the partitions of another."""
    return engine.through(Support(columns, uuid.uuid4().hex[:12]))


def refusal(settings: FitSettings) -> str:
    """Why models of such settings are not refitted; empty where they are."""
    if settings.hypotheses is not None:
        return f"hypotheses={settings.hypotheses!r} are no columns of the data"
    if settings.system is not None:
        return f"{settings.system.name!r} minimises no penalised loss"
    if settings.update == "forward":
        return "update='forward' minimises no penalised loss"
    return ""


def refitted(
    plan: Planned, engine: Engine, settings: FitSettings, start: FitResult, tol: float, rows: int | None = None
) -> Refit:
    """Fit the features of a model again, without a penalty.

    `start` is the model without the rows of offsets. `tol` is what the last step promises to lower the mean loss by,
    relative to it; with signs the certified relative gap. `rows` are those that count, where the engine leaves some
    out.

    A UsageError for models that are no such fits; NoRefit where the optimum is infinite, as labels are that the
    features separate, or is not unique, as of more weights than examples.
    """
    why = refusal(settings)
    if why:
        raise UsageError(f"a relaxed fit is one of penalised columns, and {why}", hint="use another estimator")
    active, free = start.active, settings.fit_intercept
    if not len(active):
        return unchanged(start)
    n_rows = plan.n_rows if rows is None else rows
    if len(active) + free >= n_rows:
        raise NoRefit(
            f"the refit without a penalty has {len(active)} features and {n_rows} examples, so that its optimum is not "
            "unique",
            hint="give a larger alpha, which uses fewer features",
        )
    table = columns_of(plan, settings)
    fixed = table.offset
    columns = np.union1d(active, fixed)
    view = of_columns(engine, columns)
    asked = replace(
        settings,
        penalty="none",
        alpha="auto",
        update="newton",
        select="greedy",
        sweeps=None,
        features_per_round=None,
        max_features=None,
        standardize=False,
        penalty_factors=None,
        column_groups=None,
        offset=None if settings.offset is None else tuple(np.searchsorted(columns, fixed).tolist()),
        tol=tol,
    )
    few = plan.of_columns(columns)
    signs = np.zeros(len(columns), np.int8)
    if table.sign is not None:
        signs[~np.isin(columns, fixed)] = table.sign[active]
    places = np.searchsorted(columns, active)
    if signs.any():
        return _signed(few, view, asked, signs, places)
    asked = replace(asked, signs=None)
    fitting = Fitting(few, view, asked)
    begin = replace(start, active=places, state=replace(start.state, active=places, W=start.W))
    watch = _Watch(fitting, view, plan.task)
    first = fitting.fit("auto", begin, watch)
    # scores that are the label's own unit have no optimum at infinity
    links = get_loss(settings.loss).links(plan.n_outputs)
    bounded = plan.task in NUMBERS and all(link.linear for link in links)
    result = first
    if not watch.separated and not bounded:
        fitting = Fitting(fitting.plan, view, replace(asked, tol=_CLOSER * tol))
        result = fitting.fit("auto", first, watch)
    if watch.separated or watch.apart(first, result) > _MOVES:
        raise NoRefit(_INFINITE, hint=_remedy(plan.task))
    runs = (first,) if result is first else (first, result)
    return replace(
        _refit(fitting, view, result, signs, places),
        n_iter=sum(run.n_iter for run in runs),
        passes=sum(run.passes for run in runs),
    )


# What makes a fit at a strength, from a start, and tells of its rounds.
Run = Callable[[Fitting, float, FitResult | None, Callback | None], FitResult]


def plain_fit(fitting: Fitting, alpha: float, start: FitResult | None, callback: Callback | None) -> FitResult:
    """The fit itself."""
    return fitting.fit(alpha, start, callback)


class RidgeRefits:
    """Some columns of the data, ascending, or all, fitted to a gap of `tol` with a ridge for the penalty of `whole`."""

    def __init__(self, whole: Fitting, engine: Engine, columns: NDArray[np.int64] | None, tol: float) -> None:
        plan, settings, self._whole = whole.plan, whole.settings, whole
        asked = replace(
            settings, penalty="l2_squared", features_per_round=None, max_features=None, tol=max(tol, settings.tol)
        )
        self.columns = columns
        if columns is not None:
            plan, engine = plan.of_columns(columns), of_columns(engine, columns)
        self.fitting = Fitting(plan, engine, asked)

    def strong(self, share: float) -> float:
        """A strength at which no model lowers the loss by more than a share of what it is without features.

        The loss falls by at most ``sum_j ||G_j||^2 / (2 rho_j)``, with the sums G of the model without features.
        """
        problem, null = self.fitting.problem, self.fitting.null()
        size = null.size
        if size is None:
            size = problem.objective.bound().dual_size(null.norms)
        weight = problem.statistics.weight
        loss = null.iterate.loss / weight
        return float(max(size / weight**2 / (2.0 * share * loss), np.finfo(float).tiny)) if loss > 0.0 else 1.0

    def fit(
        self, ridge: float, start: FitResult | None, callback: Callback | None = None, run: Run = plain_fit
    ) -> FitResult:
        """The model at a strength, in columns of the data; it begins at the rows of `start` that are fitted.

        What its other rows say in the mean is added to the intercept. The callback is told of states in columns of the
        data as they were given.
        """

        def told(record: dict[str, Any], state: FitState) -> bool:
            if callback is None:
                return False
            given = self.fitting.as_given(state)
            columns = given.active if self.columns is None else self.columns[given.active]
            return bool(callback(record, replace(given, active=columns)))

        if start is not None:
            place = start.active
            held = np.ones(len(place), dtype=np.bool_)
            if self.columns is not None:
                held = np.isin(place, self.columns)
                place = np.searchsorted(self.columns, place[held])
            W, intercept = start.W if held.all() else start.W[held], start.intercept
            if self.fitting.settings.fit_intercept and not held.all():
                about = self._whole.problem.statistics
                intercept = intercept + about.sum[start.active[~held]] / about.weight @ start.W[~held]
            state = replace(start.state, active=place, W=W)
            start = replace(start, active=place, W=W, intercept=intercept, state=state)
        found = run(self.fitting, ridge, start, told)
        if start is not None and found.stop_reason == "precision" and found.gap > self.fitting.settings.tol:
            # where rows of a larger model tell all examples apart, and wrongly, no step may lead down
            found = run(self.fitting, ridge, None, told)
        return found if self.columns is None else replace(found, active=self.columns[found.active])


def _signed(plan: Planned, view: Engine, settings: FitSettings, signs: Int8, places: NDArray[np.int64]) -> Refit:
    """The refit among weights with signs, one for each column of the plan; `places` are those that are no offsets."""
    fitting = Fitting(plan, view, replace(settings, signs=Signs.of_signs(signs)))
    try:
        result = fitting.fit("auto")
    except NoFiniteOptimum as fault:
        raise NoRefit(_INFINITE, hint=_remedy(plan.task)) from fault
    refit = _refit(fitting, view, result, signs, places)
    return replace(refit, lower_bound=result.lower_bound, gap=result.gap)


def _refit(fitting: Fitting, view: Engine, result: FitResult, signs: Int8, places: NDArray[np.int64]) -> Refit:
    """What a fit without a penalty found for the columns at some places, signs as for `_signed`; one pass."""
    plan, settings, weight = fitting.plan, fitting.settings, fitting.problem.statistics.weight
    sums = view.map_reduce(active_gradient, fitting.point_of(result), name="gradient").add
    offset = fitting.columns.offset
    mine = ~np.isin(np.sort(np.concatenate([result.active, offset])), offset)
    G = sums["G"][mine]
    G = np.where(result.W == 0.0, rightly_signed(G, signs[result.active]), G)
    free = settings.fit_intercept
    slopes = [np.abs(G).max(initial=0.0), np.abs(sums["bias"]).max(initial=0.0) if free else 0.0]
    W = np.zeros((len(places), result.W.shape[1]))
    W[np.searchsorted(places, result.active)] = result.W
    intercept = result.intercept
    if plan.task == "multiclass" and not get_loss(settings.loss).separable:
        # without a penalty nothing but signs decides what all classes have in common
        W, intercept = centred(W, signs[places]), intercept - intercept.mean() * free
    largest = float(max(slopes)) / weight
    return Refit(W, intercept, result.objective, largest, result.stop_reason, result.n_iter, result.passes)


def unchanged(result: FitResult) -> Refit:
    """What stands for a refit where there is nothing to fit: of no feature the intercept is best already."""
    return Refit(result.W, result.intercept, result.objective, math.nan, "none", 0, 0)


def between(result: FitResult, refit: Refit, gamma: float) -> FitResult:
    """``gamma`` of a penalised model and ``1 - gamma`` of its refit; at 1 and 0 with the bits of each.

    Between them no objective is minimised, and nothing certifies a blend. Features whose weights are zero, as signs may
    hold them at in a refit, are no part of it.
    """
    if gamma == 1.0:
        return result
    W = refit.W + gamma * (result.W - refit.W)
    held = np.any(W != 0.0, axis=1)
    return replace(
        result,
        active=result.active[held],
        W=W[held],
        intercept=refit.intercept + gamma * (result.intercept - refit.intercept),
        objective=refit.objective if gamma == 0.0 else math.nan,
        lower_bound=refit.lower_bound if gamma == 0.0 else math.nan,
        gap=refit.gap if gamma == 0.0 else math.nan,
        stop_reason=refit.stop_reason,
        n_iter=refit.n_iter,
        passes=refit.passes,
    )


def _remedy(task: str) -> str:
    why = "" if task in NUMBERS else "the features that are used separate the labels, wholly or in part; "
    return f"{why}give a larger alpha, which uses fewer features, or keep the penalised model"


@dataclass(frozen=True)
class Relaxation:
    """Which blends of each model of a path are judged beside it."""

    gammas: tuple[float, ...]  # Shares of the penalised model, falling.
    tol: float  # Of the refits.

    def refits(
        self,
        plan: Planned,
        engine: Engine,
        settings: FitSettings,
        results: Sequence[FitResult],
        rows: int | None = None,
        stop: Callable[[], bool] = lambda: False,
    ) -> list[Refit | None]:
        """The refit of each result; None where it has no finite optimum, or `stop` asked to end before."""
        found: list[Refit | None] = []
        for result in results:
            try:
                found.append(None if stop() else refitted(plan, engine, settings, result, self.tol, rows))
            except NoRefit:
                found.append(None)
        return found

    def blends(self, results: Sequence[FitResult], refits: Sequence[Refit | None]) -> list[FitResult | None]:
        """All blends of the first result, then of the second, and so on; None where there is no refit."""
        found: list[FitResult | None] = []
        for result, refit in zip(results, refits, strict=True):
            for gamma in self.gammas:
                known = refit if refit is not None else unchanged(result)
                found.append(between(result, known, gamma) if refit is not None or gamma == 1.0 else None)
        return found


class _Watch:
    """Looks on while a refit goes on: whether its model separates the labels, and how far apart two models are."""

    def __init__(self, fitting: Fitting, engine: Engine, task: str) -> None:
        self._fitting, self._engine, self._task = fitting, engine, task
        self.separated = False

    def __call__(self, record: dict[str, Any], state: FitState) -> bool:
        if self._task not in NUMBERS and record["step"] != "certificate":
            after: Any = self._fitting.as_given(state)
            self.separated = bool(np.any(self._look(after, after).add["wrong"] <= 0.0))
        return self.separated

    def apart(self, before: FitResult, after: FitResult) -> float:
        """The largest difference of a score of an example."""
        return float(self._look(before, after).peak["moved"][0])

    def _look(self, before: FitResult, after: FitResult) -> Any:
        points = (self._fitting.point_of(before), self._fitting.point_of(after))
        return self._engine.map_reduce(support.beside, *points, name="moved")
