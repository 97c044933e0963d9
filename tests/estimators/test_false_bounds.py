"""Bounds on false features: no r-concave variable reaches further, one reaches as far, and limits are what they are."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import differential_evolution

from dboost.estimators.stability import largest_tail, r_concave, worst_case


def searched(mean, place, steps, r):
    """The largest P(X >= place) of falling r-concave variables on 0..steps, by a search over all their shapes."""
    best = 0.0
    for k in range(place, steps + 1):
        x = np.arange(k + 1) / steps

        def lacking(z, x=x):
            # f**r is convex and rises: it begins at 1, and its steps grow
            f = np.concatenate([[1.0], 1.0 + np.cumsum(np.cumsum(np.exp(z)))]) ** (1.0 / r)
            f /= f.sum()
            return -f[place:].sum() + 100.0 * max(0.0, f @ x - mean)

        found = differential_evolution(lacking, [(-12.0, 10.0)] * k, seed=0, maxiter=200, tol=1e-10, polish=False)
        best = max(best, -found.fun)
    return best


@pytest.mark.parametrize(("steps", "r", "mean", "place"), [(3, -0.5, 0.1, 2), (4, -0.25, 0.15, 4)])
def test_the_largest_tail_is_that_of_a_search(steps, r, mean, place):
    assert largest_tail(mean, place / steps, steps, r) == pytest.approx(searched(mean, place, steps, r), rel=1e-4)


def test_limits_of_the_largest_tail():
    assert largest_tail(0.0, 0.5, 50, -0.5) == 0.0 and largest_tail(0.2, 0.0, 50, -0.5) == 1.0
    assert largest_tail(0.3, 0.5, 50, -0.5) == 1.0 and largest_tail(0.6, 1.0, 50, -0.5) == 1.0
    tails = [largest_tail(0.1, t, 50, -0.5) for t in (0.3, 0.5, 0.7, 1.0)]
    assert tails == sorted(tails, reverse=True) and tails[0] < 0.1 / 0.3  # Markov's
    tails = [largest_tail(mean, 0.6, 50, -0.25) for mean in (0.01, 0.05, 0.1, 0.2)]
    assert tails == sorted(tails) and tails[0] > 0.0
    # a share of 0.6 of 100 is reached at 60, not at 61
    assert largest_tail(0.05, 0.6, 100, -0.25) == largest_tail(0.05, 0.595, 100, -0.25)


def test_the_bounds():
    assert worst_case(50, 1000, 0.6) == pytest.approx(12.5) and worst_case(10, 100, 1.0) == pytest.approx(1.0)
    for q, tau in ((5, 0.6), (20, 0.75), (50, 0.9)):
        assert 0.0 < r_concave(q, 1000, tau, 50) < worst_case(q, 1000, tau)
    assert r_concave(0.0, 100, 0.6, 50) == 0.0
    # where a shape says nothing, the bound without one remains
    assert r_concave(90, 100, 0.6, 50) == 100.0 and r_concave(30, 1000, 0.9, 1) <= worst_case(30, 1000, 0.9)
