"""The fully corrective step: all weights of the rows held, solved again from where they were (ShareBoost, step 6).

Newton's method with conjugate gradients on a smooth objective: loss plus a penalty that puts no row to zero. Every
product with the Hessian is a pass over the active columns. On data that the rows separate the loss alone has no
minimiser; the steps then end by the gradient tolerance, and a small ridge gives a finite one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dboost.compiled.solves.conjugate_gradients import conjugate_gradients, dot
from dboost.problem.iterate import Iterate
from dboost.problem.limits import UNLIMITED, Limits
from dboost.problem.problem import Problem
from dboost.solvers import proximal
from dboost.solvers.conjugate.class_blocks import ClassBlocks
from dboost.solvers.line_search import LONG, line_search
from dboost.solvers.step import Step

Array = NDArray[np.float64]

_MAX_STEPS = 60
# On features that separate the classes there is no minimum without a penalty, and no other end. What is left of the
# gradient then is in the record of the round.
_MAX_ACCELERATED = 5000
_MAX_PRODUCTS = 200
# Products of a step from which on a new preconditioner is worth its price.
_STALE = 30
_LOOSE = 0.1
# A step leaves about this share of what it aims at: to aim below the tolerance itself saves another step.
_ENOUGH = 0.3
_ROUNDING = 1e-13


@dataclass(frozen=True)
class CorrectedModel:
    """A model after the step."""

    iterate: Iterate  # The model with its sums.
    steps: int  # Newton steps taken.
    # What is left of the gradient: max_j ||g_j||_1 / sqrt(sum_i s_i x_ij**2) over the free rows, the intercept as a
    # column of ones.
    rest: float
    length: float  # Length of the last step.
    cut: bool = False  # Whether a limit of the fit ended it early.


@dataclass(frozen=True)
class Free:
    """What may move."""

    rows: NDArray[np.bool_]  # (a,)
    intercept: bool
    scale: Array  # (a,): Length of each column, by which its gradient is measured.
    n_rows: int  # Number of examples.


def solve(
    problem: Problem, iterate: Iterate, lam: float, free: Free, tol: float, limits: Limits = UNLIMITED
) -> CorrectedModel:
    """Minimise loss plus penalty over the free rows.

    `iterate`: where to begin, with its sums.
    `lam`: strength of the penalty, sum form.
    `tol`: the gradient left, as in ``CorrectedModel.rest``, at which to end.
    `limits`: of the fit, for ``problem.passes``: looked at before each step.
    The objective of the result is never above that of `iterate`.
    """
    length, steps = 0.0, 0
    first = rest = left_over(problem, iterate, lam, free)
    inverse: ClassBlocks | None = None
    cut = False
    while steps < _MAX_STEPS and rest > tol:
        if limits.reason(problem.passes):
            cut = True
            break
        # the first steps only bring the model near, the last ones square what is left, and none aims below the end
        accuracy = max(min(_LOOSE, math.sqrt(rest / first)), _ENOUGH * tol / rest)
        if inverse is None:
            inverse = _preconditioner(problem, iterate, lam, free)
        D, d, slope, products = _direction(problem, iterate, lam, free, accuracy, inverse)
        # made at another model it serves as well while it serves at all: to make it may cost as much as the products
        inverse = inverse if products <= _STALE else None
        if not slope > 0.0:
            break
        found = line_search(problem, iterate, lam, D, d, slope, grid=LONG, rounding=_ROUNDING)
        if found is None:
            length = 0.0
            break
        (iterate, length), steps = found, steps + 1
        rest = left_over(problem, iterate, lam, free)
    return CorrectedModel(iterate, steps, rest, length, cut)


def solve_accelerated(
    problem: Problem, iterate: Iterate, lam: float, free: Free, tol: float, limits: Limits = UNLIMITED
) -> CorrectedModel:
    """Minimise loss plus penalty over all rows by Nesterov's accelerated gradient method; otherwise as ``solve``.

    So ShareBoost's paper solves it (Shalev-Shwartz, Wexler & Shashua 2011, section 2.1), which leaves the constants
    open. The penalty is minimised with the bound of the loss, not bounded itself (``proximal``).
    """
    length, steps, rest, cut = 0.0, 0, left_over(problem, iterate, lam, free), False

    def ended(now: Iterate, step: Step) -> bool:
        nonlocal length, steps, rest, cut
        length, steps, rest = step.length, steps + 1, left_over(problem, now, lam, free)
        cut = rest > tol and bool(limits.reason(problem.passes))
        return cut or rest <= tol

    if rest > tol:
        iterate, _ = proximal.solve(problem, iterate, lam, _MAX_ACCELERATED, ended)
    return CorrectedModel(iterate, steps, rest, length, cut)


def residual(problem: Problem, iterate: Iterate, lam: float, free: Free) -> tuple[Array, Array]:
    """Minus the gradient (a, k) and (k,) of the objective at a model, zero where nothing moves."""
    bound = problem.objective.bound(iterate.active, lam)
    face, strength = bound.face(iterate.W), bound.strength
    rows, bias = _without_shift(problem, iterate.G, iterate.bias)
    rows = rows - face.expand(face.gradient(strength))
    return np.where(free.rows[:, None], rows, 0.0), bias if free.intercept else np.zeros(problem.k)


def _without_shift(problem: Problem, rows: Array, bias: Array) -> tuple[Array, Array]:
    """Sums of a loss that a shift of all classes does not change, without the rounding that they have along it.

    Along it only the penalty is curved, often by a millionth: rounding would be taken a million times too seriously.
    """
    if problem.loss.separable:
        return rows, bias
    return rows - rows.mean(axis=1, keepdims=True), bias - bias.mean()


def left_over(problem: Problem, iterate: Iterate, lam: float, free: Free) -> float:
    """The gradient of the objective over the free rows, as in ``CorrectedModel.rest``."""
    rows, bias = residual(problem, iterate, lam, free)
    largest = float(np.max(np.abs(rows).sum(axis=1) / free.scale, initial=0.0))
    return max(largest, float(np.abs(bias).sum()) / math.sqrt(problem.statistics.weight))


def _preconditioner(problem: Problem, iterate: Iterate, lam: float, free: Free) -> ClassBlocks:
    bound = problem.objective.bound(iterate.active, lam)
    face, strength = bound.face(iterate.W), bound.strength
    bend = np.asarray(face.expand(face.diagonal(strength)))
    return ClassBlocks(problem, iterate, np.flatnonzero(free.rows), free.intercept, bend, free.n_rows)


def _direction(
    problem: Problem, iterate: Iterate, lam: float, free: Free, accuracy: float, inverse: ClassBlocks
) -> tuple[Array, Array, float, int]:
    """Conjugate gradients on H d = -gradient until its norm under the preconditioner is `accuracy` of the first.

    The step, its slope, and the products with H that it took.
    """
    bound = problem.objective.bound(iterate.active, lam)
    face, strength = bound.face(iterate.W), bound.strength
    product = problem.curvature_at(iterate)
    mask = free.rows[:, None]

    def parts(v: Array) -> tuple[Array, Array]:
        return v[: iterate.W.size].reshape(iterate.W.shape), v[iterate.W.size :]

    def joined(rows: Array, bias: Array) -> Array:
        return np.concatenate([rows.ravel(), bias])

    def times(v: Array) -> Array:
        rows, bias = parts(v)
        Q, q = _without_shift(problem, *product(rows, bias))
        Q = Q + face.expand(face.hessian(face.restrict(rows), strength))
        return joined(np.where(mask, Q, 0.0), q if free.intercept else np.zeros_like(q))

    def inner(u: Array, v: Array) -> float:
        size = iterate.W.size
        return dot(u[:size], v[:size]) + dot(u[size:], v[size:])

    right = joined(*residual(problem, iterate, lam, free))
    found = conjugate_gradients(
        right.copy(),
        times,
        lambda r: joined(*inverse(*parts(r))),
        limit=_MAX_PRODUCTS,
        least=lambda start: accuracy * accuracy * start,
        curved=lambda p, curvature, left: curvature > 0.0,
        inner=inner,
    )
    return *parts(found.x), inner(right, found.x), found.products
