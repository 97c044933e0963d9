"""Where a fit begins.

The plain start is zero: the model without features. A fit may begin instead at a model that is given, as that of the
strength before on a path (``FromModel``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dboost.penalties.bound import rightly_signed
from dboost.problem.accelerators import Accelerators
from dboost.problem.free_rows import with_free_rows
from dboost.problem.iterate import Iterate
from dboost.problem.memory import Memory
from dboost.problem.problem import Problem
from dboost.problem.state import FitResult, FitState

Array = NDArray[np.float64]
Rows = NDArray[np.int64]


@dataclass(frozen=True)
class FromModel:
    """A model that is given, with the columns that the sequential strong rule keeps.

    Parameters
    ----------
    problem : Problem
    start : FitResult or None
        The model, the intercept that of the columns as they were given.
    lam, lam_max : float
        Strength of the penalty, and the one at which all rows are zero; sum form.
    before : tuple of float and float64 array (n,), or None
        Strength and dual norms ||G_j||_* at the end of the fit that the model is of; None where it is of another
        problem.
    accelerators : Accelerators
    """

    problem: Problem
    start: FitResult | None
    lam: float
    lam_max: float
    before: tuple[float, Array] | None
    accelerators: Accelerators

    def begin(self) -> FitState | None:
        """That model, where one is given and a step can leave it."""
        problem, start = self.problem, self.start
        sparse = problem.objective.sparse
        # zero is where a smooth step never gets to: a penalty that puts all rows there at once starts from it
        if start is None or not (sparse or not self.lam >= self.lam_max):
            return None
        active = problem.rows_of(start.active, start.state.keys)
        order = np.argsort(active)
        active, W = active[order], start.W[order]
        if problem.objective.columns.sign is not None:
            # the line through two optima, and the model of other data, may lie beyond zero
            W = rightly_signed(W, problem.objective.columns.sign[active])
            held = np.any(W != 0.0, axis=1)
            active, W = active[held], W[held]
        candidates = self._strong(active)
        # along a path the curvature changes little from strength to strength
        anchor = start.state.memory.anchor if self.before is not None else None
        return FitState(
            active,
            W,
            problem.as_seen(active, W, start.intercept),
            self.lam,
            candidates=candidates,
            provisional=candidates is not None or problem.searched,
            memory=Memory(anchor=anchor),
        )

    def _strong(self, active: Rows) -> Rows | None:
        """Columns that the sequential strong rule keeps: ||G_j(lam_old)||_* >= 2 lam - lam_old, and the rows held.

        The rule may err; a fit scores every column again before it stops (docs/math.md 8 (ii)).
        """
        if self.before is None or not self.lam < self.before[0] or not self.accelerators.on("strong_rule"):
            return None
        previous, norms = self.before
        # a column that never enters has an infinite strength
        weight = self.problem.objective.columns.weight
        keep = np.isfinite(weight)
        keep[keep] = norms[keep] >= (2.0 * self.lam - previous) * weight[keep]
        keep[active] = True
        return np.flatnonzero(keep) if not keep.all() and self.accelerators.take("strong_rule") else None


def begun(given: FromModel, passes: int) -> FitState:
    """The state of the model that is given, or of the model without features; `passes` were done before."""
    state, problem = given.begin(), given.problem
    if state is not None:
        return replace(_with_free_rows(problem, state), passes=passes)
    null = problem.null()
    return FitState(null.active, null.W, null.intercept, given.lam, provisional=problem.searched, passes=passes)


def _with_free_rows(problem: Problem, state: FitState) -> FitState:
    """The state with all rows without penalty among its own: those it lacks at zero."""
    if not problem.objective.columns.free.size:
        return state
    at = with_free_rows(problem, Iterate.unsummed(state.active, state.W, state.intercept))
    return replace(state, active=at.active, W=at.W)
