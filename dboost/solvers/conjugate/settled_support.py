"""Conjugate gradients on the settled support, with the curvature of all examples.

Where the support does not change the penalty is smooth, and the step solves (H + penalty's Hessian) d = -gradient on
the face of the penalty through W (``penalties``: the entries, or common sizes of tied entries, that may move). Each
product with H is one pass over the active columns, or none where the driver holds all examples. A solve goes no further
than to where its step leaves the face: what left it is held there, and the rest is solved on.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.compiled.solves.conjugate_gradients import Solution, conjugate_gradients, dot, dots
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
"""Products after which it is looked at whether a solve got anywhere, and from there on whether it may end."""
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
    gap: float = 0.0,
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
    `gap`: what the model of a step under a ridge may have for a gap, sum form: no solve goes further than there.
    Returns `W`, (a, k): new rows, entries that would have left the face pulled back to it. `d`, (k,): step of the
    intercept. `slope`: decrease that the gradient promises for the unit step (sum of gradient times step).
    """
    a, k = iterate.W.shape
    bound = problem.objective.bound(iterate.active, lam)
    face, strength = bound.face(iterate.W), bound.strength
    size = face.dim

    def join(rows: Array, bias: Array) -> Array:
        return np.concatenate([rows, bias] if problem.fit_intercept else [rows])

    def rows_of(v: Array) -> Array:
        return np.asarray(face.expand(v[:size]))

    def bias_of(v: Array) -> Array:
        return v[size:] if problem.fit_intercept else np.zeros(k)

    gradient = join(face.restrict(iterate.G), iterate.bias)
    np.negative(gradient, out=gradient)
    gradient[:size] += face.gradient(strength)
    scale = join(face.restrict_diagonal(diagonal[:a]), diagonal[a] if problem.fit_intercept else np.zeros(k))
    np.abs(scale, out=scale)
    # without the penalty's share, rows about to vanish (curvature lam / ||w||) stall the solve
    scale[:size] += face.diagonal(strength)
    # where no example is curved a step would not be finite; its first product then ends the solve
    flat = _FLAT * max(float(np.abs(gradient).max(initial=0.0)), np.finfo(float).tiny / _FLAT)
    # each in the units of its own column, of which one may be 1e24 times another
    squares = np.broadcast_to(problem.statistics.square[iterate.active, None], (a, k))
    unit = join(face.restrict_diagonal(squares), np.full(k, problem.statistics.weight))
    curved = np.divide(scale, unit, out=np.zeros_like(scale), where=unit > 0.0).max(initial=0.0)
    scale = np.maximum(scale, np.maximum(_LEAST_CURVED * float(curved) * unit, flat))
    del unit, curved

    mean = np.zeros(0)
    if value is not None and problem.fit_intercept:
        mean = _curved_means(problem, iterate, diagonal)
        scale[:size] += face.restrict(_centred(diagonal, mean))

    def solver_of(formed: Preconditioner) -> Callable[[Array], Array]:
        shifts = not problem.loss.separable
        return formed.solver(face, scale, face.diagonal(strength), shifts, problem.engine.on_driver)

    def by_diagonal(r: Array) -> Array:
        if not mean.size:
            return r / scale
        z = r.copy()
        z[:size] -= face.restrict(mean * r[size:])
        z /= scale
        z[size:] -= dots(mean, rows_of(z))
        return z

    lengths = np.sqrt(np.append(problem.statistics.square[iterate.active], problem.statistics.weight))

    def times(x: Array) -> Array:
        V, v = rows_of(x), bias_of(x)
        # the margins that a step moves are numbers of float32 too, of columns of 1e21 as of ordinary ones
        farthest = np.append(np.maximum(V.max(axis=1, initial=0.0), -V.min(axis=1, initial=0.0)), np.abs(v).max())
        unit = unit_of(np.maximum(farthest, lengths * farthest))
        rows, bias = product(V, v) if unit == 1.0 else product(V / unit, v / unit)
        q = join(face.restrict(rows), bias)
        del rows
        if unit != 1.0:
            q *= unit
        q[:size] += face.hessian(x[:size], strength)
        return q

    def enough(preconditioned: Callable[[Array], Array]) -> float:
        start = dot(gradient, preconditioned(gradient))
        if value is None:
            return residual**2 * start
        # the square has the dimension of the objective
        return min(_LOOSE**2, max(start, 0.0) / max(value, np.finfo(float).tiny)) * start

    def pulled(x: Array) -> Array:
        """A step as the face pulls it back; what W + step - W rounds is no pull."""
        if not face.bounded:
            return x
        back = np.append(face.coordinates(face.retract(iterate.W, x[:size]) - iterate.W), x[size:])
        rounding = np.append(_ROUNDING * np.abs(face.coordinates(iterate.W)), np.zeros(gradient.size - size))
        return np.where(np.abs(back - x) <= _MOVED * np.abs(x) + rounding, x, back)

    def leaves(x: Array) -> bool:
        return face.bounded and bool(np.sum(scale * (pulled(x) - x) ** 2) > _PULLED * np.sum(scale * x**2))

    ridge = gap > 0.0 and face.apart and problem.penalty.degree == 2 and bool(strength.min(initial=np.inf) > 0.0)

    def solved(left: Array) -> bool:
        """Whether the model of the step has the gap at such a residual: the conjugate of a ridge is a square too."""
        if not ridge:
            return False
        rows = rows_of(left)
        rest = 0.5 * float(np.sum(np.einsum("ij,ij->i", rows, rows) / strength))
        return rest + float(np.sum(np.abs(bias_of(left)) * (1.0 + np.abs(iterate.intercept)))) <= gap

    # where outputs share nothing each has steps of its own: the solve of all as one would have to tell them apart
    shape = (-1, k) if k > 1 and problem.loss.separable and face.apart else (-1,)
    preconditioned = by_diagonal if blocks is None else solver_of(blocks)
    x, right, held = np.zeros(gradient.size), -gradient, np.zeros(gradient.shape, np.bool_)
    least, left = enough(preconditioned), limit
    while left > 0:
        free = Free(times, preconditioned, held)

        def ended(step: Array, rest: Array, begun: Array = x) -> bool:
            return solved(rest) or (face.bounded and leaves(begun + step))

        found = solve(free, free.moving(right), left, least, wider is not None, ended, shape)
        x, left = np.add(x, found.x, out=found.x), left - found.products
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


