"""Where the rounds of a fit begin: at zero, at a model that is given, or on the way to a loss that bends narrowly.

On a path the model that is given is a straight line through the last two optima (``predicted``).

Huber's loss of labels in cents, with a bend of one, is nearly that of absolute errors: linear for all examples but a
few, and each step finds out about few of these. Bends a quarter as wide each lead there, from one as wide as the
errors: a model of one of them is near that of the next (``through_wider_bends``, ``losses.base.Loss.wider``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dboost.boosting.totally_corrective import Loop
from dboost.penalties.bound import rightly_signed
from dboost.problem.accelerators import EVERY, Accelerators
from dboost.problem.free_rows import with_free_rows
from dboost.problem.iterate import Iterate, Score
from dboost.problem.memory import Memory
from dboost.problem.problem import Problem
from dboost.problem.state import FitResult, FitSettings, FitState

Array = NDArray[np.float64]
Rows = NDArray[np.int64]


@dataclass(frozen=True)
class FromModel:
    """A model that is given, with the columns that the sequential strong rule keeps."""

    problem: Problem
    start: FitResult | None  # The intercept that of the columns as they were given.
    lam: float  # lam, lam_max: Strength of the penalty, and the one at which all rows are zero; sum form.
    lam_max: float
    # Strength and dual norms ||G_j||_* (n,) at the end of the fit that the model is of; None where it is of another
    # problem.
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
        W = start.W
        if np.any(active[1:] < active[:-1]):
            order = np.argsort(active)
            active, W = active[order], W[order]
        if problem.objective.columns.sign is not None:
            # the line through two optima, and the model of other data, may lie beyond zero
            W = rightly_signed(W, problem.objective.columns.sign[active])
            held = np.any(W != 0.0, axis=1)
            active, W = active[held], W[held]
        # columns that are constant in these data, and were not in those of the start, have no place in a model
        held = np.isfinite(problem.objective.bound(active).weight)
        if not held.all():
            active, W = active[held], W[held]
        candidates = self._strong(active)
        # along a path the curvature changes little from strength to strength
        anchor = start.state.memory.anchor if self.before is not None else None
        creeps = self.before is not None and start.state.memory.creeps
        return FitState(
            active,
            W,
            problem.as_seen(active, W, start.intercept),
            self.lam,
            candidates=candidates,
            provisional=candidates is not None or problem.searched,
            memory=Memory(anchor=anchor, creeps=creeps),
        )

    def _strong(self, active: Rows) -> Rows | None:
        """Rows held, and those with ||G_j(lam_old)||_* >= 2 lam - lam_old; it may err (docs/math.md 8 (ii))."""
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
    iterate = with_free_rows(problem, Iterate.unsummed(state.active, state.W, state.intercept))
    return replace(state, active=iterate.active, W=iterate.W)


def predicted(results: Sequence[FitResult], alpha: float, accelerators: Sequence[str] = EVERY) -> FitResult | None:
    """The start of the fit at `alpha`, from those before it on a path; None at its beginning.

    Along a path of falling strengths the weights move almost linearly in log(alpha). The line through the last two
    optima leaves an error of second order in the step, where the last optimum alone leaves one of first order; on the
    arXiv abstracts a path of 50 strengths then takes half the time. A row that the line carries through zero starts at
    zero, one that has just entered goes on from its last value as if it had entered with the step.

    Without the accelerator ``path_start`` there is no start, without ``path_predictor`` it is the last optimum.
    """
    if not results or "path_start" not in accelerators:
        return None
    last = results[-1]
    line = len(results) > 1 and "path_predictor" in accelerators
    if not line or not 0.0 < alpha < last.alpha < results[-2].alpha:
        return last
    before = results[-2]
    t = min(1.0, math.log(last.alpha / alpha) / math.log(before.alpha / last.alpha))
    earlier = np.zeros_like(last.W)
    _, here, there = np.intersect1d(last.active, before.active, assume_unique=True, return_indices=True)
    earlier[here] = before.W[there]
    W = last.W + t * (last.W - earlier)
    W[np.einsum("ij,ij->i", W, last.W) <= 0.0] = 0.0
    held = np.any(W != 0.0, axis=1)
    intercept = last.intercept + t * (last.intercept - before.intercept)
    return replace(last, active=last.active[held], W=W[held], intercept=intercept)


_TOL = 1e-3
"""The gap at which a model on the way is left: of 1e-2 the next one had more steps to do (2026-11)."""


def through_wider_bends(
    problem: Problem, settings: FitSettings, state: FitState, null: Score, lam: float, over: Callable[[int], bool]
) -> FitState:
    """The state at the model of the narrowest of the wider bends; `over` says whether so many passes are the end."""
    before = problem.passes
    wider = problem.loss.wider(null.iterate.loss / problem.statistics.weight) if not problem.searched else ()
    reached = state
    for loss, factor in wider:
        with problem.other_loss(loss):
            asked = replace(settings, tol=max(settings.tol, _TOL), max_passes=None, max_seconds=None)
            loop = Loop(problem, asked, factor * lam, null, problem.n_rows)
            # its certificates are those of another objective
            begun = FitState(reached.active, reached.W, reached.intercept, factor * reached.lam)
            reached, _ = loop.run(begun, lambda record, after: over(state.passes + problem.passes - before))
            reached = replace(reached, lam=reached.lam / factor)
        if over(state.passes + problem.passes - before):
            break
    if reached is state:
        return state
    passes = state.passes + problem.passes - before
    return FitState(reached.active, reached.W, reached.intercept, lam, passes=passes, keys=state.keys)
