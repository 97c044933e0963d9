"""Softmax of rows of every length that registers hold: against NumPy, and nothing beyond the row touched."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from dboost.compiled.vectors import softmax

LENGTHS = range(1, softmax.LONGEST + 1)


@njit
def parts(f, own):
    return softmax.softmax_parts(f, own)


@njit
def residual(f, own, weight, out):
    return softmax.softmax_residual(f, own, weight, out)


@njit
def scaled(f, weight, out):
    softmax.softmax_scaled(f, weight, out)


def guarded(k, scale=3.0):
    """A row between numbers that would spoil all sums, and what it is to be written into."""
    f = np.full(k + 16, np.nan)
    f[8 : 8 + k] = scale * np.random.default_rng(k).normal(size=k)
    return f, np.full(k + 16, 7.0), slice(8, 8 + k)


@pytest.mark.parametrize("k", LENGTHS)
def test_parts_and_residuals(k):
    whole, out, inside = guarded(k)
    f = whole[inside]
    e = np.exp(f - f.max())
    for own in {0, k // 2, k - 1}:
        found = parts(f, own)
        np.testing.assert_allclose(found, [e[own], e.sum() - e[own], f.max(), f[own]], rtol=1e-14, atol=1e-14)
        assert residual(f, own, 0.5, out[inside]) == found
        expected = -0.5 * e / e.sum()
        expected[own] += 0.5
        np.testing.assert_allclose(out[inside], expected, rtol=1e-12, atol=1e-15)
        np.testing.assert_allclose(out[inside].sum(), 0.0, atol=1e-15)
        assert np.all(out[:8] == 7.0) and np.all(out[inside.stop :] == 7.0)
    assert np.isnan(whole).sum() == 16


@pytest.mark.parametrize("k", LENGTHS)
def test_scaled(k):
    whole, out, inside = guarded(k, 20.0)
    scaled(whole[inside], 2.0, out[inside])
    e = np.exp(whole[inside] - whole[inside].max())
    np.testing.assert_allclose(out[inside], 2.0 * e / e.sum(), rtol=1e-14)
    assert np.all(out[:8] == 7.0) and np.all(out[inside.stop :] == 7.0)


def test_what_a_sure_example_lacks_is_known_to_all_digits():
    """1 - q of the label is the sum of the others, which is far below the rounding of q."""
    f, u = np.array([0.0, -100.0, -101.0, -300.0, -90.0]), np.empty(5)
    own, others, top, mine = residual(f, 0, 1.0, u)
    expected = np.exp(f[1:]).sum()
    assert own == 1.0 and top == mine == 0.0
    np.testing.assert_allclose([others, u[0]], expected, rtol=1e-14)
    np.testing.assert_allclose(-u[1:], np.exp(f[1:]), rtol=1e-14)


@pytest.mark.parametrize("f", [[1e308, -1e308], [-1e308, -1e308], [700.0, 0.0, -800.0], [0.0] * 9])
def test_extreme_margins(f):
    f, u = np.array(f), np.empty(len(f))
    own, others, _, _ = residual(f, 0, 1.0, u)
    assert np.isfinite(u).all() and own + others >= 1.0
    np.testing.assert_allclose(u.sum(), 0.0, atol=1e-15)
