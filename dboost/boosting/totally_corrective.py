"""The totally corrective loop of Duchi & Singer (2009; docs/math.md 7): score, certify, add, solve, prune.

    repeat
      score every column: L, ||G_j||_*, and what moving each row would gain         (Loop.score, Problem.score)
      certify: the duality gap                                                      (Loop.certify, dual_bound)
      if the certified gap is at most tol: stop
      A = support + the best rows that violate optimality                           (Entering.widened)
      solve on A until its restricted gap is a fiftieth of the full one             (InnerSolver.solve)
      A = {j : W_j != 0}                                  (pruned: exact zeros only)

Each part is the papers' own, with what makes it faster around it or beside it (``accelerators``).
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.boosting.systems import Callback, Rounds, System, recorded, refuse_sweeps, repeated
from dboost.certificate.duality_gap import (
    LOOSE,
    dual_bound,
    expected_gap,
    price_of_residuals,
    relative_gap,
    size_of_score,
)
from dboost.losses import get_loss
from dboost.penalties import Penalty
from dboost.penalties.bound import BoundGroups
from dboost.problem.free_rows import solved as solved_free
from dboost.problem.free_rows import without_sums
from dboost.problem.iterate import Iterate, Rows, Score
from dboost.problem.problem import Problem
from dboost.problem.state import FitSettings, FitState
from dboost.solvers.inner import PROMISED, Goal, InnerResult, InnerSolver, Trace
from dboost.solvers.row_updates import one_row_promises
from dboost.solvers.step import Step, pruned

# Rows a round may add; more of them where they have few entries: one that has to wait costs another scoring pass.
FIRST_ROWS = 200
_MOST_FIRST_ROWS = 400
_FIRST_ENTRIES = 15_000
# Hypotheses a round may induce at first; Duchi & Singer (2009, section 6) take 30 in every round.
INDUCED_ROWS = 30
# Hypotheses that may enter together under a penalty that leaves none of them at zero; of more the best enter first, and
# as many as the model holds in each round.
MOST_AT_ONCE = 10_000_000


class Entering:
    """How many rows of one fit may enter; `sparse` where they vanish one by one, so that there are rows to keep out."""

    def __init__(self, problem: Problem, settings: FitSettings, sparse: bool) -> None:
        self.problem = problem
        self.settings = settings
        self.sparse = sparse

    def full(self, iterate: Iterate) -> bool:
        """Whether the model holds as many rows as it may."""
        budget = self.settings.max_features
        return budget is not None and iterate.active.shape[0] >= budget

    def most(self, n_active: int) -> int:
        """How many new rows a round may add."""
        asked = self.settings.features_per_round
        if asked is None:
            free = self.settings.update == "newton" and self.sparse
            more = min(_FIRST_ENTRIES // self.problem.k, _MOST_FIRST_ROWS) if self.problem.k > 1 else 0
            asked = max(FIRST_ROWS, more, n_active) if free else self.problem.n
            if not self.problem.screens and (self.problem.penalty.separable or self.problem.n > MOST_AT_ONCE):
                asked = max(INDUCED_ROWS, n_active)
        if self.settings.max_features is not None:
            asked = min(asked, max(0, self.settings.max_features - n_active))
        return asked

    def widened(self, iterate: Iterate, score: Score, lam: float) -> tuple[Iterate, int, bool]:
        """The model with the best violating rows added at zero; how many, and whether others wait for a next round.

        Which violate optimality, at which strength, is in the score: the final one, `lam`, asks for nothing more.
        """
        held = iterate.active.shape[0]
        fresh = self.most(held)
        new, G = score.best[:fresh], score.best_G[:fresh]
        cut = self.settings.features_per_round is None and len(new) == fresh < self.problem.n_candidates - held
        return iterate.widened(new, G), int(new.shape[0]), cut


class EnteringGroups:
    """The groups of one fit that may enter, in place of ``Entering``."""

    def __init__(self, problem: Problem) -> None:
        penalty = problem.objective.bound()
        assert isinstance(penalty, BoundGroups)
        self.problem = problem
        self.penalty = penalty
        # the largest sum s x**2 of a group on the scale of the penalty: what a step of the group is divided by
        self._length = np.zeros(penalty.count)
        # a row without penalty is a group of its own, which every model holds
        weights = np.where(penalty.weight > 0.0, penalty.weight, 1.0)
        np.maximum.at(self._length, penalty.place, problem.statistics.square / weights**2)

    def full(self, iterate: Iterate) -> bool:
        """Never: there is no limit of the rows of groups."""
        return False

    def most(self, n_active: int) -> int:
        """No row enters by itself."""
        return 0

    def widened(self, iterate: Iterate, score: Score, lam: float) -> tuple[Iterate, int, bool]:
        """The model with all columns of its groups, and of the best that violate optimality at a strength.

        It takes a pass for their sums where the model does not hold them. Also how many rows were added for groups that
        it did not hold, and whether other groups wait.
        """
        penalty, usable = self.penalty, np.isfinite(self.penalty.weight)
        held = np.zeros(penalty.count, np.bool_)
        held[penalty.place[iterate.active]] = True
        new, waiting = self._best(score, held, lam, int(iterate.active.shape[0]))
        fresh = int(np.count_nonzero(usable & np.isin(penalty.place, new)))
        held[new] = True
        return self._with_rows(iterate, np.flatnonzero(usable & held[penalty.place])), fresh, waiting

    def _best(self, score: Score, held: np.ndarray, lam: float, n_active: int) -> tuple[Rows, bool]:
        """The groups that enter, and whether others wait: the first by what a step of theirs gains, at least one."""
        penalty = self.penalty
        excess = penalty.factors * (penalty.dual_norms(score.norms) - lam)
        some = np.flatnonzero((excess > 0.0) & ~held & (self._length > 0.0))
        gain = excess[some] ** 2 / self._length[some]
        some = some[np.lexsort((some, -gain))]
        rows = np.cumsum(np.bincount(penalty.place, minlength=penalty.count)[some])
        taken = max(1, int(np.searchsorted(rows, max(FIRST_ROWS, n_active), side="right")))
        return some[:taken], some.size > taken

    def _with_rows(self, iterate: Iterate, rows: Rows) -> Iterate:
        """The model with these rows, which hold all of its own; those that it lacks at zero."""
        if np.array_equal(rows, iterate.active):
            return iterate
        W = np.zeros((rows.shape[0], self.problem.k))
        W[np.searchsorted(rows, iterate.active)] = iterate.W
        return self.problem.evaluate(rows, W, iterate.intercept)


# Rounding moves the model without improving its certificate: rounds looked at, and the share of the objective that is
# less than rounding.
_ROUNDED_ROUNDS = 6
_ROUNDED_GAIN = 1e-13
# A matrix of second derivatives that float64 cannot solve leaves steps that lower the objective by as little in every
# round, without end: rounds looked at, which are more than a fit takes to change to another kind of step, and rounds
# that it would take to close the gap at their pace. No limit of rounds is near that number.
_SLOW_ROUNDS = 12
_WITHOUT_END = 1e6
# A certificate that got better by this factor is on its way.
_BETTER = 0.9


def stalled(history: Sequence[Mapping[str, Any]], least: float) -> str:
    """Why a fit whose last rounds led nowhere ends; empty to go on. `least` is the resolution of the objective."""
    recent = _last(history, _ROUNDED_ROUNDS)
    if recent:
        gain = _ROUNDED_GAIN * max(abs(recent[-1]["objective"]), least)
        if _lowered(recent) <= gain and not _certified_better(recent):
            return "precision"
    recent = _last(history, _SLOW_ROUNDS)
    if recent and all(math.isfinite(record["gap"]) for record in recent) and not _certified_better(recent):
        left = recent[-1]["gap"] * max(abs(recent[-1]["objective"]), least)
        if _lowered(recent) * _WITHOUT_END < left * (len(recent) - 1):
            return "stalled"
    return ""


def _last(history: Sequence[Mapping[str, Any]], count: int) -> list[Mapping[str, Any]]:
    """The last `count` records, if there are as many."""
    return list(history[-count:]) if len(history) >= count else []


def _lowered(recent: Sequence[Mapping[str, Any]]) -> float:
    return float(recent[0]["objective"] - recent[-1]["objective"])


def _certified_better(recent: Sequence[Mapping[str, Any]]) -> bool:
    gaps = [record["gap"] for record in recent]
    return bool(min(gaps) < _BETTER * gaps[0])


Array = NDArray[np.float64]

# The share of the gap that the rows held may keep in a round, and while other rows wait to enter: there will then be
# another round, so that solving precisely now is wasted.
_INNER_SHARE = 0.02
_INNER_SHARE_WAITED = 0.3
# Values of the rows held, each for all outputs, up to which a round costs next to nothing.
_LIGHT_ROUND = 1_000_000
# Rows so close to the threshold enter too: one that passes it while the others are solved costs another round.
_MARGIN = 0.03
# Rows without penalty are solved until what is left of their sums costs the certificate at most this share of `tol`.
_FREE_SHARE = 0.1
_FREE_ROUNDING = 1e-14

# The loss over that of the null model from which a model is no start, and how far a fit then goes back towards it.
_LOST = 1e3
_TOWARD_NULL = np.array([0.5, 0.75, 0.9, 0.97, 0.99, 1.0])


@dataclass(frozen=True)
class TotallyCorrective(System):
    """The system of Duchi & Singer 2009: all rows held are solved again in every round, to a certified optimum."""

    exponential: bool = False  # Whether rows are scored by the exponential bound rather than the quadratic one.

    @classmethod
    def of(cls, settings: FitSettings) -> TotallyCorrective:
        """The system of an update; without a largest curvature the exponential bound is the only one of rows.

        Groups of columns are ranked by the curvature itself.
        """
        rows = settings.column_groups is None or not settings.column_groups.ties
        return cls(settings.update == "adaboost" or (rows and not math.isfinite(get_loss(settings.loss).kappa)))

    name = "totally_corrective"
    optimises = True  # It ends at the optimum of its objective.

    def check(self, settings: FitSettings, penalty: Penalty) -> None:
        """Refuse sweeps of Newton steps (UsageError)."""
        if settings.update == "newton":
            refuse_sweeps(settings, "update 'newton'")

    def rounds(self, problem: Problem, settings: FitSettings, null: Score, n_rows: int) -> Loop:
        """The rounds of a fit."""
        return Loop(problem, settings, float(settings.alpha) * problem.statistics.weight, null, n_rows)


class Loop(Rounds):
    """Rounds of one fit at one final strength `lam`, in the sum form; `null` is the scoring pass at the null model."""

    def __init__(self, problem: Problem, settings: FitSettings, lam: float, null: Score, n_rows: int) -> None:
        super().__init__(problem, settings, null, None, n_rows, lam)
        self.weight = problem.statistics.weight
        self.certified = problem.penalty.certified
        # rows vanish one by one: only then are there rows to keep out
        sparse = problem.objective.sparse
        grouped = problem.objective.columns.group is not None
        self.entering = EnteringGroups(problem) if grouped else Entering(problem, settings, sparse)
        # not a method of this object: a circle would keep the columns' memory after the fit
        self._mark = Trace(problem, lam)
        self.trace = self._mark.points
        self.inner = InnerSolver(problem, settings, self.accelerators, self._mark)
        self._null = null

    def run(self, state: FitState, callback: Callback) -> tuple[FitState, str]:
        """The state after the last round, and why it was; `callback` sees records and states, and may stop the fit."""
        reason = self._spent(state)
        # a fit that is resumed may have ended before
        if state.history and state.history[-1]["step"] == "certificate" and state.gap <= self.settings.tol:
            reason = "tol"
        state, reason = repeated(self.advance, state, callback, self._spent, reason)
        if reason in ("tol", "max_opened"):
            return state, reason
        # the certificate so far is that of the model the round began with, and perhaps not of all columns
        state, score = self.score(over_all_columns(state) if state.provisional else state)
        state, _ = self.certify(state, score, last=True)
        if math.isnan(state.gap):
            return state, reason if reason == "callback" else "uncertified"
        return state, "tol" if state.gap <= self.settings.tol else reason

    # ---- one round -------------------------------------------------------------------------------------------------

    def advance(self, state: FitState) -> tuple[FitState, str]:
        """One round: state in, state out, and the reason to stop if there is one."""
        begun = time.perf_counter(), self.problem.passes
        state, score = self.score(state)  # sums of every column, or bounds of them
        state, likely = self.certify(state, score)  # the duality gap
        if judged := state.provisional and state.gap <= self.settings.tol:
            # columns were left out, and one of them may count: now with all
            state, score = self.score(over_all_columns(state))
            state, likely = self.certify(state, score, last=True)
        if reason := self._settled(state, score, judged):
            state = replace(state, gap=math.nan) if reason == "uncertified" else state
            return self._recorded(state, score.iterate, begun, score.opened), reason
        iterate, opened = score.iterate, score.opened
        widened, added, others_wait = self.entering.widened(iterate, score, self.lam)  # the best rows come in
        del score  # as much memory as the examples of a step
        limits = self.limits.counted_from(state.passes - begun[1])
        goal = self._goal(widened, state, likely, others_wait)
        solved = self.inner.solve(widened, goal, state, limits)  # all rows held are solved again
        after = pruned(solved.iterate, self.problem.objective.columns.free)  # rows that became exactly zero go out
        state = replace(with_model(state, after), memory=solved.memory, cut=bool(limits.reason(self.problem.passes)))
        dropped = widened.active.shape[0] - after.active.shape[0]
        state = self._recorded(state, after, begun, opened, added, dropped, solved.step)
        return self._next(state, solved, judged), self._reason(state, solved.step, iterate, widened, after)

    # ---- its parts -------------------------------------------------------------------------------------------------

    def score(self, state: FitState) -> tuple[FitState, Score]:
        """The standing of every candidate at the state's model, which goes back towards none if it is far too bad."""
        score = self._score(state)
        if self._lost(score.iterate):
            state = with_model(state, self._toward_null(score.iterate))
            score = self._score(state)
        self._mark(score.iterate)
        if self.problem.screens:
            self.norms = score.over(self.norms)
        return state, score

    def _score(self, state: FitState) -> Score:
        """One pass over all columns, or those that the strong rule left; rows without penalty are solved before it."""
        problem, take = self.problem, self.entering.most(state.active.shape[0])
        iterate, known = Iterate.unsummed(state.active, state.W, state.intercept), None
        if problem.objective.columns.free.size and not is_guess(problem, state):
            # a certificate is worth nothing where their sums are not zero but for a short step
            small = _FREE_SHARE * self.settings.tol / max(1.0, price_of_residuals(problem, self.lam))
            iterate, known = solved_free(problem, iterate, max(small, _FREE_ROUNDING))
        lam = self.lam * (1.0 - _MARGIN) if self.accelerators.take("near_rows") else self.lam
        before = problem.passes
        score = problem.score(iterate, state.candidates, lam, take, not state.provisional)
        if problem.passes == before:
            self.accelerators.take("null_sums")
        return score if known is None else replace(score, projection=known)

    def certify(self, state: FitState, score: Score, last: bool = False) -> tuple[FitState, float]:
        """The state with the better of all lower bounds so far (docs/math.md 6), from the sums of a scoring pass.

        Also the gap by which the next steps are judged: where no pass was spent on the value of the dual point, what
        that is likely to leave. `last`: whether the fit ends here.
        """
        problem, lam, iterate = self.problem, self.lam, score.iterate
        value = problem.objective(iterate, lam)
        # what is scored may be solved a little further than the state: its intercept, and its rows without penalty
        state = replace(with_model(state, iterate), objective=value)
        if not self.certified:
            return replace(state, gap=np.inf), np.inf
        if is_guess(problem, state):
            # not a certificate: it says how far to solve, and is looked at again over all columns
            near = without_sums(problem, iterate) if problem.objective.columns.free.size else iterate
            rest = expected_gap(problem, near, size_of_score(problem, score), lam)
            gap = relative_gap(problem, value, value - max(rest, 0.0))
            return replace(state, gap=gap), gap
        before = problem.passes
        exact = last or not self.accelerators.on("chord")
        bound = dual_bound(problem, score, self._null.norms, lam, self.settings.tol, exact)
        lower = float(np.maximum(state.lower_bound, bound))
        gap = relative_gap(problem, value, lower)
        if math.isnan(gap):
            # neither number is trusted any more
            return replace(state, gap=gap, lower_bound=-math.inf), gap
        likely = gap
        if problem.passes == before and self.accelerators.take("chord"):
            rest = expected_gap(problem, iterate, size_of_score(problem, score), lam)
            likely = min(gap, max(gap / LOOSE, relative_gap(problem, value, value - max(rest, 0.0))))
        return replace(state, gap=gap, lower_bound=lower), likely

    def _lost(self, iterate: Iterate) -> bool:
        """Whether a model is so much worse than none that steps from it would not find back.

        A loss that grows like e^f has a curvature as large as itself there, so that a Newton step lowers f by about
        one; or it is too large for a number.
        """
        grows = not math.isfinite(self.problem.loss.kappa)
        return grows and not iterate.loss <= _LOST * self._null.iterate.loss

    def _toward_null(self, iterate: Iterate) -> Iterate:
        """The best of some models between one and the null model, whose loss is a number: the objective is convex."""
        problem, null = self.problem, self.problem.null()
        D, d = -iterate.W, null.intercept - iterate.intercept
        # the rows of the null model are those without penalty, which every model holds
        D[np.isin(iterate.active, null.active)] += null.W
        values = problem.losses_along(iterate, D, d, _TOWARD_NULL)
        bound = problem.objective.bound(iterate.active, self.lam)
        values += [bound.total(iterate.W + t * D) for t in _TOWARD_NULL]
        t = float(_TOWARD_NULL[int(np.argmin(values))])
        return problem.evaluate(iterate.active, iterate.W + t * D, iterate.intercept + t * d)

    def _settled(self, state: FitState, score: Score, judged: bool) -> str:
        """Why no round is to follow this certificate; empty to go on."""
        if not math.isfinite(state.objective):
            # nothing can be said of such a model, and no step from it judged
            return "uncertified"
        if state.gap <= self.settings.tol:
            return "tol"
        # the model is optimal among all that was seen, and the rest of the class is out of reach
        return "max_opened" if judged and not score.complete and not len(score.best) else ""

    def _goal(self, iterate: Iterate, state: FitState, gap: float, others_wait: bool) -> Goal:
        """How far the rows of `iterate` are solved; `gap` is that of the model, or what it is likely to be."""
        gap = gap if np.isfinite(gap) else float(self.certified)
        share = _INNER_SHARE_WAITED if others_wait else _INNER_SHARE
        # where no row is about to enter the restricted problem is all there is to solve: every column is held, or no
        # row that is zero violates optimality; or, of a penalty that leaves no row out, those that are not held are of
        # columns that tell nothing
        objective = self.problem.objective
        leaves_out = objective.sparse or objective.columns.group is not None
        newton = self.settings.update == "newton" and self.settings.tol > 0.0
        settled = self._every_column(iterate, state) or not self._any_leaves_zero(iterate)
        whole = newton and self.problem.screens and settled
        all_held = (whole or not (leaves_out or self.problem.searched)) and not others_wait
        alone = all_held or self.entering.full(iterate)
        guess = is_guess(self.problem, state)
        value = max(objective(iterate, self.lam), objective.resolution)
        goal = Goal.of(self.lam, value, gap, 0.0 if guess or alone else share, self.settings.tol, self.certified)
        if self.certified and not guess:
            rest = self.inner.restricted_gap(iterate, self.lam, Step("", 0.0, 0.0))
            goal = goal.below(rest, share)
        return goal

    def _every_column(self, iterate: Iterate, state: FitState) -> bool:
        """Whether every column is held, in a first round too where the data are large enough for one to cost something.

        Of less, whoever watches the rounds, or ends them, sees more than one.
        """
        problem = self.problem
        numbers = problem.statistics.values(iterate.active, problem.n_rows) * problem.k
        held = iterate if numbers > _LIGHT_ROUND else state
        return bool(held.active.shape[0] >= np.count_nonzero(np.isfinite(problem.objective.columns.weight)))

    def _any_leaves_zero(self, iterate: Iterate) -> bool:
        """Whether a row that is zero violates optimality, so that the support is about to change."""
        zero = iterate.rows(np.flatnonzero(~np.any(iterate.W != 0.0, axis=1)))
        return bool(np.any(self.problem.objective.bound(zero.active, self.lam).leaves_zero(zero.G)))

    def _next(self, state: FitState, solved: InnerResult, judged: bool) -> FitState:
        """What the next round looks at."""
        if state.provisional and solved.finished and not self.problem.searched:
            # the next certificate is likely to be the last: it is taken over all columns at once
            state = over_all_columns(state)
        # a class that is searched is searched again only when the rest of the fit is done
        return replace(state, provisional=state.provisional or (judged and self.problem.searched))

    # ---- when to stop ----------------------------------------------------------------------------------------------

    def _reason(self, state: FitState, step: Step, before: Iterate, widened: Iterate, after: Iterate) -> str:
        """Why to stop after this round, other than the certified gap; empty to go on."""
        value = max(self.problem.objective(after, self.lam), self.problem.objective.resolution)
        if not self.certified and self._promised(step, after) <= PROMISED * self.settings.tol * value:
            # the promise speaks for the rows held: it counts once no other row was left to add
            fresh = widened.active.shape[0] - before.active.shape[0]
            if fresh < self.entering.most(before.active.shape[0]) or widened.active.shape[0] == self.problem.n:
                return "gradient"
        if (
            self.entering.full(widened)
            and self.inner.restricted_gap(after, self.lam, step) <= self.settings.tol * value
        ):
            return "max_features"
        stuck = step.length == 0.0 and np.array_equal(before.active, after.active)
        if stuck and np.array_equal(before.W, after.W) and np.array_equal(before.intercept, after.intercept):
            return "precision"
        return stalled(state.history, self.problem.objective.resolution / self.weight)

    def _promised(self, step: Step, iterate: Iterate) -> float:
        """What the next step promises; without a penalty, as CG may end early, at least what one row alone gains."""
        problem = self.problem
        if not problem.penalty.weightless or not math.isfinite(problem.loss.kappa):
            return step.promised
        return max(step.promised, float(np.max(one_row_promises(problem, iterate, self.lam), initial=0.0)))

    # ---- records ---------------------------------------------------------------------------------------------------

    def _recorded(
        self,
        state: FitState,
        iterate: Iterate,
        begun: tuple[float, int],
        opened: int,
        added: int = 0,
        dropped: int = 0,
        step: Step | None = None,
    ) -> FitState:
        """The state with the record of a round, or of a certificate; `begun` are seconds and passes at its start."""
        candidates = state.candidates
        return recorded(
            self.problem,
            state,
            begun,
            # while the strong rule holds columns back, the bound is not one of the whole problem
            certified=not state.provisional,
            alpha=self.lam / self.weight,
            features_in=added,
            features_out=dropped,
            held=iterate,
            # how many columns or hypotheses may still enter; infinitely many where the class has no end
            candidates=self.problem.n_candidates if candidates is None else int(candidates.shape[0]),
            step=step.kind if step is not None else "certificate",
            length=step.length if step is not None else 0.0,
            subtrees=opened,
        )


def is_guess(problem: Problem, state: FitState) -> bool:
    """Whether a model is the guess that a path starts a strength from: it will move before it is judged."""
    return state.provisional and state.round == 0 and problem.screens


def with_model(state: FitState, iterate: Iterate) -> FitState:
    """The state with another model."""
    return replace(state, active=iterate.active, W=iterate.W, intercept=iterate.intercept)


def over_all_columns(state: FitState) -> FitState:
    """The state with nothing ruled out, and no bound but what is found from here on."""
    return replace(state, candidates=None, provisional=False, lower_bound=-np.inf)
