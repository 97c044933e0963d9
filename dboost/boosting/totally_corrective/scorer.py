"""The scoring of a round: the dual norm of each column at the model, and the best of those that are not held.

The plain one is the papers': every column, in float64, one pass (``EveryColumn``). The others are wrapped around it.
Each changes what is asked of the one inside, or what it says, and none changes which rows end up in the model:

- ``NearRows``: rows a little below the threshold count as violating it.

Which columns are left at all, after the strong rule, is in the state of the fit.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from dboost.boosting.totally_corrective.entering import Entering
from dboost.boosting.totally_corrective.entering_groups import EnteringGroups
from dboost.boosting.totally_corrective.strengths import Strengths
from dboost.certificate.duality_gap import price_of_residuals
from dboost.problem.accelerators import Accelerators
from dboost.problem.free_rows import solved
from dboost.problem.iterate import Iterate, Rows, Score
from dboost.problem.problem import Problem
from dboost.problem.state import FitSettings, FitState

# Rows so close to the threshold enter too: one that passes it while the others are solved costs another round.
_MARGIN = 0.03
# The intercept is solved until its residual sums cost the certificate at most this share of `tol`.
_INTERCEPT_SHARE = 0.1
_INTERCEPT_ROUNDING = 1e-14


@dataclass(frozen=True)
class Asked:
    """What a scoring pass is asked for.

    Parameters
    ----------
    at : Iterate
        The model; its sums are not filled in.
    candidates : int64 array or None
        Columns to look at, ascending; None: all.
    lam : float
        Strength of the penalty, sum form.
    take : int
        How many of the best violating columns to bring back.
    """

    at: Iterate
    candidates: Rows | None
    lam: float
    take: int


class Scorer(Protocol):
    """Score the columns at the model of a state."""

    def score(self, state: FitState, asked: Asked) -> Score:
        """The standing of every candidate; the state is not changed."""
        ...


@dataclass(frozen=True)
class EveryColumn:
    """All candidates in one pass."""

    problem: Problem
    accelerators: Accelerators

    def score(self, state: FitState, asked: Asked) -> Score:
        """The pass."""
        before = self.problem.passes
        whole = not state.provisional
        score = self.problem.score(asked.at, asked.candidates, asked.lam, asked.take, whole)
        if self.problem.passes == before:
            self.accelerators.take("null_sums")
        return score


@dataclass(frozen=True)
class NearRows:
    """A strength a little lower, for the choice of the rows that enter."""

    inner: Scorer
    accelerators: Accelerators

    def score(self, state: FitState, asked: Asked) -> Score:
        """The score; its norms do not depend on the strength."""
        self.accelerators.take("near_rows")
        return self.inner.score(state, replace(asked, lam=asked.lam * (1.0 - _MARGIN)))


@dataclass(frozen=True)
class SolvedFreeRows:
    """The rows without penalty solved first, and the intercept with them, where the model is about to be judged.

    No accelerator: a certificate is worth nothing where their sums are not zero but for a short step.

    Parameters
    ----------
    price : float
        By how many strengths a change of residuals, of one for an example of weight one, may raise the dual norm of a
        column (``certificate.price_of_residuals``), at least 1.
    """

    inner: Scorer
    problem: Problem
    strengths: Strengths
    tol: float
    price: float

    def score(self, state: FitState, asked: Asked) -> Score:
        """The score of the model with these rows solved."""
        if self.strengths.passing(state.lam) or is_guess(self.problem, state):
            return self.inner.score(state, asked)
        small = max(_INTERCEPT_SHARE * self.tol / self.price, _INTERCEPT_ROUNDING)
        at, known = solved(self.problem, asked.at, small)
        return replace(self.inner.score(state, replace(asked, at=at)), projection=known)


@dataclass(frozen=True)
class Scoring:
    """What is asked for at a state, and the scorer that is asked.

    Parameters
    ----------
    problem : Problem
    entering : Entering
        How many rows may enter.
    strengths : Strengths
    scorer : Scorer
    """

    problem: Problem
    entering: Entering | EnteringGroups
    strengths: Strengths
    scorer: Scorer

    @classmethod
    def of(
        cls,
        problem: Problem,
        settings: FitSettings,
        entering: Entering | EnteringGroups,
        strengths: Strengths,
        accelerators: Accelerators,
    ) -> Scoring:
        """The plain scorer, and around it those accelerators of it that a fit may take."""
        scorer: Scorer = EveryColumn(problem, accelerators)
        if accelerators.on("near_rows"):
            scorer = NearRows(scorer, accelerators)
        if problem.objective.free.size:
            price = max(1.0, price_of_residuals(problem, strengths.final))
            scorer = SolvedFreeRows(scorer, problem, strengths, settings.tol, price)
        return cls(problem, entering, strengths, scorer)

    def __call__(self, state: FitState) -> Score:
        """Score the columns at the model of a state, for the strength of the round that follows."""
        at = replace(self.problem.null(), active=state.active, W=state.W, intercept=state.intercept)
        lam, take = self.strengths.after(state.lam), self.entering.most(state.active.shape[0])
        return self.scorer.score(state, Asked(at, state.candidates, lam, take))


def is_guess(problem: Problem, state: FitState) -> bool:
    """Whether a model is the guess that a path starts a strength from: it will move before it is judged."""
    return state.provisional and state.round == 0 and problem.screens
