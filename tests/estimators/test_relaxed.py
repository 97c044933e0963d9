"""The relaxed fit: unpenalised optima on the features of a model, blends, and their choice by cross-validation.

Covers: ``dboost.relaxed`` and ``relax=``. Does not cover: R's glmnet, which ``lab against-glmnet`` asks.
"""

from __future__ import annotations

import dask.array as da
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.linear_model import LinearRegression, LogisticRegression, PoissonRegressor
from sklearn.metrics import log_loss

import dboost
from dboost import (
    BoostedClassifier,
    BoostedClassifierCV,
    BoostedRegressor,
    BoostedRegressorCV,
    ConvergenceWarning,
    MultiTaskBoostedClassifier,
    MultiTaskBoostedRegressor,
    ParquetData,
    relaxed,
)
from dboost.errors import DataError, UsageError
from dboost.losses import LOSSES

rng = np.random.default_rng(0)
M = 240
X = rng.normal(size=(M, 8)) * np.exp(rng.uniform(-1, 1, 8))
F = X[:, :3] @ rng.normal(size=(3, 3))
KIND = np.array(["a", "b", "c"])[np.argmax(F + rng.gumbel(size=F.shape), axis=1)]
TWO = (F[:, 0] + rng.logistic(size=M) > 0).astype(int)
NUMBER = F[:, 0] + rng.normal(size=M)
COUNT = rng.poisson(np.exp(0.5 * np.clip(F[:, 0], -2, 2))).astype(float)
TASKS = np.stack([TWO, F[:, 1] + rng.logistic(size=M) > 0], axis=1).astype(float)
WEIGHT = rng.integers(0, 4, M).astype(float)

FITS = {
    "two classes": (BoostedClassifier(penalty="l1", alpha=0.03), TWO),
    "classes": (BoostedClassifier(penalty="l1/l2", alpha=0.05), KIND),
    "classes, l1/linf": (BoostedClassifier(penalty="l1/linf", alpha=0.05), KIND),
    "numbers": (BoostedRegressor(penalty="l1", alpha=0.1), NUMBER),
    "counts": (BoostedRegressor(loss="poisson", penalty="l1", alpha=0.05), COUNT),
    "tasks": (MultiTaskBoostedClassifier(penalty="l1/l2", alpha=0.03), TASKS),
}
# of each label that has a solver of its own, one
WEIGHTED = ("classes", "numbers", "counts")


def unpenalised(y, Z, weight=None):
    """Weights (a, k) and intercepts (k,) of scikit-learn's own solvers; those of classes sum to zero."""
    tight = {"tol": 1e-12, "max_iter": 10_000, "solver": "newton-cholesky"}
    if y is NUMBER:
        model = LinearRegression().fit(Z, y, weight)
        return model.coef_[:, None], np.array([model.intercept_])
    if y is COUNT:
        model = PoissonRegressor(alpha=0.0, **tight).fit(Z, y, weight)
        return model.coef_[:, None], np.array([model.intercept_])
    if y is TASKS:
        each = [LogisticRegression(C=np.inf, **tight).fit(Z, one, weight) for one in y.T]
        return np.column_stack([one.coef_[0] for one in each]), np.concatenate([one.intercept_ for one in each])
    model = LogisticRegression(C=np.inf, **tight).fit(Z, y, weight)
    W, b = model.coef_.T, model.intercept_
    return (W - W.mean(axis=1, keepdims=True), b - b.mean()) if W.shape[1] > 1 else (W, b)


