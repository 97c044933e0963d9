"""A digest of large arrays that is as fast as reading them: it tells data apart, it does not withstand an attack."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.compiled.arrays import UInt64
from dboost.compiled.kept import njit

_LANES = 8


def digest_of(array: NDArray[Any]) -> bytes:
    """64 bytes that depend on every byte of the array and on where it stands, and the bytes that fill no word."""
    data = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    whole = data.shape[0] - data.shape[0] % (8 * _LANES)
    lanes = np.arange(1, _LANES + 1, dtype=np.uint64)
    _digest(data[:whole].view(np.uint64), lanes)
    return lanes.tobytes() + data[whole:].tobytes()


@njit(nogil=True, cache=True)
def _digest(words: UInt64, lanes: UInt64) -> None:
    # Each step is a bijection of the lane for a given word, and of the word for a given lane: a word that differs is
    # not forgotten. The lanes are apart so that the processor multiplies for several at once.
    odd, shift = np.uint64(0x9E3779B97F4A7C15), np.uint64(32)
    a, b, c, d = lanes[0], lanes[1], lanes[2], lanes[3]
    e, f, g, h = lanes[4], lanes[5], lanes[6], lanes[7]
    for q in range(words.shape[0] // 8):
        # unsigned, so that no index is looked at for its sign
        p = np.uint64(8) * np.uint64(q)
        a = (a ^ words[p]) * odd
        b = (b ^ words[p + np.uint64(1)]) * odd
        c = (c ^ words[p + np.uint64(2)]) * odd
        d = (d ^ words[p + np.uint64(3)]) * odd
        e = (e ^ words[p + np.uint64(4)]) * odd
        f = (f ^ words[p + np.uint64(5)]) * odd
        g = (g ^ words[p + np.uint64(6)]) * odd
        h = (h ^ words[p + np.uint64(7)]) * odd
        a ^= a >> shift
        b ^= b >> shift
        c ^= c >> shift
        d ^= d >> shift
        e ^= e >> shift
        f ^= f >> shift
        g ^= g >> shift
        h ^= h >> shift
    lanes[0], lanes[1], lanes[2], lanes[3] = a, b, c, d
    lanes[4], lanes[5], lanes[6], lanes[7] = e, f, g, h
