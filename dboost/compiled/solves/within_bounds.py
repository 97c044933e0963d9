"""A convex quadratic function of a few hundred unknowns, of which some have a sign: its least by an active set.

As of Lawson & Hanson (1974, Solving Least Squares Problems, chapter 23): the entries that are held at zero are guessed,
the others solved for, and entries move between both kinds until the conditions of optimality hold. Unlike there,
several entries may change their kind at once. Each minimiser over the entries that move has a lower value than the one
before, so that no set of held entries comes twice.

Covers: the choice of the entries that are held, in numpy. Does not cover: products and solves, which are the caller's.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

# Sets of held entries that are tried, for each entry that has a sign, and at the least: rounding may go round in a
# circle where no sum in real numbers would.
_SETS = 3
_LEAST_SETS = 20


def held_at_zero(position: Array, signs: NDArray[np.int8]) -> Mask:
    """Which entries are at the end of what their sign allows."""
    found: Mask = (signs != 0) & (position == 0.0)
    return found


def within_bounds(
    right: Array,
    times: Callable[[Array], Array],
    solved: Callable[[Array, Mask], Array],
    start: Array,
    signs: NDArray[np.int8],
    allowed: Array,
    most: int | None = None,
) -> Array:
    """Minimise 1/2 d'A d - <right, d> over d with signs * (start + d) >= 0, A positive semidefinite; return start + d.

    `right`: (n,).
    `solved`: the minimiser of 1/2 d'A d - <residual, d> over vectors that are zero where `moving` is false.
    `start`, (n,): it has its signs.
    `signs`, (n,): 1 for an entry that is not negative, -1 for one that is not positive, 0 for any.
    `allowed`, (n,): what a held entry may be pulled by into what its sign allows, for it to stay where it is.
    `most`: solves after which the best so far has to do.
    Returns (n,). Entries that are held are exactly zero.

    Examples
    --------
    >>> import numpy as np
    >>> from dboost.compiled.solves.within_bounds import within_bounds
    >>> A, right = np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([3.0, 0.0])
    >>> def solved(residual, moving):
    ...     d = np.zeros(2)
    ...     d[moving] = np.linalg.solve(A[np.ix_(moving, moving)], residual[moving])
    ...     return d
    >>> signs, none = np.array([0, 1], np.int8), np.zeros(2)
    >>> within_bounds(right, lambda d: A @ d, solved, none, signs, none).tolist()
    [1.5, 0.0]
    """
    place, residual = start, right
    moving = ~held_at_zero(start, signs) | (signs * right > allowed)
    for _ in range(max(_LEAST_SETS, _SETS * int(np.count_nonzero(signs))) if most is None else most):
        d = solved(residual, moving)
        crossing = moving & (signs * (place + d) < 0.0)
        if not crossing.any():
            place = place + d
            residual = right - times(place - start)
            pulled = ~moving & (signs * residual > allowed)
            if not pulled.any():
                break
            moving = moving | pulled
            continue
        # all that cross zero stop there, where this is a step downwards; otherwise the step ends at the first of them
        nearer = np.where(crossing, 0.0, place + d)
        change = nearer - place
        product = times(change)
        if not float(np.sum(change * (2.0 * residual - product))) > 0.0:
            ratio = place / np.where(crossing, -d, 1.0)
            share = np.min(ratio[crossing])
            crossing &= ratio <= share
            nearer = np.where(crossing, 0.0, place + share * d)
            # an entry that rounding would carry beyond zero is there
            nearer = np.where(signs * nearer < 0.0, 0.0, nearer)
            product = times(nearer - place)
        residual = residual - product
        place, moving = nearer, moving & ~crossing
    return place