@pytest.mark.parametrize("name", FITS)
def test_the_refit_is_the_unpenalised_optimum_on_the_support_and_blends_go_there(name):
    estimator, y = FITS[name]
    weight = WEIGHT if name in WEIGHTED else None
    fitted = clone(estimator).fit(X, y, weight)
    active = fitted.model_.active
    assert 0 < len(active) < 8
    whole, half, found = (relaxed(fitted, X, y, weight, gamma=gamma) for gamma in (1.0, 0.25, 0.0))
    W, b = unpenalised(y, X[:, active], weight)
    assert found.model_.active.tolist() == active.tolist()
    np.testing.assert_allclose(found.model_.W, W, atol=1e-6)
    np.testing.assert_allclose(found.intercept_, b, atol=1e-6)
    told = found.relaxed_
    assert told["gamma"] == 0.0 and told["stop_reason"] in ("gradient", "precision") and told["gradient"] < 1e-6
    assert found.objective_ < fitted.objective_ and np.isnan(found.duality_gap_)
    assert type(found) is type(fitted) and found.get_params() == fitted.get_params()
    assert whole.model_.W.tobytes() == fitted.model_.W.tobytes()
    assert whole.intercept_.tobytes() == fitted.intercept_.tobytes()
    assert whole.objective_ == fitted.objective_ and whole.duality_gap_ == fitted.duality_gap_
    np.testing.assert_allclose(half.coef_, 0.25 * fitted.coef_ + 0.75 * found.coef_, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(half.intercept_, 0.25 * fitted.intercept_ + 0.75 * found.intercept_, atol=1e-12)
    assert np.isnan(half.objective_) and half.relaxed_["gamma"] == 0.25


@pytest.mark.full
@pytest.mark.parametrize("name", ["classes", "numbers"])
def test_both_engines_and_files_give_it(name, client, tmp_path):
    estimator, y = FITS[name]
    lazy = da.from_array(X, chunks=(70, 8)), da.from_array(y, chunks=70)
    fitted = clone(estimator).set_params(tol=1e-9).fit(*lazy)
    here, there = (relaxed(fitted, *lazy, gamma=0.5, client=one) for one in (None, client))
    assert here.model_.W.tobytes() == there.model_.W.tobytes()
    assert here.intercept_.tobytes() == there.intercept_.tobytes()
    folder = tmp_path / "data"
    folder.mkdir()
    for number, rows in enumerate(np.array_split(np.arange(M), 3)):
        table = {f"x{j}": X[rows, j] for j in range(8)} | {"y": y[rows]}
        pq.write_table(pa.table(table), folder / f"{number}.parquet")
    data = ParquetData(folder, label="y")
    stored = clone(fitted).fit(data)
    files, away = (relaxed(stored, data, client=one) for one in (None, client))
    assert files.model_.W.tobytes() == away.model_.W.tobytes()
    W, _ = unpenalised(y, X[:, stored.model_.active])
    np.testing.assert_allclose(files.model_.W, W, atol=1e-6)


def test_an_offset_stays_as_it_is_and_a_missing_intercept_missing():
    begin = rng.normal(size=M)
    both = np.column_stack([X, begin])
    params = {"loss": "poisson", "penalty": "l1", "alpha": 0.05, "offset": 8, "fit_intercept": False}
    fitted = BoostedRegressor(**params).fit(both, COUNT)
    found = relaxed(fitted, both, COUNT)
    active = found.model_.active[:-1]
    Z = X[:, active]

    def loss(w):
        F = Z @ w + begin
        return np.mean(np.exp(F) - COUNT * F), Z.T @ (np.exp(F) - COUNT) / M

    peer = minimize(loss, np.zeros(len(active)), jac=True, method="BFGS", options={"gtol": 1e-9})
    np.testing.assert_allclose(found.coef_[0, active], peer.x, atol=1e-6)
    assert found.coef_[0, 8] == 1.0 and found.intercept_.tolist() == [0.0]


def test_columns_far_from_zero_and_scaled_penalties_are_refitted():
    table = pd.DataFrame(X, columns=list("abcdefgh"))
    table["a"] += 1e6
    fitted = BoostedClassifier(penalty="l1", alpha=0.03, standardize=True).fit(table, TWO)
    found = relaxed(fitted, table, TWO)
    assert "a" in found.active_features_
    W, _ = unpenalised(TWO, X[:, found.model_.active])
    np.testing.assert_allclose(found.model_.W, W, atol=1e-6)
    cheap = {"a": 0.5, "h": np.inf}
    charged = BoostedClassifier(penalty="l1", alpha=0.03, penalty_factors=cheap).fit(table, TWO)
    assert "h" not in relaxed(charged, table, TWO).active_features_


@pytest.mark.full
@pytest.mark.parametrize("name", LOSSES)
def test_every_loss_is_refitted(name):
    """Also where two columns are the same, of which the refit has one of several weights."""
    loss = LOSSES[name]
    several = np.column_stack([NUMBER, NUMBER - X[:, 1]])
    labels = {"binary": TWO, "multiclass": KIND, "multitask": TASKS, "regression": NUMBER, "multitarget": several}
    y = labels[loss.task]
    kinds = {"multitask": MultiTaskBoostedClassifier, "regression": BoostedRegressor}
    kind = (kinds | {"multitarget": MultiTaskBoostedRegressor}).get(loss.task, BoostedClassifier)
    y = COUNT if name == "poisson" else y
    both = np.column_stack([X, X[:, 0]])
    fitted = kind(loss=name, penalty="l1", alpha=0.05).fit(both, y)
    found = relaxed(fitted, both, y)
    assert found.relaxed_["stop_reason"] in ("gradient", "precision") and found.relaxed_["gradient"] < 1e-5
    assert found.objective_ < fitted.objective_ and found.active_features_ == fitted.active_features_


@pytest.mark.filterwarnings("ignore:alpha_best_")
def test_names_and_columns_that_are_given_beside_the_features():
    names = list("abcdefgh")
    fitted = BoostedClassifier(penalty="l1", alpha=0.03).fit(X, TWO, feature_names=names)
    assert relaxed(fitted, X, TWO, feature_names=names).active_features_ == fitted.active_features_
    with pytest.raises(UsageError, match="other names of features"):
        relaxed(fitted, X, TWO)
    table = pd.DataFrame(X, columns=names).assign(kind=TWO, fold=np.arange(M) % 3, w=WEIGHT)
    chosen = BoostedClassifierCV(penalty="l1", folds="fold", alphas=[0.1, 0.03, 0.01]).fit(table, "kind", "w")
    found = relaxed(chosen, table, "kind", "w")
    W, _ = unpenalised(TWO, X[:, found.model_.active], WEIGHT)
    np.testing.assert_allclose(found.model_.W, W, atol=1e-6)
    assert found.alpha_best_ == chosen.alpha_best_ and found.predict(table).shape == (M,)


def test_a_declared_class_without_rows_has_no_probability(tmp_path):
    fitted = BoostedClassifier(penalty="l1/l2", alpha=0.03, classes=["a", "b", "c", "d"]).fit(X, KIND)
    found = relaxed(fitted, X, KIND)
    W, _ = unpenalised(KIND, X[:, found.model_.active])
    np.testing.assert_allclose(found.model_.W[:, :3], W, atol=1e-6)
    assert np.all(found.predict_proba(X)[:, 3] < 1e-200)
    found.save(tmp_path / "model")
    again = dboost.load_model(tmp_path / "model")
    np.testing.assert_array_equal(again.coef_, found.coef_)
    assert again.relaxed_ == found.relaxed_


ONE = (X[:, 0] > 1.0).astype(float)
SEPARATED = {
    "wholly": (BoostedClassifier(penalty="l1", alpha=0.05), X, (X[:, 0] > 0).astype(int)),
    "one task": (
        MultiTaskBoostedClassifier(penalty="l1/l2", alpha=0.05), X, np.stack([TWO, X[:, 1] > 0], axis=1).astype(float)
    ),
    "in part": (
        BoostedClassifier(penalty="l1", alpha=0.01),
        np.column_stack([ONE, X[:, 1:3]]),
        np.where(ONE > 0, 1, X[:, 1] + rng.logistic(size=M) > 0).astype(int),
    ),
    "no counts": (
        BoostedRegressor(loss="poisson", penalty="l1", alpha=0.01),
        np.column_stack([ONE, X[:, 1:3]]),
        np.where(ONE > 0, 0.0, rng.poisson(2.0, M)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SEPARATED)
def test_an_infinite_optimum_is_refused(name):
    estimator, rows, y = SEPARATED[name]
    fitted = clone(estimator).fit(rows, y)
    with pytest.raises(DataError, match=r"no finite optimum.*larger alpha"):
        relaxed(fitted, rows, y)
    # the model itself needs no refit
    assert relaxed(fitted, rows, y, gamma=1.0).coef_.tobytes() == fitted.coef_.tobytes()


def test_more_weights_than_examples_are_refused_and_none_is_the_intercept():
    few = rng.normal(size=(12, 40))
    number = rng.normal(size=12)
    dense = BoostedRegressor(penalty="l2_squared", alpha=0.1).fit(few, number)
    with pytest.raises(DataError, match=r"40 features and 12 examples, so that its optimum is not unique"):
        relaxed(dense, few, number)
    none = BoostedClassifier(penalty="l1/l2", alpha=10.0).fit(X, KIND)
    found = relaxed(none, X, KIND)
    assert found.active_features_ == [] and found.relaxed_["stop_reason"] == "none"
    np.testing.assert_array_equal(found.predict_proba(X), none.predict_proba(X))


def test_a_limit_that_ends_the_refit_is_told():
    estimator, y = FITS["classes"]
    fitted = clone(estimator).fit(X, y).set_params(max_passes=1)
    with pytest.warns(ConvergenceWarning, match=r"the refit without a penalty stopped \(max_passes\)"):
        found = relaxed(fitted, X, y)
    assert found.relaxed_["stop_reason"] == "max_passes"


def test_what_has_no_meaning_is_refused():
    classes, kind = FITS["classes"]
    fitted = clone(FITS["numbers"][0]).fit(X, NUMBER)
    of_classes = clone(classes).fit(X, kind)
    induced = clone(fitted).set_params(hypotheses=dboost.Products(max_degree=2)).fit(X, NUMBER)
    share = dboost.ShareBoostClassifier(max_rounds=2)
    for model, rows, y, given, said in (
        (fitted, X, NUMBER, {"gamma": 1.5}, "gamma=1.5"),
        (fitted, X, NUMBER, {"tol": "x"}, "tol='x'"),
        (fitted, X[:, :7], NUMBER, {}, "other features than that of the fit: 7, expected 8"),
        (of_classes, X, np.where(kind == "c", "d", kind), {}, "other classes"),
        (induced, X, NUMBER, {}, "hypotheses are no columns"),
        (clone(share).fit(X, kind), X, kind, {}, "penalised columns"),
    ):
        with pytest.raises(UsageError, match=said):
            relaxed(model, rows, y, **given)
    for relax in ("yes", [], [2.0], 0.5):
        with pytest.raises(UsageError, match="relax="):
            BoostedRegressorCV(cv=3, relax=relax).fit(X, NUMBER)
    with pytest.raises(UsageError, match="relax=True is for fits of penalised columns"):
        dboost.cross_validated(X, kind, estimator=share, cv=3, relax=True)


# ---- chosen by cross-validation ------------------------------------------------------------------------------------

FOLDS = np.arange(M) % 3
# the last of these columns is used by a weak strength, and would have a negative weight without its penalty
HELD_AT_ZERO = np.column_stack([X[:, :3], 0.6 * X[:, 0] + 0.6 * X[:, 1] + 0.1 * X[:, 3]])
SIGNED = BoostedRegressor(penalty="l1", lower=[0.0] * 4), X[:, 0] + X[:, 1] + 0.3 * rng.normal(size=M)
GRID = {"folds": FOLDS, "alphas": [0.15, 0.03], "tol": 1e-10, "fold_tol": 1e-10}


@pytest.mark.filterwarnings("ignore:alpha_best_")
@pytest.mark.parametrize("name", ["two classes", "classes", "numbers", "counts", "signs"])
def test_each_fold_refits_its_own_features(name):
    estimator, y = SIGNED if name == "signs" else FITS[name]
    rows, numbers = (HELD_AT_ZERO if name == "signs" else X), y is NUMBER or name == "signs"
    kind = BoostedRegressorCV if isinstance(estimator, BoostedRegressor) else BoostedClassifierCV
    params = {"loss": estimator.loss, "penalty": estimator.penalty}
    grid = GRID
    if name == "signs":
        params["lower"], grid = estimator.lower, GRID | {"alphas": [0.15, 0.01]}
    found = kind(**params, **grid, relax=[0.0, 0.5, 1.0]).fit(rows, y)
    assert found.fold_losses_.shape == (3, 2, 3) and found.gammas_.tolist() == [1.0, 0.5, 0.0]
    scored = kind(**params, **grid, relax=[0.0, 0.5, 1.0], scoring="r2" if numbers else "accuracy")
    scored = None if y is COUNT else scored.fit(rows, y)
    for fold in range(3):
        train, test = FOLDS != fold, FOLDS == fold
        for place, alpha in enumerate(grid["alphas"]):
            first = clone(estimator).set_params(alpha=alpha, tol=1e-10).fit(rows[train], y[train])
            for share, gamma in enumerate(found.gammas_):
                peer = relaxed(first, rows[train], y[train], gamma=gamma) if gamma < 1.0 else first
                if numbers:
                    expected = 0.5 * np.mean((peer.predict(rows[test]) - y[test]) ** 2)
                elif y is COUNT:
                    mean = peer.predict(rows[test])
                    seen = np.where(y[test] > 0, y[test], 1.0)
                    expected = np.mean(mean - y[test] + y[test] * np.log(seen / mean))
                else:
                    expected = log_loss(y[test], peer.predict_proba(rows[test]))
                assert found.fold_losses_[fold, place, share] == pytest.approx(expected, rel=1e-5)
                if scored is not None:
                    score = scored.fold_scores_[fold, place, share]
                    assert score == pytest.approx(peer.score(rows[test], y[test]), rel=1e-5)


def test_strength_and_share_are_chosen_by_one_rule(tmp_path):
    params = {"penalty": "l1", "cv": 4, "n_alphas": 8, "eps": 1e-3, "relax": True}
    found = {rule: BoostedRegressorCV(rule=rule, **params).fit(X, NUMBER) for rule in ("best", "1se")}
    one = found["1se"]
    table = list(one.cv_results_)
    assert len(table) == 8 * 5 and one.gammas_.tolist() == [1.0, 0.75, 0.5, 0.25, 0.0] and len(one.alphas_) == 8
    mean, error = (np.array([row[name] for row in table]) for name in ("mean_loss", "se_loss"))
    best = int(np.argmin(mean))
    assert (one.alpha_best_, one.gamma_best_) == (table[best]["alpha"], table[best]["gamma"])
    good = [row for row in table if row["mean_loss"] <= mean[best] + error[best]]
    strongest = max(row["alpha"] for row in good)
    share = max(row["gamma"] for row in good if row["alpha"] == strongest)
    assert (one.alpha_, one.alpha_1se_, one.gamma_1se_) == (strongest, strongest, share)
    assert one.relaxed_["gamma"] == share and found["best"].relaxed_["gamma"] == one.gamma_best_
    plain = one.path_.models[one.alphas_.tolist().index(one.alpha_)]
    peer = relaxed(one.path_.estimator(one.alphas_.tolist().index(one.alpha_)), X, NUMBER, gamma=share)
    np.testing.assert_allclose(one.coef_, peer.coef_, rtol=1e-9)
    assert one.model_.active.tolist() == plain.active.tolist()
    one.save(tmp_path / "model")
    again = dboost.load_model(tmp_path / "model")
    assert again.relaxed_ == one.relaxed_ and again.fold_losses_.tobytes() == one.fold_losses_.tobytes()
    assert (again.gamma_best_, again.gamma_1se_, again.alpha_best_) == (one.gamma_best_, share, one.alpha_best_)
    # without it nothing of it is there
    assert not hasattr(BoostedRegressorCV(**params | {"relax": None}).fit(X, NUMBER), "gammas_")


@pytest.mark.filterwarnings("ignore:alpha_best_")
def test_only_the_model_alone_is_chosen_where_some_fold_has_no_refit(tmp_path):
    y = (X[:, 0] + 0.2 * X[:, 1] > 0).astype(int)
    params = {"penalty": "l1", "folds": FOLDS, "alphas": [0.3, 0.01], "relax": [0.0, 1.0], "rule": "best"}
    with pytest.warns(dboost.DboostWarning, match=r"at 1 of 2 strengths .* no finite refit"):
        found = BoostedClassifierCV(**params, scoring="roc_auc").fit(X, y)
    assert np.isnan(found.fold_losses_[:, 1, 1]).any() and np.isfinite(found.fold_losses_[:, :, 0]).all()
    assert found.alpha_ == 0.01 and found.relaxed_["gamma"] == 1.0
    ranks = {(row["alpha"], row["gamma"]): row["rank_test_score"] for row in found.cv_results_}
    assert ranks[0.01, 1.0] == 1 and ranks[0.01, 0.0] == 4
    found.save(tmp_path / "model")
    loaded = dboost.load_model(tmp_path / "model")
    assert np.isnan(loaded.relaxed_["gradient"])
    for name in ("mean_loss", "mean_test_score"):
        np.testing.assert_array_equal(loaded.cv_results_.column(name), found.cv_results_.column(name))


def test_damage_met_in_a_refit_is_told_and_not_taken_for_a_fit_without_one(monkeypatch):
    """Only that there is no refit leaves the penalised model; another error is the user's to see."""

    def damaged(*arguments, **settings):
        raise DataError("a page is damaged", file="rows.parquet")

    monkeypatch.setattr("dboost.boosting.relaxed.columns_of", damaged)
    table = pd.DataFrame(X, columns=list("abcdefgh"))
    model = dboost.BoostedRegressorCV(cv=3, n_alphas=3, relax=True, offset="h")
    with pytest.raises(DataError, match="a page is damaged"):
        model.fit(table, NUMBER)
