"""The rounded l1/linf penalty against its formula and scipy; its derivatives are in test_penalty_faces."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from dboost import BoostedClassifier, ShareBoostClassifier, UsageError
from dboost.penalties import SmoothLinf, get_penalty

SHARP = (0.5, 1.0, 20.0)


def formula(w, b):
    """(1 / b) log sum_r (e^{b w_r} + e^{-b w_r}) less its value at zero, in extended precision."""
    w = np.asarray(w, np.longdouble)
    return np.logaddexp.reduce(np.concatenate([b * w, -b * w]), axis=0) / b - np.log(np.longdouble(2 * len(w))) / b


def slopes(W, b):
    """Derivative of the penalty, sinh(b w_r) / sum_r cosh(b w_r), (rows, k)."""
    u = b * W.astype(np.longdouble)
    return (np.sinh(u) / np.cosh(u).sum(axis=1, keepdims=True)).astype(float)


@pytest.fixture
def W():
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(40, 4)) * 10.0 ** rng.uniform(-6, 2, size=(40, 1))
    rows[0], rows[1, 1:], rows[2] = 0.0, 0.0, 0.7
    return rows


@pytest.mark.parametrize("b", SHARP)
def test_the_value_is_the_formula_and_near_the_largest_entry(W, b):
    value = SmoothLinf(b).value(W)
    np.testing.assert_allclose(value, [float(formula(w, b)) for w in W], rtol=1e-9, atol=1e-17)
    largest = np.abs(W).max(axis=1)
    assert (value <= largest + 1e-15).all() and (value >= largest - np.log(8) / b - 1e-15).all()


@pytest.mark.parametrize("b", SHARP)
@pytest.mark.parametrize("t", [1e-3, 0.3, 5.0])
def test_the_prox_is_the_minimiser(W, b, t):
    penalty = SmoothLinf(b)
    Z = np.clip(W, -10, 10)
    P = penalty.prox(Z, t)
    rest = P - Z + t * slopes(P, b)
    assert np.abs(rest).max() <= 1e-9 * (1 + np.abs(Z).max())
    for z, p in zip(Z[:6], P[:6], strict=True):

        def value(w, z=z):
            return 0.5 * np.sum((w - z) ** 2) + t * float(formula(w, b))

        assert value(p) <= minimize(value, z).fun + 1e-9


def test_the_quadratic_solve_and_its_score():
    rng = np.random.default_rng(1)
    penalty = SmoothLinf(3.0)
    W, G, D, lam = rng.normal(size=(5, 3)), rng.normal(size=(5, 3)), rng.uniform(0.5, 2, 5), rng.uniform(0.1, 2, 5)
    new = penalty.solve_quadratic(W, G, D, lam)
    rest = D[:, None] * (new - W) - G + lam[:, None] * slopes(new, 3.0)
    assert np.abs(rest).max() <= 1e-9
    moved = penalty.solve_quadratic(np.zeros_like(W), G, D, lam)
    gain = (G * moved).sum(axis=1) - 0.5 * D * (moved**2).sum(axis=1) - lam * penalty.value(moved)
    np.testing.assert_allclose(penalty.score_quadratic(G, D, lam), gain, rtol=1e-12)
    assert (gain > 0).all()


def test_shareboost_ends_without_gradient_under_it():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(120, 8))
    y = (X[:, :3] + 0.5 * rng.normal(size=(120, 3))).argmax(axis=1)
    model = ShareBoostClassifier(max_rounds=4, penalty=SmoothLinf(5.0), alpha=0.01, tol=1e-9).fit(X, y)
    F = X @ model.coef_.T + model.intercept_ + 1 - np.eye(3)[y]
    q = np.exp(F - F.max(axis=1, keepdims=True))
    q /= q.sum(axis=1, keepdims=True)
    held = np.flatnonzero(model.coef_.any(axis=0))
    W = model.coef_.T[held]
    rest = X[:, held].T @ (np.eye(3)[y] - q) / 120 - 0.01 * slopes(W, 5.0)
    assert np.abs(rest).max() < 1e-8
    # a stronger one leaves smaller largest entries
    stronger = ShareBoostClassifier(max_rounds=4, penalty="smooth_l1/linf", alpha=0.1).fit(X, y)
    weaker = ShareBoostClassifier(max_rounds=4, penalty="smooth_l1/linf", alpha=0.001).fit(X, y)
    assert np.abs(stronger.coef_).max() < np.abs(weaker.coef_).max()


def test_it_survives_saving(tmp_path):
    from dboost import load_model

    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(60, 4)), rng.integers(0, 3, 60)
    model = ShareBoostClassifier(max_rounds=2, penalty=SmoothLinf(2.0), alpha=0.1).fit(X, y)
    model.save(tmp_path / "m")
    assert load_model(tmp_path / "m").penalty == SmoothLinf(2.0)
    assert get_penalty("smooth_l1/linf") == SmoothLinf(1.0)


def test_one_row_updates_end_at_the_optimum_of_newton_steps():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(60, 4))
    y = (X[:, :3] + rng.normal(size=(60, 3))).argmax(axis=1)
    rows, whole = (
        BoostedClassifier(penalty="smooth_l1/linf", alpha=0.1, update=update, tol=1e-9, max_rounds=2000).fit(X, y)
        for update in ("gradboost", "newton")
    )
    np.testing.assert_allclose(rows.coef_, whole.coef_, atol=1e-3)


def test_solvers_under_the_exponential_bound_refuse_it():
    X, y = np.random.default_rng(5).normal(size=(40, 3)), np.arange(40) % 2
    said = "needs a solve of a row under the exponential bound, which penalty 'smooth_l1/linf'"
    for params in ({"update": "adaboost"}, {"loss": "exp"}):
        with pytest.raises(UsageError, match=said):
            BoostedClassifier(penalty="smooth_l1/linf", **params).fit(X, y)
    with pytest.raises(UsageError, match="expected a positive number"):
        SmoothLinf(0.0)
