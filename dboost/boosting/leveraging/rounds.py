"""Leveraging: a learner names a hypothesis in every round, and its weight alone is moved.

Raetsch, Mika & Warmuth, "On the Convergence of Leveraging" (2001), Algorithms 1 and 2; docs/math.md 7 (I) and (K).

    Algorithm 1:  d = -dL/df;  h = the learner's choice for d;  f += h argmin_al L(f + al h)
    Algorithm 2:  the same for L + C sum |w|: a hypothesis held whose edge is further below C than the best edge is
                  above C is moved back first, to zero at most

With a family of hypotheses the learner looks at all of them: it is delta-optimal with delta = 1. A learner of its own
(``hypotheses.learned``) is delta-optimal as far as it is; what it returns competes with the hypotheses held. With the
exponential loss Algorithm 1 is AdaBoost, and steepest descent in the l1 norm; with a fixed step it is epsilon-boosting.
Steepest descent in the l2 norm moves all hypotheses at once instead (``steepest``).
"""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dboost.boosting.forward.coordinate import Coordinates, Move, best_of, exact_step, moved, offered, worst_held
from dboost.boosting.greedy_rounds import GreedyRounds
from dboost.boosting.leveraging.box import Bound
from dboost.boosting.leveraging.learning import learned, unscored
from dboost.boosting.leveraging.steepest import promised
from dboost.boosting.records import recorded
from dboost.certificate.duality_gap import dual_bound, relative_gap
from dboost.problem.iterate import Iterate, Score
from dboost.problem.problem import Problem
from dboost.problem.state import FitSettings, FitState

Array = NDArray[np.float64]


class Parameters(Protocol):
    """What the rounds ask of the system: its parameters (``system.Leveraging``)."""

    @property
    def rule(self) -> str:
        """The learner."""
        ...

    @property
    def step(self) -> str | float:
        """"exact", or the length of every step."""
        ...

    @property
    def bounds(self) -> tuple[Bound, Bound] | None:
        """Between which every weight stays."""
        ...


