"""Penalties under which rows do not vanish one by one: ``l2``, ``l2_squared``, ``smooth_l1``.

Every update against scipy on a dense problem; certificates; what the parameters mean for them; what is refused.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from dboost.boosting import fit as fits
from dboost.boosting import path as paths
from dboost.certificate.duality_gap import dual_bound
from dboost.engine.local import LocalEngine
from dboost.errors import UsageError
from dboost.penalties import PENALTIES, ExponentialSolves, SmoothL1, get_penalty
from dboost.solvers.row_updates import SELECTIONS, TEMPLATES
from tests.boosting import plain
from tests.boosting.test_resume import bits
from tests.penalties.optimality import missed

SMOOTH = [
    name
    for name in PENALTIES
    if name not in (*plain.PULLING, "none") and isinstance(get_penalty(name), ExponentialSolves)
]
# strengths on the mean loss at which the penalty matters
ALPHA = {"l2": 0.05, "l2_squared": 0.02, "smooth_l1": 0.05}


@pytest.fixture(params=SMOOTH)
def penalty(request):
    return request.param


def value(data, penalty, lam, W, b):
    """P(W, b), sum form, with lam a number or one per row."""
    return data.value(data.X @ W + b) + get_penalty(penalty).total(W, lam)


def reference(data, penalty, lam, intercept=True):
    """(P, W, b) of the optimum by scipy, from a start away from the kink of ``l2``."""
    rule, n = get_penalty(penalty), data.X.shape[1]
    strength = np.broadcast_to(lam, (n,))

    def size(W):
        return rule.total(W, strength), rule.face(W).gradient(strength).reshape(W.shape)

    start = 0.1 * np.random.default_rng(0).normal(size=(n, data.k))
    return plain.least(data, size, intercept=intercept, start=start)


@cache
def solved(loss, penalty, intercept=True, **shape):
    data = plain.make(loss, weights=True, **shape)
    return data, reference(data, penalty, ALPHA[penalty] * data.s.sum(), intercept)


def check(data, penalty, result, best, intercept=True, rel=1e-9):
    lam, n = result.alpha * data.s.sum(), data.X.shape[1]
    W = plain.dense(result, n)
    found = value(data, penalty, lam, W, result.intercept)
    assert result.objective * data.s.sum() == pytest.approx(found, rel=1e-12)
    assert best * (1 - 1e-11) <= found <= best * (1 + rel)
    if get_penalty(penalty).certified:
        assert result.stop_reason == "tol"
        assert result.lower_bound * data.s.sum() <= best * (1 + 1e-12)
        assert result.gap == pytest.approx(1 - result.lower_bound / result.objective, abs=1e-14)
    else:
        assert result.stop_reason == "gradient" and np.isnan(result.gap)
    if not intercept:
        assert not result.intercept.any()


@pytest.mark.parametrize("intercept", [True, False], ids=["intercept", "no intercept"])
def test_newton(loss, penalty, intercept):
    data, (best, W, _) = solved(loss, penalty, intercept)
    result = plain.fitting(data, penalty=penalty, tol=1e-10, fit_intercept=intercept).fit(ALPHA[penalty])
    check(data, penalty, result, best, intercept)
    if get_penalty(penalty).certified:
        assert result.gap <= 1e-10
    np.testing.assert_allclose(plain.dense(result, 25), W, atol=1e-4 * np.abs(W).max())
    W = plain.dense(result, 25)
    G = data.X.T @ data.residual(data.X @ W + result.intercept)
    assert missed(get_penalty(penalty), W, G, result.alpha * data.s.sum()).max() <= 1e-4 * data.s.sum()


ROWWISE = plain.covering([pair for pair in plain.DEFINED if pair[1] != "newton"], SMOOTH, SELECTIONS)


@pytest.mark.parametrize("pair,penalty,select", ROWWISE)
def test_rowwise(pair, penalty, select):
    loss, update = pair
    if penalty == "l2" and select not in TEMPLATES:
        with pytest.raises(UsageError, match="at W = 0 no single row can leave.*select='template'"):
            plain.fitting(plain.make(loss), penalty=penalty, update=update, select=select)
        return
    data, (best, _, _) = solved(loss, penalty, m=60, n=6)
    result = plain.fitting(data, cuts=2, penalty=penalty, tol=1e-7, update=update, select=select).fit(ALPHA[penalty])
    check(data, penalty, result, best, rel=1e-5 if loss in plain.KINKED else 1e-6)
    values = result.trace[:, 2]
    assert (np.diff(values) <= 1e-13 * np.abs(values[1:])).all()


@pytest.mark.parametrize("intercept", [True, False], ids=["intercept", "no intercept"])
@pytest.mark.parametrize("penalty", ["l2", "l2_squared"])
def test_the_bound_holds_everywhere(loss, penalty, intercept):
    """At models along a fit and far from any, and the value of the dual point is D by definition less its charge."""
    data, (best, _, _) = solved(loss, penalty, intercept)
    lam = ALPHA[penalty] * data.s.sum()
    fitting = plain.fitting(data, penalty=penalty, tol=1e-10, fit_intercept=intercept)
    problem, rng = fitting.problem, np.random.default_rng(2)
    models = []
    fitting.fit(ALPHA[penalty], callback=lambda r, s: models.append((s.active, s.W, s.intercept)))
    for size in (1e-3, 0.3, 3.0):
        active = np.flatnonzero(rng.random(25) < 0.6)
        b = size * rng.normal(size=data.k) * intercept
        models.append((active, size * rng.normal(size=(len(active), data.k)), b))
    closed = []
    for active, W, b in models:
        iterate = replace(problem.null(), active=active, W=W, intercept=b)
        score = problem.score(iterate, None, lam, 0)

        bound = dual_bound(problem, score, fitting.null().norms, lam)
        assert bound <= best * (1 + 1e-12)
        closed.append(bound)
        found = value(data, penalty, lam, W_of(active, W), b)
        if not intercept:
            rule = get_penalty(penalty)
            # Theta = s U: D(Theta) and the conjugate of the penalty from their definitions
            U = data.residual(data.X @ W_of(active, W) + b)
            scale, _ = rule.dual_point(rule.dual_size(score.norms, np.ones(25)), lam)
            G = scale * data.X.T @ U
            charge = (G**2).sum() / (2 * lam) if penalty == "l2_squared" else 0.0
            assert penalty == "l2_squared" or np.linalg.norm(G) <= lam * (1 + 1e-12)
            # less what sums of the size of the objective may be off by
            wanted = data.dual(scale * U) - charge
            assert bound == pytest.approx(wanted, rel=1e-9, abs=1e-9 + 2e-12 * found)
    assert closed[-4] == pytest.approx(best, rel=1e-9)


def W_of(active, W):
    full = np.zeros((25, W.shape[1]))
    full[active] = W
    return full


def test_nothing_is_exactly_zero_and_auto_is_one_over_the_weight(loss):
    data = plain.make(loss, weights=True)
    for penalty in ("l2_squared", "smooth_l1", SmoothL1(sharpness=3.0)):
        result = plain.fitting(data, penalty=penalty, tol=1e-6).fit("auto")
        assert np.isnan(result.alpha_max)
        assert result.alpha == pytest.approx(1.0 / data.s.sum(), rel=1e-12)
        assert (result.W != 0).all() and len(result.active) == 25


@pytest.mark.parametrize("intercept", [True, False], ids=["intercept", "no intercept"])
@pytest.mark.parametrize("loss,update", plain.DEFINED)
def test_l2_is_zero_as_a_whole_from_alpha_max_on(loss, update, intercept):
    data = plain.make(loss, m=80, n=10, weights=True, seed=5)
    select = "greedy" if update == "newton" else "template"
    fitting = plain.fitting(
        data, penalty="l2", update=update, select=select, tol=1e-6, fit_intercept=intercept
    )
    b = plain.null_intercept(data) if intercept else np.zeros(data.k)
    G = data.X.T @ data.residual(np.tile(b, (80, 1)))
    largest = fitting.alpha_max()
    assert largest == pytest.approx(np.linalg.norm(G) / data.s.sum(), rel=1e-9)
    for factor in (1 + 1e-12, 2.0):
        result = fitting.fit(factor * largest)
        assert (result.stop_reason, result.n_iter, len(result.active)) == ("tol", 1, 0)
    # no row could leave alone at this strength
    below = fitting.fit(0.99 * largest)
    assert below.stop_reason == "tol" and len(below.active) == 10 and (below.W != 0).all()
    assert np.linalg.norm(G, axis=1).max() < 0.99 * largest * data.s.sum()
    # and back to zero from there
    again = fitting.fit(1.5 * largest, start=below)
    assert (again.stop_reason, len(again.active)) == ("tol", 0)


def test_a_path_needs_strengths_where_there_is_no_largest(loss):
    data = plain.make(loss, m=80, n=8, seed=31)
    plan = plain.plan(data)
    for penalty in ("l2_squared", "smooth_l1"):
        settings = fits.FitSettings(loss, penalty, tol=1e-6)
        with pytest.raises(UsageError, match="no strength at which every weight is zero.*alphas="):
            paths.path(plan, LocalEngine(1), settings)
        results = paths.path(plan, LocalEngine(1), settings, alphas=[0.01, 0.1, 0.03])
        assert [result.alpha for result in results] == [0.1, 0.03, 0.01]
        for result in results:
            best, _, _ = reference(data, penalty, result.alpha * 80)
            assert result.objective * 80 == pytest.approx(best, rel=1e-5)
    results = paths.path(plan, LocalEngine(1), fits.FitSettings(loss, "l2", tol=1e-6), n_alphas=6, eps=0.05)
    assert [len(result.active) for result in results] == [0, 8, 8, 8, 8, 8]
    assert all(result.gap <= 1e-6 for result in results)


def test_smooth_l1_as_a_booster_adds_one_feature_a_round(loss):
    """Dekel et al.'s baseline: the best feature by score, then all held are re-optimised; nothing ever leaves."""
    data, (best, _, _) = solved(loss, "smooth_l1", m=60, n=6)
    settings = {"penalty": "smooth_l1", "tol": 1e-5, "features_per_round": 1}
    ends = []
    for update, select in (("adaboost", "greedy"), ("newton", "greedy")):
        if not plain.defined(loss, update):
            continue
        result = plain.fitting(data, cuts=2, update=update, select=select, **settings).fit(ALPHA["smooth_l1"])
        held = [record["features"] for record in result.history]
        assert held[:6] == [1, 2, 3, 4, 5, 6]
        assert all(record["features_out"] == 0 for record in result.history)
        objectives = [record["objective"] for record in result.history]
        # no jump of the penalty where a feature enters: the objective of every round is comparable
        assert (np.diff(objectives) < 0).all()
        check(data, "smooth_l1", result, best, rel=1e-5)
        ends.append(result.objective)
    budget = plain.fitting(data, cuts=2, max_rounds=3, **settings).fit(ALPHA["smooth_l1"])
    assert (budget.stop_reason, len(budget.active)) == ("max_rounds", 3)


