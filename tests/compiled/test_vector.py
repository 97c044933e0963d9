"""Sums of scaled table rows against dense products, for every number of outputs and precision."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from dboost.compiled.vectors import scaled_rows
from dboost.compiled.vectors.scaled_rows import padded, width

# 1; below, at and above a vector; an odd number of quads; the most that registers hold, one group more, several groups
OUTPUTS = [1, 2, 4, 5, 12, 37, 48, 49, 96, 172]
RTOL = {np.float64: 1e-13, np.float32: 2e-6}


@njit
def gather(index, value, start, stop, table, base, out):
    scaled_rows.gather(index, value, start, stop, table, base, out)


@njit
def scatter(index, value, start, stop, z, table, shift):
    scaled_rows.scatter(index, value, start, stop, z, table, shift)


@njit
def bend(h, i, tied, z, total):
    scaled_rows.bend(h, i, tied, z, total)


@njit
def push(index, value, start, stop, h, rank_one, delta, table):
    scaled_rows.push(index, value, start, stop, h, rank_one, delta, table)


@pytest.fixture(params=OUTPUTS)
def k(request):
    return request.param


@pytest.fixture(params=[np.float64, np.float32], ids=["float64", "float32"])
def dtype(request):
    return request.param


@pytest.mark.parametrize("count", [0, 1, 3, 4, 7, 29])
@pytest.mark.parametrize("values", [np.float64, np.float32])
def test_gather_adds_scaled_rows(rng, k, dtype, count, values):
    table = padded(rng.normal(size=(40, k)).astype(dtype))
    index = rng.integers(0, 40, count + 5).astype(np.int32)
    value = rng.normal(size=count + 5).astype(values)
    base = padded(rng.normal(size=(1, k)).astype(dtype))[0]
    out = np.full_like(base, np.nan)
    wanted = base + value[2 : 2 + count] @ table[index[2 : 2 + count]].astype(float)
    gather(index, value, 2, 2 + count, table, base, out)
    np.testing.assert_allclose(out, wanted, rtol=RTOL[dtype], atol=20 * RTOL[dtype])


@pytest.mark.parametrize("shift", [0, -3, 7])
def test_scatter_adds_to_rows(rng, k, dtype, shift):
    table = padded(rng.normal(size=(40, k)).astype(dtype))
    before = table.astype(float)
    index = rng.permutation(np.arange(max(0, -shift), 40 - max(0, shift)))[:11].astype(np.int32)
    value = rng.normal(size=11).astype(np.float32)
    z = padded(rng.normal(size=(1, k)).astype(dtype))[0]
    scatter(index, value, 1, 10, z, table, shift)
    before[shift + index[1:10]] += value[1:10, None].astype(float) * z
    np.testing.assert_allclose(table, before, rtol=RTOL[dtype], atol=10 * RTOL[dtype])


@pytest.mark.parametrize("tied", [0.0, 0.7])
def test_bend_multiplies_by_the_curvature(rng, k, dtype, tied):
    h = padded(rng.random((5, k)).astype(dtype) / k)
    z = padded(rng.normal(size=(1, k)).astype(dtype))[0]
    before = rng.normal(size=width(k))
    total, row = before.copy(), h[3].astype(float)
    wanted = (np.diag(row) - tied * np.outer(row, row)) @ z
    bend(h, 3, tied, z, total)
    np.testing.assert_allclose(z, wanted, rtol=RTOL[dtype], atol=10 * RTOL[dtype] / k)
    np.testing.assert_array_equal(total, before + z)


@pytest.mark.parametrize("tied", [0.0, 0.7])
def test_push_moves_by_the_curvature(rng, k, dtype, tied):
    table = padded(rng.normal(size=(20, k)).astype(dtype))
    before = table.astype(float)
    h = padded(rng.random((20, k)).astype(dtype) / k)
    delta = padded(rng.normal(size=(1, k)).astype(dtype))[0]
    rank_one = np.full(20, tied)
    index = rng.permutation(20)[:9].astype(np.int32)
    value = rng.normal(size=9).astype(np.float32)
    push(index, value, 0, 9, h, rank_one, delta, table)
    for i, x in zip(index, value, strict=True):
        H = np.diag(h[i].astype(float)) - tied * np.outer(h[i].astype(float), h[i])
        before[i] += x * (H @ delta)
    np.testing.assert_allclose(table, before, rtol=RTOL[dtype], atol=10 * RTOL[dtype])


def test_a_range_has_the_same_bits_wherever_it_stands(rng, k, dtype):
    table = padded(rng.normal(size=(40, k)).astype(dtype))
    index = rng.integers(0, 40, 30).astype(np.int32)
    value = rng.normal(size=30)
    one, other, zero = (np.zeros(width(k), dtype) for _ in range(3))
    gather(index, value, 7, 26, table, zero, one)
    gather(index[7:26].copy(), value[7:26].copy(), 0, 19, table, zero, other)
    assert one.tobytes() == other.tobytes()
