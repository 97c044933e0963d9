"""Regression of several targets, by one loss or one for each: optima, missing targets, scores, folds, refusals.

Covers: ``MultiTaskBoostedRegressor`` and its cross-validation. Does not cover: the loss (tests/losses), the command
line (tests/pipelines/test_run_estimators.py).
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression, MultiTaskElasticNet, MultiTaskLasso
from sklearn.metrics import d2_log_loss_score, d2_tweedie_score, r2_score

import dboost
from dboost import MultiTaskBoostedRegressor, MultiTaskBoostedRegressorCV
from dboost.errors import DataError, UsageError
from dboost.interop.linear import to_sklearn
from dboost.losses import EpsilonInsensitive, Huber
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


@pytest.mark.full
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
    with pytest.raises(UsageError):
        MultiTaskBoostedRegressor(alpha="quick", loss="squared").fit(X, Y)
    with pytest.raises(UsageError, match="no wrong labels"):
        MultiTaskBoostedRegressorCV(scoring="error").fit(X, Y)
    with pytest.raises(DataError, match="shape"):
        MultiTaskBoostedRegressor(alpha=0.1).fit(X, Y).score(X, Y[:, :2])


# ---- a loss for each target ------------------------------------------------------------------------------------------

LOSSES = ["squared", "log", "poisson", Huber(0.8)]


@pytest.fixture(scope="module")
def mixed():
    rng = np.random.default_rng(0)
    m, n = 300, 20
    X = rng.normal(size=(m, n)) * (rng.random((m, n)) < 0.6)
    B = np.zeros((n, 4))
    B[:4] = 0.7 * rng.normal(size=(4, 4))
    F = X @ B + [3.0, -0.4, 0.2, 0.0]
    chance = 1.0 / (1.0 + np.exp(-F[:, 1]))
    amount, click = F[:, 0] + rng.normal(size=m), (rng.random(m) < chance).astype(float)
    return X, np.column_stack([amount, click, rng.poisson(np.exp(F[:, 2])), F[:, 3] + rng.standard_t(2, size=m)])


@pytest.fixture(scope="module")
def gaps(mixed):
    X, Y = mixed
    return X, np.where(np.random.default_rng(1).random(Y.shape) < 0.2, np.nan, Y)


def parts(Y, F):
    """Losses and their slopes (m, 4) by the formulas, 0 where a target is missing."""
    y = np.where(np.isnan(Y), 0.0, Y)
    z, sign, counts = y - F, 2.0 * y[:, 1] - 1.0, y[:, 2]
    logs = np.where(counts > 0, counts * np.log(np.maximum(counts, 1)), 0.0)
    huber = np.where(np.abs(z[:, 3]) > 0.8, 0.8 * np.abs(z[:, 3]) - 0.32, z[:, 3] ** 2 / 2)
    mean = np.exp(F[:, 2])
    loss = [z[:, 0] ** 2 / 2, np.logaddexp(0.0, -sign * F[:, 1]), mean - counts * F[:, 2] + logs - counts, huber]
    pull = -sign * np.exp(-np.logaddexp(0.0, sign * F[:, 1]))
    slope = [-z[:, 0], pull, mean - counts, -np.clip(z[:, 3], -0.8, 0.8)]
    return tuple(np.where(np.isnan(Y), 0.0, np.column_stack(some)) for some in (loss, slope))


@pytest.mark.parametrize(("data", "alpha"), [("mixed", 0.2), ("gaps", 0.05)])
def test_no_direction_leads_down_from_where_it_ends(data, alpha, request):
    """The slopes of the loss are those that the norm of each row of weights holds in balance."""
    X, Y = request.getfixturevalue(data)
    ours = MultiTaskBoostedRegressor(standardize=False, loss=LOSSES, alpha=alpha, tol=1e-11).fit(X, Y)
    losses, slopes = parts(Y, X @ ours.coef_.T + ours.intercept_)
    sizes = np.linalg.norm(ours.coef_, axis=0)
    assert losses.sum() / len(Y) + alpha * sizes.sum() == pytest.approx(ours.objective_, rel=1e-12)
    used, G = sizes > 0.0, slopes.T @ X / len(Y)
    assert ours.duality_gap_ <= 1e-11 and 0 < used.sum() < 20
    np.testing.assert_allclose(G[:, used], -alpha * ours.coef_[:, used] / sizes[used], atol=1e-5)
    assert np.linalg.norm(G[:, ~used], axis=0).max() <= alpha
    np.testing.assert_allclose(slopes.mean(axis=0), 0.0, atol=1e-5)


@pytest.mark.filterwarnings("ignore::dboost.errors.ConvergenceWarning")
@pytest.mark.parametrize("update", ["adaboost", "gradboost"])
def test_the_updates_of_the_paper_reach_the_same_optimum(gaps, update):
    X, Y = gaps
    losses = LOSSES if update == "adaboost" else ["squared", "log", "squared", Huber(0.8)]
    best = MultiTaskBoostedRegressor(loss=losses, alpha=0.1, tol=1e-8).fit(X, Y)
    model = MultiTaskBoostedRegressor(loss=losses, alpha=0.1, update=update, tol=1e-3, max_rounds=2000).fit(X, Y)
    assert best.objective_ * (1 - 1e-8) <= model.objective_ <= best.objective_ * (1 + 2e-3)


def test_predictions_and_scores_are_those_of_each_target(gaps):
    X, Y = gaps
    model = MultiTaskBoostedRegressor(loss=LOSSES, alpha=0.05).fit(X, Y)
    F, found = X @ model.coef_.T + model.intercept_, model.predict(X)
    wanted = np.column_stack([F[:, 0], 1 / (1 + np.exp(-F[:, 1])), np.exp(F[:, 2]), F[:, 3]])
    np.testing.assert_allclose(found, wanted, rtol=1e-12)
    seen = ~np.isnan(Y)
    shares = [
        r2_score(Y[seen[:, 0], 0], found[seen[:, 0], 0]),
        d2_log_loss_score(Y[seen[:, 1], 1], found[seen[:, 1], 1]),
        d2_tweedie_score(Y[seen[:, 2], 2], found[seen[:, 2], 2], power=1),
        r2_score(Y[seen[:, 3], 3], found[seen[:, 3], 3]),
    ]
    assert model.score(X, Y) == pytest.approx(np.mean(shares), abs=1e-9)


def test_one_target_is_one_target(mixed, tmp_path):
    X, Y = mixed
    one = MultiTaskBoostedRegressor(loss=["poisson"], penalty="l1", alpha=0.05, tol=1e-9).fit(X, Y[:, [2]])
    alone = dboost.BoostedRegressor(loss="poisson", penalty="l1", alpha=0.05, tol=1e-9).fit(X, Y[:, 2])
    np.testing.assert_allclose(one.coef_, alone.coef_, atol=1e-6)
    dboost.save_model(one, tmp_path / "model")
    again = dboost.load_model(tmp_path / "model")
    assert again.model_.loss == "poisson," and again.predict(X).shape == (300, 1)


def test_folds_choose_a_strength_for_all_losses(gaps):
    X, Y = gaps
    model = MultiTaskBoostedRegressorCV(loss=LOSSES, cv=3, n_alphas=6).fit(X, Y)
    assert np.isfinite(model.fold_losses_).all() and model.alpha_best_ <= model.alpha_1se_
    path = dboost.regularization_path(X, Y, estimator=MultiTaskBoostedRegressor(loss=LOSSES), n_alphas=5)
    assert len(path.models) == 5


def test_other_libraries_predict_the_same(mixed):
    X, Y = mixed
    counts = MultiTaskBoostedRegressor(loss=["squared", "poisson"], alpha=0.05).fit(X, Y[:, [0, 2]])
    np.testing.assert_allclose(to_sklearn(counts).predict(X), counts.predict(X), rtol=1e-12)
    model = MultiTaskBoostedRegressor(loss=LOSSES, alpha=0.05).fit(X, Y)
    with pytest.raises(UsageError, match="target 1 is predicted as a probability"):
        to_sklearn(model)
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("skl2onnx")
    session = runtime.InferenceSession(dboost.onnx.to_onnx(model).SerializeToString())
    np.testing.assert_allclose(session.run(None, {"X": X})[0], model.predict(X), rtol=1e-12)


@pytest.mark.parametrize(
    ("estimator", "error", "said"),
    [
        (
            MultiTaskBoostedRegressor(alpha="quick", loss=["squared", "log"]),
            UsageError,
            "is of 2 targets, and there are 4",
        ),
        (
            MultiTaskBoostedRegressor(alpha="quick", loss=["squared"] * 3 + ["multinomial"]),
            UsageError,
            "loss 'multinomial' cannot be",
        ),
        (
            MultiTaskBoostedRegressor(alpha="quick", loss=["log"] * 4),
            DataError,
            "of target 0 in row .*loss 'log' takes 0 and 1",
        ),
        (
            dboost.BoostedRegressor(alpha="quick", loss=["squared", "log"]),
            UsageError,
            "BoostedRegressor takes None or 'squared'",
        ),
        (dboost.BoostedClassifier(alpha="quick", loss="log,log"), UsageError, "BoostedClassifier takes None or 'log'"),
    ],
)
def test_losses_that_cannot_be_are_refused(mixed, estimator, error, said):
    X, Y = mixed
    with pytest.raises(error, match=said):
        estimator.fit(X, Y if "MultiTask" in type(estimator).__name__ else Y[:, 1].astype(int))


def test_targets_that_are_far_from_all_predictions_do_not_keep_others_from_moving():
    """A step that is shared would be cut short to none by a tube whose curvature is e^-|z| everywhere."""
    rng = np.random.default_rng(254)
    X = rng.normal(size=(40, 6)) * 5.0
    far = 400.0 * rng.standard_t(2, size=40) + 60.0 * X[:, 2]
    Y = np.column_stack([far, far, (rng.random(40) < 0.5).astype(float)])
    tube = EpsilonInsensitive(30.0)
    both = MultiTaskBoostedRegressor(
        standardize=False, loss=[tube, tube, "log"], penalty="l1", alpha=0.5, tol=1e-6
    ).fit(X, Y)
    alone = dboost.BoostedRegressor(standardize=False, loss=tube, penalty="l1", alpha=0.5, tol=1e-8).fit(X, far)
    assert both.stop_reason_ == "tol" and alone.coef_.any()
    assert both.history_[-1]["passes"] < 200
    np.testing.assert_allclose(both.coef_[:2], np.vstack([alone.coef_] * 2), rtol=1e-3)
