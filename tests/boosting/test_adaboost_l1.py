"""AdaBoost+L1 against its formulas in dense numpy, scipy's minimum within the budget, and the best margin of an LP."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from scipy.optimize import linprog, minimize

from dboost.boosting.adaboost_l1.budget import budget_suffices
from dboost.boosting.adaboost_l1.rounds import AdaBoostL1
from dboost.boosting.adaboost_l1.simplex import minimise_quadratic
from dboost.boosting.rules import NormalisedEdges
from dboost.errors import UsageError
from dboost.losses import get_loss
from tests.boosting import plain
from tests.boosting.test_resume import bits


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


def within(M, s, r, ids):
    """argmin of log sum s e^(-M al) over al >= 0 on `ids`, sum al <= r, by scipy, and its value."""
    A = M[:, ids]

    def value(z):
        q = np.log(s) - A @ z
        top = q.max()
        e = np.exp(q - top)
        return top + math.log(e.sum()), -(A * (e / e.sum())[:, None]).sum(axis=0)

    start = np.full(len(ids), 0.5 * r / len(ids))
    budget = {"type": "ineq", "fun": lambda z: r - z.sum(), "jac": lambda z: -np.ones(len(ids))}
    options = {"maxiter": 2000, "ftol": 1e-15}
    found = minimize(value, start, jac=True, bounds=[(0, None)] * len(ids), constraints=[budget], options=options)
    return np.maximum(found.x, 0.0), found.fun


def by_hand(data, rounds, nu, constant=True):
    """Per round: the edge, the budget, log L after the re-solve, and the least normalised margin."""
    M, s = signed(data, constant), data.s
    al, held, r, found = np.zeros(M.shape[1]), [], 0.0, []
    for _ in range(rounds):
        q = s * np.exp(-M @ al)
        e = M.T @ (q / q.sum())
        k = int(np.argmax(e))
        held = sorted({*held, k})
        r += nu / 2 * math.log((1 + e[k]) / (1 - e[k]))
        al = np.zeros(M.shape[1])
        z, value = within(M, s, r, held)
        al[held] = z
        held = [j for j in held if al[j] > 1e-7]
        found.append((e[k], r, value, (M @ al).min() / al.sum()))
    return np.array(found), al


def best_margin(data, constant=True):
    """theta* = max over normalised al >= 0 of min_i (M al)_i, by linear programming."""
    M = signed(data, constant)
    m, n = M.shape
    A = np.hstack([-M, np.ones((m, 1))])
    c = np.append(np.zeros(n), -1.0)
    bounds = [(0, None)] * n + [(None, None)]
    found = linprog(c, A_ub=A, b_ub=np.zeros(m), A_eq=[[1.0] * n + [0.0]], b_eq=[1.0], bounds=bounds)
    return -found.fun


@pytest.mark.parametrize("constant", [True, False], ids=["constant", "no constant"])
@pytest.mark.parametrize("nu", [1.0, 0.3])
@pytest.mark.parametrize("make", [separable, noisy])
def test_round_by_round(make, nu, constant):
    data = make(weights=True)
    result = fitting(data, nu, constant, max_rounds=8).fit(0.0)
    expected, al = by_hand(data, 8, nu, constant)
    records = result.history
    np.testing.assert_allclose([r["edge"] for r in records], expected[:, 0], atol=2e-6)
    np.testing.assert_allclose([r["budget"] for r in records], expected[:, 1], rtol=1e-5)
    np.testing.assert_allclose([r["margin"] for r in records], expected[:, 3], atol=2e-5)
    # the objective of a record is the loss at its start
    values = np.log([r["objective"] * data.s.sum() for r in records[1:]] + [result.objective * data.s.sum()])
    np.testing.assert_allclose(values, expected[:, 2], atol=1e-7)
    assert all(now <= by + 1e-7 for now, by in zip(values, expected[:, 2], strict=True)), "scipy found a lower value"
    peaks = np.abs(data.X).max(axis=0)
    mine = plain.dense(result, data.X.shape[1])[:, 0] * peaks
    half = al.shape[0] // 2
    np.testing.assert_allclose(np.append(mine, result.intercept)[:half], al[:half] - al[half:], atol=3e-4)


@pytest.mark.parametrize("make", [separable, noisy])
def test_the_gap_bounds_the_distance_to_the_minimum_over_all_hypotheses(make):
    data = make(seed=3)
    M = signed(data)
    for rounds in (1, 4, 12, 40):
        result = fitting(data, max_rounds=rounds).fit(0.0)
        _, least = within(M, data.s, result.history[-1]["budget"], np.arange(M.shape[1]))
        value = result.objective * data.s.sum()
        assert value * (1 - result.gap) <= math.exp(least) * (1 + 1e-7)
        assert result.lower_bound * data.s.sum() == pytest.approx(value * (1 - result.gap), rel=1e-9)
        assert value >= math.exp(least) * (1 - 1e-7)
        if rounds == 40:
            # with most useful hypotheses taken, the certificate closes
            assert result.gap < 0.01


def majority(seed, m=60):
    """Labels that three of six hypotheses in {-1, +1} vote for: the best margin is 1/3."""
    data = separable(seed=seed, m=m, n=6)
    data.X[:] = np.where(data.X > 0, 1.0, -1.0)
    data.y[:, 0] = np.sign(data.X[:, :3].sum(axis=1))
    return data


def test_the_margin_certificate_holds_and_the_margin_tends_to_the_best():
    data = majority(seed=1)
    best = best_margin(data)
    assert best == pytest.approx(1 / 3)
    result = fitting(data, nu=0.5, max_rounds=400, tol=0.02).fit(0.0)
    assert len(result.history) > 5
    for record in result.history:
        assert record["margin"] <= best + 1e-9 <= record["margin"] + record["margin_gap"] + 2e-9
        assert record["edge"] >= best - 1e-9
    assert result.stop_reason == "tol" and result.history[-1]["margin"] >= best - 0.02


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


def test_zeros_leave_and_the_budget_is_kept():
    data = plain.make("exp", m=30, n=60, seed=2, density=1.0, noise=4.0)
    result = fitting(data, nu=0.5, max_rounds=80).fit(0.0)
    assert sum(r["rows_out"] for r in result.history) > 0, "nothing was pruned: the data proves nothing"
    assert (result.W != 0).all()
    for r in result.history:
        assert r["l1_norm"] <= r["budget"] * (1 + 1e-12)
    assert result.history[-1]["active_rows"] == len(result.active)
    entered, left = (sum(r[name] for r in result.history) for name in ("rows_in", "rows_out"))
    assert entered - left == len(result.active)


def test_eq_17_at_equal_weights_is_the_condition_of_the_notes():
    # r > (1 / eps) log(m (1 - theta*) / eps), with theta* known and an exact solution
    m, theta, eps, exp = 50, 0.3, 0.05, get_loss("exp")
    threshold = math.log(m * (1 - theta) / eps) / eps
    for factor, expected in ((1.001, True), (0.999, False)):
        assert budget_suffices(exp, factor * threshold, eps, theta, theta, 1.0 / m, 0.0) is expected
    assert not budget_suffices(exp, 2 * threshold, eps, theta, theta + 0.2, 1.0 / m, 1e-3)


def test_eq_17_is_never_wrong():
    """Where it says that the budget suffices, the margin is within tol of the linear program's."""
    said = 0
    for seed in range(2):
        data = majority(seed, m=25)
        best = best_margin(data)
        history = fitting(data, max_rounds=130).fit(0.0).history[1:]
        for tol in (0.15, 0.1):
            for r in history:
                # as if the model were exact: the gap of a record is that of its start
                if r["margin"] > 0 and budget_suffices(
                    get_loss("exp"), r["budget"], tol, r["margin"], best, 1 / 25, 0.0
                ):
                    said += 1
                    assert r["margin"] >= best - tol - 1e-9
    assert said > 20


