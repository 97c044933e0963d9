"""Curvature among single entries of W, one block for each output (``solvers.conjugate.entry_blocks``).

An example of a text holds a few of an output's entries, so its products are collected output by output: a value is
looked at once for each entry of its row that takes part, and not once for each output.
"""

from __future__ import annotations

import numpy as np

from dboost.compiled.arrays import Float32, Float64, Int32, Int64, Values
from dboost.compiled.kept import njit


@njit(nogil=True, cache=True)
def add_entry_blocks(
    pointer: Int64,
    slots: Int32,
    values: Values,
    h: Float32,
    rank_one: Float64,
    first: int,
    every: int,
    intercept: bool,
    entries: Int64,
    outputs: Int64,
    places: Int64,
    starts: Int64,
    strides: Int64,
    firsts: Int64,
    out: Float64,
) -> None:
    """Add sum_i x_ij x_il (h_ir - rho_i h_ir**2) for the entries j before l of every output r, and for j = l.

    These are the blocks of the Hessian sum_i (x_i x_i') (x) H_i within an output (docs/math.md 8 (i)).
    Over the examples `first`, `first` + `every`, ... of a block stored by row, slots ascending. Entries
    entries[j]..entries[j + 1] - 1 belong to row j: with their outputs and their places, ascending with j, in the
    output's block. That of r begins at starts[r] of `out`, in rows of strides[r] numbers; firsts[r] is the number of
    entries of the outputs before it. With `intercept` the last row is a column of ones.
    """
    k = h.shape[1]
    where = np.empty(entries[-1], np.int64)
    x = np.empty(entries[-1])
    count, touched = np.zeros(k, np.int64), np.empty(k, np.int64)
    last = entries.shape[0] - 2
    for i in range(first, h.shape[0], every):
        met = 0
        for p in range(pointer[i], pointer[i + 1] + (1 if intercept else 0)):
            inside = p < pointer[i + 1]
            j = slots[p] if inside else last
            value = np.float64(values[p]) if inside else 1.0
            for e in range(entries[j], entries[j + 1]):
                r = outputs[e]
                if count[r] == 0:
                    touched[met] = r
                    met += 1
                c = firsts[r] + count[r]
                where[c] = places[e]
                x[c] = value
                count[r] += 1
        for q in range(met):
            r = touched[q]
            share = np.float64(h[i, r])
            share -= rank_one[i] * share * share
            stop = firsts[r] + count[r]
            for s in range(firsts[r], stop):
                start, moved = starts[r] + where[s] * strides[r], share * x[s]
                for u in range(s, stop):
                    out[start + where[u]] += moved * x[u]
            count[r] = 0
