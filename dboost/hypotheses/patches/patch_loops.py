"""Loops for patches of images: responses of templates, weighted by masks and kept as bytes, and sums of such bytes.

A response is one chain of fused multiply-adds in float32 over the pixels of the patch in their order, whatever is
computed beside it: so a feature of an image has the same bits in any block of images and beside any other templates.
Sums are in float64.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from dboost.compiled.arrays import Float32, Float64, Int64, UInt8
from dboost.compiled.kept import njit

TILE = 128
"""Templates whose responses are formed together: 49 pixels of them stay in the processor's first cache."""

STEP = 5
"""Pixels of a patch taken per turn; templates are filled up with zeros to a multiple of it."""

_AHEAD = 4
"""Positions of an image whose responses are formed together."""

LEVELS = 256.0
"""A feature is a byte of this many levels: q / LEVELS for q = 0 .. 255, exact in float32."""

_PANEL = 256
_ROWS = 6


@intrinsic
def _larger(typing: Any, one: Any, other: Any) -> Any:
    """The larger of two float32 numbers.

    From a comparison the compiler makes a store under a mask, which takes some processors four times as long.
    """

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        single = ir.FloatType()
        kind = ir.FunctionType(single, [single, single])
        return builder.call(
            builder.module.declare_intrinsic("llvm.maxnum", [single], kind), arguments, fastmath=("nnan", "nsz")
        )

    return types.float32(types.float32, types.float32), emit


@njit(nogil=True, cache=True)
def _lit(image: Float32, taps: Int64, corners: Int64, places: Int64) -> int:
    """Positions whose patch has a pixel that is not zero, in `places`, and their number."""
    n = 0
    for p in range(corners.shape[0]):
        for q in range(taps.shape[0]):
            if image[corners[p] + taps[q]] != 0.0:
                places[n] = p
                n += 1
                break
    return n


@njit(nogil=True, cache=True)
def _damping(
    image: Float32, taps: Int64, corners: Int64, places: Int64, n: int, pixels: int, floor: float, damping: Float32
) -> None:
    """1 / max(contrast, floor) of the patches at the first n places, in `damping` by position."""
    for e in range(n):
        p = places[e]
        total = 0.0
        for q in range(pixels):
            total += image[corners[p] + taps[q]]
        mean = total / pixels
        square = 0.0
        for q in range(pixels):
            difference = image[corners[p] + taps[q]] - mean
            square += difference * difference
        damping[p] = np.float32(1.0 / max(np.sqrt(square), floor))


@njit(nogil=True, cache=True, fastmath={"contract"})
def _responses(
    image: Float32, taps: Int64, corners: tuple[int, int, int, int], tiles: Float32, tile: int, acc: Float32
) -> None:
    """Responses of the templates of a tile at _AHEAD corners, one after the other in `acc`.

    Bounded by loads, so five pixels of four positions are what fits the registers of one turn.
    """
    acc[:] = 0.0
    o0, o1, o2, o3 = corners
    for q in range(0, taps.shape[0], STEP):
        t0, t1, t2, t3, t4 = taps[q], taps[q + 1], taps[q + 2], taps[q + 3], taps[q + 4]
        a0, a1, a2, a3, a4 = image[o0 + t0], image[o0 + t1], image[o0 + t2], image[o0 + t3], image[o0 + t4]
        b0, b1, b2, b3, b4 = image[o1 + t0], image[o1 + t1], image[o1 + t2], image[o1 + t3], image[o1 + t4]
        c0, c1, c2, c3, c4 = image[o2 + t0], image[o2 + t1], image[o2 + t2], image[o2 + t3], image[o2 + t4]
        d0, d1, d2, d3, d4 = image[o3 + t0], image[o3 + t1], image[o3 + t2], image[o3 + t3], image[o3 + t4]
        for t in range(TILE):
            a, b, c, d = acc[0, t], acc[1, t], acc[2, t], acc[3, t]
            z = tiles[tile, q, t]
            a += z * a0
            b += z * b0
            c += z * c0
            d += z * d0
            z = tiles[tile, q + 1, t]
            a += z * a1
            b += z * b1
            c += z * c1
            d += z * d1
            z = tiles[tile, q + 2, t]
            a += z * a2
            b += z * b2
            c += z * c2
            d += z * d2
            z = tiles[tile, q + 3, t]
            a += z * a3
            b += z * b3
            c += z * c3
            d += z * d3
            z = tiles[tile, q + 4, t]
            a += z * a4
            b += z * b4
            c += z * c4
            d += z * d4
            acc[0, t] = a
            acc[1, t] = b
            acc[2, t] = c
            acc[3, t] = d


@njit(nogil=True, cache=True)
def _raise(best: Float32, mask: int, acc: Float32, s: int, gain: float) -> None:
    """Take the responses at a position into account for one mask that sees it."""
    for t in range(TILE):
        best[mask, t] = _larger(gain * acc[s, t], best[mask, t])


