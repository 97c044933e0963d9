"""Rows of a sparse matrix put by column, or columns by row: one loop, at the speed of memory.

A value's place is known once those of its column before it are counted, so that every value is written somewhere else
than the last one. Where these places are not in the processor's caches, which is as a fit begins, a loop that goes from
value to value waits for memory at each: writes are done in their order. So places are found for a few values, memory is
asked for all of them, and then they are written: 1.2 to 1.7 times as fast, and twice after a pause.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from dboost.compiled.arrays import Int32, Int64, Values
from dboost.compiled.kept import njit
from dboost.compiled.vectors.emit import prefetch
from dboost.compiled.vectors.room import lesser, room

GROUP = 64
"""Values whose places are found before the first of them is written: as many lines of a cache are under way at once."""


@intrinsic
def _ask(typingctx: Any, array: Any, place: Any) -> Any:
    """Ask memory for an element of a one-dimensional array that will be written."""
    signature = types.void(array, types.intp)

    def codegen(context: Any, builder: Any, _: Any, args: Any) -> Any:
        data = context.make_array(array)(context, builder, value=args[0]).data
        prefetch(builder, builder.bitcast(builder.gep(data, [args[1]]), ir.IntType(8).as_pointer()), write=True)
        return context.get_dummy_value()

    return signature, codegen


@njit(nogil=True, cache=True, error_model="numpy")
def turn(
    first: Int64, last: Int64, index: Values, values: Values, number: int, cursor: Values, lines: Int32, out: Values
) -> None:
    """Write line and value of stored values at the cursors of the places they name; the cursors move along.

    `first`, `last`, (l,): line i has the values first[i] .. last[i] - 1; lines may lie anywhere, and in any order.
    `index`: place of each stored value across the lines, 0 or more: its column where lines are rows.
    `number`: number of the first line.
    `cursor`: for each place, where its next value goes.
    `lines`: number of the line of each value.
    `out`: the values.
    """
    where = room(GROUP, np.int64)
    n_lines = first.shape[0]
    i = 0
    at = np.uint64(first[0] if n_lines else 0)
    while i < n_lines:
        # find the places of a group, which begins in line i ...
        count = np.uint64(0)
        j, p = i, at
        while True:
            stop = lesser(np.uint64(last[j]), p + (np.uint64(GROUP) - count))
            for s in range(p, stop):
                c = np.uint64(index[s])
                place = np.int64(cursor[c])
                cursor[c] += 1
                where[count] = place
                count += np.uint64(1)
                _ask(lines, place)
                _ask(out, place)
            p = stop
            if p < np.uint64(last[j]):
                break
            j += 1
            if j == n_lines:
                break
            p = np.uint64(first[j])
            if count == np.uint64(GROUP):
                break
        # ... and go through it again
        count = np.uint64(0)
        for k in range(i, lesser(j + 1, n_lines)):
            start = at if k == i else np.uint64(first[k])
            stop = p if k == j else np.uint64(last[k])
            line = np.int32(number + k)
            for s in range(start, stop):
                q = np.uint64(where[count])
                count += np.uint64(1)
                lines[q] = line
                out[q] = values[s]
        i, at = j, p
