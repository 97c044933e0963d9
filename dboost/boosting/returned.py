"""What is said at the end of a fit is said of the arrays that it returns.

A fit may have gone on less centres: of columns, labels or offsets. Its own intercept is then rounded on the way to the
data as they were given, by as much as a large number is; and scores of those data, as predictions are made of them, are
sums of large numbers that nearly cancel. Objective and gap of the model as it is returned are looked at once more:

    P    the objective of the returned arrays, scores being what they are without rounding
    gap  (P - D + e) / P, e being what P changes by at the scores that float64 makes of the arrays

That is |P' - P| where P' is looked at, and at least what errors of random signs in all scores change it by: scores may
be added up in another order than here.

Covers: ``Returned``, and the intercept that is returned. Does not cover: the rounds (``totally_corrective``).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dboost.problem import summation
from dboost.problem.problem import Problem
from dboost.problem.state import FitState

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
        if not math.isfinite(done.objective) or done.objective <= self._nothing:
            # no number, or nothing, as of targets that are all equal: there is no share of it
            return done, reason, intercept
        rounding = self._rounding(done, intercept)
        moved = self._change(done, _ROUNDINGS * rounding, problem.k * problem.statistics.weight)
        if moved <= _NOTHING * self.tol and done.gap + moved <= self.tol:
            # too little to tell, and it is paid for
            return replace(done, gap=done.gap + moved), reason, intercept
        seen = problem.as_seen(done.active, done.W, intercept, common)
        before = problem.passes
        at = problem.evaluate(done.active, done.W, seen)
        value = problem.objective(at, lam)
        predicted = self.loss_as_given(intercept) + value - at.loss
        problem.runner.count += 1
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
