"""Rounds of leveraging that look at every weight: steepest descent in the l2 norm, and coordinates within a box.

Both need the signed edge of each hypothesis in a round, where Algorithms 1 and 2 need those of the best one and of the
hypotheses held. Covers: the rounds. Does not cover: the direction (``steepest``), or the best move (``box``).
"""

from __future__ import annotations

import math
import time
from dataclasses import replace

import numpy as np

from dboost.boosting.forward.coordinate import Coordinates, exact_step
from dboost.boosting.leveraging.box import after, best_within, bounds_of
from dboost.boosting.leveraging.rounds import LeveragingRounds, Parameters
from dboost.boosting.leveraging.steepest import every_row, promised, steepest, step_along
from dboost.problem.iterate import Score
from dboost.problem.problem import Problem
from dboost.problem.state import FitSettings, FitState


class SteepestRounds(LeveragingRounds):
    """Rounds of steepest descent in the l2 norm: all hypotheses move, in proportion to their edges (Lemma 1.1)."""

    def __init__(self, problem: Problem, settings: FitSettings, null: Score, system: Parameters) -> None:
        super().__init__(problem, settings, null, system)
        self.rows = every_row(problem)

    def advance(self, state: FitState) -> tuple[FitState, str]:
        """One round: state in, state out, and the reason to stop if there is one."""
        started, problem, passes = time.perf_counter(), self.problem, self.problem.passes
        found = steepest(problem, self.rows, state.active, state.W, state.intercept)
        value = problem.objective(found.at, 0.0)
        self.mark(value)
        state = replace(state, objective=value)
        sizes = np.append(np.abs(found.at.G[:, 0]), np.abs(found.at.bias) if problem.fit_intercept else 0.0)
        largest, before, exact = float(sizes.max()), state, isinstance(self.system.step, str)
        reason, step, sure = "", 0.0, math.nan
        if not np.isfinite(found.at.bias).all():
            reason = "precision"
        elif largest <= self.settings.tol * self.largest:
            reason = "gradient"
        else:
            step = step_along(problem, found) if exact else float(self.system.step)
            sure = promised(problem, value, found.slope, found.reach, found.square) if exact else math.nan
            W, intercept = found.at.W + step * found.D, found.at.intercept + step * found.d
            keep = W[:, 0] != 0.0
            state = replace(state, active=self.rows[keep], W=W[keep], intercept=intercept)
            stands = np.array_equal(state.W, before.W) and np.array_equal(intercept, before.intercept)
            reason = "precision" if stands else ""
        entering = int(state.active.shape[0]) - int(before.active.shape[0])
        kind = "certificate" if reason else "step"
        return self._recorded(state, entering, largest, kind, sure, step, started, passes), reason


class BoxRounds(LeveragingRounds):
    """Rounds of coordinate descent within a box (Theorem 1). There is no certificate; they end by "gradient"."""

    def __init__(self, problem: Problem, settings: FitSettings, null: Score, system: Parameters) -> None:
        super().__init__(problem, settings, null, system)
        assert system.bounds is not None
        self.certified = False
        self.rows = every_row(problem)
        self.low, self.high = bounds_of(system.bounds, problem, self.rows)

    def ended(self, state: FitState, reason: str) -> tuple[FitState, str]:
        """The state with the objective of the model it holds."""
        at = self.problem.evaluate(state.active, state.W, state.intercept)
        value = self.problem.objective(at, self.lam)
        self.mark(value)
        return replace(state, objective=value), reason

    def advance(self, state: FitState) -> tuple[FitState, str]:
        """One round: state in, state out, and the reason to stop if there is one."""
        started, problem, passes = time.perf_counter(), self.problem, self.problem.passes
        offer = self._offered(state)
        value = problem.objective(offer.at, self.lam)
        self.mark(value)
        move = best_within(problem, offer, self.low, self.high, self.system.rule)
        state, before = replace(state, objective=value), state
        largest = 0.0 if move is None else -move.slope
        reason, step = "", 0.0
        if not np.isfinite(offer.at.bias).all():
            reason = "precision"
        elif move is None or largest <= self.settings.tol * self.largest:
            reason = "gradient"
        else:
            step = exact_step(problem, offer, move)
            W, intercept = offer.at.W.copy(), state.intercept
            if move.place < W.shape[0]:
                low, high = float(self.low[move.place]), float(self.high[move.place])
                W[move.place] = after(move, float(W[move.place, 0]), step, low, high)
            else:
                intercept = intercept + step * move.sign
            keep = W[:, 0] != 0.0
            stands = np.array_equal(W, offer.at.W) and np.array_equal(intercept, state.intercept)
            state = replace(state, active=self.rows[keep], W=W[keep], intercept=intercept)
            reason = "precision" if stands else ""
        entering = int(state.active.shape[0]) - int(before.active.shape[0])
        kind = "certificate" if reason else "step"
        return self._recorded(state, entering, largest, kind, math.nan, step, started, passes), reason

    def _offered(self, state: FitState) -> Coordinates:
        """Every coordinate at a model; one pass."""
        problem, rows, stats = self.problem, self.rows, self.problem.statistics
        every = np.zeros((rows.shape[0], 1))
        every[np.searchsorted(rows, state.active)] = state.W
        at = problem.evaluate(rows, every, state.intercept)
        G, w = at.G[:, 0], at.W[:, 0]
        square, peak, lam = stats.square[rows], stats.peak[rows], problem.objective.bound(rows, self.lam).strength
        if problem.fit_intercept:
            G, w = np.append(G, at.bias), np.append(w, at.intercept)
            square, peak, lam = np.append(square, stats.weight), np.append(peak, 1.0), np.append(lam, 0.0)
        return Coordinates(at, G, w, square, peak, lam)
