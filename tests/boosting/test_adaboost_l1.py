"""AdaBoost+L1 of every loss: its formulas in numpy, scipy's minimum within the budget, the best margin of an LP."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import linprog, minimize

from dboost import AdaBoostL1Classifier, AdaBoostL1Regressor, Columns, UsageError
from dboost.boosting.adaboost_l1 import AdaBoostL1, at_margin, budget_suffices, minimise_quadratic
from dboost.boosting.systems import NormalisedEdges
from dboost.losses import EpsilonInsensitive, Huber, Quantile, get_loss
from tests.boosting import plain


def fitting(data, nu=1.0, constant=True, **settings):
    settings = {"penalty": NormalisedEdges(), "fit_intercept": False, "tol": 0.0, "max_rounds": 10, **settings}
    return plain.fitting(data, system=AdaBoostL1(nu, constant), **settings)


def separable(seed=0, m=60, n=8, weights=False):
    """Labels that a sum of few columns in [-1, 1] decides."""
    data = plain.make("exp", m=m, n=n, seed=seed, weights=weights, density=1.0)
    data.y[:] = np.where(data.X[:, :1] + data.X[:, 1:2] > 0, 1, -1)
    return data


def noisy(seed=0, m=80, n=8, weights=True):
    return plain.make("exp", m=m, n=n, seed=seed, weights=weights, density=0.8)


def signed(data, constant=True):
    """M = y h of all hypotheses scaled to max |h| = 1: the columns, the constant, and the negatives of all."""
    H = data.X / np.abs(data.X).max(axis=0)
    H = np.hstack([H, np.ones((len(H), 1))]) if constant else H
    M = data.y * H
    return np.hstack([M, -M])


def best_margin(data, constant=True):
    """theta* = max over normalised al >= 0 of min_i (M al)_i, by linear programming."""
    M = signed(data, constant)
    m, n = M.shape
    A = np.hstack([-M, np.ones((m, 1))])
    c = np.append(np.zeros(n), -1.0)
    bounds = [(0, None)] * n + [(None, None)]
    found = linprog(c, A_ub=A, b_ub=np.zeros(m), A_eq=[[1.0] * n + [0.0]], b_eq=[1.0], bounds=bounds)
    return -found.fun


def majority(seed, m=60):
    """Labels that three of six hypotheses in {-1, +1} vote for: the best margin is 1/3."""
    data = separable(seed=seed, m=m, n=6)
    data.X[:] = np.where(data.X > 0, 1.0, -1.0)
    data.y[:, 0] = np.sign(data.X[:, :3].sum(axis=1))
    return data


def test_it_stops_when_no_hypothesis_has_an_edge():
    data = noisy(seed=5, m=200)
    assert best_margin(data) == pytest.approx(0.0, abs=1e-9)
    result = fitting(data, max_rounds=3000, tol=5e-3).fit(0.0)
    last = result.history[-1]
    assert (result.stop_reason, last["step"]) == ("edge", "certificate")
    assert last["edge"] <= 5e-3
    # the budget has come near the l1 norm of the minimiser without a budget, and the loss to its minimum:
    # log(L / L*) is at most that norm times the largest edge
    free = plain.fitting(data, penalty="none", tol=1e-10).fit("auto")
    norm = np.abs(plain.dense(free, data.X.shape[1])[:, 0] * np.abs(data.X).max(axis=0)).sum() + abs(free.intercept[0])
    assert last["l1_norm"] == pytest.approx(norm, rel=0.15) and last["l1_norm"] <= norm
    assert 0.0 <= math.log(result.objective / free.objective) <= norm * last["edge"]


def test_a_hypothesis_that_is_never_wrong_ends_the_fit():
    data = separable(seed=2)
    data.X[:, 3] = 2.0 * data.y[:, 0]
    result = fitting(data, tol=1e-3).fit(0.0)
    assert (result.stop_reason, result.active.tolist()) == ("tol", [3])
    assert result.history[-1]["margin"] == pytest.approx(1.0) and np.isfinite(result.W).all()


def test_refusals():
    with pytest.raises(UsageError, match="nu=1.5"):
        fitting(noisy(), nu=1.5)
    with pytest.raises(UsageError, match="AdaBoostL1Classifier"):
        plain.fitting(noisy(), system=AdaBoostL1(), penalty="l1")


@pytest.mark.parametrize("n,rank", [(1, 1), (5, 3), (12, 12), (12, 3)])
def test_quadratic_programs_against_their_optimality(n, rank):
    rng = np.random.default_rng([n, rank])
    for case in range(20):
        B = rng.normal(size=(rank, n))
        H, g, r = B.T @ B, rng.normal(size=n), float(rng.uniform(0.1, 3.0))
        start = rng.dirichlet(np.ones(n + 1))[:n] * r * (rng.random(n) < 0.6)
        z = minimise_quadratic(g, H, start.copy(), r)
        assert z.min() >= 0.0 and z.sum() <= r * (1 + 1e-12)
        # optimal: no feasible point is lower along the gradient there
        gradient = g + H @ (z - start)
        gap = gradient @ z - min(0.0, r * gradient.min())
        assert gap <= 1e-7 * (1 + np.abs(g).max() * r), (case, gap)


def with_loss(data, name):
    return type(data)(name, data.X, data.y, data.s, 1)


def softplus(z):
    return np.logaddexp(0.0, z)


def within(value, n, r, free=False):
    """min of `value`, a function of al and b with its gradient, over al >= 0, sum al <= r, by SciPy."""
    lift = int(free)
    budget = {
        "type": "ineq",
        "fun": lambda z: r - z[:n].sum(),
        "jac": lambda z: -np.append(np.ones(n), np.zeros(lift)),
    }
    bounds = [(0, None)] * n + [(None, None)] * lift
    options = {"maxiter": 5000, "ftol": 1e-16}
    start = np.append(np.full(n, 0.5 * r / n), np.zeros(lift))
    found = minimize(value, start, jac=True, method="SLSQP", bounds=bounds, constraints=[budget], options=options)
    return found.fun


def logistic_by_hand(data, rounds, nu, constant):
    """Per round: the edge, the budget, L after the re-solve, and the least normalised margin."""
    M, s = signed(data, constant), data.s
    al, held, r, found = np.zeros(M.shape[1]), [], 0.0, []
    for _ in range(rounds):
        q = s * np.exp(-softplus(M @ al))
        e = M.T @ (q / q.sum())
        k = int(np.argmax(e))
        held = sorted({*held, k})
        r += nu / 2 * math.log((1 + e[k]) / (1 - e[k]))
        A = M[:, held]

        def value(z, A=A):
            f = A @ z
            return (s * softplus(-f)).sum(), -A.T @ (s * np.exp(-softplus(f)))

        budget = {"type": "ineq", "fun": lambda z, r=r: r - z.sum(), "jac": lambda z: -np.ones(len(z))}
        start = np.full(len(held), 0.5 * r / len(held))
        bounds, options = [(0, None)] * len(held), {"maxiter": 2000, "ftol": 1e-15}
        solved = minimize(value, start, jac=True, bounds=bounds, constraints=[budget], options=options)
        al = np.zeros(M.shape[1])
        al[held] = np.maximum(solved.x, 0.0)
        held = [j for j in held if al[j] > 1e-7]
        found.append((e[k], r, solved.fun, (M @ al).min() / al.sum()))
    return np.array(found)


@pytest.mark.parametrize("make,nu,constant", [(separable, 1.0, True), (noisy, 0.3, True), (noisy, 1.0, False)])
def test_logistic_loss_round_by_round(make, nu, constant):
    data = with_loss(make(weights=True), "log")
    result = fitting(data, nu, constant, max_rounds=8).fit(0.0)
    expected, records = logistic_by_hand(data, 8, nu, constant), result.history
    np.testing.assert_allclose([r["edge"] for r in records], expected[:, 0], atol=5e-6)
    np.testing.assert_allclose([r["budget"] for r in records], expected[:, 1], rtol=2e-5)
    np.testing.assert_allclose([r["margin"] for r in records], expected[:, 3], atol=5e-5)
    values = np.array([r["objective"] for r in records[1:]] + [result.objective]) * data.s.sum()
    np.testing.assert_allclose(values, expected[:, 2], rtol=1e-6)
    assert (values <= expected[:, 2] * (1 + 1e-7)).all(), "scipy found a lower value"


@pytest.mark.parametrize("name", ["exp", "log"])
@pytest.mark.parametrize("make", [separable, noisy])
def test_the_gap_bounds_the_distance_to_the_minimum_over_all_hypotheses(make, name):
    data = with_loss(make(seed=3), name)
    M, s = signed(data), data.s

    def value(z):
        f = M @ z
        loss, pull = (np.exp(-f),) * 2 if name == "exp" else (softplus(-f), np.exp(-softplus(f)))
        return (s * loss).sum(), -M.T @ (s * pull)

    gaps = []
    for rounds in (1, 4, 12, 40):
        result = fitting(data, max_rounds=rounds).fit(0.0)
        least = within(value, M.shape[1], result.history[-1]["budget"]) / s.sum()
        assert result.lower_bound <= least * (1 + 1e-9) <= result.objective * (1 + 1e-7)
        assert result.lower_bound == pytest.approx(result.objective * (1 - result.gap), rel=1e-9)
        gaps.append(result.gap)
    assert gaps[-1] < 0.01, "with most useful hypotheses taken the certificate closes"


@pytest.mark.parametrize("name", ["exp", "log"])
def test_the_margin_is_certified_and_tends_to_the_best(name):
    data = with_loss(majority(seed=1), name)
    best = best_margin(data)
    result = fitting(data, nu=0.5, max_rounds=400, tol=0.02).fit(0.0)
    assert len(result.history) > 5
    for record in result.history:
        assert record["margin"] <= best + 1e-9 <= record["margin"] + record["margin_gap"] + 2e-9
    assert result.stop_reason == "tol" and result.history[-1]["margin"] >= best - 0.02


def test_eq_17_of_the_logistic_loss_is_the_condition_of_the_notes_and_never_wrong():
    # L'(r theta) / L'(r (theta - eps)) < eps / (m (1 - theta)), with theta known and an exact solution
    loss, m, theta, eps = get_loss("log"), 50, 0.3, 0.05
    said = []
    for r in np.linspace(50.0, 250.0, 41):
        ratio = np.exp(-softplus(r * theta) + softplus(r * (theta - eps)))
        expected = bool(ratio < eps / (m * (1 - theta)))
        assert budget_suffices(loss, r, eps, theta, theta, 1.0 / m, 0.0) is expected
        said.append(expected)
    assert any(said) and not all(said)
    assert not budget_suffices(loss, 250.0, eps, theta, theta + 0.2, 1.0 / m, 1e-3)
    count = 0
    for seed in range(2):
        data = with_loss(majority(seed, m=25), "log")
        best = best_margin(data)
        for r in fitting(data, max_rounds=130).fit(0.0).history[1:]:
            for tol in (0.15, 0.1):
                if r["margin"] > 0 and budget_suffices(loss, r["budget"], tol, r["margin"], best, 1 / 25, 0.0):
                    count += 1
                    assert r["margin"] >= best - tol - 1e-9
    assert count > 20


@pytest.mark.parametrize("name", ["exp", "log"])
@pytest.mark.parametrize("z", [-3.0, 0.0, 2.5, 40.0])
def test_a_loss_at_a_margin(name, z):
    value, slope = at_margin(get_loss(name), z)
    expected = (math.exp(-z), math.exp(-z)) if name == "exp" else (softplus(-z), math.exp(-softplus(z)))
    assert (value, slope) == pytest.approx(expected, rel=1e-12)


rng = np.random.default_rng(0)
X = rng.normal(size=(90, 7)) * (rng.random((90, 7)) < 0.8)
Y = 3.0 + 2.0 * X[:, 0] - X[:, 1] + 0.3 * rng.standard_t(3, size=90)
S = rng.uniform(0.5, 2.0, size=90)


def tube(z, eps):
    """DS's smooth tube: its value and slope."""
    return softplus(z - eps) + softplus(-z - eps), np.exp(-softplus(eps - z)) - np.exp(-softplus(z + eps))