def _curved_means(problem: Problem, iterate: Iterate, diagonal: Array) -> Array:
    """The mean of each row (a, k) over the curved examples.

    A step of a row moves all margins by its mean times the step: with the intercept taking that up, rows of columns far
    from zero no longer pull on one another (the solve of centred columns, on those as they are).
    """
    a, k = iterate.W.shape
    plain = np.broadcast_to((problem.statistics.sum[iterate.active] / problem.statistics.weight)[:, None], (a, k))
    # The mean that counts is that of the curved examples, whose square is no more than the curvature of the row beside
    # that of the intercept. Where labels are separated the plain one is far beyond, and the solve would end at a
    # residual that only looks small.
    # Each root is drawn by itself: the quotient overflows where no example is curved, and a curvature of weights over
    # many decades may be rounded below zero.
    most = np.maximum(diagonal[:a], 0.0)
    np.sqrt(most, out=most)
    most /= np.sqrt(np.maximum(diagonal[a], np.finfo(float).tiny))
    return np.clip(plain, -most, most)


def _centred(diagonal: Array, mean: Array) -> Array:
    """What the diagonal (a, k) of rows loses where the intercept takes up their means."""
    rows = diagonal[: mean.shape[0]]
    centred = rows - mean**2 * diagonal[-1]
    result: Array = np.maximum(centred, _CENTRED * rows) - rows
    return result


@dataclass(frozen=True)
class Free:
    """A system, and what preconditions it, without the coordinates that are held."""

    product: Callable[[Array], Array]
    solver: Callable[[Array], Array]
    held: NDArray[np.bool_]

    @cached_property
    def _whole(self) -> bool:
        return not self.held.any()

    def moving(self, v: Array) -> Array:
        return v if self._whole else np.where(self.held, 0.0, v)

    def times(self, v: Array) -> Array:
        return self.moving(self.product(v))

    def preconditioned(self, r: Array) -> Array:
        return self.moving(self.solver(r))


def solve(
    system: Free,
    right: Array,
    limit: int,
    least: float,
    impatient: bool,
    over: Callable[[Array, Array], bool],
    shape: tuple[int, ...] = (-1,),
) -> Solution:
    """Conjugate gradients from zero on a system, until the square of the residual is `least`.

    No further than to where it is `over`, given the step and the residual, which is looked at from `PATIENCE` products
    on; where it is `impatient`, no further than so many that have made the residual no smaller. `shape`: of the right
    side, whose columns are systems of their own.
    """

    def curved(p: Array, curvature: Any, left: Any) -> bool:
        # where nothing is curved a step would be of any length, and the model means nothing there
        longest, some = np.abs(p).max(axis=0), np.asarray(left > 0.0)
        if not np.all((curvature > 0.0) & (curvature < math.inf) | ~some):
            return False
        # what is too large for a number is too far
        with np.errstate(over="ignore"):
            return bool(np.all(longest * np.where(some, left, 0.0) <= _FARTHEST * np.where(some, curvature, 1.0)))

    def ended(products: int, start: float, left: float, x: Array, residual: Array) -> bool:
        nowhere = impatient and products == PATIENCE and left > start
        return products >= PATIENCE and (nowhere or over(x.ravel(), residual.ravel()))

    found = conjugate_gradients(
        right.reshape(shape),
        lambda v: system.times(v.ravel()).reshape(shape),
        lambda r: system.preconditioned(r.ravel()).reshape(shape),
        limit=limit,
        least=lambda start: least,
        curved=curved,
        ended=ended,
        inner=dot if len(shape) == 1 else dots,
    )
    return replace(found, x=found.x.ravel(), residual=found.residual.ravel())


def unit_of(v: Array) -> float:
    """A power of two by which to divide a vector so that float32 holds it; one for all but very long or short ones.

    Products with the curvature are linear, and are formed in float32.
    """
    longest = float(np.abs(v).max(initial=0.0))
    ordinary = longest == 0.0 or not math.isfinite(longest) or 2.0**-_ORDINARY <= longest <= 2.0**_ORDINARY
    return 1.0 if ordinary else 2.0 ** math.frexp(longest)[1]
