"""Weights of one sign: against scikit-learn, SciPy, brute force and the conditions of optimality in dense numpy.

Covers: fits by settings, paths, the penalty with signs, compiled descents. Does not cover: names, models and refusals
(tests/estimators), glmnet (lab).
"""

from __future__ import annotations

import numpy as np
import pytest

from dboost.boosting import fit as fits
from dboost.boosting import path as paths
from dboost.columns.given import PENALTY_FACTORS, Features, Signs
from dboost.engine.local import LocalEngine
from dboost.errors import UsageError
from dboost.losses import LOSSES
from dboost.penalties import L1, get_penalty
from dboost.penalties.bound import rightly_signed
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
    assert np.all(rule.dual_norm(rightly_signed(G, SIGNS))[~np.any(W, axis=1)] <= lam * (1.0 + 10.0 * np.sqrt(tol)))
    assert asked.fit(largest * 1.0001).active.size == 0 < asked.fit(largest * 0.99).active.size


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

    def size(V):
        found = get_penalty(penalty).total(V, alpha * weights)
        strength = alpha * (penalty != "none") * weights[:, None]
        return total * found, total * V * (strength**2 / max(found, 1e-300) if penalty == "l2" else strength)

    start = np.where(np.repeat(signs, k) == 0, 1.0, np.repeat(signs, k))
    value, W, _ = plain.least(data, size, plain.sided(signs), start=start)
    return W, value / total


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