@pytest.mark.parametrize("setting", [{"features_per_round": 3}, {"max_features": 3}])
def test_l2_refuses_what_moves_some_rows_only(setting):
    with pytest.raises(UsageError, match=f"{next(iter(setting))}.*'l2'"):
        plain.fitting(plain.make("log"), penalty="l2", **setting)


@pytest.mark.parametrize("penalty", ["none", "l2", "l2_squared"])
@pytest.mark.parametrize("kind", ["multinomial", "log"])
def test_columns_that_pull_on_one_another_are_solved_for_with_blocks(kind, penalty):
    """The curvature among the heaviest rows preconditions where it costs less than a solve without it took."""
    X, code = plain.near_copies()
    y = code.astype(np.int32) if kind == "multinomial" else np.where(code == 0, 1.0, -1.0)[:, None]
    data = plain.Data(kind, X, y, np.ones(X.shape[0]), 4 if kind == "multinomial" else 1)
    # a ridge of one output and as few columns has all of its curvature formed
    usual = {"penalty": penalty, "tol": 1e-7, "max_rounds": 100, "accelerators": plain.without("one_output")}
    alpha = 0.0 if penalty == "none" else 1e-5
    blocks = plain.fitting(data, **usual).fit(alpha)
    neither = usual | {"accelerators": plain.without("one_output", "heavy_blocks")}
    plain_ones = plain.fitting(data, **neither).fit(alpha)
    assert blocks.taken["heavy_blocks"] and blocks.state.memory.wide
    assert blocks.stop_reason in ("tol", "gradient")
    assert blocks.objective == pytest.approx(plain_ones.objective, rel=1e-6)
    assert blocks.objective <= plain_ones.objective * (1 + 1e-9)
    assert blocks.state.passes < 0.75 * plain_ones.state.passes
    # with more threads, the same bits
    again = plain.fitting(data, threads=2, **usual).fit(alpha)
    assert bits(again) == bits(blocks)
