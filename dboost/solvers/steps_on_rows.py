"""Which steps solve a round's problem on its rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dboost.problem.accelerators import Accelerators
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
    accelerators: Accelerators,
) -> NewtonSteps | OneOutputSteps | SmoothSteps:
    """Steps on a fixed set of rows.

    `active`, (a,): the rows A.
    `n_rows`: number of examples.
    `state`: its memory, and the gap of the model that is moved.
    `sparse`: whether rows of W vanish one by one.
    `accelerators`: those that the fit may take.
    """
    if not sparse:
        return SmoothSteps(problem, state.memory, accelerators)

    def newton(memory: Memory) -> NewtonSteps:
        given = (settings.sample, settings.random_state, memory, accelerators, state.gap)
        return NewtonSteps(problem, active, n_rows, *given)

    if accelerators.take("one_output"):
        columns, seed = problem.columns, settings.random_state
        return OneOutputSteps(problem, active, columns, seed, state.memory, accelerators, newton)
    return newton(state.memory)