@njit(nogil=True, cache=True)
def features(
    images: Float32,
    taps: Int64,
    corners: Int64,
    tiles: Float32,
    tile: int,
    pointer: Int64,
    masks: Int64,
    gains: Float32,
    n_masks: int,
    count: int,
    pixels: int,
    floor: float,
    out: UInt8,
) -> None:
    """Largest masked response, at least 0, of the templates of a tile under every mask in every image, as bytes.

    `images`: float32 array, shape (m, pixels).
    `taps`: int64 array, shape (taps,). Offsets of the pixels of a patch from its corner, filled up to a multiple of
    STEP.
    `corners`: int64 array, shape (positions,). First pixel of the patch at each position.
    `tiles`: float32 array, shape (tiles, taps, TILE). Templates in units of 1 / LEVELS, TILE of them in each, filled up
    with zeros.
    `pointer`, `masks`, `gains`: The masks that see a position, and their values there: entries pointer[p] .. pointer[p
    + 1] - 1.
    `count`: Templates in the tile.
    `pixels`: Pixels of a patch: the first of `taps`.
    `floor`: Responses are divided by the contrast of the patch, the norm of its pixels less their mean, or by this
    where the contrast is less; 0 for responses as they are.
    `out`: Uint8 array, shape (m, n_masks * count). All templates under the first mask, then under the second, ...
    """
    places = np.empty(corners.shape[0] + _AHEAD, np.int64)
    acc = np.empty((_AHEAD, TILE), np.float32)
    best = np.empty((n_masks, TILE), np.float32)
    damping = np.ones(corners.shape[0], np.float32)
    for i in range(images.shape[0]):
        image = images[i]
        n = _lit(image, taps, corners, places)
        if n:
            # the last turn may see the last position more than once
            places[n : n + _AHEAD] = places[n - 1]
        if floor > 0.0:
            _damping(image, taps, corners, places, n, pixels, floor, damping)
        best[:] = 0.0
        for g in range(0, n, _AHEAD):
            first, second, third, fourth = places[g], places[g + 1], places[g + 2], places[g + 3]
            _responses(
                image, taps, (corners[first], corners[second], corners[third], corners[fourth]), tiles, tile, acc
            )
            for s in range(_AHEAD):
                position = places[g + s]
                for e in range(pointer[position], pointer[position + 1]):
                    _raise(best, masks[e], acc, s, gains[e] * damping[position])
        for c in range(n_masks):
            for t in range(count):
                x = best[c, t] + np.float32(0.5)
                out[i, c * count + t] = np.uint8(x if x < 255.0 else 255.0)


@njit(nogil=True, cache=True, fastmath={"contract"})
def _panel(H: UInt8, first: int, count: int, residual: Float64, acc: Float64, h: Float64) -> None:
    """Sums of `count` columns of H (m, c) times residuals, in `acc` (k, _PANEL); the rows in order, _ROWS at a time."""
    acc[:] = 0.0
    m = H.shape[0]
    for start in range(0, m, _ROWS):
        for s in range(_ROWS):
            if start + s < m:
                row = H[start + s, first : first + count]
                for t in range(count):
                    h[s, t] = np.float64(np.int32(row[t]))
            else:
                h[s] = 0.0
        e1, e2, e3 = min(start + 1, m - 1), min(start + 2, m - 1), min(start + 3, m - 1)
        e4, e5 = min(start + 4, m - 1), min(start + 5, m - 1)
        for r in range(residual.shape[1]):
            u0, u1, u2 = residual[start, r], residual[e1, r], residual[e2, r]
            u3, u4, u5 = residual[e3, r], residual[e4, r], residual[e5, r]
            for t in range(_PANEL):
                a = acc[r, t]
                a += h[0, t] * u0
                a += h[1, t] * u1
                a += h[2, t] * u2
                a += h[3, t] * u3
                a += h[4, t] * u4
                a += h[5, t] * u5
                acc[r, t] = a


@njit(nogil=True, cache=True)
def byte_sums(H: UInt8, residual: Float64, out: Float64) -> None:
    """out[j, r] = sum_i H[i, j] / LEVELS residual[i, r] of bytes H (m, c), residual (m, k), out (c, k)."""
    k = residual.shape[1]
    acc = np.zeros((k, _PANEL))
    h = np.zeros((_ROWS, _PANEL))
    for first in range(0, H.shape[1], _PANEL):
        count = min(_PANEL, H.shape[1] - first)
        _panel(H, first, count, residual, acc, h)
        for t in range(count):
            for r in range(k):
                out[first + t, r] = acc[r, t] / LEVELS


@njit(nogil=True, cache=True)
def byte_statistics(H: UInt8, weight: Float64, square: Float64, total: Float64, peak: Float64) -> None:
    """Per column h of bytes H / LEVELS: sum s h**2, sum s h, and max h over examples of positive weight."""
    square[:] = 0.0
    total[:] = 0.0
    peak[:] = 0.0
    for i in range(H.shape[0]):
        s = weight[i]
        if s > 0.0:
            for j in range(H.shape[1]):
                h = H[i, j] / LEVELS
                square[j] += s * h * h
                total[j] += s * h
                peak[j] = max(peak[j], h)
