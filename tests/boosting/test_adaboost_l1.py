"""AdaBoost+L1 of every loss: the paper's Figure 1 in numpy, scipy's minimum in the budget, the best margin of an LP.

The transcription solves step 4 by an active-set Newton method of its own, to far below the accuracy of the comparison.
"""

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


def fitting(data, nu=1.0, constant=True, keep_zeros=False, **settings):
    settings = {"penalty": NormalisedEdges(), "fit_intercept": False, "tol": 0.0, "max_rounds": 10, **settings}
    return plain.fitting(data, system=AdaBoostL1(nu, constant, keep_zeros), **settings)


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


@pytest.mark.full
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


def crowded(m=100, d=6, q=10, seed=1, weights=True):
    """Neighbouring thresholds of a few variables: what stands for a threshold early gives way to its neighbours."""
    rng = np.random.default_rng(seed)
    V = rng.normal(size=(m, d))
    y = np.where(V[:, 0] + np.sin(2 * V[:, 1]) + V[:, 2] ** 2 > 1, 1, -1).astype(np.int8)
    ends = np.quantile(V, np.linspace(0.05, 0.95, q), axis=0)
    X = np.hstack([np.where(V[:, [j]] < ends[:, j], 1.0, -1.0) for j in range(d)])
    # sizes that differ, so that no two hypotheses or edges are equal
    return plain.Data("exp", X * rng.uniform(0.8, 1.0, size=X.shape), y[:, None], rng.uniform(0.5, 2.0, m), 1)


def at(loss, M, s, z):
    """The loss, d with the gradient -M'd, and the curvature of some columns; the logarithm of the exponential loss."""
    f = M @ z
    if loss == "exp":
        q = np.log(s) - f
        d = np.exp(q - q.max())
        value, d = q.max() + np.log(d.sum()), d / d.sum()
        return value, d, lambda A: (A - d @ A).T @ ((A - d @ A) * d[:, None])
    d = s * np.exp(-softplus(f))
    return s @ softplus(-f), d, lambda A: A.T @ (A * (d * np.exp(-softplus(-f)))[:, None])


def solved(loss, M, s, r, z):
    """argmin over z >= 0, sum z <= r, from a feasible z: active sets and Newton steps."""
    z, tight = z.copy(), False
    free = z > 0
    for _ in range(10_000):
        value, d, curvature = at(loss, M, s, z)
        e = M.T @ d
        ids = np.flatnonzero(free)
        price = e[ids].mean() if tight and len(ids) else 0.0
        left = np.abs(e[ids] - price).max(initial=0.0)
        if left < 1e-11:
            if tight and price < -1e-12:
                tight = False
                continue
            rest = np.where(free, -np.inf, e - max(price, 0.0))
            if rest.max() < 1e-10:
                return z
            free[rest.argmax()] = True
            continue
        H = curvature(M[:, ids]) + 1e-13 * np.eye(len(ids))
        if tight:
            bordered = np.block([[H, np.ones((len(ids), 1))], [np.ones((1, len(ids))), np.zeros((1, 1))]])
            p = np.linalg.solve(bordered, np.append(e[ids], 0.0))[:-1]
            p -= p.mean()
        else:
            p = np.linalg.solve(H, e[ids])
        length, blocked, full = 1.0, None, False
        if not tight and p.sum() > r - z.sum():
            length, full = max(r - z.sum(), 0.0) / p.sum(), True
        for place in np.flatnonzero(p < 0):
            reach = z[ids[place]] / -p[place]
            if reach <= length:
                length, blocked, full = reach, ids[place], False
        step, slope = np.zeros_like(z), e[ids] @ p
        step[ids] = p
        shorter, enough = length, 1e-4 * slope
        while at(loss, M, s, z + shorter * step)[0] > value - shorter * enough + 1e-15 and shorter > 1e-12 * length:
            shorter /= 2
        z = np.maximum(z + shorter * step, 0.0)
        if shorter == length:
            tight = tight or full
            if blocked is not None:
                z[blocked], free[blocked] = 0.0, False
    raise AssertionError("no optimum")


def transcribed(data, rounds, nu, constant, keep_zeros):
    """Figure 1: per round the edge, the budget, the loss after the re-solve, the size of U and the margin; and al."""
    M, s = signed(data, constant), data.s / data.s.sum()
    al, U, r, found = np.zeros(M.shape[1]), [], 0.0, []
    for _ in range(rounds):
        d = at(data.loss, M, s, al)[1]
        e = M.T @ (d / d.sum())
        k = int(np.argmax(e))
        U = sorted({*U, k})
        r += nu / 2 * np.log((1 + e[k]) / (1 - e[k]))
        z = solved(data.loss, M[:, U], s, r, al[U])
        al = np.zeros(M.shape[1])
        al[U] = z
        if not keep_zeros:
            U = [j for j in U if al[j] > 0]
        found.append((e[k], r, at(data.loss, M, s, al)[0], len(U), (M @ al).min() / al.sum()))
    half = len(al) // 2
    return np.array(found), al[:half] - al[half:]


@pytest.mark.parametrize(
    "make,name,nu,constant,keep_zeros,rounds",
    [
        (crowded, "exp", 1.0, True, False, 200),
        pytest.param(crowded, "exp", 1.0, True, True, 200, marks=pytest.mark.full),
        (separable, "log", 1.0, True, False, 8),
        (noisy, "log", 0.3, True, False, 8),
        (noisy, "log", 1.0, False, False, 8),
    ],
    ids=["dropped", "kept", "separable", "slow", "unlifted"],
)
def test_rounds_are_those_of_the_transcription(make, name, nu, constant, keep_zeros, rounds):
    data = with_loss(make(weights=True), name)
    result = fitting(data, nu, constant, keep_zeros, max_rounds=rounds).fit(0.0)
    expected, al = transcribed(data, rounds, nu, constant, keep_zeros)
    records = result.history
    assert len(records) == rounds
    np.testing.assert_allclose([r["edge"] for r in records], expected[:, 0], atol=1e-6)
    np.testing.assert_allclose([r["budget"] for r in records], expected[:, 1], rtol=1e-6)
    values = np.array([r["objective"] for r in records[1:]] + [result.objective])
    np.testing.assert_allclose(np.log(values) if name == "exp" else values, expected[:, 2], atol=1e-8)
    assert [r["ensemble"] for r in records] == expected[:, 3].tolist()
    np.testing.assert_allclose([r["margin"] for r in records], expected[:, 4], atol=5e-5)
    mine = plain.dense(result, data.X.shape[1])[:, 0] * np.abs(data.X).max(axis=0)
    np.testing.assert_allclose(np.append(mine, result.intercept[:constant]), al, atol=1e-3)


@pytest.mark.full
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


def test_other_losses_and_switches_are_refused():
    with pytest.raises(UsageError, match="keep_zeros='yes'.*expected True or False"):
        AdaBoostL1Classifier(hypotheses=Columns(), keep_zeros="yes").fit(X, Y > 3.0)
    with pytest.raises(UsageError, match="loss='poisson'"):
        AdaBoostL1Regressor(hypotheses=Columns(), loss="poisson").fit(X, np.abs(Y))
    with pytest.raises(UsageError, match="loss='multinomial'"):
        AdaBoostL1Classifier(hypotheses=Columns(), loss="multinomial").fit(X, Y > 3.0)
    with pytest.raises(UsageError, match="loss='exp'"):
        AdaBoostL1Regressor(hypotheses=Columns(), loss="exp").fit(X, Y)
