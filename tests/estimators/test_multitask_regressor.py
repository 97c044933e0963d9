"""Regression of several targets: the optima of others, missing targets, inputs and engines.

Covers: ``MultiTaskBoostedRegressor`` and its cross-validation. Does not cover: the loss (tests/losses), the command
line (tests/pipelines/test_run_estimators.py).
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, MultiTaskElasticNet, MultiTaskLasso
from sklearn.metrics import r2_score

import dboost
from dboost import MultiTaskBoostedRegressor, MultiTaskBoostedRegressorCV
from dboost.errors import DataError, UsageError
from dboost.penalties import GroupElasticNet


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 20)) * (rng.random((200, 20)) < 0.7)
    W = np.zeros((20, 3))
    W[:4] = rng.normal(size=(4, 3))
    return X, X @ W + rng.normal(size=(200, 3)) + [1.0, -20.0, 3.0]


@pytest.fixture(scope="module")
def missing(rows):
    X, Y = rows
    return X, np.where(np.random.default_rng(1).random(Y.shape) < 0.2, np.nan, Y)


@pytest.mark.parametrize(("alpha", "free"), [(0.3, False), (0.05, True)])
def test_it_is_the_optimum_of_the_multi_task_lasso(rows, alpha, free):
    X, Y = rows
    ours = MultiTaskBoostedRegressor(standardize=False, alpha=alpha, tol=1e-10, fit_intercept=free).fit(X, Y)
    theirs = MultiTaskLasso(alpha=alpha, tol=1e-12, max_iter=100_000, fit_intercept=free).fit(X, Y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-6)
    assert ours.duality_gap_ <= 1e-10 and np.array_equal(ours.coef_.any(axis=0), theirs.coef_.any(axis=0))
    assert ours.score(X, Y) == pytest.approx(theirs.score(X, Y), abs=1e-8)


def test_it_is_the_optimum_of_the_multi_task_elastic_net(rows):
    X, Y = rows
    ours = MultiTaskBoostedRegressor(penalty=GroupElasticNet(0.4), alpha=0.2, tol=1e-10).fit(X, Y)
    theirs = MultiTaskElasticNet(alpha=0.2, l1_ratio=0.4, tol=1e-12, max_iter=100_000).fit(X, Y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-6)


def test_without_a_penalty_each_target_is_fitted_where_it_is_observed(missing):
    X, Y = missing
    ours = MultiTaskBoostedRegressor(penalty="none", tol=1e-12).fit(X, Y)
    for r, y in enumerate(Y.T):
        seen = ~np.isnan(y)
        alone = LinearRegression().fit(X[seen], y[seen])
        np.testing.assert_allclose(ours.coef_[r], alone.coef_, atol=1e-6)
    scores = [r2_score(y[~np.isnan(y)], ours.predict(X)[~np.isnan(y), r]) for r, y in enumerate(Y.T)]
    assert ours.score(X, Y) == pytest.approx(np.mean(scores), abs=1e-12)


def test_its_strength_is_chosen_by_folds(missing):
    X, Y = missing
    model = MultiTaskBoostedRegressorCV(cv=4, n_alphas=8, eps=1e-2, rule="best", tol=1e-9, fold_tol=1e-9).fit(X, Y)
    assert model.fold_losses_.shape == (4, 8)
    alone = MultiTaskBoostedRegressor(alpha=model.alpha_, tol=1e-9).fit(X, Y)
    np.testing.assert_allclose(model.coef_, alone.coef_, atol=1e-5)
    path = dboost.regularization_path(X, Y, n_alphas=5, estimator=MultiTaskBoostedRegressor(tol=1e-8))
    assert path.n_active_features[0] == 0 < path.n_active_features[-1]


def test_scorers_judge_targets_that_are_all_there(rows, missing):
    X, Y = rows
    model = MultiTaskBoostedRegressorCV(cv=3, n_alphas=4, scoring="r2").fit(X, Y)
    assert model.fold_scores_.shape == (3, 4) and 0.0 < model.best_score_ < 1.0
    with pytest.raises(UsageError, match="needs every label"):
        MultiTaskBoostedRegressorCV(cv=3, n_alphas=4, scoring="r2").fit(*missing)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (lambda Y: Y[:, 0], DataError, "several targets have shape .*BoostedRegressor"),
        (lambda Y: np.where(np.arange(3) == 1, np.nan, Y), DataError, "1 of 3 targets are missing in every row: 1"),
        (lambda Y: np.where(Y == Y[3, 2], np.inf, Y), DataError, "target 2 in row 3 is not finite"),
        (lambda Y: Y.astype(str), DataError, "not numbers"),
        (lambda Y: Y.astype(object) * 1e200 * 1e100, DataError, "largest"),
        (lambda Y: Y[:50], DataError, "inconsistent numbers of samples"),
    ],
)
def test_bad_targets_are_refused(rows, change, error, words):
    X, Y = rows
    with pytest.raises(error, match=words), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        MultiTaskBoostedRegressor(alpha=0.1).fit(X, change(Y))


def test_what_has_no_meaning_is_refused(rows):
    X, Y = rows
    with pytest.raises(UsageError, match="multitarget"):
        dboost.BoostedRegressor(alpha="quick", loss="multitarget").fit(X, Y[:, 0])
    with pytest.raises(UsageError):
        MultiTaskBoostedRegressor(alpha="quick", loss="squared").fit(X, Y)
    with pytest.raises(UsageError, match="no wrong labels"):
        MultiTaskBoostedRegressorCV(scoring="error").fit(X, Y)
    with pytest.raises(DataError, match="shape"):
        MultiTaskBoostedRegressor(alpha=0.1).fit(X, Y).score(X, Y[:, :2])
