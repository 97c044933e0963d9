"""Features without penalty (a factor of 0): their optimum, its certificate, the null model, paths, and both engines.

Covers: fits by settings, against dense numpy, scikit-learn and SciPy. Does not cover: other factors
(``test_penalty_factors``), names and refusals (tests/estimators), glmnet (lab).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dboost
from dboost.boosting import fit as fits
from dboost.boosting import path as paths
from dboost.columns.given import PENALTY_FACTORS
from dboost.engine.local import LocalEngine
from dboost.errors import DataError, UsageError
from dboost.losses import LOSSES
from dboost.penalties import get_penalty
from dboost.problem import free_rows, free_steps
from tests.boosting import plain

FREE, N = (2, 5, 6), 12


def factors():
    found = np.exp(np.random.default_rng(2).uniform(-1.0, 1.0, N))
    found[list(FREE)] = 0.0
    return found


def fitting(data, **settings):
    return plain.fitting(data, **{"penalty_factors": PENALTY_FACTORS.read(factors()), "tol": 1e-8} | settings)


def pull(data, found):
    """X'U and 1'U at a model, in dense numpy."""
    U = data.residual(data.X @ plain.dense(found, data.X.shape[1]) + found.intercept)
    return data.X.T @ U, U.sum(axis=0)


PENALTIES = ("l1", "l1/l2", "l1/linf", "elastic_net", "l2_squared")
CASES = plain.covering(LOSSES, list(PENALTIES), [True, False])


@pytest.mark.parametrize("loss,penalty,intercept", CASES)
def test_the_optimum_has_no_sums_of_free_columns(loss, penalty, intercept):
    """The certified model satisfies the conditions of optimality, formed by dense numpy."""
    data = plain.make(loss, m=90, n=N, seed=4, weights=True)
    asked = fitting(data, penalty=penalty, fit_intercept=intercept)
    largest = asked.alpha_max()
    alpha = 0.2 * largest if np.isfinite(largest) else 0.01
    found = asked.fit(alpha)
    lam, scale = alpha * data.s.sum() * factors(), np.abs(data.X).T @ data.s
    G, bias = pull(data, found)
    assert found.stop_reason == "tol" and found.gap <= 1e-8 and set(FREE) <= set(found.active.tolist())
    assert np.max(np.abs(G[list(FREE)]) / scale[list(FREE), None]) <= 1e-8
    assert not intercept or np.abs(bias).max() <= 1e-8 * data.s.sum()
    if np.isfinite(largest):
        out = np.setdiff1d(np.arange(N), found.active)
        assert np.all(get_penalty(penalty).dual_norm(G)[out] <= lam[out] * (1.0 + 1e-6))
        assert asked.fit(largest * 1.0001).active.tolist() == list(FREE)
        assert asked.fit(largest * 0.99).active.size > len(FREE)


def test_the_bound_is_below_and_near_the_value_of_another_point():
    """D(Theta) by its definition, Theta being the residuals less H_i z_i, is the bound of the certificate."""
    data = plain.make("log", m=90, n=N, seed=4, weights=True)
    asked = fitting(data, penalty="l1", tol=1e-3, accelerators=())
    found = asked.fit(0.01)
    problem, F = asked.problem, data.X @ plain.dense(found, N) + found.intercept
    at = problem.evaluate(found.active, found.W, found.intercept)
    # a model that is not solved: the free rows are moved away from where they belong
    W = at.W + 0.05 * np.isin(at.active, FREE)[:, None]
    at = problem.evaluate(at.active, W, at.intercept)
    repair = free_rows.repaired(problem, at)
    V, v = repair.step
    dense = np.zeros((N, 1))
    dense[at.active] = W
    F = data.X @ dense + found.intercept
    q = 1.0 / (1.0 + np.exp(-F))
    z = np.zeros((N, 1))
    z[at.active] = V
    theta = data.residual(F) - data.s[:, None] * q * (1.0 - q) * (data.X @ z + v)
    np.testing.assert_allclose(np.append(data.X[:, FREE].T @ theta, theta.sum()), 0.0, atol=1e-12)
    for scale in (1.0, 0.7):
        assert free_rows.dual_value(problem, at, repair, scale) == pytest.approx(data.dual(scale * theta), rel=1e-12)


@pytest.mark.parametrize("update,select", [("gradboost", "cyclic"), ("adaboost", "template")])
def test_every_update_and_no_accelerator_end_there(update, select):
    data = plain.make("log", m=90, n=N, seed=4)
    newton = fitting(data, penalty="l1").fit(0.02)
    for more in ({"update": update, "select": select}, {"accelerators": ()}):
        assert fitting(data, penalty="l1", **more, tol=1e-6).fit(0.02).objective == pytest.approx(
            newton.objective, rel=2e-6
        )


def test_columns_that_add_up_are_no_hindrance_and_products_by_passes_find_the_same(monkeypatch):
    """A free column twice, the intercept's own, and one without values: their curvature has no inverse."""
    data = plain.make("multinomial", m=90, n=N, seed=4)
    more = replace(data, X=np.hstack([data.X, data.X[:, [2]], np.ones((90, 1)), np.zeros((90, 1))]))
    given = PENALTY_FACTORS.read(np.append(factors(), np.zeros(3)))
    alone, whole = fitting(data, penalty="l1/l2").fit(0.01), fitting(more, penalty_factors=given, penalty="l1/l2")
    assert whole.fit(0.01).gap <= 1e-8
    assert whole.fit(0.01).objective == pytest.approx(alone.objective, rel=2e-8)
    monkeypatch.setattr(free_steps, "FORMED", 0)
    assert fitting(data, penalty="l1/l2").fit(0.01).objective == pytest.approx(alone.objective, rel=2e-8)


