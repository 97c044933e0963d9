"""Curvature among some rows of W, summed over the examples.

Covers: the sum over examples. Does not cover: which rows (``dboost.problem.free_rows``, ``dboost.solvers.formed``), or
the curvature of an example (``fused.hessians``).
"""

from __future__ import annotations

from typing import Final

import numpy as np

from dboost.compiled.arrays import Float64, Int32, Int64, Values
from dboost.compiled.kept import njit
from dboost.compiled.vectors.eight_rows import EIGHT, add_eight
from dboost.compiled.vectors.room import lesser, room, zeros

# Examples whose products are added together, so that each row of the sums is read from memory once for all of them.
_EXAMPLES: Final = 64
# Products of whole rows, in vectors, take this share of the time of products of the values that are there.
_IN_VECTORS: Final = 8


@njit(nogil=True, cache=True, error_model="numpy")
def add_curvature(
    pointer: Int64,
    slots: Int32,
    values: Values,
    place: Int64,
    bias: int,
    h: Float64,
    rank_one: Float64,
    H: Float64,
) -> None:
    """Add X_F'H X_F to H, symmetric, from the curvature diag(h_i) - r_i h_i h_i' of every example.

    Entry (j, r) of the columns F lies at j k + r, those of the intercept (a column of ones) last. `place` (a,) is the
    place of each column of the cut in F, -1 for the others; `bias` is 1 with an intercept, else 0.
    """
    m, k = h.shape
    size = H.shape[0]
    most = size // k
    # The products of an example with itself, of each output; and of all outputs with one another, a block of examples
    # at a time, below the sums.
    own = zeros(most * most * k, np.float64).reshape((most, most, k))
    table = zeros((size + _EXAMPLES) * size, np.float64).reshape((size + _EXAMPLES, size))
    x = zeros(_EXAMPLES * most, np.float64).reshape((_EXAMPLES, most))
    at = room(_EXAMPLES * most, np.int64).reshape((_EXAMPLES, most))
    count, bent, scale = zeros(_EXAMPLES, np.int64), room(k, np.float64), room(EIGHT, np.float64)
    for first in range(0, m, _EXAMPLES):
        stop = lesser(first + _EXAMPLES, m)
        pairs, coupled = 0, False
        for i in range(first, stop):
            b, held = i - first, 0
            for p in range(pointer[i], pointer[i + 1]):
                if place[slots[p]] >= 0:
                    at[b, held], x[b, held] = place[slots[p]], values[p]
                    held += 1
            if bias:
                at[b, held], x[b, held] = most - 1, 1.0
                held += 1
            count[b] = held
            pairs += held * held
            coupled = coupled or (held > 0 and rank_one[i] != 0.0)
            for r in range(k):
                bent[r] = h[i, r] - rank_one[i] * h[i, r] * h[i, r]
            for a in range(held):
                for c in range(held):
                    if at[b, c] <= at[b, a]:
                        both, sums = x[b, a] * x[b, c], own[at[b, a], at[b, c]]
                        for r in range(k):
                            sums[r] += both * bent[r]
        if not coupled:
            continue
        if pairs * _IN_VECTORS < _EXAMPLES * most * most:
            for i in range(first, stop):
                b = i - first
                for a in range(count[b]):
                    for c in range(count[b]):
                        if at[b, c] <= at[b, a]:
                            both, column = -rank_one[i] * x[b, a] * x[b, c], at[b, c] * k
                            for r in range(k):
                                row, share = table[at[b, a] * k + r], both * h[i, r]
                                for q in range(k):
                                    row[column + q] += share * h[i, q]
            continue
        table[size:] = 0.0
        for i in range(first, stop):
            b = i - first
            row = table[size + b]
            for a in range(count[b]):
                for r in range(k):
                    row[at[b, a] * k + r] = x[b, a] * h[i, r]
        for e in range(size):
            for eight in range(0, stop - first, EIGHT):
                for p in range(EIGHT):
                    i = lesser(first + eight + p, m - 1)
                    scale[p] = -rank_one[i] * table[size + eight + p, e]
                add_eight(table, e, size + eight, scale, 0, e + 1)
    # Only blocks on and below the diagonal were summed. Of one output the sums are those of differences, which a
    # difference of sums would lose where its probability is nearly one.
    for a in range(most):
        for c in range(a + 1):
            for r in range(k):
                table[a * k + r, c * k + r] = own[a, c, r]
                table[c * k + r, a * k + r] = own[a, c, r]
    for j in range(size):
        for q in range(j + 1):
            H[j, q] += table[j, q]
            if q < j:
                H[q, j] = H[j, q]
