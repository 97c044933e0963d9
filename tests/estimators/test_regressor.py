"""``BoostedRegressor``: optima against scikit-learn, every kind of input, what outlives a fit, refusals."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Lasso, LinearRegression, QuantileRegressor
from sklearn.metrics import d2_pinball_score

from dboost import (
    BoostedRegressor,
    DataError,
    UsageError,
)
from dboost.losses import EpsilonInsensitive, Quantile


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 8)) * (rng.random((120, 8)) < 0.7)
    y = 3.0 * X[:, 0] - 2.0 * X[:, 3] + 0.5 * X[:, 5] + 4.0 + rng.normal(size=120)
    return X, y, rng.integers(0, 4, 120).astype(float)


def objective(model, X, y, weight, epsilon):
    """Penalised mean loss, from the definition."""
    f = X @ model.coef_[0] + model.intercept_[0]
    if epsilon is None:
        loss = 0.5 * (f - y) ** 2
    else:
        loss = np.logaddexp(0, f - y - epsilon) + np.logaddexp(0, y - f - epsilon)
    return weight @ loss / weight.sum() + model.alpha_ * np.abs(model.coef_).sum()


# ---- optima --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_squared_loss_is_the_lasso(data, fit_intercept):
    X, y, weight = data
    model = BoostedRegressor(standardize=False, alpha=0.1, tol=1e-12, fit_intercept=fit_intercept).fit(X, y, weight)
    lasso = Lasso(alpha=0.1, tol=1e-14, fit_intercept=fit_intercept).fit(X, y, weight)
    np.testing.assert_allclose(model.coef_[0], lasso.coef_, atol=1e-6)
    np.testing.assert_allclose(model.intercept_, lasso.intercept_, atol=1e-6)
    assert model.score(X, y, weight) == pytest.approx(lasso.score(X, y, weight), rel=1e-6)
    assert model.objective_ == pytest.approx(objective(model, X, y, weight, None), rel=1e-12)


def test_without_penalty_it_is_least_squares(data):
    X, y, weight = data
    model = BoostedRegressor(penalty="none", tol=1e-10).fit(X, y, weight)
    plain = LinearRegression().fit(X, y, weight)
    np.testing.assert_allclose(model.coef_[0], plain.coef_, atol=1e-5)


def test_induction_stop_follows_from_the_history(data):
    X, y, _ = data
    model = BoostedRegressor(alpha=0.02, tol=1e-10, update="gradboost", features_per_round=1).fit(X, y)
    entered = [record["round"] for record in model.history_ if record["features_in"]]
    assert model.induction_stop_ == entered[-1] < model.n_iter_
    early = BoostedRegressor(
        alpha=0.02, update="gradboost", features_per_round=1, callbacks=[lambda r: r["round"] == 2]
    )
    assert early.fit(X, y).induction_stop_ is None
    assert BoostedRegressor(alpha=1e3).fit(X, y).induction_stop_ == 0


# ---- refusals ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrap", [np.asarray, pd.DataFrame, lambda y: y.tolist()], ids=["array", "frame", "list"])
def test_several_targets_are_refused(data, wrap):
    X, y, _ = data
    with pytest.raises(DataError, match="one BoostedRegressor for each column"):
        BoostedRegressor(alpha="quick").fit(X, wrap(np.stack([y, y], axis=1)))


@pytest.mark.parametrize("loss", ["log", "tukey", 3, EpsilonInsensitive, ["squared"]])
def test_other_losses_are_refused(data, loss):
    X, y, _ = data
    with pytest.raises(UsageError, match="BoostedRegressor takes None or 'squared', 'epsilon_insensitive'"):
        BoostedRegressor(alpha="quick", loss=loss).fit(X, y)


def test_loss_none_is_squared(data):
    X, y, _ = data
    model = BoostedRegressor(loss=None, alpha=0.1).fit(X, y)
    assert model.model_.loss == "squared"
    assert model.coef_.tobytes() == BoostedRegressor(alpha=0.1).fit(X, y).coef_.tobytes()


def test_nothing_to_score(data):
    X, y, _ = data
    model = BoostedRegressor(alpha=0.1).fit(X, y)
    with pytest.raises(DataError, match="nothing to score"):
        model.score(X, y, np.zeros(120))


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
