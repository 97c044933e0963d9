"""Fits to labels of any unit: prices in thousands and in cents are the same problem, and take the same steps."""

from __future__ import annotations

import numpy as np
import pytest

import dboost
from dboost.losses import EpsilonInsensitive, Huber, Quantile

SCALES = [1e-6, 1e3, 1e6]


@pytest.fixture(scope="module")
def problem():
    """500 rows, 20 columns of which 4 matter, and labels around 5 with a deviation of 4."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 20))
    w = np.zeros(20)
    w[:4] = 3.0, -2.0, 1.0, 0.5
    return X, 5.0 + X @ w + 0.1 * rng.standard_t(3, size=500)


# The objective of the squared and of Huber's loss is in squares of the unit, that of the pinball loss in the unit.
@pytest.mark.parametrize(
    ("loss", "power"),
    [
        (lambda unit: "squared", 2),
        (lambda unit: Huber(0.1 * unit), 2),
        (lambda unit: Huber(4.0 * unit), 2),
        (lambda unit: Quantile(0.5, 0.1 * unit), 1),
        (lambda unit: Quantile(0.9, unit), 1),
    ],
    ids=["squared", "Huber's 0.1", "Huber's 4", "median", "quantile 0.9"],
)
def test_the_unit_of_labels_changes_the_unit_of_the_weights_alone(problem, loss, power):
    X, y = problem

    def fit(unit):
        alpha = 0.01 * unit ** (power - 1)
        return dboost.BoostedRegressor(loss=loss(unit), alpha=alpha, tol=1e-8).fit(X, unit * y)

    one = fit(1.0)
    assert one.history_[-1]["gap"] <= 1e-8
    for unit in SCALES:
        other = fit(unit)
        assert other.history_[-1]["gap"] <= 1e-8
        assert len(other.history_) <= len(one.history_) + 1
        np.testing.assert_allclose(other.coef_ / unit, one.coef_, atol=1e-5)
        assert other.objective_ / unit**power == pytest.approx(one.objective_, rel=2e-8)


@pytest.mark.parametrize("width", [0.0, 0.1])
def test_a_tube_in_a_large_unit_is_the_insensitive_loss_without_its_rounding(problem, width):
    """Its ends are rounded off over one unit: in a small unit nothing is left of that."""
    X, y = problem
    loss = EpsilonInsensitive(width * 1e4)
    model = dboost.BoostedRegressor(loss=loss, alpha=0.01, tol=1e-6).fit(X, 1e4 * y)
    assert model.history_[-1]["gap"] <= 1e-6 and len(model.history_) < 100
    errors = np.abs(y - model.predict(X) / 1e4) - width
    plain = np.maximum(errors, 0.0).mean() + 0.01 * np.abs(model.coef_).sum() / 1e4
    assert model.objective_ / 1e4 == pytest.approx(plain, rel=1e-3)


def test_adaboost_l1_does_not_stall_on_labels_in_a_small_unit(problem):
    X, y = problem

    def objective(unit):
        model = dboost.AdaBoostL1Regressor(loss=EpsilonInsensitive(0.1 * unit), max_rounds=12).fit(X, unit * y)
        return model.history_.column("objective") / unit

    found = objective(1e6)
    assert np.all(np.diff(found) < 0.0)
    np.testing.assert_allclose(found, objective(1e3), rtol=1e-2)
