"""The best intercept of a model without features: few passes also where the curvature that is told is too large."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from dboost.problem.null_intercept import best_intercept


def counted(slope, curvature):
    """The search's question, with how often it was asked."""
    asked = []

    def at(b):
        asked.append(b.copy())
        return slope(b), curvature(b)

    return at, asked


@pytest.mark.parametrize("told", [0.0, 0.005, 0.1])
@pytest.mark.parametrize("start", [-40.0, 3.0, 900.0])
def test_a_sum_that_fades_away_slowly_takes_few_passes(start, told):
    """The sums of two examples of a smooth tube of half width 20, with a curvature that is `told` at least."""

    def sums(b):
        return expit(-b - 20.0) - expit(b - 20.0)

    at, asked = counted(
        sums, lambda b: np.maximum(expit(b + 20.0) * expit(-b - 20.0) + expit(b - 20.0) * expit(20.0 - b), told)
    )
    found = best_intercept(at, np.array([start]))
    assert abs(sums(found)[0]) <= 1e-15
    assert len(asked) <= 40


def test_outputs_that_are_done_wait_for_the_others():
    at, asked = counted(
        lambda b: np.array([2.0, 5.0]) - np.array([b[0], np.sinh(b[1])]), lambda b: np.array([1.0, np.cosh(b[1])])
    )
    found = best_intercept(at, np.array([2.0, 0.0]))
    np.testing.assert_allclose(found, [2.0, np.arcsinh(5.0)], rtol=1e-14)
    assert len(asked) <= 15


def test_sums_at_their_rounding_end_the_search():
    # what is left is rounding, of one sign however far the search goes
    at, asked = counted(lambda b: np.where(b < 1.0, 6.0 * (1.0 - b), -8.9e-16), lambda b: np.full(1, 5e-3))
    best_intercept(at, np.array([-50.0]))
    assert len(asked) <= 20