def test_a_path_and_a_cross_validation_keep_them():
    data = plain.make("log", m=120, n=N, seed=5)
    settings = fits.FitSettings("log", "l1", tol=1e-8, penalty_factors=PENALTY_FACTORS.read(factors()))
    along = paths.path(plain.plan(data), LocalEngine(1), settings, n_alphas=4, eps=0.03)
    for found in along:
        alone = fitting(data, penalty="l1").fit(found.alpha)
        assert found.gap <= 1e-8 and found.objective == pytest.approx(alone.objective, rel=2e-8)
    assert along[0].active.tolist() == list(FREE)


def test_standardize_and_columns_far_from_zero():
    data = plain.make("log", m=90, n=N, seed=4)
    moved = replace(data, X=data.X + np.where(np.arange(N) % 2, 1e4, 0.0))
    for standardize in (True, False):
        near, far = (fitting(one, penalty="l1", standardize=standardize).fit(0.02) for one in (data, moved))
        assert near.gap <= 1e-8 and far.gap <= 1e-8
        assert far.objective == pytest.approx(near.objective, rel=1e-7)


@pytest.mark.parametrize("loss,few", [("log", False), ("log", True), ("poisson", True)])
def test_columns_that_separate_the_labels_have_no_model(loss, few):
    """All of them, or a few: a column that is one for examples of one label only, or for counts of zero."""
    data = plain.make(loss, m=90, n=N, seed=4)
    on = data.y[:, 0] > 0 if loss == "log" else data.y == 0
    data.X[:, 2] = on & (np.arange(90) < 45) if few else np.where(on, 1.0, -1.0)
    with pytest.raises(DataError, match="penalty_factors are 0 have no finite optimum"):
        fitting(data, penalty="l1").fit(0.02)


def test_sums_that_are_rounding_are_no_missing_optimum():
    """Of several classes a common shift is not curved: a solve for rounding would go along it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 30)) * np.exp(rng.uniform(-1.0, 1.0, 30))
    W = np.zeros((30, 4))
    W[rng.choice(30, 8, replace=False)] = rng.normal(size=(8, 4))
    F = 0.5 * X @ W
    y = np.argmax(F + rng.gumbel(size=F.shape), axis=1)
    given = np.ones(30)
    given[[0, 7]] = 0.0
    model = dboost.BoostedClassifier(loss="multinomial", penalty="l1", alpha=0.05, tol=1e-9, penalty_factors=given)
    assert model.fit(X, y).duality_gap_ <= 1e-9
    assert np.all(model.coef_[:, [0, 7]])


def test_what_they_cannot_be_combined_with_is_named():
    data = plain.make("log", m=20, n=N, seed=4)
    with pytest.raises(UsageError, match="solves for the rows it chooses"):
        dboost.LeveragingClassifier(hypotheses=dboost.Columns(), alpha=0.1, penalty_factors=factors()).fit(
            data.X, data.y[:, 0]
        )
