"""Steepest descent in the l2 norm, and how far a step along a direction of steepest descent is sure to go.

Stratos, "Boosting as Coordinate Descent"; docs/math.md 7 (K). Of all directions v of length ||v|| <= 1 the objective
falls fastest along

    v = -grad / ||grad||_2    for the l2 norm (Lemma 1.1): every hypothesis moves, and the rate is -||grad||_2;
    v = +-e_l                 for the l1 norm (Lemma 1.2): that of the largest |grad_l| moves alone.

With an exact step the objective falls by at least what an upper bound of it along v falls by (`promised`). Does not
cover: the choice of one coordinate (``forward.coordinate``), or the rounds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.bounds.exponential import CAP
from dboost.errors import UsageError
from dboost.hypotheses.base import Key
from dboost.partition import Sums
from dboost.problem.iterate import Iterate
from dboost.problem.problem import Problem
from dboost.solvers.one_output.exact_line import Direction, minimise

Array = NDArray[np.float64]
Rows = NDArray[np.int64]

NORMS = ("l1", "l2")

MOST_HYPOTHESES = 100_000
"""Hypotheses of a family that a model of all of them may have: each is a column of every partition in every pass."""


@dataclass(frozen=True)
class Steepest:
    """A direction of unit length from a model that holds every hypothesis."""

    at: Iterate  # The model with its sums, rows of weight zero among them.
    D: Array  # (a, 1) and (1,): Minus the gradient over its length.
    d: Array
    slope: float  # Minus the length of the gradient: the derivative along the direction (Lemma 1.1).
    reach: float  # At least max_i |sum_l v_l h_l(x_i)|.
    square: float  # At least sum_i s_i (sum_l v_l h_l(x_i))^2.


def every_row(problem: Problem) -> Rows:
    """Rows of W of all hypotheses that vary; those of a family are registered, which is two passes once.

    Raises
    ------
    UsageError
        For a family of more than `MOST_HYPOTHESES`.
    """
    if problem.pool is not None:
        if not problem.n_candidates <= MOST_HYPOTHESES:
            raise UsageError(
                f"norm='l2' gives each of {problem.n_candidates:,.0f} hypotheses a weight",
                hint=f"it takes at most {MOST_HYPOTHESES:,}: use norm='l1', or a smaller family",
            )
        if len(problem.keys) < problem.n_candidates:
            parts = problem.summed(problem.null(), _keys_of_shard, problem.pool)
            problem.register([key for keys in parts for key in keys])
    square = problem.statistics.square
    return np.flatnonzero((square > 0.0) & np.isfinite(problem.objective.columns.weight)).astype(np.int64)


def _keys_of_shard(total: Sums, shard: Any, pool: Any) -> list[Key]:
    return list(pool.keys(shard, np.arange(total.add["G"].shape[0])))


def steepest(problem: Problem, rows: Rows, active: Rows, W: Array, intercept: Array) -> Steepest:
    """The direction of steepest descent in the l2 norm at a model; one pass."""
    every = np.zeros((rows.shape[0], 1))
    every[np.searchsorted(rows, active)] = W
    at = problem.evaluate(rows, every, intercept)
    bias = at.bias if problem.fit_intercept else np.zeros_like(at.bias)
    length = math.sqrt(float((at.G * at.G).sum() + (bias * bias).sum()))
    unit = length if length > 0.0 else 1.0
    D, d = at.G / unit, bias / unit
    size, stats = np.abs(D[:, 0]), problem.statistics
    constant = float(np.abs(d[0]))
    # norms of a sum are at most the sums of the norms
    reach = float((size * stats.peak[rows]).sum()) + constant
    root = float((size * np.sqrt(stats.square[rows])).sum()) + constant * math.sqrt(stats.weight)
    return Steepest(at, D, d, -length, reach, root * root)


def step_along(problem: Problem, found: Steepest) -> float:
    """argmin over t of the objective along a direction; capped where the scores would change by 30."""
    if not found.slope < 0.0:
        return 0.0
    if problem.loss.parabolic:
        # the bound of the curvature is far above it: the exact one is a product with the Hessian
        rows, bias = problem.curvature_at(found.at)(found.D, found.d)
        bend = float((rows * found.D).sum() + (bias * found.d).sum())
        return -found.slope / bend if bend > 0.0 else 0.0
    limit = CAP / found.reach
    along = Direction(found.D, found.d, found.slope, 0.0, limit)
    return minimise(problem, found.at, along, min(_guess(problem, found), limit))


def _guess(problem: Problem, found: Steepest) -> float:
    if math.isfinite(problem.loss.kappa):
        return -found.slope / (problem.loss.kappa * found.square)
    return math.atanh(min(-found.slope / (found.reach * found.at.loss), 1.0 - 1e-15)) / found.reach


def promised(problem: Problem, loss: float, slope: float, reach: float, square: float) -> float:
    """What an exact step along a direction takes off the objective at least, in the sum form.

    With a largest curvature kappa the objective is below f + slope t + (kappa / 2) square t^2 along the direction, and
    so falls by slope^2 / (2 kappa square). The exponential loss J is below J (cosh(reach t) - e sinh(reach t)) with
    the edge e = -slope / (reach J), the chord of the exponential function over [-reach, reach]; its least value is
    J sqrt(1 - e^2), which for one hypothesis in {-1, +1} is AdaBoost's 2 J sqrt(err (1 - err)).

    Parameters
    ----------
    loss : float
        The objective now.
    slope : float
        Derivative along the direction, not above zero.
    reach, square : float
        As in ``Steepest``.
    """
    if not slope < 0.0:
        return 0.0
    limit = CAP / reach
    if math.isfinite(problem.loss.kappa):
        bend = problem.loss.kappa * square
        t = -slope / bend if problem.loss.parabolic else min(-slope / bend, limit)
        return -slope * t - 0.5 * bend * t * t
    edge = min(-slope / (reach * loss), 1.0)
    # 1 - sqrt(1 - e^2) without cancellation
    return loss * edge * edge / (1.0 + math.sqrt((1.0 - edge) * (1.0 + edge)))
