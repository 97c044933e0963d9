"""A factor of the strength for each column: against a plain solver, whatever the penalty, the update or the way.

Covers: fits by settings. Does not cover: names, models and refusals (tests/estimators), glmnet (lab).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dboost.boosting import fit as fits
from dboost.boosting import path as paths
from dboost.columns.given import PENALTY_FACTORS
from dboost.engine.local import LocalEngine
from dboost.losses import LOSSES
from tests.boosting import plain

# Factors from a fifth to five, and two columns that never enter, one of which tells the most.
OUT = (0, 7)


def factors(n):
    found = np.exp(np.random.default_rng(2).uniform(-1.6, 1.6, n))
    found[list(OUT)] = np.inf
    return found


def best_of(data, penalty, lam, intercept=True):
    """The optimum over the columns that may enter, W of all of them."""
    n = data.X.shape[1]
    kept = np.setdiff1d(np.arange(n), OUT)
    found = plain.optimum(data.columns(kept), penalty, lam * factors(n)[kept], intercept)
    W = np.zeros((n, data.k))
    W[kept] = found.W
    return replace(found, W=W)


def asked(n, **settings):
    return {"penalty_factors": PENALTY_FACTORS.read(factors(n)), **settings}


CASES = plain.covering(
    list(LOSSES), [*plain.PULLING, "l2_squared"], [True, False], allowed=lambda loss, penalty, free: True
)


@pytest.mark.parametrize("loss,penalty,intercept", CASES)
def test_a_plain_solver_finds_the_same(loss, penalty, intercept):
    data = plain.make(loss, m=90, n=12, seed=4, weights=True)
    fitting = plain.fitting(data, **asked(12, penalty=penalty, tol=1e-8, fit_intercept=intercept))
    largest = fitting.alpha_max()
    alpha = 0.2 * largest if np.isfinite(largest) else 0.01
    found, total = fitting.fit(alpha), data.s.sum()
    best = best_of(data, penalty, alpha * total, intercept)
    assert found.stop_reason == "tol" and found.gap <= 1e-8
    assert not set(OUT) & set(found.active.tolist())
    assert found.objective * total == pytest.approx(best.value, rel=2e-8)
    assert found.lower_bound * total <= best.value * (1.0 + 1e-10)
    if np.isfinite(largest):
        assert fitting.fit(largest * 1.0001).active.size == 0 < fitting.fit(largest * 0.99).active.size


@pytest.mark.parametrize("update,select", [("gradboost", "greedy"), ("adaboost", "template"), ("gradboost", "cyclic")])
def test_every_update_ends_there(update, select):
    data = plain.make("multinomial", m=90, n=12, seed=4)
    settings = {"penalty": "l1/l2", "update": update, "select": select, "tol": 1e-6}
    found = plain.fitting(data, **asked(12, **settings)).fit(0.02)
    best = best_of(data, "l1/l2", 0.02 * data.s.sum())
    assert found.gap <= 1e-6 and not set(OUT) & set(found.active.tolist())
    assert found.objective * data.s.sum() == pytest.approx(best.value, rel=2e-6)


def test_the_joint_norm_of_all_rows():
    """||(f_j W_j)_j||_2 over the columns that may enter, which is the plain norm over columns divided by f_j."""
    data = plain.make("multinomial", m=90, n=12, seed=4)
    kept, f = np.setdiff1d(np.arange(12), OUT), factors(12)
    found = plain.fitting(data, **asked(12, penalty="l2", tol=1e-8)).fit(0.01)
    scaled = plain.fitting(replace(data, X=data.X[:, kept] / f[kept]), penalty="l2", tol=1e-8).fit(0.01)
    np.testing.assert_array_equal(found.active, kept)
    assert found.gap <= 1e-8 and found.objective == pytest.approx(scaled.objective, rel=2e-8)


def test_along_a_path_screening_keeps_what_the_optimum_needs():
    data = plain.make("log", m=150, n=80, seed=5)
    f = np.exp(np.random.default_rng(3).uniform(-2.0, 2.0, 80))
    settings = fits.FitSettings("log", "l1", tol=1e-8, penalty_factors=PENALTY_FACTORS.read(f))
    for found in paths.path(plain.plan(data), LocalEngine(1), settings, n_alphas=6, eps=0.03):
        best = plain.optimum(data, "l1", found.alpha * data.s.sum() * f)
        assert found.gap <= 1e-8
        assert found.objective * data.s.sum() == pytest.approx(best.value, rel=2e-8)


def test_factors_of_one_change_no_bit():
    data = plain.make("multinomial", m=90, n=12, seed=4)
    ones = PENALTY_FACTORS.read(np.ones(12))
    with_them, without = (
        plain.fitting(data, penalty="l1/linf", tol=1e-8, penalty_factors=given).fit(0.01) for given in (ones, None)
    )
    np.testing.assert_array_equal(with_them.W, without.W)
    np.testing.assert_array_equal(with_them.intercept, without.intercept)
    assert with_them.passes == without.passes
