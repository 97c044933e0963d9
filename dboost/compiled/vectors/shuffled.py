"""The place of each row in a random order of the rows of its class, without that order: row by row.

A permutation of 0..n-1 that a key chooses is computed at one number alone, as the rows are cut over many processes: a
network of Feistel over pairs of numbers below about the root of n, walked on from until the number is below n (Black &
Rogaway 2002, sections 3 and 4).
"""

from __future__ import annotations

import numpy as np

from dboost.compiled.arrays import Int64, UInt64
from dboost.compiled.kept import njit

# Rounds of the network, and the least side of its square: with fewer, the orders of a few rows are not all as likely.
_ROUNDS = 8
_LEAST_SIDE = 16


@njit(nogil=True, cache=True, inline="always")
def _mix(h: np.uint64) -> np.uint64:
    # The finaliser of splitmix64 (Steele, Lea & Flood 2014): every input bit reaches every output bit.
    h ^= h >> np.uint64(30)
    h *= np.uint64(0xBF58476D1CE4E5B9)
    h ^= h >> np.uint64(27)
    h *= np.uint64(0x94D049BB133111EB)
    return h ^ (h >> np.uint64(31))


def shuffled_places(strata: Int64, before: Int64, sizes: Int64, keys: UInt64, out: Int64) -> None:
    """Fill `out`, int64 (m,), with the place of each row, 0..sizes[c]-1, in the order of its class c.

    `strata`, (m,): the class of each row. `before`, (k,): rows of each class before these. `sizes`, (k,): all rows of
    each class. `keys`, (k,): they choose the order of each class.
    """
    sides = np.maximum(_LEAST_SIDE, np.sqrt(sizes).astype(np.int64))
    _fill(strata, before.copy(), sizes, sides + (sides * sides < sizes), keys, out)


@njit(nogil=True, cache=True)
def _fill(strata: Int64, rank: Int64, sizes: Int64, sides: Int64, keys: UInt64, out: Int64) -> None:
    for i in range(strata.shape[0]):
        c = strata[i]
        place, size, side, key = rank[c], sizes[c], sides[c], keys[c]
        rank[c] += 1
        while True:
            left, right = place // side, place % side
            for turn in range(_ROUNDS):
                h = _mix(key + np.uint64(turn) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(right))
                # the 32 highest bits as a number below the side
                moved = left + np.int64((h >> np.uint64(32)) * np.uint64(side) >> np.uint64(32))
                left, right = right, moved if moved < side else moved - side
            place = left * side + right
            if place < size:
                break
        out[i] = place
