"""penalty="none": the smooth optimum, judged by its gradient and by scipy."""

from __future__ import annotations

import numpy as np
import pytest

from dboost.boosting.checks import UPDATES
from tests.boosting import plain


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("intercept", [True, False], ids=["intercept", "no intercept"])
def test_the_smooth_optimum(loss, update, intercept):
    if not plain.defined(loss, update):
        plain.refused(plain.make(loss, m=10, n=2), update=update)
        return
    data = plain.make(loss, m=150, n=5, seed=40, noise=3.0, weights=True)
    select = {"newton": "greedy", "gradboost": "cyclic", "adaboost": "template"}[update]
    fitting = plain.fitting(data, penalty="none", tol=1e-9, update=update, select=select, fit_intercept=intercept)
    result = fitting.fit("auto")
    assert result.stop_reason == "gradient"
    assert np.isnan(result.gap) and np.isnan(result.lower_bound) and np.isnan(result.alpha_max)
    assert result.alpha == 0.0
    weight = data.s.sum()
    assert result.objective * weight == pytest.approx(plain.least(data, intercept=intercept)[0], rel=1e-8)
    W = plain.dense(result, 5)
    U = data.residual(data.X @ W + result.intercept)
    assert np.abs(data.X.T @ U).max() <= 1e-3 * weight
    assert np.abs(U.sum(axis=0)).max() <= 1e-3 * weight or not intercept


@pytest.mark.parametrize("loss", ["log", "multinomial", "multitask", "exp"])
def test_separable_data_end_with_a_warning_or_a_small_gradient(loss):
    """No minimum exists; the fit must end by itself, with finite numbers."""
    data = plain.make(loss, m=40, n=30, seed=41, density=1.0)
    result = plain.fitting(data, penalty="none", tol=1e-6, max_rounds=30).fit("auto")
    assert result.stop_reason in ("gradient", "max_rounds", "precision")
    assert np.isfinite(result.W).all() and np.isfinite(result.intercept).all()
    assert result.objective < 1e-3
