"""Leveraging, classical AdaBoost, epsilon-boosting and steepest descent in the l2 norm (Stratos, Lemmas 1.1 and 1.2).

All against a few lines of dense numpy and scipy's line search.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import brentq

from dboost.boosting import leveraging
from dboost.boosting.leveraging import Leveraging
from dboost.errors import UsageError
from dboost.hypotheses.products.family import Products
from tests.boosting import plain

LOSSES = ("exp", "log", "squared")


def fitting(data, rule="edge", step="exact", alpha=0.0, norm="l1", **settings):
    system = Leveraging(rule, step, norm)
    settings = {"penalty": system.penalty(alpha), "alpha": alpha, "tol": 0.0, "max_rounds": 25, **settings}
    return plain.fitting(data, system=system, **settings)


def correlated(loss, m, n, seed):
    """Columns that share most of their variance: the first ones chosen become too large, or leave again."""
    data = plain.make(loss, m=m, n=n, weights=True, seed=seed, density=1.0)
    common = np.random.default_rng(seed).normal(size=(m, 2))
    data.X[:] = 0.5 * data.X + common @ np.random.default_rng(seed + 1).normal(size=(2, n))
    return data


def along(data, X, w, v, limit=math.inf, linear=0.0):
    """argmin over 0 <= t <= limit of L(w + t v) + linear t, by bisection of the derivative."""
    z = X @ v

    def slope(t):
        return linear - float(z @ data.residual((X @ (w + t * v))[:, None])[:, 0])

    if slope(0.0) >= 0.0:
        return 0.0
    top = min(limit, 30.0 / np.abs(z).max())
    return top if slope(top) <= 0.0 else brentq(slope, 0.0, top, xtol=1e-15, rtol=1e-14)


def by_hand(data, rounds, rule="edge", step="exact", lam=0.0, intercept=True, norm="l1"):
    """Objective before each round and the model after the last, its last entry the intercept."""
    X = np.hstack([data.X, np.ones((len(data.s), 1))]) if intercept else data.X
    n = data.X.shape[1]
    strength = np.append(np.full(n, lam), np.zeros(X.shape[1] - n))
    w = np.zeros(X.shape[1])
    if intercept:
        w[-1] = plain.null_intercept(data)[0]
    square = (data.s[:, None] * X**2).sum(axis=0)
    values = []
    for _ in range(rounds):
        values.append(data.value((X @ w)[:, None]) + strength @ np.abs(w))
        G = X.T @ data.residual((X @ w)[:, None])[:, 0]
        if norm == "l2":
            v = G / np.linalg.norm(G)
            w = w + (along(data, X, w, v) if step == "exact" else step) * v
            continue
        if rule == "joint":
            j = int(np.argmax(np.maximum(np.abs(G) - strength, 0) ** 2 / square))
        elif rule == "nearest":
            d = data.residual((X @ w)[:, None])[:, 0] / data.s
            errors = [[float(data.s @ (d - sign * h) ** 2) for sign in (1, -1)] for h in X.T]
            j = int(np.argmin(np.min(errors, axis=1)))
        else:
            j = int(np.argmax(np.abs(G) - strength))
        sign, limit, linear = (1.0 if G[j] >= 0 else -1.0), math.inf, strength[j]
        held = np.flatnonzero((w != 0) & (strength > 0))
        if lam and held.size:
            gamma = G[held] * np.sign(w[held])
            r = int(held[np.argmin(gamma)])
            if abs(G[j]) - strength[j] <= lam - gamma.min():
                j, sign, limit, linear = r, -np.sign(w[r]), abs(w[r]), -lam
        v = sign * (np.arange(len(w)) == j)
        t = along(data, X, w, v, limit, linear) if step == "exact" else step
        w[j] = 0.0 if t == limit else w[j] + sign * t
    return np.array(values), w


def compare(data, result, values, w, intercept=True, atol=1e-7):
    n = data.X.shape[1]
    np.testing.assert_allclose([r["objective"] for r in result.history], values / data.s.sum(), rtol=1e-9)
    np.testing.assert_allclose(plain.dense(result, n)[:, 0], w[:n], atol=atol)
    if intercept:
        np.testing.assert_allclose(result.intercept[0], w[n], atol=atol)


@pytest.mark.parametrize("intercept", [True, False], ids=["intercept", "no intercept"])
@pytest.mark.parametrize("loss", LOSSES)
def test_algorithm_1_round_by_round(loss, intercept):
    data = plain.make(loss, m=80, n=10, weights=True, seed=50)
    result = fitting(data, fit_intercept=intercept).fit(0.0)
    values, w = by_hand(data, 25, intercept=intercept)
    compare(data, result, values, w, intercept)
    assert (np.diff(values) < 0).all() and np.isnan(result.gap) and np.isnan(result.alpha_max)
    assert result.objective < values[-1] / data.s.sum()


@pytest.mark.parametrize("rule", ["nearest", "joint"])
def test_ls_boost_round_by_round(rule):
    data = plain.make("squared", m=80, n=10, weights=True, seed=51)
    data.X[:] *= np.geomspace(0.2, 3.0, 10)
    result = fitting(data, rule).fit(0.0)
    compare(data, result, *by_hand(data, 25, rule))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("intercept", [True, False], ids=["intercept", "no intercept"])
def test_algorithm_2_round_by_round(loss, intercept):
    data = correlated(loss, m=60, n=10, seed=55)
    alpha = 0.3 * plain.alpha_max(data, "l1", intercept)
    result = fitting(data, alpha=alpha, fit_intercept=intercept, max_rounds=30).fit(alpha)
    values, w = by_hand(data, 30, lam=alpha * data.s.sum(), intercept=intercept)
    compare(data, result, values, w, intercept)
    assert any(r["step"] == "back" for r in result.history), "no weight was moved back: step (d) was not tried"


@pytest.mark.parametrize("loss", LOSSES)
def test_algorithm_2_ends_at_the_optimum_of_the_l1_problem(loss):
    data = correlated(loss, m=60, n=10, seed=55)
    alpha = 0.3 * plain.alpha_max(data, "l1")
    result = fitting(data, alpha=alpha, max_rounds=20_000, tol=1e-10).fit(alpha)
    assert result.stop_reason == "tol" and result.gap <= 1e-10
    best = plain.fitting(data, penalty="l1", tol=1e-11).fit(alpha)
    assert result.objective == pytest.approx(best.objective, rel=2e-10)
    np.testing.assert_allclose(plain.dense(result, 10), plain.dense(best, 10), atol=1e-4)
    # optimality from the formulas: |G_j| <= lam everywhere, = lam in the sign of a weight that is not zero
    lam, W = alpha * data.s.sum(), plain.dense(result, 10)
    U = data.residual(data.X @ W + result.intercept)
    G = data.X.T @ U
    held = W[:, 0] != 0
    assert held.any() and not held.all()
    np.testing.assert_allclose(G[held, 0], lam * np.sign(W[held, 0]), rtol=1e-4)
    assert np.abs(G[~held]).max() <= lam * (1 + 1e-4) and abs(U.sum()) <= 1e-3 * lam
    # weights that were too large came back to exactly zero
    assert sum(r["features_out"] for r in result.history) > 0


def test_every_gap_bounds_the_distance_to_the_optimum():
    data = plain.make("log", m=90, n=12, seed=54)
    alpha = 0.2 * plain.alpha_max(data, "l1")
    best = plain.fitting(data, penalty="l1", tol=1e-12).fit(alpha).objective
    result = fitting(data, alpha=alpha, max_rounds=60).fit(alpha)
    for record in result.history:
        assert record["lower_bound"] <= best * (1 + 1e-11) <= record["objective"] * (1 + 2e-11)


@pytest.mark.parametrize("loss", LOSSES)
def test_epsilon_boosting_round_by_round(loss):
    data = plain.make(loss, m=60, n=8, weights=True, seed=55)
    result = fitting(data, step=0.03, max_rounds=50).fit(0.0)
    compare(data, result, *by_hand(data, 50, step=0.03), atol=1e-12)
    # one pass a round, beside the statistics, the null model and the last objective
    passes = [r["passes"] for r in result.history]
    assert set(np.diff(passes)) == {1}


@pytest.mark.parametrize("loss", ["exp", "log"])
def test_a_line_search_takes_few_passes(loss):
    data = plain.make(loss, m=150, n=8, seed=41, noise=3.0)
    result = fitting(data, max_rounds=30).fit(0.0)
    passes = np.diff([r["passes"] for r in result.history])
    assert passes.mean() <= 4.0, passes


def test_a_hypothesis_that_is_never_wrong_is_capped():
    data = plain.make("exp", m=40, n=3, seed=1, density=1.0)
    data.X[:, 1] = 2.0 * data.y[:, 0]
    result = fitting(data, max_rounds=1, fit_intercept=False).fit(0.0)
    assert result.active.tolist() == [1] and result.W[0, 0] == pytest.approx(15.0)


@pytest.mark.parametrize("step", ["exact", 0.05])
@pytest.mark.parametrize("loss", LOSSES)
def test_rounds_of_lemma_1_1_are_gradient_descent(loss, step):
    data = plain.make(loss, m=80, n=6, weights=True, seed=3)
    result = fitting(data, step=step, norm="l2", max_rounds=15).fit(0.0)
    compare(data, result, *by_hand(data, 15, step=step, norm="l2"))
    assert result.history[0]["features_in"] == 6, "all hypotheses move at once"


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_promise_is_never_above_the_true_progress(loss, norm):
    for seed in range(4):
        data = plain.make(loss, m=80, n=6, weights=True, seed=seed)
        result = fitting(data, norm=norm, max_rounds=30).fit(0.0)
        values = np.array([r["objective"] for r in result.history] + [result.objective])
        promised = np.array([r["promised"] for r in result.history])
        steps = np.array([r["step"] == "step" for r in result.history])
        assert steps.sum() >= 10 and np.all(promised[steps] >= 0.0) and promised[0] > 0.0
        assert np.all(promised[steps] <= -np.diff(values)[steps] + 1e-13 * values[0])


def test_steepest_descent_ends_at_the_minimum():
    data = plain.make("log", m=80, n=6, weights=True, seed=3)
    result = fitting(data, norm="l2", tol=1e-7, max_rounds=3000).fit(0.0)
    free = plain.fitting(data, penalty="none", tol=1e-10).fit("auto")
    assert result.stop_reason == "gradient"
    assert result.objective == pytest.approx(free.objective, rel=1e-9)


def test_too_many_hypotheses_to_give_each_a_weight_are_refused(monkeypatch):
    data = plain.make("log", m=80, n=6, seed=3)
    monkeypatch.setattr(leveraging, "MOST_HYPOTHESES", 5)
    with pytest.raises(UsageError, match="norm='l2' gives each of .* hypotheses a weight.*at most 5"):
        fitting(data, norm="l2", hypotheses=Products(max_degree=2)).fit(0.0)
