"""Where a fit begins whose loss bends within errors much smaller than those of its labels: at losses that bend wider.

Huber's loss of labels in cents, with a bend of one, is nearly that of absolute errors: linear for all examples but a
few, and each step finds out about few of these. Bends a quarter as wide each lead there, from one as wide as the
errors: a model of one of them is near that of the next.

Covers: the models on the way. Does not cover: which losses lie there (``losses.base.Loss.wider``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from dboost.boosting.totally_corrective.loop import Loop
from dboost.problem.iterate import Score
from dboost.problem.problem import Problem
from dboost.problem.state import FitSettings, FitState

_TOL = 1e-3
"""The gap at which a model on the way is left: of 1e-2 the next one had more steps to do (2026-11)."""


def through_wider_bends(
    problem: Problem, settings: FitSettings, state: FitState, null: Score, lam: float, over: Callable[[int], bool]
) -> FitState:
    """The state that the first round starts from, at the model of the narrowest of the wider bends, if there are any.

    Parameters
    ----------
    problem : Problem
    settings : FitSettings
    state : FitState
        Where the fit would begin.
    null : Score
        Scoring pass at the null model.
    lam : float
        Strength of the penalty, sum form.
    over : function of int
        Whether the fit is to end after so many passes.
    """
    before = problem.passes
    wider = problem.loss.wider(null.iterate.loss / problem.statistics.weight) if not problem.searched else ()
    at = state
    for loss, factor in wider:
        with problem.other_loss(loss):
            asked = replace(settings, tol=max(settings.tol, _TOL), max_passes=None, max_seconds=None)
            loop = Loop(problem, asked, factor * lam, null, problem.n_rows)
            # its certificates are those of another objective
            begun = FitState(at.active, at.W, at.intercept, factor * at.lam)
            at, _ = loop.run(begun, lambda record, after: over(state.passes + problem.passes - before))
            at = replace(at, lam=at.lam / factor)
        if over(state.passes + problem.passes - before):
            break
    if at is state:
        return state
    passes = state.passes + problem.passes - before
    return FitState(at.active, at.W, at.intercept, lam, passes=passes, keys=state.keys)
