"""What the smooth penalties have of their own: conjugates, the pseudo-examples of smooth l1, exact gains."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from dboost.bounds import exponential
from dboost.penalties import L1, L2Squared, SmoothL1
from tests.penalties.optimality import missed


def test_value_is_the_symmetrised_logistic_loss_less_its_value_at_zero(cases):
    for sharpness in [0.1, 1.0, 30.0]:
        W = cases.rows(200, 4)
        rule = SmoothL1(sharpness)
        by_definition = (np.logaddexp(0, sharpness * W) + np.logaddexp(0, -sharpness * W) - 2 * np.log(2)) / sharpness
        np.testing.assert_allclose(rule.value(W), by_definition.sum(axis=1), rtol=1e-12, atol=1e-12)
        assert not rule.value(np.zeros((2, 3))).any()
        small = np.array([[1e-9]])
        assert rule.value(small)[0] == pytest.approx(sharpness * 1e-18 / 4, rel=1e-9)
        excess = np.abs(W) + 2 * np.log(2) / sharpness - by_definition - 2 * np.log(2) / sharpness
        assert (excess >= -1e-12 * np.abs(W)).all() and (excess <= 2 * np.log(2) / sharpness + 1e-12 * np.abs(W)).all()


def test_the_sharper_the_closer_to_l1(cases):
    Z = cases.rows(300, 4)
    np.testing.assert_allclose(SmoothL1(1e6).prox(Z, 0.5), L1().prox(Z, 0.5), atol=2e-5)
    assert np.all(SmoothL1(1e6).value(Z) <= L1().value(Z))


def test_the_step_is_that_of_boosting_with_a_pseudo_example(cases):
    """Against the bound written out: x = b, y = 0, eps = 0, weight lam / b, in a template with a b <= 1."""
    for sharpness in [0.3, 1.0, 5.0]:
        W, mu_plus, mu_minus, a, lam = cases.exponential(300, 3)
        rule = SmoothL1(sharpness)
        new, unbounded = rule.solve_exponential(W, mu_plus, mu_minus, a, lam)
        weight = lam[:, None]
        plus = mu_plus + weight / (1 + np.exp(sharpness * W))
        minus = mu_minus + weight / (1 + np.exp(-sharpness * W))
        short = np.minimum(a, 1 / sharpness)[:, None]
        silent = (mu_plus == 0) & (mu_minus == 0)
        expected = np.where(silent, 0.0, W + 0.5 * short * np.log(plus / minus))
        np.testing.assert_allclose(new, expected, rtol=1e-9, atol=1e-12)
        assert not unbounded.any()


@pytest.mark.parametrize("sharpness", [0.3, 1.0, 5.0])
def test_the_step_lowers_bound_plus_penalty_from_any_row(cases, sharpness):
    W, mu_plus, mu_minus, a, lam = cases.exponential(500, 3)
    rule = SmoothL1(sharpness)
    new, _ = rule.solve_exponential(W, mu_plus, mu_minus, a, lam)
    change = exponential.change(new - W, mu_plus, mu_minus, a) + lam * (rule.value(new) - rule.value(W))
    assert np.all(change <= 1e-12 * (lam * rule.value(W) + a * (mu_plus + mu_minus).sum(axis=1)))
    assert np.count_nonzero(change < 0) > 400


@pytest.mark.full
def test_the_fixed_point_of_the_step_is_the_optimum(cases):
    """Iterated on one fixed bound with one data point on either side it ends where G = lam tanh(b w / 2)."""
    rule, lam = SmoothL1(2.0), np.array([0.7])
    w = np.zeros((1, 1))
    for _ in range(2000):
        plus, minus = 3.0 / (1 + np.exp(w)), 1.0 / (1 + np.exp(-w))
        w, _ = rule.solve_exponential(w, plus, minus, 1.0, lam)
    G = 3.0 / (1 + np.exp(w)) - 1.0 / (1 + np.exp(-w))
    assert missed(rule, w, G, lam)[0] <= 1e-12
    assert missed(rule, w + 0.1, G, lam)[0] > 1e-3


def test_scores_of_the_ridge_are_the_best_that_any_step_does(cases, rng):
    """Entries of a row are on their own: each against a scalar minimisation by scipy, under both bounds."""
    rule = L2Squared()
    _, mu_plus, mu_minus, a, lam = cases.exponential(60, 1)
    D = 10.0 ** rng.uniform(-1, 1, size=60)
    G = mu_plus - mu_minus
    for j in range(60):

        def bound(w, j=j):
            change = exponential.change(np.array([[w]]), mu_plus[[j]], mu_minus[[j]], a[[j]])[0]
            return float(change + lam[j] * w * w / 2)

        found = minimize_scalar(bound, bracket=(-1e-3 * a[j], 1e-3 * a[j]), tol=1e-12)
        score = rule.score_exponential(mu_plus[[j]], mu_minus[[j]], a[j], lam[j])[0]
        assert score == pytest.approx(-found.fun, rel=1e-7, abs=1e-12 * a[j] * (mu_plus[j] + mu_minus[j])[0] + 1e-30)
        assert rule.score_quadratic(G[[j]], D[j], lam[j])[0] == pytest.approx(G[j, 0] ** 2 / 2 / (D[j] + lam[j]))


def test_scores_stay_positive_next_to_zero_pull():
    """Sums that differ in their last bit: their logarithms may be the same, the score is still positive."""
    for rule in (L2Squared(), SmoothL1()):
        for base in (1e-8, 1.0, 1e8):
            plus, minus = np.array([[np.nextafter(base, np.inf)]]), np.array([[base]])
            assert rule.score_exponential(plus, minus, 1.0, 0.3)[0] > 0
            assert rule.score_exponential(minus, minus, 1.0, 0.3)[0] == 0
            assert rule.score_quadratic(plus - minus, 1.0, 0.3)[0] > 0


def test_the_dual_of_the_ridge(cases, rng):
    """sup_W <G, W> - sum_j lam_j |W_j|^2 / 2 is the charge, for all rows and for parts joined."""
    rule = L2Squared()
    G, weights, lam = cases.rows(20, 3), rng.uniform(0.2, 3.0, size=20), 0.37
    W = G / (lam * weights)[:, None]
    supremum = np.sum(G * W) - rule.total(W, lam * weights)
    norms = rule.dual_norm(G)
    sizes = [rule.dual_size(norms[:7], weights[:7]), rule.dual_size(norms[7:], weights[7:])]
    scale, charge = rule.dual_point(rule.join_sizes(sizes), lam)
    assert scale == 1.0 and charge == pytest.approx(supremum, rel=1e-12)
    # a row that never enters is charged nothing
    assert rule.dual_size(norms, np.where(np.arange(20) < 7, weights, np.inf)) == pytest.approx(sizes[0], rel=1e-14)
