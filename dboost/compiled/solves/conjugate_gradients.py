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

    # x, residual: (n,)
    x: Array
    residual: Array
    # left, start: Square of the residual under the preconditioner, at the end and at the start.
    left: float
    start: float
    products: int  # Products with the matrix.


def dot(u: NDArray[Any], v: NDArray[Any]) -> float:
    """<u, v>, not by BLAS, whose threads would fight the passes' for the cores and may change the bits."""
    return float(np.sum(u * v))


def conjugate_gradients(
    right: Array,
    times: Callable[[Array], Array],
    preconditioned: Callable[[Array], Array],
    *,
    limit: int,
    least: Callable[[float], float],
    curved: Callable[[Array, float, float], bool],
    ended: Callable[[int, float, float, Array], bool] = lambda products, start, left, x: False,
    inner: Callable[[Array, Array], float] = dot,
) -> Solution:
    """Solve A x = right from x = 0, for a positive semidefinite A.

    `right`: (n,).
    `limit`: at most so many products.
    `least`: the square of the residual under M at which to end, given that at the start.
    `curved`: whether a step along p may be taken, where the square of the residual is `left`.
    `ended`: whether to end after a step for a reason of the caller's.
    `inner`: <u, v>; it fixes the order of the sums.

    Examples
    --------
    >>> import numpy as np
    >>> from dboost.compiled.solves.conjugate_gradients import conjugate_gradients
    >>> A, right = np.array([[4.0, 1.0], [1.0, 3.0]]), np.array([1.0, 2.0])
    >>> ends = {"limit": 2, "least": lambda start: 0.0, "curved": lambda p, curvature, left: curvature > 0.0}
    >>> found = conjugate_gradients(right, lambda v: A @ v, lambda r: r, **ends)
    >>> np.round(A @ found.x, 12).tolist(), found.products
    ([1.0, 2.0], 2)
    """
    x, residual = np.zeros_like(right), right
    z = preconditioned(residual)
    p = z
    start = left = inner(residual, z)
    enough, products = least(start), 0
    while products < limit and left > enough:
        # A curvature that is too large for a number is none that `curved` lets pass.
        with np.errstate(over="ignore", invalid="ignore"):
            q = times(p)
            curvature = inner(p, q)
        products += 1
        if not curved(p, curvature, left):
            break
        step = left / curvature
        x = x + step * p
        residual = residual - step * q
        z = preconditioned(residual)
        before, left = left, inner(residual, z)
        if ended(products, start, left, x):
            break
        p = z + (left / before) * p
    return Solution(x, residual, left, start, products)
