"""Bounds of steps of many rows lie above the true change of the loss. Those of one row: ``test_pairs``."""

from __future__ import annotations

import numpy as np
import pytest

from dboost.bounds import exponential, quadratic


def steps(rng, shape, scale):
    """Directions of all lengths: single entries, single rows, whole rows of one sign, everything."""
    for _ in range(6):
        delta = rng.normal(size=shape) * 10.0 ** rng.uniform(-3, 1.3) * scale[:, None]
        kind = rng.integers(4)
        if kind == 1:
            delta = np.abs(delta)
        elif kind == 2:
            delta[rng.random(shape) < 0.7] = 0.0
        yield delta


def peaks(problem):
    return np.abs(problem.X).max(axis=0)


def templates(problem):
    """All normalisations for steps of every row at once."""
    present, rho = problem.X != 0, problem.rho
    yield exponential.normalisation(np.full(problem.X.shape[1], rho.max()), problem.c)
    yield exponential.normalisation(np.where(present, rho[:, None], 0).max(axis=0), problem.c)


def usable(a):
    """A length scale for trial steps: a, or one for a zero column."""
    return np.where(np.isfinite(a), a, 1.0)


def assert_above(bound, problem, delta):
    true = problem.change(delta)
    assert bound >= true - 1e-11 * (abs(bound) + abs(true) + problem.loss(problem.F) + 1e-30), (bound, true)


@pytest.mark.full
def test_exponential_templates(problems, rng):
    tried = 0
    for problem in problems:
        mu_plus, mu_minus = problem.sums()
        for a in templates(problem):
            for delta in steps(rng, mu_plus.shape, usable(a)):
                delta[~np.isfinite(a)] = 0.0
                assert_above(exponential.change(delta, mu_plus, mu_minus, a).sum(), problem, delta)
                tried += 1
    assert tried == 120 * 2 * 6


def test_zero_columns_have_infinite_normalisation():
    assert exponential.normalisation(np.array([0.0, 2.0]), 0.5).tolist() == [np.inf, 0.25]
    ones = np.ones((1, 3))
    assert exponential.change(ones, 0 * ones, 0 * ones, np.array([np.inf])).tolist() == [0.0]


def test_quadratic_many_rows(problems, rng):
    tried = 0
    for problem in problems:
        mu_plus, mu_minus = problem.sums()
        scale = 1 / np.where(peaks(problem) > 0, peaks(problem), 1.0)
        D = quadratic.many_rows((problem.s * problem.rho) @ np.abs(problem.X), problem.kappa)
        for delta in steps(rng, mu_plus.shape, scale):
            assert_above(quadratic.change(delta, mu_plus - mu_minus, D).sum(), problem, delta)
            tried += 1
    assert tried == 120 * 6
