"""Penalties that leave no feature out: what their strengths, paths and limits mean, and the norm that does all at once.

Does not cover: optima and certificates (``test_agreement``, ``test_certificate``).
"""

from __future__ import annotations

import numpy as np
import pytest

from dboost.boosting import fit as fits
from dboost.boosting import path as paths
from dboost.engine.local import LocalEngine
from dboost.errors import UsageError
from dboost.penalties import SmoothL1
from tests.boosting import plain


@pytest.mark.parametrize("penalty", ["l2_squared", "smooth_l1", SmoothL1(sharpness=3.0)], ids=str)
def test_auto_is_one_over_the_weight(penalty):
    data = plain.make("log", weights=True)
    result = plain.fitting(data, penalty=penalty, tol=1e-6).fit("auto")
    assert np.isnan(result.alpha_max) and (result.W != 0).all() and len(result.active) == 25
    assert result.alpha == pytest.approx(1.0 / data.s.sum(), rel=1e-12)


@pytest.mark.parametrize("intercept", [True, False], ids=["intercept", "no intercept"])
@pytest.mark.parametrize("loss,update", plain.DEFINED)
def test_l2_is_zero_as_a_whole_from_alpha_max_on(loss, update, intercept):
    data = plain.make(loss, m=80, n=10, weights=True, seed=5)
    select = "greedy" if update == "newton" else "template"
    fitting = plain.fitting(data, penalty="l2", update=update, select=select, tol=1e-6, fit_intercept=intercept)
    largest = fitting.alpha_max()
    assert largest == pytest.approx(plain.alpha_max(data, "l2", intercept), rel=1e-9)
    for factor in (1 + 1e-12, 2.0):
        result = fitting.fit(factor * largest)
        assert (result.stop_reason, result.n_iter, len(result.active)) == ("tol", 1, 0)
    # no row could leave alone at this strength
    below = fitting.fit(0.99 * largest)
    assert below.stop_reason == "tol" and len(below.active) == 10 and (below.W != 0).all()
    assert plain.alpha_max(data, "l1/l2", intercept) < 0.99 * largest
    # and back to zero from there
    again = fitting.fit(1.5 * largest, start=below)
    assert (again.stop_reason, len(again.active)) == ("tol", 0)


@pytest.mark.full
@pytest.mark.parametrize("loss", ["log", "multitask", "huber"])
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
            best = plain.optimum(data, penalty, result.alpha * 80).value
            assert result.objective * 80 == pytest.approx(best, rel=1e-5)
    results = paths.path(plan, LocalEngine(1), fits.FitSettings(loss, "l2", tol=1e-6), n_alphas=6, eps=0.05)
    assert [len(result.active) for result in results] == [0, 8, 8, 8, 8, 8]
    assert all(result.gap <= 1e-6 for result in results)


@pytest.mark.full
@pytest.mark.parametrize("loss,update", [pair for pair in plain.DEFINED if pair[1] != "gradboost"])
def test_smooth_l1_as_a_booster_adds_one_feature_a_round(solve, loss, update):
    """Dekel et al.'s baseline: the best feature by score, then all held are re-optimised; nothing ever leaves."""
    data, alpha, best = solve(loss, "smooth_l1", 0.0, m=60, n=6, weights=True)
    settings = {"penalty": "smooth_l1", "tol": 1e-5, "features_per_round": 1, "update": update}
    result = plain.fitting(data, **settings).fit(alpha)
    assert [record["features"] for record in result.history][:6] == [1, 2, 3, 4, 5, 6]
    assert all(record["features_out"] == 0 for record in result.history)
    # no jump of the penalty where a feature enters: the objective of every round is comparable
    assert (np.diff([record["objective"] for record in result.history]) < 0).all()
    assert result.stop_reason == "gradient" and np.isnan(result.gap)
    assert best.value * (1 - 1e-11) <= result.objective * data.s.sum() <= best.value * (1 + 1e-5)
    budget = plain.fitting(data, max_rounds=3, **settings).fit(alpha)
    assert (budget.stop_reason, len(budget.active)) == ("max_rounds", 3)
