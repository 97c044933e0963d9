"""Weights of one sign: against scikit-learn, SciPy, brute force and the conditions of optimality in dense numpy.

Covers: fits by settings, paths, the penalty with signs, compiled descents. Does not cover: names, models and refusals
(tests/estimators), glmnet (lab).
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import ElasticNet, Lasso

from dboost import penalties
from dboost.boosting import fit as fits
from dboost.boosting import path as paths
from dboost.columns.given import PENALTY_FACTORS, Features, Signs
from dboost.engine.local import LocalEngine
from dboost.errors import UsageError
from dboost.losses import LOSSES
from dboost.penalties import L1, get_penalty
from dboost.penalties.signed import Signed, rightly_signed
from tests.boosting import plain

N = 12
LOWER = np.where(np.arange(N) % 3 == 0, 0.0, -np.inf)
UPPER = np.where(np.arange(N) % 3 == 1, 0.0, np.inf)
MIXED = Signs.given(lower=LOWER, upper=UPPER)
SIGNS = MIXED.of_columns(Features(N, None))
ROWS = ("l1", "l1/l2", "l1/linf", "elastic_net", "l1/l2+l1", "l1/l2+ridge")


def test_a_penalty_that_is_not_said_to_look_at_sizes_is_refused():
    class Other(L1):
        name = "other"
        sizes_only = False

    with pytest.raises(UsageError, match="'other' is not said to be one.*sizes_only"):
        plain.fitting(plain.make("log", m=20, n=N, seed=4), penalty=Other(), signs=MIXED)


# ---- the penalty ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ROWS)
def test_the_row_solve_is_the_best_of_its_orthant(name):
    """min_w D/2 ||w||^2 - <v, w> + lam omega(w) over rows of one sign, by SciPy from several starts."""
    rng = np.random.default_rng(3)
    rule, signs = get_penalty(name), np.array([1, -1, 0, 1, -1], np.int8)
    W, G, D, lam = rng.normal(size=(5, 3)), 2.0 * rng.normal(size=(5, 3)), rng.uniform(0.5, 2.0, 5), np.full(5, 0.7)
    W = rightly_signed(W, signs)
    signed = Signed(rule, signs)
    new = signed.solve_quadratic(W, G, D, lam)

    def value(j, w):
        return D[j] / 2 * np.sum((w - W[j]) ** 2) - G[j] @ (w - W[j]) + lam[j] * rule.value(w[None])[0]

    for j, sign in enumerate(signs.tolist()):
        assert np.all(sign * new[j] >= 0.0)
        bounds = [{1: (0.0, None), -1: (None, 0.0), 0: (None, None)}[sign]] * 3
        starts = [W[j], new[j], rightly_signed(rng.normal(size=(1, 3)), signs[j : j + 1])[0]]
        best = min(minimize(partial(value, j), one, method="Powell", bounds=bounds).fun for one in starts)
        assert value(j, new[j]) <= best + 1e-7
    zero = np.zeros_like(G)
    gained = signed.score_quadratic(G, D, lam)
    moved = signed.solve_quadratic(zero, G, D, lam)
    for j in range(5):
        less = -(D[j] / 2 * moved[j] @ moved[j] - G[j] @ moved[j] + lam[j] * rule.value(moved[j][None])[0])
        assert gained[j] == pytest.approx(less, rel=1e-9, abs=1e-12)
    np.testing.assert_array_equal(signed.leaves_zero(G, lam), np.any(moved != 0.0, axis=1))
    # the dual norm is the largest <g, w> over rows of one sign with omega(w) = 1, up to what is drawn
    if name in ("l1", "l1/l2", "l1/linf"):
        drawn = rightly_signed(rng.normal(size=(5 * 4000, 3)) ** 3, np.repeat(signs, 4000)).reshape(5, 4000, 3)
        size = rule.value(drawn.reshape(-1, 3)).reshape(5, 4000)
        ratio = np.max(np.einsum("jr,jcr->jc", G, drawn) / np.where(size > 0.0, size, np.inf), axis=1)
        norms = signed.dual_norm(G)
        assert np.all(ratio <= norms + 1e-12) and np.all(norms <= 1.1 * np.maximum(ratio, 0.0) + 1e-12)


# ---- fits ----------------------------------------------------------------------------------------------------------

UPDATES = ["newton", "gradboost"]
CASES = plain.covering(
    [name for name in LOSSES if name != "exp"],
    list(ROWS),
    UPDATES,
    [True, False],
    # the quadratic bound is none of one, and comes near the others slowly
    allowed=lambda loss, penalty, update, free: update == "newton" or loss not in ("poisson", *plain.KINKED),
)


@pytest.mark.parametrize("loss,penalty,update,intercept", CASES)
def test_the_optimum_of_mixed_signs(loss, penalty, update, intercept):
    """A certified model has its signs, and a proximal step in dense numpy leaves it where it is."""
    data = plain.make(loss, m=90, n=N, seed=4, weights=True)
    more = {} if update == "newton" else {"select": "template"}
    tol = 1e-6 if update != "newton" else 1e-8
    asked = plain.fitting(data, penalty=penalty, update=update, tol=tol, fit_intercept=intercept, signs=MIXED, **more)
    largest = asked.alpha_max()
    found = asked.fit(0.1 * largest)
    W = plain.dense(found, N)
    G = data.X.T @ data.residual(data.X @ W + found.intercept)
    lam, bend = 0.1 * largest * data.s.sum(), np.linalg.norm(data.X.T @ (data.s[:, None] * data.X), 2)
    rule = get_penalty(penalty)
    assert found.stop_reason == "tol" and found.gap <= tol and np.all(SIGNS[:, None] * W >= 0.0)
    fixed = rule.prox(rightly_signed(W + G / bend, SIGNS), lam / bend)
    assert np.abs(fixed - W).max() <= 10.0 * np.sqrt(tol)
    # what leaves its sign at the optimum would have to be pulled beyond the penalty the right way
    assert np.all(Signed(rule, SIGNS).dual_norm(G)[~np.any(W, axis=1)] <= lam * (1.0 + 10.0 * np.sqrt(tol)))
    assert asked.fit(largest * 1.0001).active.size == 0 < asked.fit(largest * 0.99).active.size


@pytest.mark.parametrize("ratio", [1.0, 0.4])
@pytest.mark.parametrize("accelerators", [None, ()])
def test_scikit_learns_positive_lasso_and_elastic_net(ratio, accelerators):
    data = plain.make("squared", m=90, n=N, seed=4)
    data.X[:, ::2] *= -1.0
    penalty = penalties.ElasticNet(ratio) if ratio < 1.0 else "l1"
    asked = plain.fitting(data, penalty=penalty, tol=1e-11, signs=Signs.given(positive=True), accelerators=accelerators)
    alpha = 0.05 * asked.alpha_max()
    kind = ElasticNet(alpha=alpha, l1_ratio=ratio, positive=True, tol=1e-14, max_iter=100_000)
    best = (kind if ratio < 1.0 else Lasso(alpha=alpha, positive=True, tol=1e-14, max_iter=100_000)).fit(data.X, data.y)
    found = asked.fit(alpha)
    np.testing.assert_allclose(plain.dense(found, N)[:, 0], best.coef_, atol=1e-6)
    assert found.intercept[0] == pytest.approx(best.intercept_, abs=1e-6)
    assert 0 < found.active.size < np.count_nonzero(plain.fitting(data, penalty=penalty).fit(alpha).W)


@pytest.mark.parametrize("update,select", [("newton", "greedy"), ("gradboost", "cyclic"), ("adaboost", "template")])
def test_bounded_quasi_newton_finds_the_same_logistic_model(update, select):
    """Weights as differences of two that are not negative, one of them zero where a sign is asked for: L-BFGS-B."""
    data = plain.make("log", m=90, n=N, seed=4)
    found = plain.fitting(data, penalty="l1", tol=1e-8, signs=MIXED, update=update, select=select).fit(0.02)
    lam = 0.02 * data.s.sum()

    def value(x):
        w, b = x[:N] - x[N : 2 * N], x[-1]
        F = data.X @ w[:, None] + b
        U = data.residual(F)
        g = -(data.X.T @ U)[:, 0]
        return data.value(F) + lam * x[: 2 * N].sum(), np.r_[g + lam, lam - g, -U.sum()]

    up = [(0.0, 0.0) if sign < 0 else (0.0, None) for sign in SIGNS.tolist()]
    down = [(0.0, 0.0) if sign > 0 else (0.0, None) for sign in SIGNS.tolist()]
    limits = {"maxiter": 20_000, "maxfun": 40_000, "ftol": 1e-15, "gtol": 1e-10}
    start = np.zeros(2 * N + 1)
    best = minimize(value, start, jac=True, method="L-BFGS-B", bounds=[*up, *down, (None, None)], options=limits)
    assert found.objective * data.s.sum() == pytest.approx(best.fun, rel=1e-6)
    assert found.lower_bound * data.s.sum() <= best.fun and found.gap <= 1e-8


def test_a_path_keeps_them_and_bounds_of_no_kind_change_no_bit():
    data = plain.make("multinomial", m=120, n=N, seed=5)
    settings = fits.FitSettings("multinomial", "l1/l2", tol=1e-8, signs=MIXED)
    for found in paths.path(plain.plan(data), LocalEngine(1), settings, n_alphas=5, eps=0.02):
        W = plain.dense(found, N)
        alone = plain.fitting(data, penalty="l1/l2", tol=1e-8, signs=MIXED).fit(found.alpha)
        assert found.gap <= 1e-8 and np.all(SIGNS[:, None] * W >= 0.0)
        assert found.objective == pytest.approx(alone.objective, rel=2e-8)
    none = Signs.given(lower=-np.inf, upper=np.full(N, np.inf))
    both = [plain.fitting(data, penalty="l1/l2", signs=given).fit(0.01) for given in (none, None)]
    np.testing.assert_array_equal(both[0].W, both[1].W)
    assert both[0].passes == both[1].passes


# ---- penalties that leave no feature out -----------------------------------------------------------------------------


def bounded(data, penalty, alpha, weights, signs):
    """(W, objective) of SciPy's quasi-Newton method, for penalties that have a slope wherever W is not zero."""
    total, k = data.s.sum(), data.k

    def value(x):
        V, b = x[:-k].reshape(N, k), x[-k:]
        U = data.residual(data.X @ V + b)
        size = get_penalty(penalty).total(V, alpha * weights)
        strength = alpha * (penalty != "none") * weights[:, None]
        strength = strength**2 / max(size, 1e-300) if penalty == "l2" else strength
        slope = np.append((strength * V - data.X.T @ U / total).ravel(), -U.sum(axis=0) / total)
        return data.value(data.X @ V + b) / total + size, slope

    sides = np.append(np.repeat(signs, k), np.zeros(k, np.int8))
    ends = [(0.0 if side > 0 else None, 0.0 if side < 0 else None) for side in sides]
    asked = {"maxiter": 5000, "ftol": 1e-15, "gtol": 1e-9}
    found = minimize(value, np.where(sides == 0, 1.0, sides), jac=True, method="L-BFGS-B", bounds=ends, options=asked)
    return found.x[:-k].reshape(N, k), found.fun


@pytest.mark.parametrize("penalty", ["l2", "l2_squared", "none"])
def test_signs_and_columns_without_penalty_where_no_feature_is_left_out(penalty):
    freed = np.where(np.arange(N) < 2, 0.0, 1.0)
    for loss, signs, factors in (("log", SIGNS, None), ("multitask", SIGNS, freed), ("squared", 0 * SIGNS, freed)):
        data = plain.make(loss, m=120, n=N, seed=4, weights=True)
        if penalty == "none":
            factors, signs = None, SIGNS
        given = None if factors is None else PENALTY_FACTORS.read(factors)
        asked = plain.fitting(data, penalty=penalty, tol=1e-9, signs=Signs.of_signs(signs), penalty_factors=given)
        found = asked.fit("auto" if penalty == "none" else 0.03)
        W, best = bounded(data, penalty, 0.03, np.ones(N) if factors is None else factors, signs)
        assert found.gap <= 1e-9 and np.all(signs[found.active, None] * found.W >= 0.0)
        assert found.objective == pytest.approx(best, rel=1e-8)
        np.testing.assert_allclose(plain.dense(found, N), W, atol=2e-4)
