"""Losses whose residuals lie between two ends: repairs keep them there, and the ray is bounded where it can be.

Covers: Huber's loss and the quantile's, for parameters of all kinds. Does not cover: what every loss must do
(test_loss_rows, test_loss_duals).
"""

from __future__ import annotations

import numpy as np
import pytest

from dboost.errors import UsageError
from dboost.losses import Huber, Quantile
from tests.losses.references import Huber as HuberReference
from tests.losses.references import Quantile as QuantileReference
from tests.losses.references import Rows

LOSSES = [Huber(0.2), Huber(30.0), Quantile(0.5, 2.0), Quantile(0.9, 0.3), Quantile(0.02, 1e-3), Quantile(0.999, 5.0)]


def reference_of(loss):
    kind = HuberReference if loss.name == "huber" else QuantileReference
    return kind(**vars(loss))


@pytest.fixture(params=LOSSES, ids=repr)
def loss(request):
    return request.param


def examples(loss, size, m=200, seed=1):
    """Labels, scores, weights; errors of about `size` times the width in which the loss is a parabola."""
    rng = np.random.default_rng(seed)
    F = rng.normal(size=(m, 1))
    half = loss.epsilon if loss.name == "huber" else 0.5 * loss.width
    return F[:, 0] + size * half * rng.uniform(-1, 1, m), F, rng.uniform(0.1, 3.0, m)


@pytest.mark.parametrize("size", [0.1, 1.5, 100.0])
def test_the_formulas(loss, size):
    rows, reference = Rows(loss), reference_of(loss)
    y, F, s = examples(loss, size)
    one = np.ones_like(s)
    scale = 1e-12 * np.abs(y).max()
    np.testing.assert_allclose(rows.value(y, F, s), s * reference.loss(y, F).astype(float), rtol=1e-11, atol=scale)
    np.testing.assert_allclose(rows.residual(y, F, one), reference.residual(y, F).astype(float), rtol=1e-8, atol=1e-10)
    U = rows.residual(y, F, one)
    assert U.min() >= loss.ends[0] and U.max() <= loss.ends[1] and np.abs(U).max() <= loss.largest
    for t in (0.0, 0.3, 1.0):
        wanted = reference.dual(y, t * U).astype(float)
        got = rows.dual(y, F, one, np.array([t]), np.zeros(1), np.zeros(1), np.zeros(1))
        np.testing.assert_allclose(got, wanted, rtol=1e-11, atol=scale)
    # weak duality, and the least value of the loss
    assert (reference.loss(y, F) >= loss.floor * (1 - 1e-12)).all()


@pytest.mark.full
@pytest.mark.parametrize("shift", [-50.0, -0.01, 0.0, 1e-6, 3.0])
def test_the_repair_is_feasible_and_says_what_it_does(loss, shift):
    rows, reference = Rows(loss), reference_of(loss)
    y, F, s = examples(loss, 2.0)
    F = F + shift * loss.largest / loss.kappa
    U = rows.residual(y, F, s)
    mass, total = loss.label_mass(y, s, 1)
    repair = loss.repair(mass, total, U.sum(axis=0))
    theta = rows.theta(y, U, s, repair)
    assert abs(theta.sum()) <= 1e-11 * s.sum() * loss.largest
    unit = theta[:, 0] / s
    assert unit.min() >= loss.ends[0] * (1 + 1e-15) and unit.max() <= loss.ends[1] * (1 + 1e-15)
    assert np.isfinite(reference.dual(y, unit[:, None]).astype(float)).all()
    x = np.random.default_rng(0).normal(size=s.shape[0])
    assert abs(x @ (theta - U)[:, 0]) <= repair.drift[0] * (s @ np.abs(x)) * (1 + 1e-12)


def test_the_rounded_pinball_loss_is_above_it_by_an_eighth_of_the_width_at_most():
    loss = Quantile(0.8, 0.4)
    z = np.linspace(-1.0, 1.0, 2001)
    over = Rows(loss).value(z, np.zeros((2001, 1)), np.ones(2001)) - loss.deviance(z, np.zeros_like(z))
    assert over.min() >= -1e-15 and over.max() == pytest.approx(0.05) and over[0] == over[-1] == 0.0


@pytest.mark.parametrize("kind,name", [(Huber, "epsilon"), (Quantile, "quantile"), (Quantile, "width")])
@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf, "much", True, None])
def test_parameters_without_meaning_are_refused(kind, name, value):
    with pytest.raises(UsageError, match=name):
        kind(**{name: value})


def test_a_quantile_is_below_one():
    with pytest.raises(UsageError, match="between 0 and 1"):
        Quantile(1.0)
