"""Huber's loss and the quantile's as users meet them: beside scikit-learn and a linear program, on engines, saved.

Covers: ``BoostedRegressor`` with both. Does not cover: formulas (tests/losses), other solvers and penalties
(tests/boosting).
"""

from __future__ import annotations

import dask.array as da
import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import QuantileRegressor
from sklearn.metrics import d2_pinball_score, r2_score

import dboost
from dboost import BoostedRegressor
from dboost.losses import Huber, Quantile


@pytest.fixture(scope="module")
def skewed():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 6))
    return X, X[:, 0] - 0.5 * X[:, 1] + rng.exponential(size=200) * np.where(rng.random(200) < 0.1, 10.0, 1.0)


@pytest.mark.parametrize("tau", [0.1, 0.5, 0.9])
def test_the_pinball_loss_of_a_linear_program_is_within_the_gap_and_an_eighth_of_the_width(skewed, tau):
    X, y = skewed
    alpha, width = 0.02, 0.02
    # scikit-learn minimises the mean pinball loss plus alpha times the l1 norm, by a linear program
    theirs = QuantileRegressor(quantile=tau, alpha=alpha, solver="highs").fit(X, y)
    ours = BoostedRegressor(standardize=False, loss=Quantile(tau, width), alpha=alpha, tol=1e-7).fit(X, y)
    assert ours.duality_gap_ <= 1e-7

    def pinball(w, b):
        return Quantile(tau).deviance(y, X @ w + b).mean() + alpha * np.abs(w).sum()

    best = pinball(theirs.coef_, theirs.intercept_)
    found = pinball(ours.coef_[0], ours.intercept_[0])
    assert -1e-9 <= found - best <= ours.duality_gap_ * ours.objective_ + width / 8
    assert best - 1e-9 <= ours.objective_ <= best + width / 8
    assert abs(np.mean(y <= ours.predict(X)) - tau) < 0.05
    assert ours.score(X, y) == pytest.approx(d2_pinball_score(y, ours.predict(X), alpha=tau), abs=1e-2)


@pytest.mark.parametrize("epsilon", [0.3, 1.35])
def test_hubers_loss_has_the_optimum_of_another_solver(skewed, epsilon):
    X, y = skewed

    def ridge(v):
        z = y - X @ v[:6] - v[6]
        near = np.minimum(np.abs(z), epsilon)
        value = np.mean(near * (np.abs(z) - near / 2)) + 0.05 * (v[:6] @ v[:6]) / 2
        pull = np.clip(z, -epsilon, epsilon) / len(y)
        return value, np.append(0.05 * v[:6] - X.T @ pull, -pull.sum())

    best = minimize(ridge, np.zeros(7), jac=True, method="BFGS", options={"gtol": 1e-11})
    ours = BoostedRegressor(standardize=False, loss=Huber(epsilon), penalty="l2_squared", alpha=0.05, tol=1e-9).fit(
        X, y
    )
    assert ours.duality_gap_ <= 1e-9 and ours.objective_ == pytest.approx(best.fun, rel=1e-8)
    np.testing.assert_allclose(ours.coef_[0], best.x[:6], atol=1e-4)
    assert ours.score(X, y) == pytest.approx(r2_score(y, ours.predict(X)))


@pytest.mark.parametrize("loss", ["huber", Quantile(0.8, 0.5)])
def test_two_processes_give_the_bits_of_one(skewed, loss, two_processes):
    X, y = skewed
    lazy = da.from_array(X, chunks=(70, -1)), da.from_array(y, chunks=70)
    here = BoostedRegressor(loss=loss, alpha=0.01).fit(*lazy)
    there = BoostedRegressor(loss=loss, alpha=0.01, client=two_processes).fit(*lazy)
    np.testing.assert_array_equal(there.coef_, here.coef_)
    np.testing.assert_array_equal(there.intercept_, here.intercept_)
    assert here.duality_gap_ == there.duality_gap_ <= 1e-4


def test_their_parameters_are_saved(skewed, tmp_path):
    X, y = skewed
    model = BoostedRegressor(loss=Quantile(0.8, 0.3), alpha=0.02).fit(X, y)
    model.save(tmp_path / "model")
    again = dboost.load_model(tmp_path / "model")
    assert again.loss == Quantile(0.8, 0.3) and again.score(X, y) == model.score(X, y)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