def huber(z, eps):
    small = np.abs(z) <= eps
    return np.where(small, 0.5 * z * z, eps * np.abs(z) - 0.5 * eps * eps), np.clip(z, -eps, eps)


def pinball(z, q, h):
    """The rounded pinball loss of residuals z = y - f, as a function of f - y; docs/math.md 1."""
    middle = z * z / (2 * h) + (q - 0.5) * z + h / 8
    value = np.where(np.abs(z) <= h / 2, middle, np.where(z > 0, q * z, (q - 1) * z))
    return value, np.clip(z / h + q - 0.5, q - 1, q)


REAL = {
    "squared": ("squared", lambda f: (0.5 * (f - Y) ** 2, f - Y)),
    "huber": (Huber(0.5), lambda f: huber(f - Y, 0.5)),
    "epsilon_insensitive": (EpsilonInsensitive(0.2), lambda f: tube(f - Y, 0.2)),
    "quantile": (
        Quantile(0.7, 0.3),
        lambda f: [sign * part for sign, part in zip((1, -1), pinball(Y - f, 0.7, 0.3), strict=True)],
    ),
}


@pytest.mark.parametrize("free", [True, False], ids=["intercept", "none"])
@pytest.mark.parametrize("name", REAL)
def test_every_model_of_a_regression_is_the_lasso_of_its_budget(name, free):
    """The same minimum as SciPy's where all hypotheses that it weighs were taken; never above its bound before."""
    loss, derived = REAL[name]
    peaks = np.abs(X).max(axis=0)
    H = np.hstack([X / peaks, -X / peaks])

    def value(z):
        f = H @ z[: H.shape[1]] + (z[-1] if free else 0.0)
        losses, d = derived(f)
        g = H.T @ (S * d)
        return (S * losses).sum(), np.append(g, (S * d).sum()) if free else g

    closed = 0
    for rounds in (1, 3, 8, 25):
        model = AdaBoostL1Regressor(
            hypotheses=Columns(), loss=loss, nu=0.4, fit_intercept=free, max_rounds=rounds, tol=0.0
        ).fit(X, Y, S)
        norm = (np.abs(model.coef_[0]) * peaks).sum()
        assert norm <= model.budget_ * (1 + 1e-12)
        least = within(value, H.shape[1], model.budget_, free) / S.sum()
        assert model.objective_ * (1 - model.duality_gap_) <= least * (1 + 1e-9)
        assert least <= model.objective_ * (1 + 1e-7)
        if model.duality_gap_ < 1e-6:
            closed += 1
            assert model.objective_ == pytest.approx(least, rel=2e-6)
    assert closed >= 1, "no fit was certified: the data proves nothing"


