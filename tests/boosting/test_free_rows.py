"""Features without penalty (a factor of 0), with signs and without: their optimum, its certificate, where none is.

Covers: fits by settings, against SciPy and the conditions of optimality in dense numpy. Does not cover: signs and
other factors alone (``test_signs``, ``test_penalty_factors``), names and refusals (tests/estimators), refits
(tests/estimators/test_relaxed_signs).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dboost
from dboost.boosting import fit as fits
from dboost.boosting import path as paths
from dboost.columns.given import PENALTY_FACTORS, Signs
from dboost.engine.local import LocalEngine
from dboost.errors import DataError, UsageError
from dboost.losses import LOSSES
from dboost.penalties import get_penalty
from dboost.penalties.bound import centred, rightly_signed
from dboost.problem import free_rows, free_steps
from tests.boosting import plain

N = 12
SIGNS = np.array([1, -1, 0] * 4, np.int8)
MIXED = Signs.of_signs(SIGNS)
FREE = np.array([0, 1, 2, 3, 4, 9])
FACTORS = np.exp(np.random.default_rng(2).uniform(-1.0, 1.0, N))
FACTORS[FREE] = 0.0
PENALTIES = ("l1", "l1/l2", "l1/linf", "elastic_net", "l1/l2+l1", "l1/l2+ridge")


def fitting(data, **settings):
    given = {"penalty_factors": PENALTY_FACTORS.read(FACTORS), "signs": MIXED, "tol": 1e-8}
    return plain.fitting(data, **given | settings)


CASES = plain.covering(
    LOSSES,
    list(PENALTIES),
    [True, False],
    [None, ()],
    [True, False],
    allowed=lambda *row: True,
)


@pytest.mark.parametrize("loss,penalty,intercept,accelerators,signed", CASES)
def test_the_optimum_pulls_free_columns_against_their_signs_only(loss, penalty, intercept, accelerators, signed):
    data, signs = plain.make(loss, m=90, n=N, seed=4, weights=True), SIGNS if signed else 0 * SIGNS
    given = {"penalty": penalty, "fit_intercept": intercept, "accelerators": accelerators}
    asked = fitting(data, signs=MIXED if signed else None, **given)
    largest = asked.alpha_max()
    found = asked.fit(0.2 * largest)
    W, rule = plain.dense(found, N), get_penalty(penalty)
    F, lam = data.X @ W + found.intercept, 0.2 * largest * data.s.sum() * FACTORS
    U = data.residual(F)
    G = data.X.T @ U
    assert found.stop_reason == "tol" and found.gap <= 1e-8 and np.all(signs[:, None] * W >= 0.0)
    assert found.objective * data.s.sum() == pytest.approx(data.value(F) + rule.total(W, lam), rel=1e-12)
    pull = np.where(W == 0.0, rightly_signed(G, signs), G)[FREE] / (np.abs(data.X).T @ data.s)[FREE, None]
    assert np.abs(pull).max() <= 1e-8
    assert not intercept or np.abs(U.sum(axis=0)).max() <= 1e-8 * data.s.sum()
    norms, zero = rule.dual_norm(rightly_signed(G, signs)), ~np.any(W, axis=1)
    assert np.all(norms[zero] <= lam[zero] * (1 + 1e-6) + 1e-8)
    # the model of the free features alone, of which some are held at zero and no part of it
    assert set(asked.fit(largest * 1.0001).active.tolist()) <= set(FREE.tolist())
    assert len(set(asked.fit(largest * 0.99).active.tolist()) - set(FREE.tolist())) > 0
    assert np.all(np.any(found.W != 0.0, axis=1))


def bounded(data, alpha):
    """The least objective under l1."""
    return plain.least_l1(data, alpha * data.s.sum() * FACTORS, plain.sided(SIGNS))[0]


@pytest.mark.parametrize("signs", [MIXED, None], ids=["signs", "none"])
def test_the_bound_is_the_value_of_another_point_that_pulls_against_the_signs(signs):
    """D(Theta) by its definition, Theta being the residuals less H_i z_i, at a model that is not solved."""
    data, sides = plain.make("log", m=90, n=N, seed=4, weights=True), SIGNS if signs else 0 * SIGNS
    asked = fitting(data, penalty="l1", tol=1e-3, accelerators=(), signs=signs)
    found, problem = asked.fit(0.01), asked.problem
    moved = free_rows.with_free_rows(problem, problem.evaluate(found.active, found.W, found.intercept))
    W = rightly_signed(moved.W + 0.04 * np.isin(moved.active, FREE)[:, None], sides[moved.active])
    iterate = problem.evaluate(moved.active, W, moved.intercept)
    repair = free_rows.repaired(problem, iterate)
    V, v = repair.step
    dense, z = np.zeros((N, 1)), np.zeros((N, 1))
    dense[iterate.active], z[iterate.active] = W, V
    F = data.X @ dense + iterate.intercept
    q = 1.0 / (1.0 + np.exp(-F))
    theta = data.residual(F) - data.s[:, None] * q * (1.0 - q) * (data.X @ z + v)
    pull = data.X[:, FREE].T @ theta
    held = (dense + z)[FREE] == 0.0
    assert abs(theta.sum()) <= 1e-12 and np.abs(np.where(held, 0.0, pull)).max() <= 1e-12
    for scale in (1.0, 0.7):
        exact = data.dual(scale * theta)
        assert free_rows.dual_value(problem, iterate, repair, scale) == pytest.approx(exact, rel=1e-12)
    if signs is None:
        assert not held.any()
        return
    assert held[SIGNS[FREE] != 0].any()
    assert np.all(SIGNS[FREE, None] * pull <= 1e-12) and np.min(SIGNS[FREE, None] * pull) < -1e-3
    lower = data.dual(theta * min(1.0, _shrunk(data, theta)))
    assert lower <= bounded(data, 0.01)


def _shrunk(data, theta):
    """The scale that brings the penalised columns within their strengths."""
    norms = get_penalty("l1").dual_norm(rightly_signed(data.X.T @ theta, SIGNS))
    some = FACTORS > 0.0
    return 1.0 / max(1.0, float(np.max(norms[some] / (0.01 * data.s.sum() * FACTORS[some]))))


def test_every_bound_of_a_fit_is_below_the_optimum():
    data = plain.make("multitask", m=90, n=N, seed=4, weights=True)
    found, best = fitting(data, penalty="l1", tol=1e-10).fit(0.01), bounded(data, 0.01) / data.s.sum()
    bounds = [record["lower_bound"] for record in found.history if np.isfinite(record["lower_bound"])]
    assert bounds and all(bound <= best * (1.0 + 1e-12) for bound in bounds)


@pytest.mark.parametrize("update,select", [("gradboost", "cyclic"), ("adaboost", "template")])
def test_every_update_ends_there(update, select):
    data = plain.make("log", m=90, n=N, seed=4)
    for signs in (MIXED, None):
        newton = fitting(data, penalty="l1", signs=signs).fit(0.02)
        found = fitting(data, penalty="l1", signs=signs, update=update, select=select, tol=1e-6).fit(0.02)
        assert found.gap <= 1e-6 and found.objective == pytest.approx(newton.objective, rel=2e-6)


@pytest.mark.parametrize("loss,penalty", [("log", "l1"), ("multitask", "l1/l2"), ("multinomial", "l1/l2")])
def test_columns_that_add_up_and_products_by_passes_find_the_same(monkeypatch, loss, penalty):
    data = plain.make(loss, m=90, n=N, seed=4)
    more = replace(data, X=np.hstack([data.X, data.X[:, [3]], np.ones((90, 1)), np.zeros((90, 1))]))
    given = {
        "penalty_factors": PENALTY_FACTORS.read(np.append(FACTORS, np.zeros(3))),
        "signs": Signs.of_signs(np.append(SIGNS, np.array([1, 1, -1], np.int8))),
    }
    for none in ({}, {"signs": None}):
        alone = fitting(data, penalty=penalty, **none).fit(0.01)
        whole = fitting(more, penalty=penalty, **given | none).fit(0.01)
        assert whole.gap <= 1e-8 and whole.objective == pytest.approx(alone.objective, rel=2e-8)
        with monkeypatch.context() as passes:
            passes.setattr(free_steps, "FORMED", 0)
            by_passes = fitting(data, penalty=penalty, **none).fit(0.01)
        assert by_passes.gap <= 1e-8 and by_passes.objective == pytest.approx(alone.objective, rel=2e-8)


@pytest.mark.parametrize("signs", [MIXED, None], ids=["signs", "none"])
def test_a_path_keeps_them_and_columns_far_from_zero_change_nothing(signs):
    data = plain.make("log", m=120, n=N, seed=5)
    settings = fits.FitSettings("log", "l1", tol=1e-8, penalty_factors=PENALTY_FACTORS.read(FACTORS), signs=signs)
    for found in paths.path(plain.plan(data), LocalEngine(1), settings, n_alphas=4, eps=0.03):
        alone = fitting(data, penalty="l1", signs=signs).fit(found.alpha)
        assert found.gap <= 1e-8 and found.objective == pytest.approx(alone.objective, rel=2e-8)
        assert signs is None or np.all(SIGNS[:, None] * plain.dense(found, N) >= 0.0)
    moved = replace(data, X=data.X + np.where(np.arange(N) % 2, 1e4, 0.0))
    for standardize in (True, False):
        asked = {"penalty": "l1", "standardize": standardize, "signs": signs}
        near, far = (fitting(one, **asked).fit(0.02) for one in (data, moved))
        assert near.gap <= 1e-8 and far.gap <= 1e-8 and far.objective == pytest.approx(near.objective, rel=1e-7)


@pytest.mark.parametrize("few", [False, True])
@pytest.mark.parametrize("loss,sign", [("log", 1), ("poisson", -1)])
def test_columns_that_separate_the_labels_have_a_model_where_the_sign_forbids_it(loss, sign, few):
    data = plain.make(loss, m=90, n=N, seed=4)
    on = data.y[:, 0] > 0 if loss == "log" else data.y == 0
    data.X[:, 2] = on & (np.arange(90) < 45) if few else np.where(on, 1.0, -1.0)
    for way in (sign, 0, -sign):
        signs = Signs.of_signs(np.where(np.arange(N) == 2, way, SIGNS).astype(np.int8)) if way else None
        if way != -sign:
            with pytest.raises(DataError, match="penalty_factors are 0 have no finite optimum"):
                fitting(data, penalty="l1", signs=signs).fit(0.02)
        else:
            found = fitting(data, penalty="l1", signs=signs).fit(0.02)
            assert found.gap <= 1e-8 and 2 not in found.active


def test_rows_of_classes_are_as_near_to_a_mean_of_zero_as_they_may():
    """What all classes have in common changes no loss: no sign binds a row without penalty, it only places it."""
    data = plain.make("multinomial", m=90, n=N, seed=4)
    alone = {"signs": Signs.of_signs(np.where(FACTORS > 0.0, 0, SIGNS).astype(np.int8))}
    found, other = (fitting(data, penalty="l1/l2", **given).fit(0.01) for given in (alone, {"signs": None}))
    W, V = plain.dense(found, N), plain.dense(other, N)
    np.testing.assert_allclose(W[FREE], centred(V[FREE], SIGNS[FREE]), atol=1e-3)
    assert np.all(W[[0, 3, 9]].min(axis=1) == 0.0) and np.all(W[[1, 4]].max(axis=1) == 0.0)
    np.testing.assert_allclose(np.vstack([V[FREE], W[[2]]]).sum(axis=1), 0.0, atol=1e-12)
    assert found.objective == pytest.approx(other.objective, rel=2e-8)


@pytest.mark.parametrize("seed", range(4))
def test_a_common_shift_of_classes_is_not_followed(seed):
    """Solves for sums that are rounding went along it, and a model that exists was refused."""
    data = plain.make("multinomial", m=150, n=N, seed=seed, noise=2.5)
    factors = PENALTY_FACTORS.read(np.where(np.arange(N) < 6, 0.0, 1.0))
    for signs in (None, Signs.given(positive=True)):
        asked = fitting(data, penalty="l1", fit_intercept=False, signs=signs, penalty_factors=factors)
        assert asked.fit(0.01).gap <= 1e-8


def test_what_they_cannot_be_combined_with_is_named():
    data = plain.make("log", m=20, n=N, seed=4)
    with pytest.raises(UsageError, match="solves for the rows it chooses"):
        dboost.LeveragingClassifier(hypotheses=dboost.Columns(), alpha=0.1, penalty_factors=FACTORS).fit(
            data.X, data.y[:, 0]
        )
