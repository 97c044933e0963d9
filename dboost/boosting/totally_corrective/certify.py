"""What a round's certificate says of the state of a fit: objective, lower bound and gap.

Does not cover: the bound (``certificate``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dboost.boosting.totally_corrective.scorer import is_guess
from dboost.certificate.duality_gap import dual_bound, expected_gap, relative_gap, size_of_score
from dboost.problem.free_rows import without_sums
from dboost.problem.iterate import Score
from dboost.problem.problem import Problem
from dboost.problem.state import FitState

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Certify:
    """The certificate (docs/math.md 6), from the sums of a scoring pass.

    Parameters
    ----------
    problem : Problem
    lam : float
        Strength of the penalty, sum form.
    null_norms : float64 array, shape (n,)
        Dual norms of G at the null model, which bound the repair of a dual point.
    tol : float
        Relative gap at which the fit ends.
    """

    problem: Problem
    lam: float
    null_norms: Array
    tol: float

    def __call__(self, state: FitState, score: Score) -> FitState:
        """The state with the better of all lower bounds so far."""
        problem, lam, at = self.problem, self.lam, score.iterate
        value = problem.objective(at, lam)
        # what is scored may be solved a little further than the state: its intercept, and its rows without penalty
        state = replace(state, active=at.active, W=at.W, intercept=at.intercept)
        state = replace(state, objective=value)
        if not problem.penalty.certified:
            return replace(state, gap=np.inf)
        if is_guess(problem, state):
            # not a certificate: it says how far to solve, and is looked at again over all columns
            near = without_sums(problem, at) if problem.objective.free.size else at
            rest = expected_gap(problem, near, size_of_score(problem, score), lam)
            return replace(state, gap=relative_gap(problem, value, value - max(rest, 0.0)))
        bound = dual_bound(problem, score, self.null_norms, lam, self.tol)
        lower = float(np.maximum(state.lower_bound, bound))
        gap = relative_gap(problem, value, lower)
        if math.isnan(gap):
            # neither number is trusted any more
            return replace(state, gap=gap, lower_bound=-math.inf)
        return replace(state, gap=gap, lower_bound=lower)
