"""Signs of features without penalty, and of refits: what users see, on both engines, in paths, folds and files.

Covers: ``positive``, ``lower`` and ``upper`` beside ``penalty_factors`` of 0, and ``dboost.relaxed`` and ``relax=`` of
models with signs. Does not cover: each alone (``test_column_options``, ``test_relaxed``), or the
optima of penalised fits (tests/boosting/test_signed_free_rows).
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import nnls

import dboost
from dboost import (
    BoostedClassifier,
    BoostedRegressor,
    MultiTaskBoostedClassifier,
    relaxed,
)
from dboost.errors import DataError
from tests.boosting import plain

N = 10
NAMES = [f"x{j}" for j in range(N)]
SIGNS = np.array([1, -1, 0, 1, -1, 1, -1, 0, 1, 1])
BOUNDS = {"lower": np.where(SIGNS > 0, 0.0, -np.inf), "upper": np.where(SIGNS < 0, 0.0, np.inf)}
LOSSES = ["log", "multinomial", "squared", "poisson", "huber", "multitask"]


def made(loss, m=160, seed=3):
    return plain.make(loss, m=m, n=N, seed=seed, noise=2.0)


def labels(data):
    if data.loss == "multitask":
        return np.where(data.y == 0, np.nan, data.y > 0)
    return data.y[:, 0] if data.loss == "log" else data.y


def estimator(data, **params):
    kind = {"log": BoostedClassifier, "multinomial": BoostedClassifier, "multitask": MultiTaskBoostedClassifier}
    return kind.get(data.loss, BoostedRegressor)(**{"loss": data.loss, "tol": 1e-9} | params)


def least(data, active, intercept=True):
    """The least loss over some features with their signs."""
    return plain.least(data.columns(active), bounds=plain.sided(SIGNS[active]), intercept=intercept)[0] / data.s.sum()


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("penalty", ["l1", "l1/l2", "l1/linf", "elastic_net"])
@pytest.mark.parametrize("loss", LOSSES)
def test_a_refit_keeps_the_signs_and_is_certified(loss, penalty, intercept):
    data = made(loss)
    asked = estimator(data, penalty=penalty, alpha=0.02, fit_intercept=intercept, standardize=penalty == "l1", **BOUNDS)
    model = asked.fit(data.X, labels(data))
    found = relaxed(model, data.X, labels(data))
    best = least(data, model.model_.active, intercept)
    assert len(model.model_.active) and np.all(SIGNS * np.atleast_2d(found.coef_) >= 0.0)
    assert set(found.model_.active.tolist()) <= set(model.model_.active.tolist())
    assert np.all(np.any(found.model_.W != 0.0, axis=1))
    assert found.objective_ == pytest.approx(best, rel=1e-6) and found.objective_ <= best * (1.0 + 1e-8)
    assert found.duality_gap_ <= 1e-9 and found.relaxed_["stop_reason"] == "tol" and found.relaxed_["gradient"] < 1e-6
    assert found.objective_ * (1.0 - found.duality_gap_) <= best * (1.0 + 1e-12)
    assert found.objective_ < model.objective_ and found.get_params().keys() == model.get_params().keys()
    half = relaxed(model, data.X, labels(data), gamma=0.5)
    np.testing.assert_allclose(half.coef_, 0.5 * (model.coef_ + found.coef_), atol=1e-12)
    assert np.isnan(half.duality_gap_)


def test_without_an_intercept_a_positive_refit_is_nnls_and_may_drop_a_feature():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(80, 4))
    X[:, 3] = 0.6 * X[:, 0] + 0.6 * X[:, 1] + 0.1 * X[:, 3]
    y = X[:, 0] + X[:, 1] + 0.3 * rng.normal(size=80)
    model = BoostedRegressor(
        standardize=False, penalty="l1", alpha=0.05, positive=True, fit_intercept=False, tol=1e-9
    ).fit(X, y)
    found = relaxed(model, X, y)
    weights, length = nnls(X[:, model.model_.active], y)
    assert 3 in model.model_.active and (weights == 0.0).any()
    assert found.model_.active.tolist() == model.model_.active[weights > 0.0].tolist()
    np.testing.assert_allclose(found.model_.W[:, 0], weights[weights > 0.0], atol=1e-9)
    assert found.objective_ == pytest.approx(length**2 / 160, rel=1e-12)


@pytest.mark.parametrize("sign,refused", [(1, True), (-1, False)])
def test_a_refit_is_refused_where_the_signs_leave_no_optimum(sign, refused):
    """The feature separates the labels; with the other sign it may not, and is in no model."""
    data = made("log")
    X = data.X.copy()
    X[:, 0] = sign * np.where(data.y[:, 0] > 0, 1.0, -1.0)
    model = BoostedClassifier(penalty="l1", alpha=0.003, positive=True).fit(X, data.y[:, 0])
    assert len(model.active_features_) and bool(model.coef_[0, 0]) == refused
    if refused:
        with pytest.raises(DataError, match=r"no finite optimum.*larger alpha"):
            relaxed(model, X, data.y[:, 0])
        assert relaxed(model, X, data.y[:, 0], gamma=1.0).coef_.tobytes() == model.coef_.tobytes()
    else:
        assert relaxed(model, X, data.y[:, 0]).duality_gap_ <= 1e-9


def test_a_loss_without_a_bounded_curvature_has_a_refit():
    data = made("log")
    model = BoostedClassifier(loss="exp", penalty="l1", alpha=0.01, update="adaboost", positive=True, tol=1e-2)
    model.fit(data.X, data.y[:, 0])
    found = relaxed(model, data.X, data.y[:, 0])
    assert found.duality_gap_ <= 1e-9 and (found.coef_ >= 0.0).all() and found.objective_ < model.objective_


def test_offsets_and_names_stay_and_a_refit_is_saved(tmp_path):
    data = made("poisson")
    begin = 0.3 * np.random.default_rng(0).normal(size=len(data.y))
    table = pd.DataFrame(data.X, columns=NAMES).assign(known=begin)
    params = {"penalty": "l1", "alpha": 0.02, "offset": "known", "lower": {"x0": 0, "x5": 0}, "tol": 1e-9}
    model = BoostedRegressor(loss="poisson", **params).fit(table, data.y)
    found = relaxed(model, table, data.y)
    found.save(tmp_path / "model")
    again = dboost.load_model(tmp_path / "model")
    np.testing.assert_array_equal(again.coef_, found.coef_)
    assert found.coef_[0, -1] == 1.0 and found.coef_[0, 0] >= 0.0 <= found.coef_[0, 5] and found.duality_gap_ <= 1e-9
