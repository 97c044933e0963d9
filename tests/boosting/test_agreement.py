"""Every loss, penalty, update and selection reaches the optimum of an independent solver, in rounds of any size."""

from __future__ import annotations

import numpy as np
import pytest

from dboost.losses import LOSSES
from dboost.penalties import get_penalty
from dboost.solvers.row_updates import SELECTIONS
from tests.boosting import plain
from tests.penalties.optimality import missed

ROWWISE = plain.covering(
    [pair for pair in plain.DEFINED if pair[1] != "newton"], plain.PULLING, SELECTIONS
)


def check(data, penalty, alpha, best, result, tol, intercept=True):
    """The certificate, the objective, the optimality residual, exact zeros, and the trace."""
    n, weight = data.X.shape[1], data.s.sum()
    rule, lam = get_penalty(penalty), alpha * weight
    W, b = plain.dense(result, n), result.intercept
    value = plain.objective(data, penalty, lam, W, b)
    assert result.stop_reason == "tol", (result.stop_reason, result.gap)
    assert 0.0 <= result.gap <= tol
    assert result.objective * weight == pytest.approx(value, rel=1e-13)
    assert result.lower_bound * weight <= best.value * (1 + 1e-13)
    assert result.objective - result.lower_bound == pytest.approx(
        result.gap * result.objective, rel=1e-9, abs=1e-15 * (1.0 + abs(result.objective))
    )
    assert value <= best.value * (1 + max(tol, 1e-9))
    assert value >= best.value * (1 - 1e-12)
    U = data.residual(data.X @ W + b)
    near = 20.0 * np.sqrt(tol) * lam
    assert missed(rule, W, data.X.T @ U, lam).max() <= near
    if intercept:
        assert np.abs(U.sum(axis=0)).max() <= near
    else:
        assert not b.any()
    # back-pruning: what is held is nonzero, what is not is exactly zero
    assert (np.diff(result.active) > 0).all()
    assert np.abs(result.W).max(axis=1).min(initial=np.inf) > 0.0
    values = result.trace[:, 2]
    assert (np.diff(values) <= 1e-13 * np.abs(values[1:])).all() or result.history[0]["alpha"] > alpha
    assert (np.diff(result.trace[:, 0]) >= 0).all()


@pytest.mark.parametrize(
    "loss,penalty,intercept,share", plain.covering(LOSSES, plain.PULLING, [True, False], [0.05, 0.3])
)
def test_newton(solve, loss, penalty, intercept, share):
    data, alpha, best = solve(loss, penalty, share, intercept, weights=True)
    fitting = plain.fitting(data, penalty=penalty, tol=1e-10, fit_intercept=intercept)
    assert fitting.alpha_max() == pytest.approx(plain.alpha_max(data, penalty, intercept), rel=1e-9)
    result = fitting.fit(alpha)
    check(data, penalty, alpha, best, result, 1e-10, intercept)
    np.testing.assert_allclose(plain.dense(result, 25), best.W, atol=1e-4 * np.abs(best.W).max())


@pytest.mark.parametrize("pair,penalty,select", ROWWISE)
def test_rowwise(solve, pair, penalty, select):
    loss, update = pair
    data, alpha, best = solve(loss, penalty, 0.3, m=60, n=6, weights=True)
    tol = 1e-5 if loss in plain.KINKED else 1e-8
    result = plain.fitting(data, cuts=2, penalty=penalty, tol=tol, update=update, select=select).fit(alpha)
    check(data, penalty, alpha, best, result, tol)
    # these updates start at the final strength: their trace is that of one objective, and it never rises
    assert {record["alpha"] for record in result.history} == {alpha}


def test_the_objective_never_rises_under_newton_steps(solve, loss, penalty):
    """From a warm start there is no continuation: every step is judged at the final strength."""
    data, alpha, best = solve(loss, penalty, 0.05, True, weights=True)
    fitting = plain.fitting(data, penalty=penalty, tol=1e-10)
    start = fitting.fit(2.0 * alpha)
    result = fitting.fit(alpha, start)
    check(data, penalty, alpha, best, result, 1e-10)
    values = result.trace[:, 2]
    assert (np.diff(values) <= 1e-13 * values[1:]).all()
    assert len(values) > 2


@pytest.mark.parametrize("sample", [0.3, 0.7, "auto"])
def test_a_sample_of_the_curvature_reaches_the_same_optimum(solve, loss, sample):
    data, alpha, best = solve(loss, "l1/l2", 0.1, True, m=300)
    result = plain.fitting(data, penalty="l1/l2", tol=1e-8, sample=sample).fit(alpha)
    check(data, "l1/l2", alpha, best, result, 1e-8)


CORRECTIVE = [(*pair, 30) for pair in plain.DEFINED] + [(loss, "newton", 1) for loss in LOSSES]


@pytest.mark.parametrize("loss,update,rows", CORRECTIVE)
def test_thirty_rows_a_round(loss, update, rows):
    """30 rows a round as in Duchi & Singer 2009, section 6, and one; among more columns than that."""
    data = plain.make(loss, m=80, n=70, seed=60, weights=True)
    alpha = 0.25 * plain.alpha_max(data, "l1/linf")
    select = "greedy" if update == "newton" else "template"
    tol = 1e-8 if update == "newton" else 1e-5
    fitting = plain.fitting(data, penalty="l1/linf", update=update, select=select, tol=tol, features_per_round=rows)
    result = fitting.fit(alpha)
    best = plain.optimum(data, "l1/linf", alpha * data.s.sum())
    assert result.stop_reason == "tol" and result.gap <= tol
    assert max(record["features_in"] for record in result.history) <= rows
    assert result.objective * data.s.sum() == pytest.approx(best.value, rel=2 * tol)
    support = set(np.flatnonzero(np.abs(best.W).max(axis=1) > 1e-3 * np.abs(best.W).max()))
    assert support <= set(result.active.tolist())
    # rows that entered too early were pruned again
    if rows == 30 and update == "newton":
        assert sum(record["features_out"] for record in result.history) > 0


def test_the_quadratic_bound_of_quantiles_leads_to_the_optimum_of_newton_steps():
    data = plain.make("quantile", m=60, n=12, seed=61)
    alpha = 0.4 * plain.alpha_max(data, "l1/l2")
    newton = plain.fitting(data, penalty="l1/l2", tol=1e-7, update="newton").fit(alpha)
    bound = plain.fitting(data, penalty="l1/l2", tol=1e-3, update="gradboost").fit(alpha)
    assert bound.stop_reason == "tol"
    assert newton.objective * (1 - 1e-6) <= bound.objective <= newton.objective * (1 + 2e-3)
