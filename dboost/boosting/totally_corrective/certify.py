"""What a round's certificate says of the state of a fit: objective, lower bound, gap, and the columns that remain.

Covers: ``Certify``, and ``closer``, what follows where a round changed next to nothing. Does not cover: the bound and
the rule by which columns are ruled out (``certificate``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dboost.boosting.totally_corrective.scorer import is_guess
from dboost.boosting.totally_corrective.strengths import Strengths
from dboost.certificate.duality_gap import SHORT, Bound, dual_bound, expected_gap, relative_gap, screened, size_of_score
from dboost.problem.accelerators import Accelerators
from dboost.problem.free_rows import without_sums
from dboost.problem.iterate import Score
from dboost.problem.problem import Problem
from dboost.problem.shards import among
from dboost.problem.state import FitState

Array = NDArray[np.float64]

# A round has changed next to nothing if it leaves more than this share of the gap
_LEFT = 0.5
# and lowers the objective by less than this share of the gap.
_LOWERED = 0.1
# The rows are solved closer by this factor after such a round,
_CLOSER = 0.1
# but never closer than this share of the usual goal, which is beyond what float64 can tell.
_CLOSEST = 1e-8


@dataclass(frozen=True)
class Certify:
    """The certificate at the final strength (docs/math.md 6), from the sums of a scoring pass.

    Parameters
    ----------
    problem : Problem
    strengths : Strengths
        There is none on the way to the final strength.
    null_norms : float64 array, shape (n,)
        Dual norms of G at the null model, which bound the repair of a dual point.
    tol : float
        Relative gap at which the fit ends.
    accelerators : Accelerators
    """

    problem: Problem
    strengths: Strengths
    null_norms: Array
    tol: float
    accelerators: Accelerators

    def __call__(self, state: FitState, score: Score) -> FitState:
        """The state with the better of all lower bounds so far, and the candidates that remain."""
        problem, lam, at = self.problem, self.strengths.final, score.iterate
        value = problem.objective(at, lam)
        # what is scored may be solved a little further than the state: its intercept, and its rows without penalty
        state = replace(state, active=at.active, W=at.W, intercept=at.intercept)
        state = replace(state, norms=score.bounds, drift=0.0, origin=None, objective=value)
        if at.shift > 0.0:
            # so far from any optimum that there is nothing to certify
            return state
        if not problem.penalty.certified:
            return replace(state, gap=np.inf)
        if self.strengths.passing(state.lam):
            return state
        if is_guess(problem, state):
            # not a certificate: it says how far to solve, and is looked at again over all columns
            near = without_sums(problem, at) if problem.objective.free.size else at
            rest = expected_gap(problem, near, size_of_score(problem, score), lam)
            return replace(state, gap=relative_gap(problem, value, value - max(rest, 0.0)))
        bound = self._bound(score)
        lower = float(np.maximum(state.lower_bound, bound.value))
        gap = relative_gap(problem, value, lower)
        if math.isnan(gap):
            # neither number is trusted any more, nor what they would screen out
            return replace(state, gap=gap, lower_bound=-math.inf)
        return self._screened(replace(state, gap=gap, lower_bound=lower), score, bound)

    def _bound(self, score: Score) -> Bound:
        """The dual bound; without a pass for its value where little is lost by that."""
        problem, by_ray = self.problem, self.accelerators.on("ray_value")
        before = problem.passes
        short = SHORT if by_ray else None
        bound = dual_bound(problem, score, self.null_norms, self.strengths.final, self.tol, short)
        if by_ray and problem.passes == before:
            self.accelerators.take("ray_value")
        return bound

    def _screened(self, state: FitState, score: Score, bound: Bound) -> FitState:
        """The state without the candidates that the gap rules out."""
        if not self.accelerators.on("gap_safe_screening"):
            return state
        problem, candidates = self.problem, score.candidates
        strength = self.strengths.final * problem.lam_weight[candidates]
        keep = screened(problem, score, bound, state.objective - bound.value, strength)
        keep |= among(candidates, state.active)
        if not keep.all():
            self.accelerators.take("gap_safe_screening")
        return replace(state, candidates=candidates[keep])


def closer(
    problem: Problem, before: FitState, state: FitState, tol: float, accelerators: Accelerators
) -> FitState:
    """The state after its certificate; its rows are solved closer from now on if the last round changed nothing.

    Parameters
    ----------
    before : FitState
        That before the certificate, which has the gap of the round before.
    """
    if not math.isfinite(before.gap) or state.gap <= max(tol, _LEFT * before.gap):
        return state
    least = max(abs(state.objective), problem.objective.resolution)
    if before.objective - state.objective > _LOWERED * state.gap * least or not accelerators.take("closer_goals"):
        return state
    return replace(state, memory=replace(state.memory, closer=max(_CLOSEST, _CLOSER * state.memory.closer)))
