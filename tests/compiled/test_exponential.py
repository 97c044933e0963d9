"""The vectorisable exponential against the library's, in units in the last place."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from dboost.compiled.vectors.exponential import exp_nonpositive


@njit
def _over(x, out):
    for i in range(x.shape[0]):
        out[i] = exp_nonpositive(x[i])


def exponentials(x):
    x = np.asarray(x, float)
    out = np.empty_like(x)
    _over(x, out)
    return out


def units(got, x):
    """Error in units in the last place of the result, against extended precision."""
    exact = np.exp(np.asarray(x, np.longdouble))
    return np.abs((got - exact) / np.spacing(exact.astype(float))).astype(float)


@pytest.mark.parametrize("low,high", [(-708.0, 0.0), (-40.0, 0.0), (-1.0, 0.0), (-1e-6, 0.0), (-708.0, -700.0)])
def test_four_units_on_a_dense_grid(low, high):
    rng = np.random.default_rng(1)
    x = np.concatenate([np.linspace(low, high, 200_001), rng.uniform(low, high, 200_000)])
    assert units(exponentials(x), x).max() <= 4.0


def test_around_the_borders_of_the_reduction():
    """x = (n + 1/2) log 2, where the reduction changes its integer, and its neighbours."""
    middle = -(np.arange(1020) + 0.5) * np.log(2.0)
    x = np.concatenate([np.nextafter(middle, 0), middle, np.nextafter(middle, -np.inf), -np.arange(1020) * np.log(2.0)])
    assert units(exponentials(x), x).max() <= 4.0


def test_limits():
    x = np.array([0.0, -0.0, -5e-324, -1e-17, -707.999, -708.0])
    got = exponentials(x)
    assert got[0] == got[1] == got[2] == got[3] == 1.0
    assert units(got, x).max() <= 4.0
    for far in (-709.0, -745.2, -1e4, -1e308, -np.inf):
        assert exponentials([far])[0] == got[-1]
    assert got[-1] > np.finfo(float).tiny
