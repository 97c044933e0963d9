"""The way back: features that a greedy fit has grown are taken out again, one after the other.

    repeat
      the feature, or group, whose removal costs the objective least leaves              (``removal_costs``)
      the weights of the others are solved again, from where they were                   (``corrective``)

A feature enters because it was the best beside the few that came before it; T features that are left of many more are
chosen beside all of them. Source: backward elimination by the quadratic model at the minimum ("optimal brain surgeon",
Hassibi & Stork 1993). ShareBoost's paper grows only.

Covers: costs, one removal, the models on the way and the arrays that a state carries. Does not cover: rounds and
records (``shareboost``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.boosting.shareboost.choice import row_lengths
from dboost.boosting.shareboost.stages_so_far import StagesSoFar
from dboost.boosting.shareboost.trials import Solver
from dboost.compiled.solves.positive import inverse_positive, solve_positive
from dboost.problem.iterate import Iterate
from dboost.problem.limits import UNLIMITED, Limits
from dboost.problem.problem import Problem
from dboost.solvers.conjugate.class_blocks import grams, regularised, sampled
from dboost.solvers.corrective import Free, Solved, left_over, solve

Array = NDArray[np.float64]
Rows = NDArray[np.int64]

# Multiplications spent on the Hessian of a model.
_WORK = 1e9


@dataclass(frozen=True)
class WayBack:
    """The models on the way back, in the order in which they were reached: that of all features first."""

    left: Rows  # Rows of W in the order in which they left.
    rest: Rows  # Rows of the last model, ascending.
    counts: Rows  # (T,): Rows of each model, falling.
    weights: Array  # (sum of counts, k): Rows of W of each model, ascending.
    intercepts: Array  # (T, k)

    @staticmethod
    def begun(active: Rows, W: Array, intercept: Array) -> WayBack:
        """At the model that has grown."""
        counts = np.array([active.shape[0]], dtype=np.int64)
        return WayBack(np.zeros(0, np.int64), active, counts, W, intercept[None])

    @staticmethod
    def of(carried: Mapping[str, NDArray[Any]]) -> WayBack:
        """Undo `arrays`."""
        return WayBack(**dict(carried))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """As a state carries them."""
        return dict(vars(self))

    def after(self, at: Iterate, gone: Rows) -> WayBack:
        """With the model that some rows have left."""
        return WayBack(
            np.append(self.left, gone),
            at.active,
            np.append(self.counts, at.active.shape[0]),
            np.concatenate([self.weights, at.W]),
            np.concatenate([self.intercepts, at.intercept[None]]),
        )

    def stages(self, most: int) -> StagesSoFar:
        """The models of at most so many rows, smallest first, as a fit that only adds rows keeps them.

        Where every model is larger, the smallest.
        """
        order = np.append(self.rest, self.left[::-1])
        fits = np.flatnonzero(self.counts <= most)
        chosen = (fits if fits.shape[0] else np.array([self.counts.shape[0] - 1]))[::-1]
        ends = np.cumsum(self.counts)
        weights = []
        for place in chosen.tolist():
            end, count = int(ends[place]), int(self.counts[place])
            # stored by row, wanted in the order of the path
            weights.append(self.weights[end - count : end][np.argsort(np.argsort(order[:count]))])
        counts = self.counts[chosen]
        return StagesSoFar(order[: int(counts[-1])], counts, np.concatenate(weights), self.intercepts[chosen])


def removal_costs(problem: Problem, at: Iterate, lam: float, groups: list[Rows], n_rows: int) -> Array:
    """What the objective rises by when the rows of a group leave and all others are solved again, by its second order.

    1/2 sum_c w_gc' [(H_c^-1)_gg]^-1 w_gc, with H_c the Hessian of loss plus penalty in the weights of class c; what
    classes share is left out. One pass over some of the examples.

    Parameters
    ----------
    at : Iterate
        A corrected model.
    groups : list of int64 array
        Places among the active rows.
    """
    size = at.active.shape[0]
    every = sampled(problem.k, size, size, n_rows, _WORK)
    (found,) = grams(problem, at, [np.arange(size)], problem.fit_intercept, every)
    bound = problem.objective.bound(at.active, lam)
    face = bound.face(at.W)
    bent = regularised(found, np.asarray(face.expand(face.diagonal(bound.strength))))
    inverse = np.stack([inverse_positive(H, 0.0) for H in bent])
    costs = []
    for places in groups:
        own, w = np.ascontiguousarray(inverse[:, places[:, None], places]), np.ascontiguousarray(at.W[places].T)
        costs.append(0.5 * float(sum(np.sum(v * solve_positive(H, v, 0.0)) for H, v in zip(own, w, strict=True))))
    return np.array(costs)


def without(
    problem: Problem,
    at: Iterate,
    gone: Rows,
    lam: float,
    tol: float,
    n_rows: int,
    limits: Limits = UNLIMITED,
    by: Solver = solve,
) -> Solved:
    """The model without some of its places, all others solved again: to `tol` of the gradient that this leaves."""
    keep = np.setdiff1d(np.arange(at.active.shape[0]), gone)
    active = at.active[keep]
    start = problem.evaluate(active, at.W[keep], at.intercept)
    free = Free(np.ones(keep.shape[0], np.bool_), problem.fit_intercept, row_lengths(problem, active), n_rows)
    return by(problem, start, lam, free, tol * left_over(problem, start, lam, free), limits)
