"""scikit-learn's Newton steps, the ridge: by a factorisation where that is small, else by conjugate gradients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from . import lbfgs
from .base import Rung, Task, tightening

FACTORED = 3000
"""Weights up to which the Hessian is formed: as its documentation says, where examples are many more than weights."""


def ladder(task: Task) -> Sequence[Rung]:
    """The solver that suits the number of weights, ever finer."""
    small = task.X.shape[1] * task.n_outputs <= FACTORED
    return tightening("tol", -1, -10, solver="newton-cholesky" if small else "newton-cg")


PEER = replace(lbfgs.PEER, name="newton", ladder=ladder)
