"""The intercept alone, solved to rounding with the weights held.

A free intercept asks of a dual point that the residuals of each output sum to zero. Residuals that miss this are
repaired at a price that grows with the miss over the mass of the rarest class (``losses.base.Repair``), so a class of a
few examples can make a model that is optimal to 1e-9 look 1e-2 away. Newton's method in k numbers takes the miss to
rounding within a few passes, and lowers the objective.

Its Hessian is a table of k**2 numbers, each a sum over all examples. With many outputs it is not formed: conjugate
gradients ask for products with it, which take what a pass takes.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dboost import passes
from dboost.compiled.solves.conjugate_gradients import conjugate_gradients
from dboost.passes.point import Point
from dboost.problem.problem import Problem

Array = NDArray[np.float64]

_MAX_STEPS = 4
MANY_OUTPUTS = 64
"""Outputs from which on the Hessian is not formed: with m examples that takes m k**2 multiplications, and a product, of
which there are about ten, 3 m k."""
# What a solve by such products leaves, in squares: they are made of curvature in float32.
_LEFT = 1e-8
_MAX_PRODUCTS = 30
# A Newton step from a miss of e leaves at most about this times e**2.
_SQUARED = 100.0
_FLAT = 1e-12
_ENOUGH = 1e-20
# Sums of the loss carry about this relative error.
_ROUNDING = 1e-14


def solve_intercept(problem: Problem, active: NDArray[np.int64], W: Array, intercept: Array, small: float) -> Array:
    """The intercept of a model, improved until no residual sum is above `small` times the mass of its output.

    Returns the best intercept seen: but for rounding its loss is not above that of the one given. The step from a miss
    whose square is small enough is taken without a pass to confirm it.
    """
    stats = problem.statistics
    rarer = np.minimum(stats.mass, stats.total - stats.mass)
    mass = np.where(rarer > 0.0, rarer, np.inf)
    best, lowest, least = intercept, np.inf, np.inf
    trial, whole = intercept, problem.k < MANY_OUTPUTS
    for _ in range(_MAX_STEPS):
        point = problem.point(active, W, trial)
        sums = problem.runner.run(passes.intercept_sums, point, whole, name="intercept").add
        loss, bias, H = sums["loss"], sums["bias"], sums["H"]
        miss = float(np.max(np.abs(bias) / mass, initial=0.0))
        # near the optimum the loss is flat to rounding, and the gradient alone tells better from worse
        rounding = _ROUNDING * abs(lowest) if np.isfinite(lowest) else 0.0
        if not (loss < lowest - rounding or (loss <= lowest + rounding and miss < least)):
            break
        best, lowest, least = trial, loss, miss
        if miss <= small:
            break
        trial = trial + (_newton(H, bias) if whole else _newton_by_products(problem, point, H[0], bias))
        if whole and _SQUARED * miss * miss <= small:
            # the step squares the miss: another pass would only confirm it
            return trial
    return best


def _newton(H: Array, g: Array) -> Array:
    """H^+ g: no BLAS, whose threads might change the bits."""
    return _solved(np.diag(H), lambda p: np.asarray(np.sum(H * p, axis=1)), g, 3 * g.shape[0], _ENOUGH)


def _newton_by_products(problem: Problem, point: Point, diagonal: Array, g: Array) -> Array:
    """About H^+ g, a pass for each product with H."""

    def times(v: Array) -> Array:
        found: Array = problem.runner.run(passes.intercept_product, point, v, name="hessian").add["bias"]
        return found

    return _solved(diagonal, times, g, _MAX_PRODUCTS, _LEFT)


def _solved(diagonal: Array, times: Callable[[Array], Array], g: Array, limit: int, left: float) -> Array:
    """Conjugate gradients scaled by the diagonal, until this share of the squared residual is left."""
    scale = np.maximum(diagonal, _FLAT * max(float(diagonal.max(initial=0.0)), np.finfo(float).tiny))

    def curved(p: Array, curvature: float, left: float) -> bool:
        # a common shift of all classes changes nothing: what is left of it in the residual is rounding
        return curvature > _FLAT * float(np.sum(scale * p * p))

    found = conjugate_gradients(
        g, times, lambda residual: residual / scale, limit=limit, least=lambda start: left * start, curved=curved
    )
    return found.x