def test_weights_are_repetitions():
    data = noisy(seed=8, weights=False)
    counts = np.random.default_rng(0).integers(0, 3, len(data.s))
    weighted = data.take(np.arange(len(data.s)))
    weighted = type(data)(data.loss, data.X, data.y, counts.astype(float), 1)
    repeated = data.take(np.repeat(np.arange(len(data.s)), counts))
    a, b = (fitting(one, max_rounds=15).fit(0.0) for one in (weighted, repeated))
    np.testing.assert_array_equal(a.active, b.active)
    np.testing.assert_allclose(a.W, b.W, atol=1e-6)
    np.testing.assert_allclose([r["margin"] for r in a.history], [r["margin"] for r in b.history], atol=1e-7)


def test_bits_of_resumed_fits_and_of_threads():
    data = noisy(seed=9)
    states = []
    whole = fitting(data).fit(0.0, callback=lambda r, state: states.append(pickle.dumps(state)))
    for stopped in (0, 5):
        assert bits(fitting(data).fit(0.0, resume=pickle.loads(states[stopped]))) == bits(whole)
    runs = [bits(fitting(data, cuts=5, threads=t).fit(0.0)) for t in (1, 2, 3)]
    assert runs[0] == runs[1] == runs[2]


def test_refusals():
    with pytest.raises(UsageError, match="nu=1.5"):
        fitting(noisy(), nu=1.5)
    with pytest.raises(UsageError, match="AdaBoostL1Classifier"):
        plain.fitting(noisy(), system=AdaBoostL1(), penalty="l1")


@pytest.mark.parametrize("n", [1, 2, 5, 12])
@pytest.mark.parametrize("rank", [1, 3, 12])
def test_quadratic_programs_against_scipy(n, rank):
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
