"""Both bounds lie above the true change of the loss, touch it at zero, and are not loose by a wrong constant."""

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


def single_rows(delta):
    for j in range(len(delta)):
        only = np.zeros_like(delta)
        only[j] = delta[j]
        yield only


def templates(problem):
    """All normalisations for steps of every row at once."""
    present, rho = problem.X != 0, problem.rho
    n, peak = problem.X.shape[1], peaks(problem)
    ones = np.ones(n)
    yield exponential.uniform(ones, rho.max(), problem.c)
    yield exponential.local(ones, np.where(present, rho[:, None], 0).max(axis=0), problem.c)
    v = 1 / np.where(peak > 0, peak, 1.0)
    rho = np.abs(problem.X) @ v
    yield exponential.uniform(v, rho.max(), problem.c)
    yield exponential.local(v, np.where(present, rho[:, None], 0).max(axis=0), problem.c)


def usable(a):
    """A length scale for trial steps: a, or one for a zero column."""
    return np.where(np.isfinite(a), a, 1.0)


def assert_above(bound, problem, delta):
    true = problem.change(delta)
    assert bound >= true - 1e-11 * (abs(bound) + abs(true) + problem.loss(problem.F) + 1e-30), (bound, true)


def test_exponential_one_row(problems, rng):
    tried = 0
    for problem in problems:
        mu_plus, mu_minus = problem.sums()
        a = exponential.one_row(peaks(problem), problem.c)
        for delta in steps(rng, mu_plus.shape, usable(a)):
            for only in single_rows(delta):
                assert_above(exponential.change(only, mu_plus, mu_minus, a).sum(), problem, only)
                tried += 1
    assert tried > 1500


def test_exponential_templates(problems, rng):
    tried = 0
    for problem in problems:
        mu_plus, mu_minus = problem.sums()
        for a in templates(problem):
            for delta in steps(rng, mu_plus.shape, usable(a)):
                delta[~np.isfinite(a)] = 0.0
                assert_above(exponential.change(delta, mu_plus, mu_minus, a).sum(), problem, delta)
                tried += 1
    assert tried == 120 * 4 * 6


def test_local_is_never_smaller(problems):
    larger = 0
    for problem in problems:
        uniform, local, uniform_v, local_v = templates(problem)
        assert np.all(local >= uniform) and np.all(local_v >= uniform_v)
        larger += np.any(local > uniform * 1.01)
    assert larger > 30


def test_local_of_features_that_never_meet_is_the_one_row_value():
    X = np.diag([2.0, -4.0, 0.5])
    expected = exponential.one_row(np.abs(X).max(axis=0), 1.0)
    peak = np.abs(X).sum(axis=1)
    assert np.array_equal(exponential.local(np.ones(3), peak, 1.0), expected)
    assert np.array_equal(expected, [0.5, 0.25, 2.0])


def test_zero_columns_have_infinite_normalisation():
    assert exponential.one_row(np.array([0.0, 2.0]), 0.5).tolist() == [np.inf, 0.25]
    assert exponential.local(np.ones(2), np.array([0.0, 2.0]), 0.5).tolist() == [np.inf, 0.25]
    assert exponential.uniform(np.ones(2), 0.0, 1.0).tolist() == [np.inf, np.inf]
    ones = np.ones((1, 3))
    assert exponential.change(ones, 0 * ones, 0 * ones, np.array([np.inf])).tolist() == [0.0]


def test_quadratic_one_row(problems, rng):
    tried = 0
    for problem in problems:
        mu_plus, mu_minus = problem.sums()
        D = quadratic.one_row(problem.s @ problem.X**2, problem.kappa)
        scale = 1 / np.where(peaks(problem) > 0, peaks(problem), 1.0)
        for delta in steps(rng, mu_plus.shape, scale):
            for only in single_rows(delta):
                assert_above(quadratic.change(only, mu_plus - mu_minus, D).sum(), problem, only)
                tried += 1
    assert tried > 1500


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


def test_tight_at_zero(problems, rng):
    """No change costs nothing, and the slope of both bounds is minus G, as is that of the loss."""
    for problem in problems[:60]:
        mu_plus, mu_minus = problem.sums()
        G = mu_plus - mu_minus
        a = exponential.one_row(peaks(problem), problem.c)
        D = quadratic.one_row(problem.s @ problem.X**2, problem.kappa)
        nothing = np.zeros_like(G)
        assert not exponential.change(nothing, mu_plus, mu_minus, a).any()
        assert not quadratic.change(nothing, G, D).any()
        delta = 1e-6 * rng.normal(size=G.shape) * usable(a)[:, None]
        delta[~np.isfinite(a)] = 0.0
        slope = -(G * delta).sum()
        size = 1e-4 * np.abs(delta * (mu_plus + mu_minus)).sum() + 1e-9 * (D * (delta**2).sum(1)).sum() + 1e-20
        both = np.array([1.0, -1.0])
        for change in (
            [exponential.change(t * delta, mu_plus, mu_minus, a).sum() for t in both],
            [quadratic.change(t * delta, G, D).sum() for t in both],
            [float(problem.change(t * delta)) for t in both],
        ):
            assert abs((change[0] - change[1]) / 2 - slope) <= size


@pytest.mark.parametrize("which", ["c", "kappa"])
def test_the_constants_are_needed(problems, rng, which):
    """With a constant that is only slightly too bold some step breaks the bound: these tests can see an error."""
    broken = 0
    for problem in problems:
        mu_plus, mu_minus = problem.sums()
        a = exponential.one_row(peaks(problem), 1.3 * problem.c)
        D = quadratic.one_row(problem.s @ problem.X**2, 0.7 * problem.kappa)
        for delta in steps(rng, mu_plus.shape, 0.1 * usable(a)):
            for only in single_rows(delta):
                if which == "c":
                    bound = exponential.change(only, mu_plus, mu_minus, a).sum()
                else:
                    bound = quadratic.change(only, mu_plus - mu_minus, D).sum()
                broken += bound < problem.change(only) * (1 + 1e-9) - 1e-9
    assert broken > 0
