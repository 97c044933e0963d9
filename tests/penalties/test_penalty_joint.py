"""The penalty over all rows at once: its solves under both bounds, its zero test, its prox and its dual."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from dboost.bounds import exponential, quadratic
from dboost.penalties import L2, Frobenius
from tests.penalties.optimality import missed

RULE = Frobenius()


def problem(cases, rng, rows=6, k=3):
    """Rows of mixed strength: one free, one without data, and a strength at which the whole is not zero."""
    W, mu_plus, mu_minus, a, _ = cases.exponential(rows, k)
    D = 10.0 ** rng.uniform(-1, 2, size=rows)
    G = mu_plus - mu_minus
    lam = rng.uniform(0.3, 2.0, size=rows)
    lam *= 10.0 ** rng.uniform(-2, 0) * RULE.dual_size(np.linalg.norm(G, axis=1), lam)
    lam[0] = 0.0
    D[1], a[1], mu_plus[1], mu_minus[1], G[1] = 0.0, np.inf, 0.0, 0.0, 0.0
    return W, mu_plus, mu_minus, a, G, D, lam


def stationarity(X, pull, lam):
    """Largest entry of pull - gradient of the penalty, over the free and the penalised rows."""
    size = RULE.total(X, lam)
    return np.abs(pull - (lam**2)[:, None] * X / size).max()


def test_quadratic_solve_is_stationary_and_never_beaten(cases, rng):
    tried = 0
    for _ in range(40):
        W, _, _, _, G, D, lam = problem(cases, rng)

        def total(X, W=W, G=G, D=D, lam=lam):
            return quadratic.change(X - W, G, D).sum() + RULE.total(X, lam)

        new = RULE.solve_quadratic(W, G, D, lam)
        assert not new[1].any()
        if new[lam > 0].any():
            pull = G - D[:, None] * (new - W)
            pull[1] = 0.0
            assert stationarity(new, pull, lam) <= 1e-11 * (np.abs(G).max() + (D[:, None] * np.abs(W)).max())
            tried += 1
        scale = (G**2).sum() / D[D > 0].min() + (D @ W**2).sum() + RULE.total(W, lam)
        for step in 10.0 ** rng.uniform(-6, 1, size=50):
            trial = new + step * rng.normal(size=W.shape) * (rng.random(W.shape) < 0.6)
            assert total(new) <= total(trial) + 1e-13 * scale
    assert tried > 30


@pytest.mark.full
def test_exponential_solve_is_stationary_and_never_beaten(cases, rng):
    tried = 0
    for number in range(40):
        W, mu_plus, mu_minus, a, _, _, lam = problem(cases, rng)
        # a free entry without opposing examples has no minimiser
        mu_plus[0], mu_minus[0] = mu_plus[0] + 0.1, mu_minus[0] + 0.1

        def total(X, W=W, plus=mu_plus, minus=mu_minus, a=a, lam=lam):
            return exponential.change(X - W, plus, minus, a).sum() + RULE.total(X, lam)

        new, unbounded = RULE.solve_exponential(W, mu_plus, mu_minus, a, lam)
        assert not unbounded.any() and not new[1].any()
        if new[lam > 0].any():
            d = (new - W) / a[:, None]
            pull = mu_plus * np.exp(-d) - mu_minus * np.exp(d)
            terms = mu_plus * np.exp(-d) + mu_minus * np.exp(d)
            rounding = 1e-11 + 1e-15 * (np.abs(new) / a[:, None]).max()
            assert stationarity(new, pull, lam) <= rounding * (terms.max() + lam.max())
            tried += 1
        scale = abs(total(new)) + RULE.total(W, lam) + 1.0
        for step in 10.0 ** rng.uniform(-6, 1, size=50):
            trial = new + step * np.where(np.isfinite(a), a, 1.0)[:, None] * rng.normal(size=W.shape)
            assert total(new) <= total(trial) + 1e-12 * scale
        if number < 3:
            start = new + 0.1 * np.where(np.isfinite(a), a, 1.0)[:, None]
            found = minimize(lambda x, f=total: f(x.reshape(6, 3)), start.ravel(), method="Powell")
            assert total(new) <= found.fun + 1e-10 * scale
    assert tried > 30


@pytest.mark.parametrize("factor", [1 + 1e-9, 1 - 1e-9])
def test_all_rows_are_zero_exactly_inside_the_dual_ball(cases, rng, factor):
    """No row alone would leave at this strength; together they do, just below it."""
    tried = 0
    for _ in range(30):
        _, mu_plus, mu_minus, a, G, D, _ = problem(cases, rng)
        D[1], a[1] = 1.0, 1.0
        zero, weights = np.zeros_like(G), rng.uniform(0.5, 2.0, size=6)
        lam = weights * RULE.dual_size(RULE.dual_norm(G), weights) * factor
        assert not L2().leaves_zero(G, lam).any() or np.count_nonzero(G.any(axis=1)) == 1
        alive = factor < 1
        assert RULE.solve_quadratic(zero, G, D, lam).any() == alive
        assert RULE.solve_exponential(zero, mu_plus, mu_minus, a, lam)[0].any() == alive
        tried += 1
    assert tried == 30


def test_one_row_is_the_norm_of_a_row(cases, rng):
    rule = L2()
    for _ in range(50):
        W, mu_plus, mu_minus, a, lam = cases.exponential(1, 4)
        G, D = mu_plus - mu_minus, 10.0 ** rng.uniform(-2, 2, size=1)
        np.testing.assert_allclose(
            RULE.solve_quadratic(W, G, D, lam), rule.solve_quadratic(W, G, D, lam), rtol=1e-11, atol=1e-14
        )
        joint, alone = (r.solve_exponential(W, mu_plus, mu_minus, a, lam)[0] for r in (RULE, rule))
        np.testing.assert_allclose(joint, alone, rtol=1e-9, atol=1e-12 * a[0])
        assert RULE.total(W, lam) == pytest.approx(rule.total(W, lam), rel=1e-14)


def test_sizes_join_and_bound_the_inner_product(cases, rng):
    for _ in range(50):
        G, W = cases.rows(8, 3), cases.rows(8, 3)
        weights = rng.uniform(0.1, 3.0, size=8)
        norms = RULE.dual_norm(G)
        size = RULE.dual_size(norms, weights)
        parts = [RULE.dual_size(norms[:3], weights[:3]), RULE.dual_size(norms[3:], weights[3:])]
        assert RULE.join_sizes(parts) == pytest.approx(size, rel=1e-14)
        assert np.sum(G * W) <= size * RULE.total(W, weights) * (1 + 1e-13)
        # with equality where the gradient of the penalty points
        steep = G / (weights**2)[:, None]
        assert np.sum(G * steep) == pytest.approx(size * RULE.total(steep, weights), rel=1e-12)
        scale, charge = RULE.dual_point(size, 0.5 * size)
        assert (scale, charge) == (0.5, 0.0) and RULE.dual_point(size, 2.0 * size) == (1.0, 0.0)


def test_the_prox_is_optimal_and_no_other_point_is(cases, rng):
    for _ in range(40):
        Z = cases.rows(6, 3)
        lam = rng.uniform(0.2, 1.0, size=6) * 10.0 ** rng.uniform(-2, 1)
        W = RULE.prox(Z, lam)
        scale = np.abs(Z).sum() + lam.max()
        assert missed(RULE, W, Z - W, lam).max() <= 1e-12 * scale
        moved = W + 0.1 * scale * rng.choice([-1.0, 1.0], size=W.shape)
        assert missed(RULE, moved, Z - moved, lam).max() > 1e-3 * scale


def test_without_strength_every_row_is_free(cases, rng):
    W, mu_plus, mu_minus, a, _ = cases.exponential(50, 4)
    G, D = mu_plus - mu_minus, 10.0 ** rng.uniform(-2, 2, size=50)
    np.testing.assert_array_equal(RULE.solve_quadratic(W, G, D, 0.0), L2().solve_quadratic(W, G, D, 0.0))
    np.testing.assert_allclose(
        RULE.solve_exponential(W, mu_plus, mu_minus, a, 0.0)[0],
        L2().solve_exponential(W, mu_plus, mu_minus, a, 0.0)[0],
        rtol=1e-12,
    )


def test_scores_rank_rows_with_a_pull(cases, rng):
    _, mu_plus, mu_minus, a, lam = cases.exponential(200, 3)
    G, D = mu_plus - mu_minus, 10.0 ** rng.uniform(-2, 2, size=200)
    alive = G.any(axis=1)
    assert np.array_equal(RULE.score_quadratic(G, D, lam) > 0, alive)
    assert np.array_equal(RULE.score_exponential(mu_plus, mu_minus, a, lam) > 0, alive)
    assert np.array_equal(RULE.leaves_zero(G, lam), alive)
    np.testing.assert_allclose(RULE.score_quadratic(G, D, lam), (G**2).sum(axis=1) / (2 * D), rtol=1e-14)
