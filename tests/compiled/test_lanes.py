"""Functions of one row, for rows of every length about whole vectors: against numpy."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from dboost.compiled.vectors import lanes

LENGTHS = [1, 2, 3, 4, 5, 7, 8, 10, 13, 16, 20, 37]


@njit
def exponentials(f, top):
    lanes.exp_row(f, top)


@njit
def entropies(f, tiny):
    lanes.entropy_row(f, tiny)


@njit
def largest_and_total(f):
    return lanes.largest_of(f), lanes.total_of(f)


@njit
def longest_and_sizes(f):
    return lanes.longest_of(f), lanes.sizes_of(f)


@njit
def logarithm(z):
    return lanes.log1p_of(z)


@njit
def logarithms(z, weight):
    return lanes.log1p_total(z, weight)


@njit
def others(f, own):
    return lanes.others_of(f, own)


@njit
def scaled_others(f, c, own, value, out):
    lanes.scale_others(f, c, own, value, out)


@pytest.fixture(params=LENGTHS)
def guarded(request):
    """A row in the middle of a longer one, whose ends must stay as they are."""
    rng = np.random.default_rng(request.param)
    whole = 20.0 * rng.normal(size=request.param + 8)
    return whole, slice(4, 4 + request.param)


def unharmed(before, after, inside):
    outside = np.ones(before.shape[0], bool)
    outside[inside] = False
    return np.array_equal(before[outside], after[outside])


def test_exponentials(guarded):
    whole, inside = guarded
    before, top = whole.copy(), whole[inside].max()
    exponentials(whole[inside], top)
    np.testing.assert_allclose(whole[inside], np.exp(before[inside] - top), rtol=1e-15)
    assert unharmed(before, whole, inside)


def test_an_exponential_never_vanishes():
    row = np.array([0.0, -1e4, -708.0, -1e300, -709.0])
    exponentials(row, 0.0)
    np.testing.assert_allclose(row, np.exp([0.0, -708.0, -708.0, -708.0, -708.0]), rtol=1e-15)
    assert (row >= np.finfo(float).tiny).all()


def test_entropies(guarded):
    whole, inside = guarded
    whole[inside] = np.abs(whole[inside]) / 60.0
    whole[inside][::3] = 0.0
    whole[inside][1:2] = -1e-18
    before = whole.copy()
    entropies(whole[inside], 1e-300)
    x = np.maximum(before[inside], 0.0)
    np.testing.assert_allclose(whole[inside], x * np.log(np.maximum(x, 1e-300)), rtol=1e-14, atol=1e-17)
    assert unharmed(before, whole, inside)


def test_absolute_values(guarded):
    whole, inside = guarded
    longest, sizes = longest_and_sizes(whole[inside])
    assert longest == np.abs(whole[inside]).max()
    np.testing.assert_allclose(sizes, np.abs(whole[inside]).sum(), rtol=1e-14)
    for place in range(inside.stop - inside.start):
        spoilt = whole[inside].copy()
        spoilt[place] = np.nan
        assert np.isnan(longest_and_sizes(spoilt)).all()
    assert longest_and_sizes(np.zeros(0)) == (0.0, 0.0)


def test_logarithms_keep_what_is_small():
    z = np.concatenate([[0.0], np.logspace(-300, 300, 1001), np.linspace(0.0, 4.0, 997), np.nextafter(1.0, [0.0, 2.0])])
    found = np.array([logarithm(x) for x in z])
    np.testing.assert_allclose(found, np.log1p(z), rtol=1e-15)
    z = z[: z.shape[0] // 8 * 8]
    weight = np.random.default_rng(0).random(z.shape[0])
    np.testing.assert_allclose(logarithms(z, weight), np.sum(weight * np.log1p(z)), rtol=1e-13)


def test_one_element_is_treated_apart(guarded):
    whole, inside = guarded
    row = whole[inside]
    for own in range(row.shape[0]):
        zeroed = row.copy()
        zeroed[own] = 0.0
        # to the bit: 1 - q of a label is a sum of the others, whatever its own size
        assert others(row, own) == largest_and_total(zeroed)[1]
        out = np.full(whole.shape[0], 7.0)
        scaled_others(row, -0.3, own, 5.0, out[inside])
        expected = -0.3 * row
        expected[own] = 5.0
        assert np.array_equal(out[inside], expected)
        assert np.all(out[:4] == 7.0) and np.all(out[inside.stop :] == 7.0)
    huge = row.copy()
    huge[0] = 1e300
    assert others(huge, 0) == others(row, 0)
