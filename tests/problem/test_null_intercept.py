"""The best intercept of a model without features: few passes also where the curvature that is told is too large."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from dboost.problem.null_intercept import best_intercept


def counted(slope, curvature):
    """The search's question, with how often it was asked."""
    asked = []

    def iterate(b):
        asked.append(b.copy())
        return slope(b), curvature(b)

    return iterate, asked


@pytest.mark.parametrize("told", [0.0, 0.005, 0.1])
@pytest.mark.parametrize("start", [-40.0, 3.0, 900.0])
def test_a_sum_that_fades_away_slowly_takes_few_passes(start, told):
    """The sums of two examples of a smooth tube of half width 20, with a curvature that is `told` at least."""

    def sums(b):
        return expit(-b - 20.0) - expit(b - 20.0)

    iterate, asked = counted(
        sums, lambda b: np.maximum(expit(b + 20.0) * expit(-b - 20.0) + expit(b - 20.0) * expit(20.0 - b), told)
    )
    found = best_intercept(iterate, np.array([start]))
    assert abs(sums(found)[0]) <= 1e-15
    assert len(asked) <= 40


def test_outputs_that_are_done_wait_for_the_others():
    iterate, asked = counted(
        lambda b: np.array([2.0, 5.0]) - np.array([b[0], np.sinh(b[1])]), lambda b: np.array([1.0, np.cosh(b[1])])
    )
    found = best_intercept(iterate, np.array([2.0, 0.0]))
    np.testing.assert_allclose(found, [2.0, np.arcsinh(5.0)], rtol=1e-14)
    assert len(asked) <= 15


def test_each_output_ends_where_it_would_alone():
    y = np.random.default_rng(5).normal(size=(300, 6)) * 10.0 ** np.arange(-2, 4)

    def search(some):
        labels = y[:, some]
        iterate, asked = counted(
            lambda b: np.clip(labels - b, -1.0, 1.0).sum(axis=0),
            lambda b: np.where(np.abs(labels - b) <= 1.0, 1.0, 0.03 / np.abs(labels - b)).sum(axis=0),
        )
        return best_intercept(iterate, labels.mean(axis=0)), len(asked)

    together, passes = search(np.arange(6))
    alone = [search([r]) for r in range(6)]
    assert together.tolist() == [float(found[0]) for found, _ in alone]
    assert passes == max(asked for _, asked in alone) and len({asked for _, asked in alone}) > 1


def test_sums_at_their_rounding_end_the_search():
    # what is left is rounding, of one sign however far the search goes
    iterate, asked = counted(lambda b: np.where(b < 1.0, 6.0 * (1.0 - b), -8.9e-16), lambda b: np.full(1, 5e-3))
    best_intercept(iterate, np.array([-50.0]))
    assert len(asked) <= 20


@pytest.mark.parametrize("unit", [1.0, 1e3, 1e6])
@pytest.mark.parametrize("width", [0.1, 4.0])
@pytest.mark.parametrize("seed", [0, 1, 6, 28])
def test_sums_that_bend_at_every_example_take_few_passes(seed, width, unit):
    """Huber's loss; beyond its width the curvature that is told is not that of the loss.

    With steps that were not held to a bracket which shrinks, seed 28 went round in a circle to the last pass.
    """
    y, size = unit * 3.0 * np.random.default_rng(seed).normal(size=500), unit * width

    def sums(b):
        return np.clip(y - b, -size, size).sum(keepdims=True)

    def told(b):
        z = np.abs(y - b)
        return np.where(z <= size, 1.0, 0.03 * size / np.maximum(z, size)).sum(keepdims=True)

    iterate, asked = counted(sums, told)
    found = best_intercept(iterate, np.array([y.mean()]))
    assert abs(sums(found)[0]) <= 1e-13 * np.abs(np.clip(y, -size, size)).sum()
    assert len(asked) <= 28
