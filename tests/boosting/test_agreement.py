"""Every loss, penalty, update and selection reaches the optimum of an independent solver, in rounds of any size.

Rows are cut into blocks of very different sizes, one without rows; what a fit says of each round is true.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from dboost.boosting.fit import FitSettings
from dboost.boosting.path import path
from dboost.engine.local import LocalEngine
from dboost.losses import LOSSES
from dboost.penalties import PENALTIES, ExponentialSolves, get_penalty
from dboost.solvers.row_updates import SELECTIONS, TEMPLATES
from tests.boosting import plain
from tests.penalties.optimality import missed

BY_ROWS = [pair for pair in plain.DEFINED if pair[1] != "newton"]
# those that leave no feature out
SMOOTH = [name for name in PENALTIES if name not in plain.PULLING and isinstance(get_penalty(name), ExponentialSolves)]


def check(data, penalty, alpha, best, result, tol, intercept=True):
    """The certificate, or the end by the gradient where there is none; the optimality residual and the trace."""
    weight, rule = data.s.sum(), get_penalty(penalty)
    lam = alpha * weight
    near = 20.0 * np.sqrt(tol) * lam
    W = plain.dense(result, data.X.shape[1])
    if rule.certified:
        plain.certified(result, data, penalty, alpha, best, tol)
    else:
        assert result.stop_reason == "gradient" and np.isnan([result.gap, result.lower_bound, result.alpha_max]).all()
        assert result.alpha == alpha
        value = plain.objective(data, penalty, lam, W, result.intercept)
        assert result.objective * weight == pytest.approx(value, rel=1e-12)
        rel = 10.0 * tol if tol < 1e-8 else 1e-5 if data.loss in plain.KINKED else 1e-6
        assert best.value * (1 - 1e-11) <= value <= best.value * (1 + rel)
        near = (1e-4 if tol <= 1e-10 else 1e-3) * weight
    if penalty not in plain.PULLING:
        assert (result.W != 0.0).all() and len(result.active) == data.X.shape[1]
    U = data.residual(data.X @ W + result.intercept)
    assert missed(rule, W, data.X.T @ U, lam).max() <= near
    if intercept:
        assert np.abs(U.sum(axis=0)).max() <= near
    else:
        assert not result.intercept.any()
    values = result.trace[:, 2]
    assert (np.diff(values) <= 1e-13 * np.abs(values[1:])).all() or result.history[0]["alpha"] > alpha
    assert (np.diff(result.trace[:, 0]) >= 0).all()


def newton(solve, loss, penalty, intercept, share=0.1, dtype=np.float64):
    data, alpha, best = solve(loss, penalty, share, intercept, weights=True)
    fitting = plain.fitting(data, [0, 1, 60, 60, 150], penalty=penalty, tol=1e-10, fit_intercept=intercept, dtype=dtype)
    if penalty in plain.PULLING:
        assert fitting.alpha_max() == pytest.approx(plain.alpha_max(data, penalty, intercept), rel=1e-9)
    result = fitting.fit(alpha)
    check(data, penalty, alpha, best, result, 1e-10, intercept)
    # what all classes have in common is anything without a penalty
    if penalty != "none":
        np.testing.assert_allclose(plain.dense(result, 25), best.W, atol=1e-4 * np.abs(best.W).max())


@pytest.mark.parametrize(
    "loss,penalty,intercept,share,dtype",
    plain.covering(LOSSES, plain.PULLING, [True, False], [0.05, 0.3], [np.float64, np.float32]),
)
def test_newton(solve, loss, penalty, intercept, share, dtype):
    newton(solve, loss, penalty, intercept, share, dtype)


@pytest.mark.parametrize("loss,penalty,intercept", plain.covering(LOSSES, SMOOTH, [True, False]))
def test_newton_where_no_feature_is_left_out(solve, loss, penalty, intercept):
    newton(solve, loss, penalty, intercept)


def by_rows(solve, pair, penalty, select, intercept=True):
    loss, update = pair
    settings = {"penalty": penalty, "update": update, "select": select, "fit_intercept": intercept}
    data, alpha, best = solve(loss, penalty, 0.3, intercept, m=60, n=6, weights=True)
    tol = (1e-5 if loss in plain.KINKED else 1e-8) if penalty in plain.PULLING else 1e-9 if penalty == "none" else 1e-7
    result = plain.fitting(data, cuts=[0, 1, 20, 20, 60], tol=tol, **settings).fit(alpha)
    check(data, penalty, alpha, best, result, tol, intercept)
    # these updates start at the final strength: their trace is that of one objective, and it never rises
    assert {record["alpha"] for record in result.history} == {alpha}


@pytest.mark.parametrize("pair,penalty,select", plain.covering(BY_ROWS, plain.PULLING, SELECTIONS))
def test_by_rows(solve, pair, penalty, select):
    by_rows(solve, pair, penalty, select)


AT_ONCE = plain.covering(
    BY_ROWS,
    SMOOTH,
    SELECTIONS,
    [True, False],
    # the norm of all rows moves no single one
    allowed=lambda pair, penalty, select, intercept: penalty != "l2" or select in TEMPLATES,
)


@pytest.mark.parametrize("pair,penalty,select,intercept", AT_ONCE)
def test_by_rows_where_no_feature_is_left_out(solve, pair, penalty, select, intercept):
    by_rows(solve, pair, penalty, select, intercept)


@pytest.mark.parametrize("sample", [0.3, 0.7, "auto"])
def test_a_sample_of_the_curvature_reaches_the_same_optimum(solve, loss, sample):
    data, alpha, best = solve(loss, "l1/l2", 0.1, True, m=300)
    result = plain.fitting(data, penalty="l1/l2", tol=1e-8, sample=sample).fit(alpha)
    check(data, "l1/l2", alpha, best, result, 1e-8)


CORRECTIVE = [(*pair, 30) for pair in plain.DEFINED] + [(loss, "newton", 1) for loss in LOSSES]


@pytest.mark.full
@pytest.mark.parametrize("loss,update,rows", CORRECTIVE)
def test_thirty_rows_a_round(solve, loss, update, rows):
    """30 rows a round as in Duchi & Singer 2009, section 6, and one; among more columns than that."""
    data, alpha, best = solve(loss, "l1/linf", 0.25, m=80, n=70, seed=60, weights=True)
    select = "greedy" if update == "newton" else "template"
    tol = 1e-8 if update == "newton" else 1e-5
    fitting = plain.fitting(data, penalty="l1/linf", update=update, select=select, tol=tol, features_per_round=rows)
    result = fitting.fit(alpha)
    plain.certified(result, data, "l1/linf", alpha, best, tol)
    assert max(record["features_in"] for record in result.history) <= rows
    support = set(np.flatnonzero(np.abs(best.W).max(axis=1) > 1e-3 * np.abs(best.W).max()))
    assert support <= set(result.active.tolist())
    # rows that entered too early were pruned again
    if rows == 30 and update == "newton":
        assert sum(record["features_out"] for record in result.history) > 0


@pytest.mark.full
def test_the_quadratic_bound_of_quantiles_leads_to_the_optimum_of_newton_steps():
    data = plain.make("quantile", m=60, n=12, seed=61)
    alpha = 0.4 * plain.alpha_max(data, "l1/l2")
    newton = plain.fitting(data, penalty="l1/l2", tol=1e-7, update="newton").fit(alpha)
    bound = plain.fitting(data, penalty="l1/l2", tol=1e-3, update="gradboost").fit(alpha)
    assert bound.stop_reason == "tol"
    assert newton.objective * (1 - 1e-6) <= bound.objective <= newton.objective * (1 + 2e-3)


@pytest.mark.parametrize("loss,penalty,factor", plain.covering(LOSSES, plain.PULLING, [4.0, 2.0, 0.25]))
def test_a_warm_start_from_either_side(solve, loss, penalty, factor):
    """There is no continuation: every step is judged at the final strength, and none raises the objective."""
    data, alpha, best = solve(loss, penalty, 0.1, True, weights=True)
    fitting = plain.fitting(data, penalty=penalty, tol=1e-9)
    result = fitting.fit(alpha, fitting.fit(factor * alpha))
    # also while the strong rule holds columns back, what is called certified must be so
    check(data, penalty, alpha, best, result, 1e-9)
    assert all(record["alpha"] == pytest.approx(alpha) for record in result.history) and len(result.trace) > 1


@pytest.mark.parametrize(
    "way", ["gradboost-template", "gradboost-cyclic", pytest.param("adaboost-template", marks=pytest.mark.full)]
)
def test_without_a_penalty_updates_of_columns_that_pull_on_one_another_do_not_end_early(way):
    """They gain little at a time there: a fit that ended at a hundred times the promise would be tens of tols away."""
    data = plain.make("log", m=150, n=5, seed=40, noise=3.0, weights=True)
    data = plain.replace(data, X=0.15 * data.X + np.random.default_rng(0).normal(size=(150, 1)))
    update, select = way.split("-")
    result = plain.fitting(data, penalty="none", update=update, select=select, tol=1e-7).fit("auto")
    assert result.stop_reason == "gradient"
    assert result.objective * data.s.sum() <= plain.least(data)[0] * (1.0 + 20 * 1e-7)


@pytest.mark.parametrize("loss", ["log", "multinomial", "multitask", "exp"])
@pytest.mark.parametrize("update,select", [("newton", "greedy"), ("adaboost", "template"), ("adaboost", "cyclic")])
def test_separable_data_without_a_penalty_end_by_name(loss, update, select):
    """No minimum exists; the fit must end by itself, with finite numbers."""
    data = plain.make(loss, m=40, n=30, seed=41, density=1.0)
    tol, rounds, reached = (1e-6, 30, 1e-3) if update == "newton" else (1e-2, 2, 0.1)
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        settings = {"tol": tol, "max_rounds": rounds, "update": update, "select": select}
        result = plain.fitting(data, penalty="none", **settings).fit("auto")
    assert result.stop_reason in ("gradient", "max_rounds", "precision")
    assert np.isfinite(result.W).all() and np.isfinite(result.intercept).all()
    assert result.objective < reached


# a path and its cold fits are sixteen fits: every loss and every penalty once or twice
@pytest.mark.parametrize("loss,penalty", list(zip(LOSSES, itertools.cycle(plain.PULLING), strict=False)))
def test_a_path_is_certified_and_cheaper_than_cold_fits(loss, penalty):
    data = plain.make(loss, seed=30, weights=True)
    settings = FitSettings(loss, penalty, tol=1e-6)
    results = path(plain.plan(data), LocalEngine(1), settings, n_alphas=12, eps=0.05)
    alphas = np.array([result.alpha for result in results])
    np.testing.assert_allclose(alphas, plain.alpha_max(data, penalty) * np.geomspace(1, 0.05, 12), rtol=1e-9)
    assert len(results[0].active) <= 1
    assert all(result.stop_reason == "tol" and result.gap <= 1e-6 for result in results)
    # every third point against the independent solver
    some = results[1::3]
    for result in some:
        best = plain.optimum(data, penalty, result.alpha * data.s.sum())
        plain.certified(result, data, penalty, result.alpha, best, 1e-6)
    cold = [plain.fitting(data, penalty=penalty, tol=1e-6).fit(result.alpha).passes for result in some]
    assert sum(result.passes for result in some) < 0.85 * sum(cold)
