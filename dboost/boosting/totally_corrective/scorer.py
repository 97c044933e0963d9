"""The scoring of a round: the dual norm of each column at the model, and the best of those that are not held.

One pass over every column, as in the papers, or over those that the strong rule has left, which are in the state of the
fit. Rows without penalty are solved before it, and rows a little below the threshold count as violating it
(``near_rows``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from dboost.boosting.totally_corrective.entering import Entering
from dboost.boosting.totally_corrective.entering_groups import EnteringGroups
from dboost.certificate.duality_gap import price_of_residuals
from dboost.problem.accelerators import Accelerators
from dboost.problem.free_rows import solved
from dboost.problem.iterate import Score
from dboost.problem.problem import Problem
from dboost.problem.state import FitState

# Rows so close to the threshold enter too: one that passes it while the others are solved costs another round.
_MARGIN = 0.03
# Rows without penalty are solved until what is left of their sums costs the certificate at most this share of `tol`.
_FREE_SHARE = 0.1
_FREE_ROUNDING = 1e-14


@dataclass(frozen=True)
class Scoring:
    """What a pass is asked for at a state.

    Parameters
    ----------
    problem : Problem
    entering : Entering or EnteringGroups
        How many rows may enter.
    lam : float
        Strength of the penalty, sum form.
    tol : float
        Relative gap at which the fit ends.
    accelerators : Accelerators
    """

    problem: Problem
    entering: Entering | EnteringGroups
    lam: float
    tol: float
    accelerators: Accelerators

    def __call__(self, state: FitState) -> Score:
        """The standing of every candidate at the model of a state, which is not changed."""
        problem, take = self.problem, self.entering.most(state.active.shape[0])
        at = replace(problem.null(), active=state.active, W=state.W, intercept=state.intercept)
        known = None
        if problem.objective.free.size and not is_guess(problem, state):
            # a certificate is worth nothing where their sums are not zero but for a short step
            small = _FREE_SHARE * self.tol / max(1.0, price_of_residuals(problem, self.lam))
            at, known = solved(problem, at, max(small, _FREE_ROUNDING))
        lam = self.lam * (1.0 - _MARGIN) if self.accelerators.take("near_rows") else self.lam
        before = problem.passes
        score = problem.score(at, state.candidates, lam, take, not state.provisional)
        if problem.passes == before:
            self.accelerators.take("null_sums")
        return score if known is None else replace(score, projection=known)


def is_guess(problem: Problem, state: FitState) -> bool:
    """Whether a model is the guess that a path starts a strength from: it will move before it is judged."""
    return state.provisional and state.round == 0 and problem.screens
