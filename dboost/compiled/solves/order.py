"""Random orders of coordinates, as functions of a seed alone."""

from __future__ import annotations

import numpy as np

from dboost.compiled.arrays import Int64
from dboost.compiled.kept import njit


@njit(nogil=True, cache=True)
def shuffle(order: Int64, state: np.uint64) -> np.uint64:
    """Shuffle `order` in place; returns the state of the generator (xorshift) after it, an unsigned 64-bit integer."""
    for i in range(order.shape[0] - 1, 0, -1):
        state ^= (state << np.uint64(13)) & np.uint64(0xFFFFFFFFFFFFFFFF)
        state ^= state >> np.uint64(7)
        state ^= (state << np.uint64(17)) & np.uint64(0xFFFFFFFFFFFFFFFF)
        j = np.int64(state % np.uint64(i + 1))
        t = order[i]
        order[i] = order[j]
        order[j] = t
    return state
