"""MurmurHash3 of terms, 32 bits, as ``sklearn.utils.murmurhash3_32`` (Austin Appleby, public domain)."""

from __future__ import annotations

import numpy as np

from dboost.compiled.kept import njit

_C1, _C2 = np.uint32(0xCC9E2D51), np.uint32(0x1B873593)
_M, _N = np.uint32(5), np.uint32(0xE6546B64)
_F1, _F2 = np.uint32(0x85EBCA6B), np.uint32(0xC2B2AE35)


@njit(nogil=True, cache=True, inline="always")
def _turned(x, left):
    return np.uint32((x << np.uint32(left)) | (x >> np.uint32(32 - left)))


@njit(nogil=True, cache=True)
def murmur3(text, offsets, out):
    """Fill out[i], int32, with the hash of the bytes of term i, with seed 0.

    `offsets`: (terms + 1,).
    """
    for i in range(out.shape[0]):
        begin = offsets[i]
        length = offsets[i + 1] - begin
        h = np.uint32(0)
        whole = length - length % 4
        for p in range(begin, begin + whole, 4):
            k = np.uint32(
                np.uint32(text[p])
                | (np.uint32(text[p + 1]) << np.uint32(8))
                | (np.uint32(text[p + 2]) << np.uint32(16))
                | (np.uint32(text[p + 3]) << np.uint32(24))
            )
            k = np.uint32(_turned(np.uint32(k * _C1), 15) * _C2)
            h = np.uint32(_turned(np.uint32(h ^ k), 13) * _M + _N)
        k = np.uint32(0)
        for p in range(length - 1, whole - 1, -1):
            k = np.uint32((k << np.uint32(8)) | np.uint32(text[begin + p]))
        if whole < length:
            h = np.uint32(h ^ np.uint32(_turned(np.uint32(k * _C1), 15) * _C2))
        h = np.uint32(h ^ np.uint32(length))
        h = np.uint32((h ^ (h >> np.uint32(16))) * _F1)
        h = np.uint32((h ^ (h >> np.uint32(13))) * _F2)
        out[i] = np.int32(np.uint32(h ^ (h >> np.uint32(16))))
