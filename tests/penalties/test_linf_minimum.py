"""The general l-infinity solver against scipy, on functions whose coordinates are apart and on one whose are not."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

import dboost
from dboost import UsageError, minimise_linf
from dboost.penalties import get_penalty


def by_scipy(function, k, lam):
    """min f(w) + lam t over |w_r| <= t, by SLSQP: smooth, with linear constraints."""

    def value(v):
        f, g = function(v[:k])
        return f + lam * v[k], np.append(g, lam)

    eye = np.eye(k)
    rows = np.vstack([np.hstack([-eye, np.ones((k, 1))]), np.hstack([eye, np.ones((k, 1))])])
    limits = {"type": "ineq", "fun": lambda v: rows @ v, "jac": lambda v: rows}
    best = None
    for size in (0.0, 1.0):
        options = {"maxiter": 3000, "ftol": 1e-15}
        found = minimize(value, np.append(np.zeros(k), size), jac=True, constraints=[limits], options=options)
        best = found if best is None or found.fun < best.fun else best
    return best.fun, best.x[:k]


def exponentials(plus, minus):
    """sum_r p_r e^(-w_r) + q_r e^(w_r), the bound of Duchi & Singer's section 3."""
    return lambda w: (
        float(plus @ np.exp(-w) + minus @ np.exp(w)),
        minus * np.exp(w) - plus * np.exp(-w),
    )


def logistic(A, b):
    """sum_i log(1 + exp(-b_i a_i w)): the coordinates are not apart."""

    def function(w):
        z = b * (A @ w)
        return float(np.logaddexp(0, -z).sum()), -A.T @ (b * np.exp(-np.logaddexp(0, z)))

    return function, 0.25 * np.abs(A.T @ A).sum(axis=1)


@pytest.mark.parametrize("k", [1, 3, 8])
def test_functions_whose_coordinates_are_apart(k):
    rng = np.random.default_rng(k)
    for case in range(15):
        plus, minus = rng.exponential(size=(2, k))
        lam = float(rng.uniform(0.05, 1.2) * np.abs(plus - minus).sum()) + 1e-3
        found = minimise_linf(exponentials(plus, minus), np.zeros(k), lam, separable=True)
        value, w = by_scipy(exponentials(plus, minus), k, lam)
        assert found.value <= value + 1e-9 and found.steps == 1, case
        np.testing.assert_allclose(found.w, w, atol=2e-4)
        assert found.residual <= 1e-12 * (1 + lam)


@pytest.mark.full
@pytest.mark.parametrize("k", [2, 6])
def test_a_function_that_is_bounded_by_its_curvature(k):
    rng = np.random.default_rng(k)
    for case in range(5):
        A = rng.normal(size=(40, k))
        function, curvature = logistic(A, np.where(A[:, 0] + 0.8 * rng.normal(size=40) > 0, 1.0, -1.0))
        lam = float(rng.uniform(0.05, 1.1) * np.abs(function(np.zeros(k))[1]).sum())
        found = minimise_linf(function, rng.normal(size=k), lam, curvature=curvature)
        value, w = by_scipy(function, k, lam)
        assert found.value <= value + 1e-8 and found.residual <= 1e-9 * lam, case
        np.testing.assert_allclose(found.w, w, atol=1e-4)


def test_quadratics_are_the_prox_of_the_penalty():
    rng = np.random.default_rng(0)
    for _ in range(50):
        z, D, lam = rng.normal(size=5), float(rng.uniform(0.2, 3.0)), float(rng.uniform(0.1, 8.0))
        found = minimise_linf(lambda w, z=z, D=D: (D / 2 * np.sum((w - z) ** 2), D * (w - z)), z, lam, separable=True)
        np.testing.assert_allclose(found.w, get_penalty("l1/linf").prox(z[None], lam / D)[0], atol=1e-13)
        again = minimise_linf(lambda w, z=z, D=D: (D / 2 * np.sum((w - z) ** 2), D * (w - z)), z, lam, curvature=D)
        np.testing.assert_allclose(again.w, found.w, atol=1e-10)


def test_zero_where_the_gradient_at_zero_is_small_and_just_below_not():
    plus, minus = np.array([2.0, 0.5, 1.0]), np.array([1.0, 1.5, 1.0])
    size = np.abs(plus - minus).sum()
    for lam, zero in ((size * 1.0001, True), (size * 0.99, False)):
        found = minimise_linf(exponentials(plus, minus), np.ones(3), lam, separable=True)
        assert (found.w == 0).all() == zero and found.w[2] == 0.0


def test_a_minimum_that_no_coordinate_has_alone():
    # without a penalty both fall for ever; with one the sum stops where the pulls add up to lam
    plus = np.array([3.0, 1.0])
    found = minimise_linf(exponentials(plus, np.zeros(2)), np.zeros(2), 0.5, separable=True)
    np.testing.assert_allclose(found.w, np.log(4.0 / 0.5), rtol=1e-12)


def test_refusals():
    square = lambda w: (0.5 * float(w @ w), w)  # noqa: E731
    with pytest.raises(UsageError, match=r"lam=0.*expected a finite number > 0"):
        minimise_linf(square, np.zeros(2), 0)
    with pytest.raises(UsageError, match="start has shape"):
        minimise_linf(square, np.zeros((2, 2)), 1.0)
    with pytest.raises(UsageError, match="neither separable=True nor curvature="):
        minimise_linf(square, np.zeros(2), 1.0)
    with pytest.raises(UsageError, match="curvature=-1"):
        minimise_linf(square, np.zeros(2), 1.0, curvature=-1.0)
    with pytest.raises(UsageError, match=r"gradient has shape \(1,\)"):
        minimise_linf(lambda w: (0.0, np.zeros(1)), np.zeros(2), 1.0, separable=True)
    with pytest.raises(UsageError, match="has no minimum with this lam"):
        minimise_linf(lambda w: (-3.0 * w.sum(), np.full(2, -3.0)), np.zeros(2), 1.0, separable=True)
    steep = lambda w: (50.0 * float((w - 1) @ (w - 1)), 100.0 * (w - 1))  # noqa: E731
    with pytest.raises(UsageError, match="give a larger curvature="):
        minimise_linf(steep, np.zeros(2), 1.0, curvature=1.0)


def test_its_steps_are_counted_and_limited():
    function, curvature = logistic(np.random.default_rng(1).normal(size=(30, 3)), np.ones(30))
    few = minimise_linf(function, np.zeros(3), 0.5, curvature=curvature, max_steps=3)
    assert few.steps == 3 and few.residual > 1e-9
    assert "minimise_linf" in dboost.__all__
