"""What the rounds of a greedy system share: one step after the other until there is a reason to stop."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dboost.problem.accelerators import Accelerators
from dboost.problem.limits import Limits

if TYPE_CHECKING:
    from dboost.problem.iterate import Score
    from dboost.problem.problem import Problem
    from dboost.problem.state import FitSettings, FitState


def spent(state: FitState, settings: FitSettings, limits: Limits) -> str:
    """Which limit of rounds, passes or seconds is reached; empty to go on."""
    return "max_rounds" if state.round >= settings.max_rounds else limits.reason(state.passes)


def repeated(
    advance: Callable[[FitState], tuple[FitState, str]],
    state: FitState,
    callback: Callable[[dict[str, Any], FitState], bool],
    ended: Callable[[FitState], str],
    reason: str = "",
) -> tuple[FitState, str]:
    """One round after the other until a reason to stop; the loop of every system.

    Parameters
    ----------
    advance : callable
        One round: state in, state out, and the reason to stop if there is one.
    callback : callable
        Sees the record of a round that left one, and the state after it, and may stop the fit.
    ended : callable
        Why no round follows a state, from the state alone; empty to go on.
    reason : str
        Why there is to be no round at all.

    Returns
    -------
    state : FitState
        After the last round.
    reason : str
        What `advance` or `ended` gave, or "callback".
    """
    while not reason:
        rounds = state.round
        state, reason = advance(state)
        if state.round > rounds and callback(dict(state.history[-1]), state):
            reason = reason or "callback"
        reason = reason or ended(state)
    return state, reason


class GreedyRounds(ABC):
    """Rounds of one fit (``systems.Rounds``); a system gives `advance`, and `begun` and `ended` where it needs to.

    Parameters
    ----------
    problem : Problem
        The problem, its passes counted.
    settings : FitSettings
        What was asked; its strength is decided.
    null : Score
        Scoring pass at the null model.
    """

    certified = False

    def __init__(self, problem: Problem, settings: FitSettings, null: Score) -> None:
        self.problem = problem
        self.settings = settings
        self.norms = null.norms.copy()
        self.trace: list[tuple[float, float, float]] = []
        self._started = time.perf_counter()
        self.limits = Limits.of(settings)
        self.accelerators = Accelerators.of(problem, settings)

    def run(self, state: FitState, callback: Callable[[dict[str, Any], FitState], bool]) -> tuple[FitState, str]:
        """Rounds until a reason to stop; `callback` sees each record and the state after it, and may stop the fit.

        Returns
        -------
        state : FitState
            After the last round.
        reason : str
            What `advance` or `ended` gave, "max_rounds", "max_passes", "max_seconds" or "callback".
        """
        state = self.begun(state)
        return self.ended(*repeated(self.advance, state, callback, self._spent, self._spent(state)))

    def _spent(self, state: FitState) -> str:
        return spent(state, self.settings, self.limits)

    @abstractmethod
    def advance(self, state: FitState) -> tuple[FitState, str]:
        """One round, with its record: state in, state out, and the reason to stop if there is one."""

    def begun(self, state: FitState) -> FitState:
        """The state that the first round starts from."""
        return state

    def ended(self, state: FitState, reason: str) -> tuple[FitState, str]:
        """The state with the objective of the model it holds, without a penalty, and the reason to stop."""
        at = self.problem.evaluate(state.active, state.W, state.intercept)
        value = self.problem.objective(at, 0.0)
        self.mark(value)
        return replace(state, objective=value), reason

    def mark(self, value: float) -> None:
        """Note an objective (sum form) in the trace."""
        weight = self.problem.statistics.weight
        self.trace.append((float(self.problem.passes), time.perf_counter() - self._started, value / weight))