class LeveragingRounds(GreedyRounds):
    """Rounds of one fit; they end by "gradient" or "tol", "precision", "max_rounds" or "callback".

    Parameters
    ----------
    problem, settings, null
        As for ``GreedyRounds``.
    """

    def __init__(self, problem: Problem, settings: FitSettings, null: Score, system: Parameters) -> None:
        super().__init__(problem, settings, null)
        self.system = system
        self.null = null
        self.lam = float(settings.alpha) * problem.statistics.weight
        self.learns = learns(settings)
        # Algorithm 2 minimises a convex function whose dual points are those of every l1 problem; they say nothing
        # of hypotheses that no pass has looked at
        self.certified = self.lam > 0.0 and not self.learns
        self.largest = _largest(null)

    def ended(self, state: FitState, reason: str) -> tuple[FitState, str]:
        """The state with the objective (and certificate) of the model it holds."""
        if not state.history or state.history[-1]["step"] != "certificate":
            state, _ = self._scored(state, learn=False)
            if self.certified and state.gap <= self.settings.tol:
                reason = "tol"
        return state, reason

    def advance(self, state: FitState) -> tuple[FitState, str]:
        """One round: state in, state out, and the reason to stop if there is one."""
        started, passes = time.perf_counter(), self.problem.passes
        state, score = self._scored(state)
        offer = offered(self.problem, score, self.lam)
        move = self._move(offer)
        largest = max(_largest(score), float(np.max(np.abs(offer.G), initial=0.0)))
        if self.learns:
            largest = 0.0 if move is None else max(-move.slope, 0.0)
            state = replace(state, carried={"largest": state.carried.get("largest", np.array([largest]))})
        reason, step = self._stopped(state, score, largest), 0.0
        sure = math.nan
        if move is not None and not reason and self.lam == 0.0 and isinstance(self.system.step, str):
            peak, square = float(offer.peak[move.place]), float(offer.square[move.place])
            sure = promised(self.problem, state.objective, move.slope, peak, square)
        if not reason:
            if move is not None:
                fixed = self.system.step
                step = exact_step(self.problem, offer, move) if isinstance(fixed, str) else float(fixed)
            active, W, intercept = (
                (state.active, state.W, state.intercept) if move is None else moved(offer, move, step)
            )
            stands = np.array_equal(active, state.active) and np.array_equal(W, state.W)
            if stands and np.array_equal(intercept, state.intercept) and self.system.rule != "nearest":
                reason = "precision"
            entering = int(active.shape[0]) - int(state.active.shape[0])
            state = replace(state, active=active, W=W, intercept=intercept)
        else:
            entering = 0
        kind = "certificate"
        if move is not None and not reason:
            kind = "back" if move.limit < math.inf else "step"
        return self._recorded(state, entering, largest, kind, sure, step, started, passes), reason

    def _scored(self, state: FitState, learn: bool = True) -> tuple[FitState, Score]:
        """Every hypothesis at the model, the objective there, and for Algorithm 2 the better of all lower bounds."""
        problem = self.problem
        at = Iterate.unsummed(state.active, state.W, state.intercept)
        if self.learns:
            score = learned(problem, at) if learn else unscored(problem, at)
        elif self.certified:
            score = problem.ranked(at, self.lam, 1)
        else:
            score = problem.score(at, None, self.lam, 1)
        at = score.iterate
        value = problem.objective(at, self.lam)
        self.mark(value)
        state = replace(state, objective=value)
        if not self.certified or not np.isfinite(at.bias).all():
            return state, score
        bound = dual_bound(problem, score, self.null.norms, self.lam, self.settings.tol)
        lower = float(np.maximum(state.lower_bound, bound))
        gap = relative_gap(problem, value, lower)
        # neither number is trusted where the two contradict each other
        return replace(state, lower_bound=-np.inf if np.isnan(gap) else lower, gap=gap), score

    def _stopped(self, state: FitState, score: Score, largest: float) -> str:
        if not np.isfinite(score.iterate.bias).all():
            return "precision"
        if self.certified:
            return "tol" if state.gap <= self.settings.tol else ""
        first = float(state.carried["largest"][0]) if self.learns else self.largest
        return "gradient" if largest <= self.settings.tol * first else ""

    def _move(self, offer: Coordinates) -> Move | None:
        """Which hypothesis moves: the learner's, or in Algorithm 2 one that has too much weight (step d)."""
        best = best_of(self.problem, offer, self.system.rule)
        back = worst_held(offer) if self.lam > 0.0 else None
        if back is not None and best is not None and -best.slope <= -back.slope:
            return back
        return best

    # ---- records ---------------------------------------------------------------------------------------------------

    def _recorded(
        self,
        state: FitState,
        entering: int,
        largest: float,
        kind: str,
        sure: float,
        step: float,
        started: float,
        passes: int,
    ) -> FitState:
        """The state with its record: objective, gap and gradient are those before the round's step."""
        weight = self.problem.statistics.weight
        known = self.certified and math.isfinite(state.gap)
        return recorded(
            self.problem,
            state,
            gap=state.gap if known else math.nan,
            lower_bound=state.lower_bound / weight if known else math.nan,
            alpha=self.lam / weight,
            rows_in=max(entering, 0),
            rows_out=max(-entering, 0),
            held=state,
            candidates=self.problem.n_candidates,
            step=kind,
            length=step,
            started=started,
            passes=passes,
            more={"gradient": largest / weight, "promised": sure / weight},
        )


def learns(settings: FitSettings) -> bool:
    """Whether the hypotheses are learned, round by round."""
    return bool(getattr(settings.hypotheses, "learns", False))


def _largest(score: Score) -> float:
    """max |<d, h>| over everything a pass looked at; of induced hypotheses those held are among them."""
    if score.size is not None:
        return float(score.size)
    return float(np.max(score.norms, initial=0.0))
