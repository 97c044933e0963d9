"""Margins of consecutive examples, and sums over them: loops over stored values, which know nothing of the loss."""

from __future__ import annotations

import numpy as np

from dboost.compiled.arrays import Float64, Int32, Int64, Values
from dboost.compiled.kept import njit
from dboost.compiled.vectors.room import lesser, room, zeros
from dboost.compiled.vectors.scaled_rows import gather, scatter

# Examples of dense rows, and columns of them, that are put by column at a time: they stay in the nearest caches.
_EXAMPLES = 64
_COLUMNS = 128


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


@njit(nogil=True, cache=True, error_model="numpy")
def dense_scores(X: Values, places: Int64, W: Float64, out: Float64) -> bool:
    """X[:, places] W into `out` (m, k), each sum in the order of the columns; tell whether all that is read is finite.

    A score has the bits of the same sum over the stored values of a sparse row, in a batch of any size.
    """
    m, a, k = X.shape[0], places.shape[0], W.shape[1]
    x, f = room(_COLUMNS * _EXAMPLES, np.float64), room(k * _EXAMPLES, np.float64)
    odd, by_column = False, X.strides[0] < X.strides[1]
    for first in range(0, m, _EXAMPLES):
        size = np.uint64(lesser(_EXAMPLES, m - first))
        f[:] = 0.0
        for begin in range(0, a, _COLUMNS):
            end = lesser(begin + _COLUMNS, a)
            # Values that lie side by side are read in turn: those of a row, or those of a column.
            if by_column:
                for c in range(begin, end):
                    line, read = np.uint64((c - begin) * _EXAMPLES), X[:, np.uint64(places[c])]
                    for i in range(size):
                        value = np.float64(read[np.uint64(first) + i])
                        odd |= not abs(value) < np.inf
                        x[line + i] = value
            else:
                for i in range(size):
                    for c in range(begin, end):
                        value = np.float64(X[first + i, np.uint64(places[c])])
                        odd |= not abs(value) < np.inf
                        x[np.uint64((c - begin) * _EXAMPLES) + i] = value
            for r in range(k):
                line = np.uint64(r * _EXAMPLES)
                for c in range(begin, end):
                    w, column = W[c, r], np.uint64((c - begin) * _EXAMPLES)
                    for i in range(size):
                        f[line + i] += x[column + i] * w
        for i in range(size):
            for r in range(k):
                out[first + i, r] = f[np.uint64(r * _EXAMPLES) + i]
    return not odd


@njit(nogil=True, cache=True)
def sparse_scores(
    pointer: Int64, slots: Values, values: Values, n_columns: int, places: Int64, W: Float64, out: Float64
) -> bool:
    """Add X[:, places] W to `out` (m, k), as ``dense_scores`` does; X is CSR, and its rows and `places` ascend."""
    m, k, a = out.shape[0], out.shape[1], places.shape[0]
    # A table of all columns costs less than to look every value up, except where there are few of these.
    many = pointer[m] - pointer[0] >= n_columns
    table = zeros(n_columns if many else 0, np.int32)
    if many:
        for c in range(a):
            table[places[c]] = c + 1
    odd = False
    for i in range(m):
        c = 0
        for p in range(pointer[i], pointer[i + 1]):
            j = slots[p]
            if many:
                c = table[j] - 1
                if c < 0:
                    continue
            else:
                # The first place that is not before the column, by halves of those that are left.
                end = a
                while c < end:
                    middle = (c + end) >> 1
                    if places[middle] < j:
                        c = middle + 1
                    else:
                        end = middle
                if c == a:
                    break
                if places[c] != j:
                    continue
            value = np.float64(values[p])
            odd |= not abs(value) < np.inf
            for r in range(k):
                out[i, r] += value * W[c, r]
    return not odd
