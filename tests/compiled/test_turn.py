"""Lines turned by groups of 64 values: every way in which lines and groups can end together or apart."""

from __future__ import annotations

import numpy as np
import pytest

from dboost.compiled.sparse.transpose import GROUP, turn

LENGTHS = {
    "none": [],
    "empty lines only": [0, 0, 0],
    "one value": [1],
    "a line of one group": [GROUP],
    "a line of many groups, and one more": [5 * GROUP + 1],
    "lines that end with groups": [GROUP, GROUP, 0, 2 * GROUP, 0],
    "lines that end beside groups": [GROUP - 1, 1, 1, GROUP + 1, 3],
    "empty lines around groups": [0, 0, GROUP, 0, 0, 0, GROUP - 1, 0, 1, 0, 0],
    "short lines": [3, 0, 1, 2] * 40,
}


def plainly(first, last, index, values, number, cursor, lines, out):
    """The same, value by value."""
    for i, (start, stop) in enumerate(zip(first, last, strict=True)):
        for p in range(start, stop):
            lines[cursor[index[p]]], out[cursor[index[p]]] = number + i, values[p]
            cursor[index[p]] += 1


def both(first, last, index, values, counts):
    start = np.concatenate([[0], np.cumsum(counts)])
    found = []
    for how in (turn, plainly):
        lines, out = np.full(start[-1], -1, np.int32), np.full(start[-1], np.nan, values.dtype)
        cursor = start[:-1].astype(np.uint32)
        how(first, last, index, values, 7, cursor, lines, out)
        found.append((lines, out, cursor))
    return found


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("lengths", LENGTHS.values(), ids=LENGTHS)
def test_values_go_where_a_plain_loop_puts_them(lengths, dtype):
    rng = np.random.default_rng(len(lengths))
    pointer = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    index = rng.integers(0, 9, pointer[-1]).astype(np.int32)
    values = rng.normal(size=pointer[-1]).astype(dtype)
    ours, plain = both(pointer[:-1], pointer[1:], index, values, np.bincount(index, minlength=9))
    for mine, wanted in zip(ours, plain, strict=True):
        np.testing.assert_array_equal(mine, wanted)


def test_lines_may_lie_anywhere():
    """Columns that a model holds: some of the lines, not next to each other and in any order."""
    rng = np.random.default_rng(3)
    pointer = np.concatenate([[0], np.cumsum(rng.integers(0, 150, 30))])
    index, values = rng.integers(0, 500, pointer[-1]), rng.normal(size=pointer[-1])
    chosen = np.array([17, 3, 4, 29, 11])
    counts = sum(np.bincount(index[pointer[c] : pointer[c + 1]], minlength=500) for c in chosen)
    ours, plain = both(pointer[chosen], pointer[chosen + 1], index, values, counts)
    for mine, wanted in zip(ours, plain, strict=True):
        np.testing.assert_array_equal(mine, wanted)