def test_a_regression_ends_where_no_hypothesis_has_an_edge():
    model = AdaBoostL1Regressor(hypotheses=Columns(), max_rounds=500, tol=1e-6).fit(X, Y)
    A = np.hstack([X, np.ones((len(X), 1))])
    best, *_ = np.linalg.lstsq(A, Y, rcond=None)
    assert model.stop_reason_ == "edge"
    np.testing.assert_allclose(np.append(model.coef_[0], model.intercept_), best, atol=1e-4)


def test_labels_that_are_all_the_same_or_exactly_explained():
    same = AdaBoostL1Regressor(hypotheses=Columns()).fit(X, np.full(len(X), 2.5))
    assert same.stop_reason_ == "precision" and same.intercept_[0] == pytest.approx(2.5)
    exact = AdaBoostL1Regressor(hypotheses=Columns(), max_rounds=200, tol=0.0).fit(X, X[:, 0] - 2.0 * X[:, 3])
    assert exact.objective_ < 1e-15 and exact.stop_reason_ in ("precision", "edge", "max_rounds")


def test_other_losses_are_refused():
    with pytest.raises(UsageError, match="loss='poisson'"):
        AdaBoostL1Regressor(hypotheses=Columns(), loss="poisson").fit(X, np.abs(Y))
    with pytest.raises(UsageError, match="loss='multinomial'"):
        AdaBoostL1Classifier(hypotheses=Columns(), loss="multinomial").fit(X, Y > 3.0)
    with pytest.raises(UsageError, match="loss='exp'"):
        AdaBoostL1Regressor(hypotheses=Columns(), loss="exp").fit(X, Y)
