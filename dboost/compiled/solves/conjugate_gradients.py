"""Conjugate gradients, in numpy: the products are the caller's, and cost all of the time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Solution:
    """Where a solve ended."""

    # x, residual: of the shape of the right side
    x: Array
    residual: Array
    # left, start: Square of the residual under the preconditioner, at the end and at the start; of all systems.
    left: float
    start: float
    products: int  # Products with the matrix.


def dot(u: NDArray[Any], v: NDArray[Any]) -> float:
    """<u, v>, not by BLAS, whose threads would fight the passes' for the cores and may change the bits."""
    return float(np.sum(u * v))


def dots(u: Array, v: Array) -> Array:
    """<u, v> of each column, by no BLAS either."""
    return np.asarray(np.einsum("ij,ij->j", u, v))


def conjugate_gradients(
    right: Array,
    times: Callable[[Array], Array],
    preconditioned: Callable[[Array], Array],
    *,
    limit: int,
    least: Callable[[float], float],
    curved: Callable[[Array, Any, Any], bool],
    ended: Callable[[int, float, float, Array, Array], bool] = lambda products, start, left, x, residual: False,
    inner: Callable[[Array, Array], Any] = dot,
) -> Solution:
    """Solve A x = right from x = 0, for a positive semidefinite A.

    `right`: (n,); or (n, s), whose columns are systems of their own that share nothing but the products. The residual
    takes its place.
    `limit`: at most so many products.
    `least`: the square of the residual under M at which to end, given that at the start.
    `curved`: whether a step along p may be taken, where its curvature and the square of the residual are these, of each
    system.
    `ended`: whether to end after a step for a reason of the caller's; given the products, the square at the start and
    now, x, and the residual.
    `inner`: <u, v>, of each system; it fixes the order of the sums.

    Examples
    --------
    >>> import numpy as np
    >>> from dboost.compiled.solves.conjugate_gradients import conjugate_gradients, dots
    >>> A = np.array([[4.0, 1.0], [1.0, 3.0]])
    >>> ends = {"limit": 2, "least": lambda start: 0.0, "curved": lambda p, curvature, left: np.all(curvature > 0.0)}
    >>> found = conjugate_gradients(np.array([1.0, 2.0]), lambda v: A @ v, lambda r: r, **ends)
    >>> np.round(A @ found.x, 12).tolist(), found.products
    ([1.0, 2.0], 2)
    >>> both = conjugate_gradients(np.eye(2), lambda v: A @ v, lambda r: r, inner=dots, **ends)
    >>> np.allclose(A @ both.x, np.eye(2)), both.products
    (True, 2)
    """
    # tables of all outputs may be as large as the data: what changes is changed in place
    x, residual, room = np.zeros_like(right), right, np.empty_like(right)
    p = preconditioned(residual).copy()
    squares = inner(residual, p)
    start = left = float(np.sum(squares))
    enough, products = least(start), 0
    while products < limit and left > enough:
        # A curvature that is too large for a number is none that `curved` lets pass.
        with np.errstate(over="ignore", invalid="ignore"):
            q = times(p)
            curvature = inner(p, q)
        products += 1
        if not curved(p, curvature, squares):
            break
        step = _shares(squares, curvature)
        x += np.multiply(step, p, out=room)
        residual -= np.multiply(step, q, out=room)
        del q
        z = preconditioned(residual)
        before, squares = squares, inner(residual, z)
        left = float(np.sum(squares))
        if ended(products, start, left, x, residual):
            break
        p *= _shares(squares, before)
        p += z
        del z
    return Solution(x, residual, left, start, products)


def _shares(part: Any, whole: Any) -> Any:
    """The quotient of each system; zero of one that is solved."""
    return np.divide(part, whole, out=np.zeros(np.shape(whole)), where=np.asarray(whole) != 0.0)
