"""Margins of consecutive examples, and sums over them: loops over stored values, which know nothing of the loss."""

from __future__ import annotations

from dboost.compiled.arrays import Float64, Int32, Int64, Values
from dboost.compiled.kept import njit
from dboost.compiled.vectors.scaled_rows import gather, scatter


@njit(nogil=True, cache=True)
def add_margins(
    pointer: Int64, slots: Int32, values: Values, W: Float64, start: Float64, first: int, F: Float64
) -> None:
    """Margins of the examples from `first` on into the rows of F, from `start`: one row for all, or one for each.

    W, `start` and F have the same width.
    """
    own = start.shape[0] > 1
    if F.shape[1] == 1:
        # one output: a call for each row would cost more than the row
        for t in range(F.shape[0]):
            f = start[first + t if own else 0, 0]
            for p in range(pointer[first + t], pointer[first + t + 1]):
                f += values[p] * W[slots[p], 0]
            F[t, 0] = f
        return
    for t in range(F.shape[0]):
        i = first + t
        gather(slots, values, pointer[i], pointer[i + 1], W, start[i if own else 0], F[t])


@njit(nogil=True, cache=True)
def add_rows(pointer: Int64, slots: Int32, values: Values, first: int, U: Float64, G: Float64) -> None:
    """G += X'U over the examples from `first` on; U and G have the same width."""
    if U.shape[1] == 1:
        for t in range(U.shape[0]):
            u = U[t, 0]
            for p in range(pointer[first + t], pointer[first + t + 1]):
                G[slots[p], 0] += values[p] * u
        return
    for t in range(U.shape[0]):
        i = first + t
        scatter(slots, values, pointer[i], pointer[i + 1], U[t], G, 0)
