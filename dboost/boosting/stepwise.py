"""Systems of one step a round: score every column, let the system step, drop the rows that became zero.

Covers: ``StepwiseSystem``, from which such a system is made by giving it a name and `step`.
Does not cover: systems with passes of their own between two steps (``shareboost``, ``leveraging``).
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from dboost.boosting.greedy_rounds import GreedyRounds
from dboost.boosting.records import recorded
from dboost.errors import UsageError
from dboost.penalties import Penalty
from dboost.problem.iterate import Iterate, Score
from dboost.problem.problem import Problem
from dboost.problem.state import FitSettings, FitState


class StepwiseSystem(ABC):
    """A system (``systems.System``). A subclass is a frozen dataclass with the parameters of its paper as its fields.

    It gives `name` and `step`, and `check` where not every loss or penalty has a meaning. A fit ends by "gradient" once
    no step is taken, or by a limit; there is no certificate.
    """

    name: ClassVar[str]
    exponential = False
    optimises = False

    @abstractmethod
    def step(self, at: Iterate) -> Iterate | None:
        """One step of a round.

        Parameters
        ----------
        at : Iterate
            The model: its rows, and among them, with weights 0, the column outside it that the penalty's score ranks
            first, each with its row of G, which is minus the gradient of the loss in its weights; `bias` is that of the
            intercept.

        Returns
        -------
        Iterate or None
            The same rows with other weights `W` and `intercept`; None where no step is worth taking.
        """

    def check(self, settings: FitSettings, penalty: Penalty) -> None:
        """Refuse a penalty, as the sums say nothing of one."""
        if not penalty.weightless:
            raise UsageError(
                f"system {self.name!r} with penalty {penalty.name!r}",
                hint="its steps know no penalty: use penalty='none'",
            )

    def rounds(self, problem: Problem, settings: FitSettings, null: Score, n_rows: int) -> StepwiseRounds:
        """The rounds of a fit."""
        return StepwiseRounds(problem, settings, null, self)

    def to_json(self) -> dict[str, Any]:
        """Name and parameters."""
        return {"system": self.name} | vars(self)


class StepwiseRounds(GreedyRounds):
    """Rounds of one fit: one scoring pass each."""

    def __init__(self, problem: Problem, settings: FitSettings, null: Score, system: StepwiseSystem) -> None:
        super().__init__(problem, settings, null)
        self.system = system

    def advance(self, state: FitState) -> tuple[FitState, str]:
        """One round: state in, state out, and the reason to stop if there is one."""
        problem, started, passes = self.problem, time.perf_counter(), self.problem.passes
        model = Iterate.unsummed(state.active, state.W, state.intercept)
        at = offered(problem.score(model, None, 0.0, 1))
        self.mark(at.loss)
        moved = self.system.step(at)
        after = moved or at
        keep = np.any(after.W != 0.0, axis=1)
        more = int(np.count_nonzero(keep)) - state.active.shape[0]
        held = after.rows(keep)
        # as in the other loops, the objective is that before the round's step
        state = replace(state, active=held.active, W=held.W, intercept=held.intercept, objective=at.loss)
        state = recorded(
            problem,
            state,
            gap=math.nan,
            lower_bound=math.nan,
            alpha=0.0,
            rows_in=max(more, 0),
            rows_out=max(-more, 0),
            held=held,
            candidates=problem.n_candidates,
            step=self.system.name,
            length=0.0 if moved is None else 1.0,
            started=started,
            passes=passes,
        )
        return state, "gradient" if moved is None else ""


def offered(score: Score) -> Iterate:
    """The model of a scoring pass with the best columns outside it as rows of weight 0, in ascending order."""
    at = score.iterate
    active = np.concatenate([at.active, score.best])
    order = np.argsort(active)
    W = np.concatenate([at.W, np.zeros_like(score.best_G)])
    G = np.concatenate([at.G, score.best_G])
    return replace(at, active=active[order], W=W[order], G=G[order])
