"""The totally corrective loop (docs/math.md 7): score all rows, add the best, re-solve, prune, certify, stop.

    repeat
      full scoring pass -> L, ||G_j||_* (bounds for those that cannot have moved far), scores, certificate
      if the certified gap is at most tol: stop
      A = support + the best rows that violate optimality
      inner solve on A until its restricted gap is a fiftieth of the full one, or within tol
      A = {j : W_j != 0}                                     (back-pruning, exact zeros only)

The Newton update approaches the final strength through others (``strengths``), one step at each. Where it pays, a
sample goes ahead (``from_sample``).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.boosting.records import recorded
from dboost.boosting.totally_corrective.entering import Entering
from dboost.boosting.totally_corrective.stalls import stalled
from dboost.boosting.totally_corrective.strengths import ONE_OUTPUT, SEVERAL_OUTPUTS, Strengths
from dboost.certificate.column_bounds import bounded, known, moved, moved_by_intercept, reach, unsure
from dboost.certificate.duality_gap import dual_bound, expected_gap, price_of_intercept, relative_gap, screened
from dboost.certificate.float32_scores import Rounding
from dboost.certificate.free_intercept import solve_intercept
from dboost.problem.iterate import Iterate, Score
from dboost.problem.limits import Limits
from dboost.problem.problem import Problem
from dboost.problem.shards import among
from dboost.problem.state import FitSettings, FitState
from dboost.problem.statistics import COUNTED
from dboost.solvers.from_overflow import brought_back
from dboost.solvers.inner import PROMISED, Context, Goal, Trace
from dboost.solvers.newton.step import Step, pruned
from dboost.solvers.one_output.steps import takes

Array = NDArray[np.float64]
Rows = NDArray[np.int64]

# The share of the gap that the rows held may keep in a round, and while other rows wait to enter: there will then be
# another round, so that solving precisely now is wasted.
_INNER_SHARE = 0.02
_INNER_SHARE_WAITED = 0.3
# Rows so close to the threshold enter too: one that passes it while the others are solved costs another round.
_MARGIN = 0.03
# The intercept is solved until its residual sums cost the certificate at most this share of `tol`.
_INTERCEPT_SHARE = 0.1
_INTERCEPT_ROUNDING = 1e-14
# A round has changed next to nothing if it leaves more than this share of the gap
_LEFT = 0.5
# and lowers the objective by less than this share of the gap.
_LOWERED = 0.1
# The rows are solved closer by this factor after such a round,
_CLOSER = 0.1
# but never closer than this share of the usual goal, which is beyond what float64 can tell.
_CLOSEST = 1e-8


class Loop:
    """Rounds of one fit at one final strength.

    Parameters
    ----------
    problem : Problem
        The problem, its passes counted.
    settings : FitSettings
        What was asked.
    lam : float
        Final strength of the penalty, sum form.
    null : Score
        Scoring pass at the null model: its norms bound the repair of the dual point.
    n_rows : int
        Number of examples.
    """

    def __init__(self, problem: Problem, settings: FitSettings, lam: float, null: Score, n_rows: int) -> None:
        self.problem = problem
        self.settings = settings
        self.lam = lam
        self.null = null
        self.n_rows = n_rows
        self.weight = problem.statistics.weight
        self.certified = problem.penalty.certified
        # rows vanish one by one: only then are there rows to keep out
        self.sparse = problem.penalty.threshold and problem.penalty.separable
        counted = problem.fit_intercept and problem.loss.name in COUNTED
        self._solves_intercept = self.certified and counted and settings.update == "newton"
        self._intercept_price = max(1.0, price_of_intercept(problem, null, lam)) if self._solves_intercept else 1.0
        self.single = self.sparse and settings.update == "newton" and takes(problem, n_rows, settings.sample)
        problem.columns.keeps = self.single and settings.curvature == "newton"
        self._entering = Entering(problem, settings, self.sparse)
        factor = ONE_OUTPUT if self.single else SEVERAL_OUTPUTS
        self.strengths = Strengths(lam, factor if settings.update == "newton" else 0.0)
        self.rounding = Rounding.of(problem, lam)
        # not a method of this object: a circle would keep the columns' memory after the fit
        self._mark = Trace(problem, lam)
        self.trace = self._mark.points
        self._context = Context(
            problem,
            settings,
            n_rows,
            sparse=self.sparse,
            single=self.single,
            certified=self.certified,
            solves_intercept=self._solves_intercept,
            focuses=self.sparse and self.certified and problem.k > 1 and lam > 0.0,
            mark=self._mark,
        )
        self._inner = self._context.solver()
        # last known ||G_j||_* of every column, or a bound, for the strong rule at the next strength
        self.norms = null.norms
        self._bounds = bounded(problem)
        self.limits = Limits.of(settings)

    # ---- one round -------------------------------------------------------------------------------------------------

    def run(self, state: FitState, callback: Callable[[dict[str, Any], FitState], bool]) -> tuple[FitState, str]:
        """Rounds until a reason to stop; `callback` sees each record and the state after it, and may stop the fit.

        Returns
        -------
        state : FitState
            After the last round.
        reason : str
            Why it stopped.
        """
        # a fit that is resumed may have ended before
        reason = "max_rounds" if state.round >= self.settings.max_rounds else self.limits.reason(state.passes)
        if state.history and state.history[-1]["step"] == "certificate" and state.gap <= self.settings.tol:
            reason = "tol"
        while not reason:
            state, reason = self.advance(state)
            if callback(dict(state.history[-1]), state):
                reason = reason or "callback"
            elif not reason and state.round >= self.settings.max_rounds:
                reason = "max_rounds"
            reason = reason or self.limits.reason(state.passes)
        if reason in ("tol", "max_opened"):
            return state, reason
        # the certificate so far is that of the model the round began with
        state = self._final(state)
        if math.isnan(state.gap):
            return state, reason if reason == "callback" else "uncertified"
        return state, "tol" if state.gap <= self.settings.tol else reason

    def advance(self, state: FitState) -> tuple[FitState, str]:
        """One round: state in, state out, and the reason to stop if there is one."""
        started = time.perf_counter()
        problem = self.problem
        entering_passes = problem.passes
        score = self._score(state)
        state = self._closer(state, self._certify(state, score))
        judged = False
        if state.gap <= self.settings.tol and state.provisional:
            # the strong rule may have dropped a row that counts: judge the model on all columns
            state = replace(state, candidates=None, provisional=False, lower_bound=-np.inf)
            score = self._score(state)
            state = self._certify(state, score)
            judged = True
        at = score.iterate
        if not math.isfinite(state.objective) and at.shift == 0.0:
            # nothing can be said of such a model, and no step from it judged
            state = replace(state, gap=math.nan)
            return self._recorded(state, at, 0, 0, None, started, entering_passes, score.opened), "uncertified"
        if state.gap <= self.settings.tol:
            return self._recorded(state, at, 0, 0, None, started, entering_passes, score.opened), "tol"
        if judged and not score.complete and not len(score.best):
            # the model is optimal among all that was seen, and the rest of the class is out of reach
            return self._recorded(state, at, 0, 0, None, started, entering_passes, score.opened), "max_opened"
        lam = self.strengths.after(state.lam)
        widened, added, others_wait = self._entering.widened(at, score)
        opened = score.opened
        # the norms of a million columns are as much as the examples of a step
        del score
        limits = self.limits.counted_from(state.passes - entering_passes)
        at_hand = brought_back(problem, widened, lam, self.settings.random_state) if widened.shift > 0.0 else widened
        solved = self._inner.solve(at_hand, self._goal(at_hand, lam, state, others_wait), state, limits)
        state = replace(state, cut=bool(limits.reason(problem.passes)))
        after, step = pruned(solved.at), solved.step
        dropped = widened.active.shape[0] - after.active.shape[0]
        state = replace(state, active=after.active, W=after.W, intercept=after.intercept, lam=lam, memory=solved.memory)
        state = replace(state, drift=state.drift + moved(problem, widened, solved.at))
        state = self._recorded(state, after, added, dropped, step, started, entering_passes, opened)
        if state.provisional and solved.finished and not problem.searched:
            # the next certificate is likely to be the last: it is taken over all columns at once
            state = replace(state, candidates=None, provisional=False, lower_bound=-np.inf)
        # a class that is searched is searched again only when the rest of the fit is done
        state = replace(state, provisional=state.provisional or (judged and problem.searched))
        return state, self._reason(state, step, at, widened, after)

    def _reason(self, state: FitState, step: Step, before: Iterate, widened: Iterate, after: Iterate) -> str:
        """Why to stop after this round, other than the certified gap; empty to go on."""
        if state.lam > self.lam:
            return ""
        value = max(self.problem.objective(after, self.lam), self.problem.resolution)
        if not self.certified and step.promised <= PROMISED * self.settings.tol * value:
            # the promise speaks for the rows held: it counts once no other row was left to add
            fresh = widened.active.shape[0] - before.active.shape[0]
            if fresh < self._entering.most(before.active.shape[0]) or widened.active.shape[0] == self.problem.n:
                return "gradient"
        if (
            self._entering.full(widened)
            and self._context.restricted_gap(after, self.lam, step) <= self.settings.tol * value
        ):
            return "max_active_rows"
        stuck = step.length == 0.0 and np.array_equal(before.active, after.active)
        if stuck and np.array_equal(before.W, after.W) and np.array_equal(before.intercept, after.intercept):
            return "precision"
        return stalled(state.history, self.lam / self.weight, self.problem.resolution / self.weight)

    def _score(self, state: FitState) -> Score:
        """Full scoring pass at the state's model."""
        at = replace(self.problem.null(), active=state.active, W=state.W, intercept=self._intercept(state))
        lam = self.strengths.after(state.lam)
        if self.settings.update == "newton" and self.settings.rows_per_round is None and self.problem.screens:
            lam *= 1.0 - _MARGIN
        take, rounding = self._entering.most(state.active.shape[0]), self.rounding.allowed(self.settings.tol, state)
        drift = state.drift + moved_by_intercept(self.problem, state.intercept, at.intercept)
        # bounds are formed twice rather than held while the pass needs its memory
        some = unsure(self.problem, reach(self.problem, state.norms, drift), state.candidates, state.active, lam)
        score = self.problem.score(at, some, lam, take, not state.provisional, rounding)
        return known(self.problem, score, state.candidates, state.norms, drift) if self._bounds else score

    def _intercept(self, state: FitState) -> Array:
        """The state's intercept; solved for the final strength, so that the certificate need not pay for its rest."""
        if not self._solves_intercept or self.strengths.passing(state.lam) or self._only_starts(state):
            return state.intercept
        wanted = _INTERCEPT_SHARE * self.settings.tol * state.memory.closer / self._intercept_price
        small = max(wanted, _INTERCEPT_ROUNDING)
        return solve_intercept(self.problem, state.active, state.W, state.intercept, small)

    def _only_starts(self, state: FitState) -> bool:
        """Whether a model is the guess that a path starts a strength from: it will move before it is judged."""
        return state.provisional and state.round == 0 and self.problem.screens

    def _certify(self, state: FitState, score: Score) -> FitState:
        """Gap at the final strength, the better of all lower bounds so far, and the candidates that remain."""
        problem = self.problem
        at = score.iterate
        state = replace(state, intercept=at.intercept, norms=score.bounds, drift=0.0)
        value = problem.objective(at, self.lam)
        self._mark(at)
        if at.shift > 0.0:
            # so far from any optimum that there is nothing to certify
            return replace(state, objective=value)
        if problem.screens:
            self.norms = score.over(self.norms) if score.bounds is None else score.bounds
        if not self.certified:
            return replace(state, objective=value, gap=np.inf)
        if self.strengths.passing(state.lam):
            return replace(state, objective=value)
        weights = problem.lam_weight[score.candidates]
        if self._only_starts(state):
            # not a certificate: it says how far to solve, and is looked at again over all columns
            rest = expected_gap(problem, at, problem.penalty.dual_size(score.norms, weights), self.lam)
            return replace(state, objective=value, gap=relative_gap(problem, value, value - max(rest, 0.0)))
        bound = dual_bound(problem, score, self.null.norms, self.lam, self.settings.tol)
        lower = float(np.maximum(state.lower_bound, bound.value))
        gap = relative_gap(problem, value, lower)
        if math.isnan(gap):
            # neither number is trusted any more, nor what they would screen out
            return replace(state, objective=value, gap=gap, lower_bound=-math.inf)
        if not problem.screens:
            return replace(state, objective=value, gap=gap, lower_bound=lower)
        candidates = score.candidates
        keep = screened(problem, score, bound, value - bound.value, self.lam * weights)
        keep |= among(candidates, at.active)
        return replace(state, objective=value, gap=gap, lower_bound=lower, candidates=candidates[keep])

    def _closer(self, before: FitState, state: FitState) -> FitState:
        """The state after its certificate; its rows are solved closer from now on if the last round changed nothing."""
        if not math.isfinite(before.gap) or state.gap <= max(self.settings.tol, _LEFT * before.gap):
            return state
        least = max(abs(state.objective), self.problem.resolution)
        if before.objective - state.objective > _LOWERED * state.gap * least:
            return state
        return replace(state, memory=replace(state.memory, closer=max(_CLOSEST, _CLOSER * state.memory.closer)))

    def _final(self, state: FitState) -> FitState:
        """Certificate of the last model over all columns, when the rounds ran out."""
        state = replace(state, lam=self.lam)
        if state.provisional:
            state = replace(state, candidates=None, provisional=False, lower_bound=-np.inf)
        return self._certify(state, self._score(state))

    # ---- inner solve -----------------------------------------------------------------------------------------------

    def _goal(self, at: Iterate, lam: float, state: FitState, others_wait: bool) -> Goal:
        """How far the rows of `at` are solved at a strength."""
        gap = state.gap if np.isfinite(state.gap) else float(self.certified)
        if self._entering.full(at):
            # no row may enter any more: the restricted problem is all there is to solve
            gap = 0.0
        share = 0.0 if self._only_starts(state) else _INNER_SHARE_WAITED if others_wait else _INNER_SHARE
        value = max(self.problem.objective(at, lam), self.problem.resolution)
        tol, closer = self.settings.tol, state.memory.closer
        return Goal.of(lam, lam <= self.lam, value, gap, share, tol, closer, self.certified)

    # ---- records ---------------------------------------------------------------------------------------------------

    def _recorded(
        self,
        state: FitState,
        at: Iterate,
        added: int,
        dropped: int,
        step: Step | None,
        started: float,
        passes: int,
        opened: int,
    ) -> FitState:
        weight = self.weight
        # while the strong rule holds columns back, the bound is not one of the whole problem
        whole = not state.provisional
        return recorded(
            self.problem,
            state,
            gap=state.gap if np.isfinite(state.gap) and whole else math.nan,
            lower_bound=state.lower_bound / weight if np.isfinite(state.lower_bound) and whole else math.nan,
            alpha=(state.lam if step is not None else self.lam) / weight,
            rows_in=added,
            rows_out=dropped,
            held=at,
            candidates=self._candidates(state),
            step=step.kind if step is not None else "certificate",
            length=step.length if step is not None else 0.0,
            started=started,
            passes=passes,
            subtrees=opened,
        )

    def _candidates(self, state: FitState) -> float:
        """How many columns or hypotheses may still enter; infinitely many where the class has no end."""
        if state.candidates is not None:
            return int(state.candidates.shape[0])
        return self.problem.n_candidates
