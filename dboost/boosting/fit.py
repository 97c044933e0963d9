"""Fit one model to planned data on an engine.

Covers: alpha_max, warm starts, the result with its certificate. Does not cover: which settings have a meaning
(``checks``), paths (``path``), inputs and labels (``dboost.data``), scikit-learn's conventions (``dboost.estimators``).

A fit may have gone on less centres: of columns, labels or offsets. Its own intercept is then rounded on the way to the
data as they were given, by as much as a large number is; and scores of those data, as predictions are made of them, are
sums of large numbers that nearly cancel. Objective and gap of the model as it is returned are looked at once more
(``Returned``):

    P    the objective of the returned arrays, scores being what they are without rounding
    gap  (P - D + e) / P, e being what P changes by at the scores that float64 makes of the arrays

That is |P' - P| where P' is looked at, and at least what errors of random signs in all scores change it by: scores may
be added up in another order than here.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost import passes
from dboost.boosting.checks import check_settings, system_of
from dboost.boosting.planned import Planned, columns_of
from dboost.boosting.starts import FromModel, begun, through_wider_bends
from dboost.boosting.totally_corrective import Loop
from dboost.columns.given import PENALTY_FACTORS
from dboost.columns.table import listed, refuse_extreme_columns
from dboost.engine.base import Engine
from dboost.errors import DataError, DboostWarning
from dboost.first_compile import beside
from dboost.losses import Loss, get_loss, refuse_other_targets
from dboost.notices import warn_user
from dboost.passes import Point
from dboost.passes.centring import Centres, LabelCentres
from dboost.passes.offsets import Offsets
from dboost.penalties import Penalty, get_penalty
from dboost.problem import summation
from dboost.problem.accelerators import Accelerators, allowed, one_output
from dboost.problem.first_passes import far_labels, label_sums
from dboost.problem.induced import InducedProblem
from dboost.problem.iterate import Score
from dboost.problem.pass_runner import PassRunner
from dboost.problem.problem import Problem, ProblemSettings
from dboost.problem.state import FitResult, FitSettings, FitState
from dboost.problem.stored import StoredProblem

Array = NDArray[np.float64]

# The share of `tol` that is no reason for a pass.
_NOTHING = 1e-6
# Scores are sums of a few terms for each row of W, and rounded as often,
_ROUNDINGS = 8.0
# and errors of random signs add up to no more than three deviations of their sum but for odds of one in a thousand.
# Each has that of a number that may be anywhere between its ends, 1 / sqrt(3) of the larger.
_DEVIATIONS = math.sqrt(3.0)


@dataclass(frozen=True)
class Returned:
    """The last state of a fit as what it says of the arrays that are returned."""

    problem: Problem
    tol: float  # Relative gap that was asked for.
    # The loss at the rows of the state and an intercept by one pass over the data as they were given.
    loss_as_given: Callable[[Array], float]

    def __call__(self, done: FitState, reason: str, lam: float) -> tuple[FitState, str, Array]:
        """The state with objective and gap of the arrays, the reason to stop, and the intercept; up to two passes."""
        problem = self.problem
        intercept = problem.as_given(done.active, done.W, done.intercept)
        if not problem.moved(done.active):
            return done, reason, intercept
        common = 0.0
        if not problem.loss.separable:
            # only differences between outputs enter the loss: what they have in common is no reason to round
            intercept = problem.as_given(done.active, done.W, done.intercept - intercept.mean())
            common = float((problem.as_seen(done.active, done.W, intercept) - done.intercept)[0])
        before, given = problem.passes, math.nan
        if done.objective <= self._nothing:
            given = self.loss_as_given(intercept)
            problem.runner.count += 1
        if not math.isfinite(done.objective) or given <= self._nothing:
            # no number, or nothing, as of targets that are all equal: there is no share of it
            return replace(done, passes=done.passes + problem.passes - before), reason, intercept
        rounding = self._rounding(done, intercept)
        moved = self._change(done, _ROUNDINGS * rounding, problem.k * problem.statistics.weight)
        if moved <= _NOTHING * self.tol and done.gap + moved <= self.tol:
            # too little to tell, and it is paid for
            spent = problem.passes - before
            return replace(done, gap=done.gap + moved, passes=done.passes + spent), reason, intercept
        seen = problem.as_seen(done.active, done.W, intercept, common)
        iterate = problem.evaluate(done.active, done.W, seen)
        value = problem.objective(iterate, lam)
        if math.isnan(given):
            given = self.loss_as_given(intercept)
            problem.runner.count += 1
        predicted = given + value - iterate.loss
        least = max(abs(value), self._nothing)
        off = abs(predicted - value) / least
        if math.isfinite(problem.loss.kappa):
            one = problem.statistics.weight / max(problem.n_rows, 1)
            off = max(off, self._change(done, rounding, _DEVIATIONS**2 * one))
        gap = done.gap
        if problem.penalty.certified and math.isfinite(gap):
            gap = (value - done.lower_bound) / least + off if done.lower_bound <= value else math.nan
        done = replace(done, objective=value, gap=gap, passes=done.passes + problem.passes - before)
        if reason == "tol" and not gap <= self.tol:
            return done, "uncertified" if math.isnan(gap) else "precision", intercept
        if reason == "gradient" and not off <= self.tol:
            return done, "precision", intercept
        return done, reason, intercept

    @property
    def _nothing(self) -> float:
        """The objective that is none.

        Rounds take gaps to at least the resolution of the labels. Labels that differ by a few units of their last digit
        have an objective below that, and what is said of the arrays that are returned is said of this objective.
        """
        return _NOTHING * self.problem.objective.resolution

    def _rounding(self, done: FitState, intercept: Array) -> float:
        """What float64 rounds a score by, which is a sum of large numbers that nearly cancel."""
        problem = self.problem
        peak = problem.statistics.peak[done.active] + np.abs(problem.taken_off(done.active))
        rows = float(np.sum(peak * np.abs(done.W).max(axis=1, initial=0.0)))
        others = max(np.abs(intercept).max(initial=0.0), np.abs(problem.lower_by).max(initial=0.0))
        return summation.UNIT * (rows + float(others))

    def _change(self, done: FitState, off: float, weight: float) -> float:
        """By what share of the objective errors of the scores may change it; infinite where no bound is known.

        sum_i s_i |u_i| off <= off sqrt(2 kappa L sum_i s_i) where all errors have the worst signs, and of random ones
        one example has its place: the deviation of the sum is off sqrt(sum_i s_i^2 u_i^2). What the curvature adds is
        0.5 kappa off^2 of every example.
        """
        problem, kappa = self.problem, self.problem.loss.kappa
        if not math.isfinite(kappa):
            return math.inf
        least = max(abs(done.objective), self._nothing)
        bent = 0.5 * kappa * off * off * problem.k * problem.statistics.weight
        return (off * math.sqrt(2.0 * kappa * max(done.objective, 0.0) * weight) + bent) / least


AUTO_ALPHA = 0.05
# A column that varies so many times as much as the median one is said to, where a penalty goes by their units.
UNEVEN = 100.0

Rows = NDArray[np.int64]
Callback = Callable[[dict[str, Any], FitState], "bool | None"]
# The strength of a fit, in the sum form, and the last known ||G_j||_* of every column, float64 array of shape (n,).
Remembered = tuple[float, Array]


class Fitting:
    """Data, engine and loss of a fit: the part that all strengths of a path share.

    `settings.alpha` may change between calls of `fit`. `columns` is what the settings ask of the stored columns, as
    they were given.
    """

    def __init__(self, plan: Planned, engine: Engine, settings: FitSettings) -> None:
        check_settings(settings)
        if settings.signs is not None and get_penalty(settings.penalty).weightless:
            # weights that are held at zero have a certificate, and a penalty that charges no column has one
            settings = replace(settings, penalty="l1", penalty_factors=PENALTY_FACTORS.read(np.zeros(plan.n_features)))
        self.plan = plan
        self.settings = settings
        self.system = system_of(settings)
        self._engine = engine
        run_id = uuid.uuid4().hex[:12]
        engine.set_plan(plan.items, plan.rows, run_id)
        if settings.update == "newton":
            there = engine.resident_partitions()
            beside.start(plan.n_outputs, str(there[0].values.dtype) if there else "float32")
        self.columns = columns_of(plan, settings)
        if self.columns.offset.size:
            engine = engine.through(Offsets(self.columns.offset, run_id))
        self.problem = problem = self._problem(engine, run_id)
        taken_off = 0.5 * problem.statistics.weight * float(np.sum(problem.lower_by[0] ** 2))
        problem.objective = replace(problem.objective, taken_off=taken_off)
        self._null: Score | None = None
        self._last: Remembered | None = None
        self._charged = 0
        self._refuse_absent_classes()

    def _problem(self, engine: Engine, run_id: str) -> Problem:
        plan, settings, columns = self.plan, self.settings, self.columns
        loss, penalty = get_loss(settings.loss), get_penalty(settings.penalty)
        refuse_other_targets(loss, plan.n_outputs)
        offsets = bool(columns.offset.size)
        runner = PassRunner(engine, run_id)
        labels = label_sums(runner, loss, plan.n_outputs, settings.fit_intercept, offsets)
        lower_by = far_labels(loss, labels, plan.n_outputs) if self._centres_data() else np.zeros(plan.n_outputs)
        none = np.zeros(plan.n_outputs)
        if lower_by.any():
            run_id = f"{run_id}-labels"
            engine = engine.through(LabelCentres(lower_by, none, run_id))
            labels = label_sums(PassRunner(engine, run_id), loss, plan.n_outputs, True, offsets)
        asked = ProblemSettings(
            loss,
            penalty,
            plan.n_features,
            plan.n_outputs,
            settings.fit_intercept,
            self.system.exponential,
            settings.standardize,
            self._on_driver(loss, penalty),
            "null_sums" in allowed(settings),
            columns,
        )
        if settings.hypotheses is not None:
            induced = InducedProblem(
                engine,
                asked,
                run_id,
                family=settings.hypotheses,
                seed=settings.random_state,
                certifies=self.system.optimises,
                picks=self.system.picks,
                centres=self._centres_data(),
                labels=labels,
            )
            induced.lower_by = np.stack([lower_by, none])
            return induced
        # sums of squares may overflow here: the columns they belong to are refused by name next
        with np.errstate(over="ignore", invalid="ignore"):
            problem = StoredProblem(engine, asked, run_id, labels=labels)
        problem.lower_by = np.stack([lower_by, none])
        refuse_extreme_columns(problem.statistics.peak, plan.feature_names)
        self.columns = problem.objective.columns
        far = problem.statistics.far
        if far is None or not self._centres_data():
            return problem
        centres = Centres(*far.centres(plan.n_rows, problem.far), run_id)
        if not centres.columns.size:
            return problem
        # points of the data as given and of these are other points
        name = f"{run_id}-centred"
        less_offsets = centres.of(columns.offset) if offsets else none
        if less_offsets.any():
            engine = engine.through(LabelCentres(none, less_offsets, name))
            labels = label_sums(PassRunner(engine, name), loss, plan.n_outputs, True, offsets)
        # those of offsets, too: they have no row in W, and what sums of them are rounded by goes by their sizes
        given, before = engine.through(centres), problem.passes
        less = StoredProblem(given, asked, name, centres=centres, passes_before=before, labels=labels)
        # labels less a number ask for lower scores, and offsets less a number for higher ones
        less.lower_by = np.stack([lower_by, -less_offsets])
        return less

    def _centres_data(self) -> bool:
        """Whether data may be solved less a number: the intercept is free, and the fit is the optimum (``System``)."""
        return self.settings.fit_intercept and self.system.optimises

    def _on_driver(self, loss: Loss, penalty: Penalty) -> bool:
        """Whether steps are taken on the driver, which then keeps the state of the examples."""
        plan, settings = self.plan, self.settings
        asked = "one_output" in allowed(settings)
        return asked and one_output(loss, penalty, plan.n_outputs, plan.n_features, plan.n_rows, settings)

    def _refuse_absent_classes(self) -> None:
        """A class without examples has its optimal intercept at minus infinity: there is no model to find."""
        problem = self.problem
        if problem.loss.separable or not problem.fit_intercept:
            return
        absent = np.flatnonzero(problem.statistics.mass <= 0.0)
        if absent.size:
            names = (self.plan.classes if self.plan.classes is not None else np.arange(problem.k)).tolist()
            raise DataError(
                f"class {names[absent[0]]!r} has no example of positive weight, and the intercept is free",
                hint="leave it out of classes=, or set fit_intercept=False",
            )

    def accelerators(self) -> Accelerators:
        """Those that a fit may take, none of them taken yet."""
        return Accelerators.of(self.problem, self.settings)

    def null(self) -> Score:
        """Scoring pass at the null model, done once: its norms of all columns give alpha_max and bound dual repairs."""
        if self._null is None:
            found = self.problem.score(self.problem.null(), None, 1.0, 0)
            self._null = replace(found, candidates=found.candidates[:0].copy())
            self.problem.objective = replace(self.problem.objective, null_loss=found.iterate.loss)
        return self._null

    def alpha_max(self) -> float:
        """Smallest alpha with all weights zero, max_j ||G_j||_* / sum_i s_i at the null model; nan if none is known."""
        if not self.problem.penalty.threshold or getattr(self.settings.hypotheses, "learns", False):
            return math.nan
        null = self.null()
        size = null.size
        if size is None:
            size = self.problem.objective.bound().dual_size(null.norms)
        return size / self.problem.statistics.weight

    def drawn(self) -> bool:
        """Whether a feature would enter if its weights could have any sign; one pass."""
        problem = self.problem
        signed, iterate = problem.objective, self.null().iterate
        problem.objective = replace(signed, columns=replace(signed.columns, sign=None))
        try:
            norms = problem.score(iterate, None, 1.0, 0).norms
        finally:
            problem.objective = signed
        # of a target that does not vary sums may be what they are rounded by
        return bool(np.any(norms > summation.of_norms(problem, iterate, np.arange(norms.shape[0]))))

    def _auto(self, largest: float) -> float:
        """The strength "auto": a share of the largest, or more where that is but the rounding of sums.

        Columns that are constant beside a free intercept have sums of zero but for it. There is room for what is left
        of the intercept's own sum, which a dual point pays for in the same way.
        """
        problem = self.problem
        bound = problem.objective.bound()
        off = summation.of_norms(problem, self.null().iterate, np.arange(bound.weight.shape[0]))
        least = bound.dual_size(off) / problem.statistics.weight
        return max(AUTO_ALPHA * largest, 4.0 * least, float(np.finfo(float).tiny))

    def fit(
        self, alpha: float | str, start: FitResult | None = None, callback: Callback | None = None, resume: Any = None
    ) -> FitResult:
        """Fit at one strength on the mean loss, or "auto", from a warm start if there is one.

        The callback gets each round's record and the state after it; a true result stops the fit. `resume` is a state
        of the same fit, from which it goes on with the same bits as if it had never stopped.
        """
        problem, settings = self.problem, self.settings
        largest = self.alpha_max()
        null = self.null()
        charged = not problem.penalty.weightless and problem.objective.columns.charged
        if not charged:
            # where the user's factors charge no column any strength will do
            strength = 0.0 if problem.penalty.weightless else 1.0
        elif alpha != "auto":
            strength = float(alpha)
        elif problem.penalty.threshold:
            strength = self._auto(largest)
        else:
            # without a largest strength: one for the sum of the losses, scikit-learn's C = 1
            strength = 1.0 / math.ldexp(problem.statistics.weight, -self.plan.weight_exponent)
        lam = strength * problem.statistics.weight
        lam_max = largest * problem.statistics.weight
        loop = self.system.rounds(problem, replace(settings, alpha=strength), null, self.plan.n_rows)
        if resume is not None:
            problem.register(resume.keys)
        # passes before the first fit, those of the statistics and the null model, count as its own
        passes = problem.passes - self._charged
        if resume is not None:
            state = resume
        else:
            state = begun(FromModel(problem, start, lam, lam_max, self._last, loop.accelerators), passes)
            # A fit that counts its features one by one begins without any, as does one whose model has none.
            counted = settings.features_per_round is not None or settings.max_features is not None
            if isinstance(loop, Loop) and not counted and lam < lam_max and problem.penalty.certified:
                over = loop.limits.reason
                state = through_wider_bends(problem, settings, state, null, lam, lambda done: bool(over(done)))
        # what was done before the rounds is not part of the first
        problem.runner.seconds()
        named = [f"alpha {strength:.4g}"] if strength > 0.0 else []

        def on_round(record: dict[str, Any], after: FitState) -> bool:
            self._engine.label(*named, f"round {after.round + 1}")
            return callback is not None and bool(callback(record, after))

        self._engine.label(*named, f"round {state.round + 1}")
        done, reason = loop.run(state, on_round)
        self._engine.label()
        self._last = (lam, loop.norms)
        self._charged = problem.passes
        weight = problem.statistics.weight
        if not loop.certified:
            done = replace(done, gap=math.nan)
        said = Returned(problem, settings.tol, partial(self._loss_as_given, done))
        at_end, reason, intercept = said(done, reason, lam)
        self._charged = problem.passes
        held = problem.objective.shown(done.active, done.W)
        return FitResult(
            # models of many outputs are large: the state has the same arrays
            active=done.active if held.all() else done.active[held],
            W=done.W if held.all() else done.W[held],
            intercept=intercept,
            objective=at_end.objective / weight,
            lower_bound=at_end.lower_bound / weight if loop.certified else math.nan,
            gap=at_end.gap,
            stop_reason=reason,
            n_iter=at_end.round,
            passes=at_end.passes,
            alpha=strength if charged else 0.0,
            alpha_max=largest,
            history=[dict(r) for r in done.history],
            trace=np.array(loop.trace).reshape(-1, 3),
            state=done,
            pool=problem.pool,
            taken=dict(loop.accelerators.taken),
        )

    @property
    def remembered(self) -> Remembered | None:
        """What the last fit leaves to the next one of a path; None before the first."""
        return self._last

    def go_on_after(self, last: FitResult, remembered: Remembered | None) -> None:
        """Be as after the fits of a path of which `last` was the last one, and which left what was remembered."""
        self.null()
        if isinstance(self.problem, InducedProblem):
            self.problem.register(last.state.keys)
        self._last = remembered
        self._charged = self.problem.passes

    def point_of(self, result: FitResult) -> Point:
        """The model of a result, for passes over the partitions as the plan has them."""
        return self.point_of_model(result.active, result.W, result.intercept)

    def point_of_model(self, active: Rows, W: Array, intercept: Array) -> Point:
        """As `point_of`, of rows of W and an intercept of the columns as they were given."""
        if self.columns.offset.size:
            active, W = with_fixed(active, W, self.columns.offset)
            held = self.problem.columns_of(active)
            return Point(get_loss(self.settings.loss), held, W, intercept, held.token)
        held = self.problem.columns_of(active)
        return Point(self.problem.loss, replace(held, centres=()), W, intercept, held.token)

    def _loss_as_given(self, state: FitState, intercept: Array) -> float:
        """The loss of the rows of a state and an intercept, by one pass over the partitions as the plan has them."""
        point = self.point_of_model(state.active, state.W, intercept)
        sums = self._engine.map_reduce(passes.active_gradient, point, name="gradient")
        return float(sums.add["loss"])

    def as_given(self, state: FitState) -> FitState:
        """A state of this fit with the intercept of the columns as they were given, which are those of a model."""
        return replace(state, intercept=self.problem.as_given(state.active, state.W, state.intercept))


def with_fixed(active: Rows, W: Array, fixed: Rows) -> tuple[Rows, Array]:
    """Rows of W with those of the offsets, whose weight is one for their own output: what the scores are made of."""
    rows = np.concatenate([active, fixed])
    order = np.argsort(rows, kind="stable")
    return rows[order], np.ascontiguousarray(np.vstack([W, np.eye(len(fixed))])[order])


def fit(
    plan: Planned,
    engine: Engine,
    settings: FitSettings,
    start: FitResult | None = None,
    callback: Callback | None = None,
    resume: FitState | None = None,
) -> FitResult:
    """Fit one model; see ``Fitting.fit``. Warns when the certified gap is above ``settings.tol`` at the end."""
    fitting = Fitting(plan, engine, settings)
    warn_if_dropped(fitting)
    result = fitting.fit(settings.alpha, start, callback, resume)
    warn_if_open(result, settings)
    return result


def warn_if_open(result: FitResult, settings: FitSettings) -> None:
    """Warn with the gap reached when a fit ended without reaching `tol`; other systems have reasons of their own."""
    if not system_of(settings).optimises or result.stop_reason in ("tol", "gradient", "callback"):
        return
    reached = f"at a certified relative gap of {result.gap:.2g}, above tol={settings.tol:g},"
    if result.stop_reason == "uncertified":
        reached = "without a certificate, as its objective and the lower bound of it contradict each other in float64,"
    elif math.isnan(result.gap):
        reached = f"before its gradient was small enough for tol={settings.tol:g},"
    # Its second base is in scikit-learn, which a fit does not need.
    from dboost.errors import ConvergenceWarning

    warn_user(f"the fit stopped ({result.stop_reason}) {reached} after {result.n_iter} rounds", ConvergenceWarning)


def warn_if_uneven(fitting: Fitting) -> None:
    """Warn where a penalty is led by the units of the columns: one varies much more than most."""
    settings, names = fitting.settings, fitting.plan.feature_names
    penalty = get_penalty(settings.penalty)
    plain = settings.system is None and settings.hypotheses is None and not penalty.weightless
    if settings.standardize or not plain:
        return
    deviation = np.delete(fitting.problem.statistics.deviation(), fitting.columns.offset)
    varying = deviation[deviation > 0.0]
    if varying.size > 1 and varying.max() > UNEVEN * np.median(varying):
        largest = listed(np.flatnonzero(fitting.problem.statistics.deviation() == varying.max())[:1], names)
        warn_user(
            f"column {largest} varies {varying.max() / np.median(varying):.0e} times as much as the median column, so "
            "that the penalty all but leaves it out and holds the others; use standardize=True, or scale the columns",
            DboostWarning,
        )


def warn_if_empty(result: FitResult) -> None:
    """Warn of a model without features, which predicts the same of every row."""
    if len(result.active):
        return
    if not result.alpha_max > 0.0:
        why, remedy = "none helps", "check the features and the labels"
    elif result.alpha >= result.alpha_max:
        why = f"alpha={result.alpha:.4g} is at or above alpha_max={result.alpha_max:.4g}"
        remedy = "give a smaller alpha"
    else:
        why = f"the fit ended by {result.stop_reason!r} before the first feature"
        limit = result.stop_reason.startswith("max_")
        remedy = "raise this limit" if limit else "give a smaller tol, or see why it ended"
    warn_user(f"no feature is used, and every prediction is the same: {why}; {remedy}", DboostWarning)


def warn_if_dropped(fitting: Fitting) -> None:
    """Name the columns that a standardised fit leaves out because they are constant, in a warning."""
    columns = fitting.columns.constant
    if columns.size:
        warn_user(
            f"standardize=True leaves out {columns.size} constant column(s), which have no deviation to be scaled by: "
            f"{listed(columns, fitting.plan.feature_names)}",
            DboostWarning,
        )


__all__ = ["FitResult", "FitSettings", "FitState", "Fitting", "fit"]
