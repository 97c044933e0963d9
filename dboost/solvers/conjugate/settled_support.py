"""Conjugate gradients on the settled support, with the curvature of all examples.

Where the support does not change the penalty is smooth, and the step solves (H + penalty's Hessian) d = -gradient on
the face of the penalty through W (``penalties``: the entries, or common sizes of tied entries, that may move). Each
product with H is one pass over the active columns, or none where the driver holds all examples. A solve goes no further
than to where its step leaves the face: what left it is held there, and the rest is solved on.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dboost.compiled.solves.conjugate_gradients import Solution, conjugate_gradients, dot
from dboost.problem.iterate import Iterate
from dboost.problem.problem import Problem
from dboost.solvers.conjugate.preconditioner import Preconditioner
from dboost.solvers.newton.accuracy import RESIDUAL

Array = NDArray[np.float64]
# (V, v) -> (X_A'H(X_A V + 1 v'), 1'H(X_A V + 1 v'))
Product = Callable[[Array, Array], tuple[Array, Array]]

_LOOSE = 0.1
# A solve that leaves more than this share of the squared residual got nowhere.
_NOWHERE = 0.1
PATIENCE = 5
"""Products after which it is looked at whether a solve got anywhere, and from there on whether it leaves the face."""
_CENTRED = 0.01
# Where the face changes more than this share of the step's energy, what it changed is fixed and the rest solved again.
_PULLED = 0.02
_MOVED = 1e-9
_ROUNDING = 1e-15
# An entry is as curved as this share of the most curved one, both beside the squares of their columns, and as this
# share of the largest gradient, at least. Steps are then numbers of float32, in which products are formed; those of the
# smallest columns that are taken are 1e30.
_LEAST_CURVED = 1e-10
_FLAT = 1e-36
# No weight moves further in a step: its square is still a number.
_FARTHEST = 1e100
# Binary exponent up to which products of a vector with values and curvatures stay numbers of float32.
_ORDINARY = 60


def conjugate_step(
    problem: Problem,
    iterate: Iterate,
    lam: float,
    diagonal: Array,
    product: Product,
    limit: int,
    value: float | None = None,
    blocks: Preconditioner | None = None,
    wider: Callable[[], Preconditioner] | None = None,
    residual: float = RESIDUAL,
) -> tuple[Array, Array, float]:
    """One inexact Newton step on the support.

    `lam`: strength of the penalty, sum form.
    `diagonal`, (a or a + 1, k): diagonal of the curvature, the intercept last; preconditions.
    `product`: products with the Hessian at the model.
    `limit`: at most so many products; as many again once there is more to precondition with.
    `value`: the objective. With it the residual asked for falls with the gradient (superlinear convergence), which pays
    where the support does not change; without it, it is `residual`.
    `blocks`: blocks of the curvature that precondition together with the diagonal.
    `wider`: blocks of more rows, to go on with where the solve gets nowhere.
    `residual`: share of the gradient, under the preconditioner, that the solve may leave.
    Returns `W`, (a, k): new rows, entries that would have left the face pulled back to it. `d`, (k,): step of the
    intercept. `slope`: decrease that the gradient promises for the unit step (sum of gradient times step).
    """
    a, k = iterate.W.shape
    bound = problem.objective.bound(iterate.active, lam)
    face, strength = bound.face(iterate.W), bound.strength
    size = face.dim

    def join(rows: Array, bias: Array) -> Array:
        return np.concatenate([face.restrict(rows), bias]) if problem.fit_intercept else face.restrict(rows)

    def rows_of(v: Array) -> Array:
        return np.asarray(face.expand(v[:size]))

    def bias_of(v: Array) -> Array:
        return v[size:] if problem.fit_intercept else np.zeros(k)

    gradient = -join(iterate.G, iterate.bias)
    gradient[:size] += face.gradient(strength)
    # the sign makes the entries of a tied size add up instead of cancelling
    sign = np.where(iterate.W < 0.0, -1.0, 1.0)
    scale = np.abs(join(diagonal[:a] * sign, diagonal[a] if problem.fit_intercept else np.zeros(k)))
    # without the penalty's share, rows about to vanish (curvature lam / ||w||) stall the solve
    scale[:size] += face.diagonal(strength)
    # where no example is curved a step would not be finite; its first product then ends the solve
    flat = _FLAT * max(float(np.abs(gradient).max(initial=0.0)), np.finfo(float).tiny / _FLAT)
    # each in the units of its own column, of which one may be 1e24 times another
    squares = np.broadcast_to(problem.statistics.square[iterate.active, None], (a, k))
    unit = np.abs(join(squares * sign, np.full(k, problem.statistics.weight)))
    curved = scale / np.where(unit > 0.0, unit, np.inf)
    scale = np.maximum(scale, np.maximum(_LEAST_CURVED * float(curved.max(initial=0.0)) * unit, flat))

    mean = np.zeros(0)
    if value is not None and problem.fit_intercept:
        # a step of a row moves all margins by its mean times the step: with the intercept taking that up, rows of
        # columns far from zero no longer pull on one another (the solve of centred columns, on those as they are)
        plain = np.broadcast_to((problem.statistics.sum[iterate.active] / problem.statistics.weight)[:, None], (a, k))
        # The mean that counts is that of the curved examples, whose square is no more than the curvature of the row
        # beside that of the intercept. Where labels are separated the plain one is far beyond, and the solve would end
        # at a residual that only looks small.
        # Each root is drawn by itself: the quotient overflows where no example is curved, and a curvature of weights
        # over many decades may be rounded below zero.
        intercept = np.maximum(diagonal[a], np.finfo(float).tiny)
        most = np.sqrt(np.maximum(diagonal[:a], 0.0)) / np.sqrt(intercept)
        mean = np.clip(plain, -most, most)
        centred = diagonal[:a] - mean**2 * diagonal[a]
        scale[:size] += face.restrict(np.maximum(centred, _CENTRED * diagonal[:a]) - diagonal[:a])

    def solver_of(formed: Preconditioner) -> Callable[[Array], Array]:
        shifts = not problem.loss.separable
        return formed.solver(face, scale, face.diagonal(strength), shifts, problem.engine.on_driver)

    def by_diagonal(r: Array) -> Array:
        if not mean.size:
            return r / scale
        bias = r[size:] / scale[size:]
        rows = (r[:size] - face.restrict(mean * r[size:])) / scale[:size]
        bias = bias - np.sum(mean * rows_of(rows), axis=0)
        return np.concatenate([rows, bias])

    # of the columns, in the coordinates of the face
    lengths = np.sqrt(unit)

    def times(x: Array) -> Array:
        # the margins that a step moves are numbers of float32 too, of columns of 1e21 as of ordinary ones
        unit = unit_of(np.maximum(np.abs(x), np.abs(lengths * x)))
        rows, bias = product(rows_of(x / unit), bias_of(x / unit))
        q = unit * join(rows, bias)
        q[:size] += face.hessian(x[:size], strength)
        return q

    def enough(preconditioned: Callable[[Array], Array]) -> float:
        start = dot(gradient, preconditioned(gradient))
        if value is None:
            return residual**2 * start
        # the square has the dimension of the objective
        return min(_LOOSE**2, max(start, 0.0) / max(value, np.finfo(float).tiny)) * start

    # coordinates that the face pulls back, beyond the rounding of W + step - W
    rounding = np.append(_ROUNDING * np.abs(face.coordinates(iterate.W)), np.zeros(gradient.size - size))

    def pulled(x: Array) -> Array:
        """A step as the face pulls it back; what W + step - W rounds is no pull."""
        back = np.append(face.coordinates(face.retract(iterate.W, x[:size]) - iterate.W), x[size:])
        return np.where(np.abs(back - x) <= _MOVED * np.abs(x) + rounding, x, back)

    def leaves(x: Array) -> bool:
        return bool(np.sum(scale * (pulled(x) - x) ** 2) > _PULLED * np.sum(scale * x**2))

    preconditioned = by_diagonal if blocks is None else solver_of(blocks)
    x, right, held = np.zeros_like(gradient), -gradient, np.zeros(gradient.shape, np.bool_)
    least, left = enough(preconditioned), limit
    while left > 0:
        free = Free(times, preconditioned, held)
        found = solve(free, np.where(held, 0.0, right), left, least, wider is not None, x, leaves)
        x, left = x + found.x, left - found.products
        out = leaves(x)
        if wider is not None and not out and found.left > _NOWHERE * found.start:
            preconditioned, right, left = solver_of(wider()), found.residual, limit
            least, wider = enough(preconditioned), None
            continue
        if not out or left <= 1:
            break
        # Solved no further than to where the step leaves the face: beyond it the model means nothing, and an entry of
        # little curvature may be far off. Those that left end there, and the others are solved on: of two columns that
        # are almost copies one would never drive the other out.
        back = pulled(x)
        held |= back != x
        x = back
        right, left = -gradient - times(x), left - 1
    return np.asarray(face.retract(iterate.W, x[:size])), bias_of(x), -dot(gradient, x)


@dataclass(frozen=True)
class Free:
    """A system, and what preconditions it, without the coordinates that are held."""

    product: Callable[[Array], Array]
    solver: Callable[[Array], Array]
    held: NDArray[np.bool_]

    def times(self, v: Array) -> Array:
        return np.where(self.held, 0.0, self.product(v))

    def preconditioned(self, r: Array) -> Array:
        return np.where(self.held, 0.0, self.solver(r))


def solve(
    system: Free, right: Array, limit: int, least: float, impatient: bool, begun: Array, leaves: Callable[[Array], bool]
) -> Solution:
    """Conjugate gradients from zero on a system, until the square of the residual is `least`.

    No further than to where the step, with `begun` added, leaves the face; where it is `impatient`, no further than
    `PATIENCE` products that have made the residual no smaller.
    """

    def curved(p: Array, curvature: float, left: float) -> bool:
        # where nothing is curved a step would be of any length, and the model means nothing there
        return 0.0 < curvature < math.inf and left / curvature * float(np.abs(p).max()) <= _FARTHEST

    def ended(products: int, start: float, left: float, x: Array) -> bool:
        nowhere = impatient and products == PATIENCE and left > start
        return products >= PATIENCE and (nowhere or leaves(begun + x))

    return conjugate_gradients(
        right,
        system.times,
        system.preconditioned,
        limit=limit,
        least=lambda start: least,
        curved=curved,
        ended=ended,
    )


def unit_of(v: Array) -> float:
    """A power of two by which to divide a vector so that float32 holds it; one for all but very long or short ones.

    Products with the curvature are linear, and are formed in float32.
    """
    longest = float(np.abs(v).max(initial=0.0))
    ordinary = longest == 0.0 or not math.isfinite(longest) or 2.0**-_ORDINARY <= longest <= 2.0**_ORDINARY
    return 1.0 if ordinary else 2.0 ** math.frexp(longest)[1]
