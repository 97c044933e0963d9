"""Which steps solve a round's problem on its rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dboost.problem.memory import Memory
from dboost.problem.problem import Problem
from dboost.problem.state import FitSettings, FitState
from dboost.solvers.newton.step import NewtonSteps
from dboost.solvers.one_output.steps import OneOutputSteps
from dboost.solvers.smooth import SmoothSteps


def steps_on(
    problem: Problem,
    active: NDArray[np.int64],
    n_rows: int,
    settings: FitSettings,
    state: FitState,
    *,
    sparse: bool,
    single: bool,
) -> NewtonSteps | OneOutputSteps | SmoothSteps:
    """Steps on a fixed set of rows.

    Parameters
    ----------
    problem : Problem
    active : int64 array, shape (a,)
        The rows A.
    n_rows : int
        Number of examples.
    settings : FitSettings
    state : FitState
        Its memory, and the gap of the model that is moved.
    sparse : bool
        Whether rows of W vanish one by one.
    single : bool
        Whether the steps of one output are possible (``one_output.takes``).
    """
    if not sparse:
        return SmoothSteps(problem, state.memory)

    def newton(memory: Memory) -> NewtonSteps:
        return NewtonSteps(problem, active, n_rows, settings.sample, settings.random_state, memory, state.gap)

    if single:
        return OneOutputSteps(problem, active, problem.columns, settings.random_state, state.memory, newton)
    return newton(state.memory)
