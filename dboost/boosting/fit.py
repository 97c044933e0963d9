"""Fit one model to planned data on an engine.

Covers: alpha_max, warm starts, the result with its certificate. Does not cover: which settings have a meaning
(``checks``), paths (``path``), inputs and labels (``dboost.data``), scikit-learn's conventions (``dboost.estimators``).
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.boosting.checks import FORWARD, UPDATES, check_settings
from dboost.boosting.forward.rounds import Forward
from dboost.boosting.starts.from_sample import sampled_start
from dboost.boosting.systems import Rounds
from dboost.boosting.totally_corrective.loop import Loop
from dboost.errors import DataError, DboostWarning
from dboost.losses import get_loss
from dboost.notices import warn_user
from dboost.passes import Point
from dboost.passes.centring import Centres
from dboost.penalties import get_penalty
from dboost.problem import summation
from dboost.problem.centred import CentredEngine
from dboost.problem.extreme_columns import refuse_extreme_columns
from dboost.problem.induced import InducedProblem
from dboost.problem.iterate import Score
from dboost.problem.memory import Memory
from dboost.problem.problem import Problem
from dboost.problem.state import FitResult, FitSettings, FitState
from dboost.problem.statistics import constants, listed

AUTO_ALPHA = 0.05

Array = NDArray[np.float64]
Rows = NDArray[np.int64]
Callback = Callable[[dict[str, Any], FitState], "bool | None"]
# The strength of a fit, in the sum form, and the last known ||G_j||_* of every column, float64 array of shape (n,).
Remembered = tuple[float, Array]


class Fitting:
    """Data, engine and loss of a fit: the part that all strengths of a path share.

    Parameters
    ----------
    plan : Plan
        Planned data (``dboost.data.plan``).
    engine : Engine
        Where the passes run.
    settings : FitSettings
        What is asked; `alpha` may change between calls of `fit`.

    Attributes
    ----------
    left_out : int64 array
        Stored columns that are constant, which a standardised fit cannot use.
    """

    def __init__(self, plan: Any, engine: Any, settings: FitSettings) -> None:
        check_settings(settings)
        self.plan = plan
        self.settings = settings
        run_id = uuid.uuid4().hex[:12]
        engine.set_plan(plan.items, plan.rows, run_id)
        self.left_out: Rows = np.zeros(0, np.int64)
        self.problem = self._problem(engine, run_id)
        self._null: Score | None = None
        self._last: Remembered | None = None
        self._charged = 0
        self._refuse_absent_classes()

    def _problem(self, engine: Any, run_id: str) -> Problem:
        plan, settings = self.plan, self.settings
        arguments = (
            settings.loss,
            get_penalty(settings.penalty),
            plan.n_features,
            plan.n_outputs,
            settings.fit_intercept,
        )
        more = (self._exponential(), settings.standardize)
        if settings.hypotheses is not None:
            certifies = settings.system is None
            return InducedProblem(
                engine,
                *arguments,
                run_id,
                *more,
                family=settings.hypotheses,
                n_rows=plan.n_rows,
                seed=settings.random_state,
                certifies=certifies,
                centres=self._centres_columns(),
            )
        # sums of squares may overflow here: the columns they belong to are refused by name next
        with np.errstate(over="ignore", invalid="ignore"):
            problem = Problem(engine, *arguments, run_id, *more)
        refuse_extreme_columns(problem.statistics.peak, plan.feature_names)
        if settings.standardize:
            self.left_out = constants(problem.statistics)
        far = problem.statistics.far
        if far is None or not self._centres_columns():
            return problem
        columns, values = far.centres(plan.n_rows, problem.far)
        if not columns.size:
            return problem
        less = CentredEngine(engine, Centres(columns, values, run_id))
        # points of the columns as given and of these are other points
        mine = Problem(less, *arguments, f"{run_id}-centred", *more, centres=less.centres)
        mine.passes += problem.passes
        return mine

    def _centres_columns(self) -> bool:
        """Whether a column may be solved less a number: the optimum that a fit ends at must be the same model.

        So it is where the intercept is free. Systems, and rounds that move a row once and never again, are more than
        their objective: what they do depends on the columns themselves.
        """
        settings = self.settings
        return settings.fit_intercept and settings.system is None and settings.update in UPDATES

    def _exponential(self) -> bool:
        """Whether scoring sums mu+ and mu-; without a largest curvature the exponential bound is the only one."""
        settings = self.settings
        if settings.system is not None:
            return settings.system.exponential
        return settings.update in ("adaboost", FORWARD) or not math.isfinite(get_loss(settings.loss).kappa)

    @property
    def pool(self) -> Any:
        """The candidates of induced hypotheses; None where the rows of W are stored columns."""
        return self.problem.pool if isinstance(self.problem, InducedProblem) else None

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

    def null(self) -> Score:
        """Scoring pass at the null model, done once: its norms give alpha_max and bound the repair of dual points.

        They are those of all columns, whose numbers are not kept beside them.
        """
        if self._null is None:
            found = self.problem.score(self.problem.null(), None, 1.0, 0)
            self._null = replace(found, candidates=found.candidates[:0].copy())
        return self._null

    def alpha_max(self) -> float:
        """Smallest alpha at which every weight is zero: max_j ||G_j||_* / sum_i s_i at the null model.

        nan for a penalty under which no weight ever is, and for hypotheses that nobody can look at beforehand.
        """
        if not self.problem.penalty.threshold or getattr(self.settings.hypotheses, "learns", False):
            return math.nan
        null = self.null()
        size = null.size
        if size is None:
            size = self.problem.penalty.dual_size(null.norms, self.problem.lam_weight)
        return size / self.problem.statistics.weight

    def _auto(self, largest: float) -> float:
        """The strength "auto": a share of the largest, or more where that is but the rounding of sums.

        Columns that are constant beside a free intercept have sums of zero but for it. There is room for what is left
        of the intercept's own sum, which a dual point pays for in the same way.
        """
        problem = self.problem
        off = summation.of_norms(problem, self.null().iterate, np.arange(len(problem.lam_weight)))
        least = problem.penalty.dual_size(off, problem.lam_weight) / problem.statistics.weight
        return max(AUTO_ALPHA * largest, 4.0 * least, float(np.finfo(float).tiny))

    def fit(
        self, alpha: float | str, start: FitResult | None = None, callback: Callback | None = None, resume: Any = None
    ) -> FitResult:
        """Fit at one strength.

        Parameters
        ----------
        alpha : float or "auto"
            Strength on the mean loss.
        start : FitResult, optional
            Warm start.
        callback : callable, optional
            Called with each round's record and the state after it; a true result stops the fit.
        resume : FitState, optional
            Goes on from a state of the same fit, with the same bits as if it had never stopped.
        """
        problem, settings = self.problem, self.settings
        largest = self.alpha_max()
        null = self.null()
        if problem.penalty.name == "none":
            strength = 0.0
        else:
            # without a largest strength: one for the sum of the losses, scikit-learn's C = 1
            given = math.ldexp(problem.statistics.weight, -self.plan.weight_exponent)
            auto = self._auto(largest) if problem.penalty.threshold else 1.0 / given
            strength = auto if alpha == "auto" else float(alpha)
        lam = strength * problem.statistics.weight
        lam_max = largest * problem.statistics.weight
        loop: Rounds
        if settings.system is not None:
            loop = settings.system.rounds(problem, replace(settings, alpha=strength), null, self.plan.n_rows)
        elif settings.update == FORWARD:
            loop = Forward(problem, settings, null)
        else:
            loop = Loop(problem, replace(settings, alpha=strength), lam, null, self.plan.n_rows)
        if resume is not None and isinstance(problem, InducedProblem):
            problem.register(resume.keys)
        # the first fit is charged with the statistics and the null model, whoever asked for them first
        state = resume if resume is not None else self._start(start, lam, lam_max, problem.passes - self._charged)
        # what was done before the rounds is not part of the first
        problem.seconds_of_passes()
        done, reason = loop.run(state, callback_or_go_on(callback))
        self._last = (lam, loop.norms)
        self._charged = problem.passes
        weight = problem.statistics.weight
        if not loop.certified:
            done = replace(done, gap=math.nan)
        return FitResult(
            active=done.active,
            W=done.W,
            intercept=done.intercept - problem.offset(done.active, done.W),
            objective=done.objective / weight,
            lower_bound=done.lower_bound / weight if loop.certified else math.nan,
            gap=done.gap,
            stop_reason=reason,
            n_iter=done.round,
            passes=done.passes,
            alpha=strength,
            alpha_max=largest,
            history=[dict(r) for r in done.history],
            trace=np.array(loop.trace).reshape(-1, 3),
            state=done,
            pool=self.pool,
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
        held = self.problem.columns_of(result.active)
        return Point(self.problem.loss, replace(held, centres=()), result.W, result.intercept, held.token)

    def as_given(self, state: FitState) -> FitState:
        """A state of this fit with the intercept of the columns as they were given, which are those of a model."""
        return replace(state, intercept=state.intercept - self.problem.offset(state.active, state.W))

    def _start(self, start: FitResult | None, lam: float, lam_max: float, passes: int) -> FitState:
        searched = self.problem.searched
        penalty = self.problem.penalty
        sparse = penalty.threshold and penalty.separable
        # zero is where a smooth step never gets to: a penalty that puts all rows there at once starts from it
        if start is not None and (sparse or not lam >= lam_max):
            active, W = start.active, start.W
            if isinstance(self.problem, InducedProblem):
                active = self.problem.register([start.state.keys[i] for i in start.active.tolist()])
                order = np.argsort(active)
                active, W = active[order], W[order]
            candidates = self._strong(start, lam)
            # along a path the curvature changes little from strength to strength
            anchor = start.state.memory.anchor if self._last is not None else None
            return FitState(
                active,
                W,
                start.intercept + self.problem.offset(active, W),
                lam,
                candidates=candidates,
                provisional=candidates is not None or searched,
                memory=Memory(anchor=anchor),
                passes=passes,
            )
        null = self.problem.null()
        before = self.problem.passes
        begun = sampled_start(self.problem, self.settings, lam, lam_max, self.plan.n_rows, self.plan.nbytes_estimate)
        if begun is not None:
            return FitState(*begun, passes=passes + self.problem.passes - before)
        approach = self.settings.update == "newton" and self.settings.system is None and sparse
        first = max(lam, lam_max) if approach else lam
        return FitState(null.active, null.W, null.intercept, first, provisional=searched, passes=passes)

    def _strong(self, start: FitResult, lam: float) -> Rows | None:
        """Columns that the sequential strong rule keeps: ||G_j(lam_old)||_* >= 2 lam - lam_old, and the support.

        The rule may err; a fit scores every column again before it stops (docs/math.md 8 (ii)).
        """
        sparse = self.problem.penalty.threshold and self.problem.penalty.separable
        if self._last is None or not lam < self._last[0] or not self.problem.screens or not sparse:
            return None
        previous, norms = self._last
        keep = norms >= (2.0 * lam - previous) * self.problem.lam_weight
        keep[start.active] = True
        return None if keep.all() else np.flatnonzero(keep)


def callback_or_go_on(callback: Callback | None) -> Callable[[dict[str, Any], FitState], bool]:
    """The callback as a plain predicate."""
    if callback is None:
        return lambda record, state: False
    return lambda record, state: bool(callback(record, state))


def fit(
    plan: Any,
    engine: Any,
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
    own_reasons = settings.update == FORWARD or settings.system is not None
    if own_reasons or result.stop_reason in ("tol", "gradient", "callback"):
        return
    reached = f"at a certified relative gap of {result.gap:.2g}, above tol={settings.tol:g},"
    if result.stop_reason == "uncertified":
        reached = "without a certificate, as its objective and the lower bound of it contradict each other in float64,"
    elif math.isnan(result.gap):
        reached = f"before its gradient was small enough for tol={settings.tol:g},"
    # Its second base is in scikit-learn, which a fit does not need.
    from dboost.errors import ConvergenceWarning

    warn_user(f"the fit stopped ({result.stop_reason}) {reached} after {result.n_iter} rounds", ConvergenceWarning)


def warn_if_dropped(fitting: Fitting) -> None:
    """Name the columns that a standardised fit leaves out because they are constant, in a warning."""
    columns = fitting.left_out
    if columns.size:
        warn_user(
            f"standardize=True leaves out {columns.size} constant column(s), which have no deviation to be scaled by: "
            f"{listed(columns, fitting.plan.feature_names)}",
            DboostWarning,
        )


__all__ = ["FitResult", "FitSettings", "FitState", "Fitting", "fit"]
