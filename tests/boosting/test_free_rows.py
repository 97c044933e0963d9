"""Features without penalty (a factor of 0), with signs and without: their certificate, and where no optimum is.

Does not cover: the optimum itself (``test_single_columns``), names and refusals (tests/estimators), refits
(tests/estimators/test_relaxed_signs).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dboost.columns.given import PENALTY_FACTORS, Signs
from dboost.errors import DataError
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


def fitting(data, **settings):
    given = {"penalty_factors": PENALTY_FACTORS.read(FACTORS), "signs": MIXED, "tol": 1e-8}
    return plain.fitting(data, **given | settings)


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
    assert lower <= plain.optimum(data, "l1", 0.01 * data.s.sum() * FACTORS, signs=SIGNS).value


def _shrunk(data, theta):
    """The scale that brings the penalised columns within their strengths."""
    norms = get_penalty("l1").dual_norm(rightly_signed(data.X.T @ theta, SIGNS))
    some = FACTORS > 0.0
    return 1.0 / max(1.0, float(np.max(norms[some] / (0.01 * data.s.sum() * FACTORS[some]))))


@pytest.mark.full
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


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("signs", [MIXED, None], ids=["signs", "none"])
def test_columns_far_from_zero_change_nothing(signs, standardize):
    data = plain.make("log", m=120, n=N, seed=5)
    moved = replace(data, X=data.X + np.where(np.arange(N) % 2, 1e4, 0.0))
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


@pytest.mark.full
@pytest.mark.parametrize("seed", range(4))
def test_a_common_shift_of_classes_is_not_followed(seed):
    """Solves for sums that are rounding went along it, and a model that exists was refused."""
    data = plain.make("multinomial", m=150, n=N, seed=seed, noise=2.5)
    factors = PENALTY_FACTORS.read(np.where(np.arange(N) < 6, 0.0, 1.0))
    for signs in (None, Signs.given(positive=True)):
        asked = fitting(data, penalty="l1", fit_intercept=False, signs=signs, penalty_factors=factors)
        assert asked.fit(0.01).gap <= 1e-8
