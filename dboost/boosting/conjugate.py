"""Conjugate gradients on the settled support, with the curvature of all examples.

Where the support does not change the penalty is smooth, and the step solves (H + penalty's Hessian) d = -gradient on
the face of the penalty through W (``penalties``: the entries, or common sizes of tied entries, that may move). Each
product with H is one pass over the active columns, or none where the driver holds all examples.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dboost.boosting.aim import RESIDUAL
from dboost.boosting.iterate import Iterate
from dboost.boosting.precondition import Preconditioner
from dboost.boosting.problem import Problem

Array = NDArray[np.float64]
# (V, v) -> (X_A'H(X_A V + 1 v'), 1'H(X_A V + 1 v'))
Product = Callable[[Array, Array], tuple[Array, Array]]

_LOOSE = 0.1
# A solve that leaves more than this share of the squared residual got nowhere; after so many products it is looked at.
_NOWHERE = 0.1
_PATIENCE = 5
_CENTRED = 0.01
# Energy of what is pulled back to the face, as a share of the step's, that is worth a second solve.
_PULLED = 0.01
_MOVED = 1e-9
_ROUNDING = 1e-15


def conjugate_step(
    problem: Problem,
    at: Iterate,
    strength: Array,
    diagonal: Array,
    product: Product,
    limit: int,
    value: float | None = None,
    blocks: Preconditioner | None = None,
    wider: Callable[[], Preconditioner] | None = None,
    residual: float = RESIDUAL,
) -> tuple[Array, Array, float]:
    """One inexact Newton step on the support.

    Parameters
    ----------
    strength : float64 array, shape (a,)
        lam_j of the active rows.
    diagonal : float64 array, shape (a or a + 1, k)
        Diagonal of the curvature, the intercept last; preconditions.
    product : callable
        Products with the Hessian at the model.
    limit : int
        At most so many products.
    value : float, optional
        The objective. With it the residual asked for falls with the gradient (superlinear convergence), which pays
        where the support does not change; without it, it is `residual`.
    blocks : Preconditioner, optional
        Blocks of the curvature that precondition together with the diagonal.
    wider : callable, optional
        Blocks of more rows, to go on with where the solve gets nowhere.
    residual : float
        Share of the gradient, under the preconditioner, that the solve may leave.

    Returns
    -------
    W : float64 array, shape (a, k)
        New rows, entries that would have left the face pulled back to it.
    d : float64 array, shape (k,)
        Step of the intercept.
    slope : float
        Decrease that the gradient promises for the unit step (sum of gradient times step).
    """
    a, k = at.W.shape
    face = problem.penalty.face(at.W, strength)
    size = face.dim

    def join(rows: Array, bias: Array) -> Array:
        return np.concatenate([face.restrict(rows), bias]) if problem.fit_intercept else face.restrict(rows)

    def rows_of(v: Array) -> Array:
        return np.asarray(face.expand(v[:size]))

    def bias_of(v: Array) -> Array:
        return v[size:] if problem.fit_intercept else np.zeros(k)

    gradient = -join(at.G, at.bias)
    gradient[:size] += face.gradient(strength)
    # the sign makes the entries of a tied size add up instead of cancelling
    sign = np.where(at.W < 0.0, -1.0, 1.0)
    scale = np.abs(join(diagonal[:a] * sign, diagonal[a] if problem.fit_intercept else np.zeros(k)))
    # without the penalty's share, rows about to vanish (curvature lam / ||w||) stall the solve
    scale[:size] += face.diagonal(strength)
    scale = np.maximum(scale, 1e-10 * max(float(scale.max(initial=0.0)), 1e-300))

    mean = np.zeros(0)
    if value is not None and problem.fit_intercept:
        # a step of a row moves all margins by its mean times the step: with the intercept taking that up, rows of
        # columns far from zero no longer pull on one another (the solve of centred columns, on those as they are)
        mean = problem.statistics.sum[at.active] / problem.statistics.weight
        centred = diagonal[:a] - (mean**2)[:, None] * diagonal[a]
        scale[:size] += face.restrict(np.maximum(centred, _CENTRED * diagonal[:a]) - diagonal[:a])

    def solver_of(formed: Preconditioner) -> Callable[[Array], Array]:
        shifts = not problem.loss.separable
        return formed.solver(face, scale, face.diagonal(strength), shifts, problem.engine.on_driver)

    def by_diagonal(r: Array) -> Array:
        if not mean.size:
            return r / scale
        bias = r[size:] / scale[size:]
        rows = (r[:size] - face.restrict(mean[:, None] * r[size:])) / scale[:size]
        bias = bias - np.sum(mean[:, None] * rows_of(rows), axis=0)
        return np.concatenate([rows, bias])

    def times(x: Array) -> Array:
        rows, bias = product(rows_of(x), bias_of(x))
        q = join(rows, bias)
        q[:size] += face.hessian(x[:size], strength)
        return q

    preconditioned = by_diagonal if blocks is None else solver_of(blocks)

    def accuracy(start: float) -> float:
        if value is None:
            return residual
        # the square has the dimension of the objective
        return min(_LOOSE, float(np.sqrt(max(start, 0.0) / max(value, np.finfo(float).tiny))))

    patience = limit if wider is None else _PATIENCE
    x, rest, left = _solve(times, preconditioned, -gradient, limit, accuracy, patience)
    if wider is not None and left > _NOWHERE:
        preconditioned = solver_of(wider())
        more, _, _ = _solve(times, preconditioned, rest, limit, accuracy)
        x = x + more
    wanted = np.append(face.coordinates(face.retract(at.W, x[:size]) - at.W), x[size:])
    # coordinates that the face pulled back, beyond the rounding of W + step - W
    rounding = np.append(_ROUNDING * np.abs(face.coordinates(at.W)), np.zeros(x.size - size))
    held = np.abs(wanted - x) > _MOVED * np.abs(x) + rounding
    if np.sum(scale * (wanted - x) ** 2) > _PULLED * -_dot(gradient, x):
        # Rows that end at zero, where the solve went beyond it: what is left of the step is solved with them there.
        # Otherwise of two columns that are almost copies one would never drive the other out.
        fixed = np.where(held, wanted, x)
        remains = np.where(held, 0.0, -gradient - times(fixed))
        more, _, _ = _solve(
            lambda v: np.where(held, 0.0, times(v)),
            lambda r: np.where(held, 0.0, preconditioned(r)),
            remains,
            limit,
            accuracy,
        )
        x = fixed + more
    return np.asarray(face.retract(at.W, x[:size])), bias_of(x), -_dot(gradient, x)


def _solve(
    times: Callable[[Array], Array],
    preconditioned: Callable[[Array], Array],
    right: Array,
    limit: int,
    accuracy: Callable[[float], float],
    patience: int = 0,
) -> tuple[Array, Array, float]:
    """Conjugate gradients from zero on times(x) = right: x, the residual, and what share of its square is left.

    `accuracy` says what share of the residual to leave, of its square at the start.

    No further than `patience` products where those have made the residual no smaller.
    """
    x = np.zeros_like(right)
    residual = right
    z = preconditioned(residual)
    p = z.copy()
    rz = _dot(residual, z)
    new = start = rz
    enough = accuracy(start) ** 2 * start
    for done in range(1, limit + 1):
        if not rz > 0.0:
            break
        q = times(p)
        curvature = _dot(p, q)
        if not curvature > 0.0:
            break
        step = rz / curvature
        x += step * p
        residual = residual - step * q
        z = preconditioned(residual)
        new = _dot(residual, z)
        if new <= enough or (done == patience and new > start):
            break
        p = z + (new / rz) * p
        rz = new
    return x, residual, new / start if start > 0.0 else 0.0


def _dot(u: Array, v: Array) -> float:
    # not BLAS, whose threads would fight the passes' for the cores and may change the bits
    return float(np.sum(u * v))
