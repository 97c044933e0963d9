"""Cross-validation: equal to a plain loop over subsets, for every engine and cut of the rows; the rules of choice."""

from __future__ import annotations

import pickle
import warnings

import dask.array as da
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GroupKFold, KFold, LeaveOneGroupOut, ShuffleSplit, StratifiedKFold, TimeSeriesSplit

import dboost
from dboost import (
    BoostedClassifier,
    BoostedClassifierCV,
    BoostedRegressorCV,
    ConvergenceWarning,
    DataError,
    UsageError,
    load_model,
)
from dboost.estimators import cv as cv_module
from tests.estimators.conftest import blobs

# Most grids here are short, for speed, and end where the best strength is.
pytestmark = pytest.mark.filterwarnings("ignore:alpha_best_=.* an end of the grid")

ALPHAS = [0.2, 0.08, 0.03]


def folds_of(m, count=4, seed=0):
    return np.random.default_rng(seed).integers(0, count, m)


def plain_loop(X, y, folds, alphas, weight=None, **params):
    """Losses and errors (folds, alphas): each fold fitted by itself on the rows of the others."""
    weight = np.ones(len(y)) if weight is None else weight
    losses, errors = [], []
    for fold in np.unique(folds):
        train, test = folds != fold, folds == fold
        for alpha in alphas:
            model = BoostedClassifier(alpha=alpha, **params).fit(X[train], y[train], weight[train])
            proba = model.predict_proba(X[test])
            place = np.searchsorted(model.classes_, y[test])
            losses.append(np.average(-np.log(proba[np.arange(test.sum()), place]), weights=weight[test]))
            errors.append(np.average(model.predict(X[test]) != y[test], weights=weight[test]))
    shape = (len(np.unique(folds)), len(alphas))
    return np.reshape(losses, shape), np.reshape(errors, shape)


INDUCED = {
    "kernels of mistakes": dboost.Kernels(),
    "kernels of mistakes, side by side": dboost.Kernels(support="perceptron-union"),
    "kernels of rows": dboost.Kernels(support=20),
    # a radius that takes in all rows would give every centre the same columns, and no one optimum
    "pieces": dboost.PiecewiseLinear(centres=3, radii=[3.4]),
    "products": dboost.Columns() | dboost.Products(min_degree=2, max_degree=2),
    "stumps": dboost.Stumps(),
}


@pytest.mark.parametrize("hypotheses", INDUCED.values(), ids=INDUCED)
def test_hypotheses_of_a_fold_are_made_without_its_rows(multiclass, hypotheses):
    """As a plain loop over subsets does: no centre, threshold or scale is taken from a row that is held out."""
    X, y = multiclass
    folds = folds_of(len(y), count=3, seed=5)
    params = {"hypotheses": hypotheses, "penalty": "l1/l2", "tol": 1e-7}
    found = BoostedClassifierCV(folds=folds, alphas=[0.08, 0.03], fold_tol=1e-7, scoring="error", **params).fit(X, y)
    losses, errors = plain_loop(X, y, folds, [0.08, 0.03], **params)
    np.testing.assert_allclose(found.fold_losses_, losses, rtol=1e-4)
    np.testing.assert_allclose(found.fold_errors_, errors, atol=1e-12)


@pytest.mark.full
@pytest.mark.parametrize("params", [{"penalty": "l1/l2"}, {"penalty": "l1/linf", "standardize": True}])
def test_equal_to_a_plain_loop(multiclass, params):
    X, y = multiclass
    folds = folds_of(len(y))
    weight = np.random.default_rng(9).integers(1, 4, len(y)).astype(float)
    found = BoostedClassifierCV(folds=folds, alphas=ALPHAS, tol=1e-9, fold_tol=1e-9, **params).fit(X, y, weight)
    losses, errors = plain_loop(X, y, folds, ALPHAS, weight, tol=1e-9, **params)
    np.testing.assert_allclose(found.fold_losses_, losses, rtol=1e-6)
    np.testing.assert_allclose(found.fold_errors_, errors, atol=1e-12)
    np.testing.assert_allclose(found.fold_weights_, [weight[folds == f].sum() for f in range(4)])
    assert np.all(found.fold_gaps_ <= 1e-9)


def bits(model):
    parts = (model.fold_losses_, model.fold_errors_, model.fold_gaps_, model.coef_, model.intercept_)
    return [part.tobytes() for part in parts] + [model.alpha_]


@pytest.fixture(scope="module")
def chosen():
    X, y = blobs()
    y = np.array(["ant", "bee", "cat"])[y]
    return X, y, BoostedClassifierCV(penalty="l1/l2", cv=4, n_alphas=12, tol=1e-8).fit(X, y)


def test_the_model_is_the_single_fit_at_the_chosen_strength_and_is_saved_whole(chosen, tmp_path):
    X, y, found = chosen
    alone = BoostedClassifier(penalty="l1/l2", alpha=found.alpha_, tol=1e-8).fit(X, y)
    assert found.objective_ == pytest.approx(alone.objective_, rel=2e-8)
    assert found.duality_gap_ <= 1e-8
    assert found.predict(X).tolist() == alone.predict(X).tolist()
    assert len(found.path_) == len(found.cv_results_) == len(found.alphas_) == 12
    assert found.path_.alphas.tolist() == found.alphas_.tolist() == found.cv_results_.column("alpha").tolist()
    assert found.cv_results_.column("features").tolist() == found.path_.n_active_features.tolist()
    assert isinstance(found.path_.estimator(3), BoostedClassifier)
    assert found.fold_n_features_.shape == found.fold_gaps_.shape == found.fold_losses_.shape == (4, 12)
    found.set_params(folds=folds_of(len(y))).save(tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert isinstance(loaded, BoostedClassifierCV)
    assert loaded.cv_results_ == found.cv_results_
    assert (loaded.alpha_best_, loaded.alpha_1se_) == (found.alpha_best_, found.alpha_1se_)
    assert loaded.get_params() == {**found.get_params(), "folds": None}
    for again in (loaded, pickle.loads(pickle.dumps(found.to_local()))):
        assert bits(again) == bits(found) and again.predict(X).tolist() == found.predict(X).tolist()
    found.set_params(folds=None)


@pytest.mark.full
@pytest.mark.parametrize("scoring", ["loss", "error"])
def test_the_rules(chosen, scoring):
    X, y, one = chosen
    if scoring == "error":
        one = clone(one).set_params(scoring="error", tol=1e-4).fit(X, y)
    values = one.fold_losses_ if scoring == "loss" else one.fold_errors_
    mean = np.average(values, axis=0, weights=one.fold_weights_)
    error = np.sqrt(np.average((values - mean) ** 2, axis=0, weights=one.fold_weights_) / (len(values) - 1))
    np.testing.assert_allclose(one.cv_results_.column(f"mean_{scoring}"), mean, rtol=1e-12)
    np.testing.assert_allclose(one.cv_results_.column(f"se_{scoring}"), error, rtol=1e-9, atol=1e-15)
    best = int(np.argmin(mean))
    assert one.alpha_best_ == clone(one).set_params(rule="best").fit(X, y).alpha_ == one.alphas_[best]
    good = one.alphas_[mean <= mean[best] + error[best]]
    assert one.alpha_ == one.alpha_1se_ == good.max()
    assert one.alpha_1se_ > one.alpha_best_


@pytest.mark.parametrize(
    "hypotheses",
    [
        pytest.param(None, id="columns"),
        pytest.param(dboost.Kernels(max_support=20), id="kernels", marks=pytest.mark.full),
    ],
)
def test_threads_and_dask_give_the_same_bits(multiclass, client, hypotheses):
    X, y = multiclass
    params = {"penalty": "l1/l2", "cv": 3, "n_alphas": 5, "hypotheses": hypotheses}
    lazy = da.from_array(X, chunks=(60, 12)), da.from_array(y, chunks=60)
    on_dask = BoostedClassifierCV(**params, client=client).fit(*lazy)
    here = BoostedClassifierCV(**params).fit(*lazy)
    assert bits(here) == bits(on_dask)


@pytest.mark.full
def test_the_cut_of_the_rows_and_what_they_hold_do_not_change_the_folds(multiclass):
    X, y = multiclass
    params = {"penalty": "l1/l2", "cv": 3, "alphas": ALPHAS, "tol": 1e-9, "fold_tol": 1e-9}
    whole = BoostedClassifierCV(**params).fit(X, y)
    lazy = BoostedClassifierCV(**params).fit(da.from_array(X, chunks=(41, 12)), da.from_array(y, chunks=41))
    # columns in another order, and a row of weight zero, which has no place
    turned = BoostedClassifierCV(**params).fit(X[:, ::-1], y)
    more = np.insert(np.ones(len(y)), 70, 0.0)
    with_none = BoostedClassifierCV(**params).fit(np.insert(X, 70, 9.0, axis=0), np.insert(y, 70, y[3]), more)
    for other in (lazy, turned, with_none):
        np.testing.assert_allclose(other.fold_weights_, whole.fold_weights_)
        np.testing.assert_allclose(other.fold_losses_, whole.fold_losses_, rtol=1e-6)
    assert np.ptp(whole.fold_weights_) <= 1.0
    reseeded = BoostedClassifierCV(random_state=1, **params).fit(X, y)
    assert not np.allclose(reseeded.fold_losses_, whole.fold_losses_, rtol=1e-3)


def test_folds_may_be_a_column(multiclass):
    X, y = multiclass
    folds = np.array(["a", "b", "c", "d"])[folds_of(len(y))]
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(12)]).assign(fold=folds)
    params = {"penalty": "l1/l2", "alphas": ALPHAS}
    named = BoostedClassifierCV(folds="fold", **params).fit(frame, y)
    given = BoostedClassifierCV(folds=folds, **params).fit(X, y)
    assert named.fold_losses_.tolist() == given.fold_losses_.tolist()
    assert "fold" not in named.feature_names_in_
    with pytest.raises(UsageError, match="names no column"):
        BoostedClassifierCV(folds="part", **params).fit(frame, y)


def test_a_class_in_one_fold_only(multiclass):
    X, y = multiclass
    folds = folds_of(len(y))
    y = y.astype(object)
    rare = np.flatnonzero(folds == 1)[:3]
    y[rare] = "rare"
    params = {"penalty": "l1/l2", "tol": 1e-9}
    found = BoostedClassifierCV(folds=folds, alphas=ALPHAS, fold_tol=1e-9, **params).fit(X, y.astype(str))
    # the fit without fold 1 is that of the other classes
    train, test = folds != 1, (folds == 1) & (y != "rare")
    rows_left, rows = int(train.sum()), int(np.sum(folds == 1))
    share = 0.5 / (rows_left + 0.5)
    for t, alpha in enumerate(ALPHAS):
        model = BoostedClassifier(alpha=alpha, **params).fit(X[train], y[train].astype(str))
        proba = model.predict_proba(X[test])
        place = np.searchsorted(model.classes_, y[test].astype(str))
        known = -np.log(proba[np.arange(len(place)), place] * (1.0 - share)).sum()
        assert found.fold_losses_[1, t] == pytest.approx((known - 3 * np.log(share)) / rows, rel=1e-6)
        wrong = np.sum(model.predict(X[test]) != y[test]) + 3
        assert found.fold_errors_[1, t] == pytest.approx(wrong / rows)
    assert np.all(np.isfinite(found.fold_losses_))
    assert found.predict_proba(X).shape == (len(y), 4)


def test_parameters_without_meaning_are_refused(multiclass):
    for params in (
        {"rule": "2se"},
        {"scoring": "auc"},
        {"alphas": []},
        {"alphas": [0.0]},
        {"n_alphas": 0},
        {"eps": 1.0},
        {"penalty": "none"},
        {"folds": "name"},
        {"folds": np.zeros((150, 2))},
    ):
        with pytest.raises(UsageError, match=next(iter(params)).removesuffix("s")):
            BoostedClassifierCV(**params).fit(*multiclass)


def test_folds_that_cannot_be(multiclass, client):
    X, y = multiclass
    with pytest.raises(DataError, match="1 of 1 folds"):
        BoostedClassifierCV(folds=np.zeros(len(y))).fit(X, y)
    with pytest.raises(DataError, match="one fold per row"):
        BoostedClassifierCV(folds=np.zeros(7)).fit(X, y)
    with pytest.raises(DataError, match="missing"):
        BoostedClassifierCV(folds=np.full(len(y), np.nan)).fit(X, y)
    with pytest.raises(DataError, match="every label is the same"):
        BoostedClassifierCV(folds=y[y != "cat"]).fit(X[y != "cat"], y[y != "cat"])
    with pytest.raises(UsageError, match="in memory"):
        BoostedClassifierCV(folds=np.zeros(len(y))).fit(da.from_array(X), da.from_array(y))
    for folds in ([None] * 150, [0, None] * 75, [0, "a"] * 75, [float("nan"), 1.0] * 75):
        with pytest.raises(DataError, match="folds holds (missing values|values of types)"):
            BoostedClassifierCV(folds=np.array(folds, dtype=object)).fit(X, y)


def test_fits_above_tol_are_told(multiclass):
    X, y = multiclass
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        BoostedClassifierCV(penalty="l1/l2", cv=3, alphas=[0.01], tol=1e-12, max_rounds=1).fit(X, y)
    told = [str(w.message) for w in seen if issubclass(w.category, ConvergenceWarning)]
    assert any("3 of 3 fits without a fold" in text for text in told)


def alphas_that_warn(X, y, **params):
    """The message about the end of the grid, or None."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        model = BoostedClassifierCV(**{"penalty": "l1/l2", "cv": 3} | params).fit(X, y)
    found = [str(w.message) for w in seen if "end of the grid" in str(w.message)]
    assert all(w.category is dboost.DboostWarning and w.filename == __file__ for w in seen)
    assert len(found) <= 1
    return model, found[0] if found else None


def test_a_best_strength_at_the_weak_end_of_the_grid_warns_with_the_remedy(multiclass):
    model, message = alphas_that_warn(*multiclass, n_alphas=4, eps=0.5)
    assert model.alpha_best_ == model.alphas_[-1]
    assert f"alpha_best_={model.alpha_best_:.4g} is the weakest of 4 strengths, an end of the grid" in message
    assert "give a smaller eps than 0.5" in message
    _, message = alphas_that_warn(*multiclass, alphas=[0.3, 0.2])
    assert "give smaller alphas" in message


def test_a_best_strength_at_the_strong_end_of_given_strengths_warns(multiclass):
    X, y = multiclass
    _, message = alphas_that_warn(X[:, 6:], y, alphas=[0.01, 0.005])
    assert "strongest of 2 strengths, an end of the grid" in message
    assert "give larger alphas" in message
    # a penalty that puts no feature to zero has no largest strength
    _, message = alphas_that_warn(X[:, 6:], y, alphas=[0.01, 0.005], penalty="l2_squared")
    assert "give larger alphas" in message


@pytest.mark.full
def test_a_best_strength_within_the_grid_or_beyond_which_nothing_lies_does_not_warn(multiclass):
    X, y = multiclass
    model, message = alphas_that_warn(X, y, n_alphas=8, eps=1e-3)
    assert model.alphas_[-1] < model.alpha_best_ < model.alphas_[0]
    assert message is None
    # noise: no feature at all is best, and no larger strength changes that
    model, message = alphas_that_warn(X[:, 6:], y, n_alphas=4, eps=0.1)
    assert model.alpha_best_ == model.alphas_[0]
    assert message is None
    # one strength is no choice
    assert alphas_that_warn(X, y, alphas=[0.1])[1] is None


# ---- splitters of scikit-learn: the folds they give, and what is no partition of the rows ----------------------------

FEW = {"n_alphas": 4, "eps": 0.05, "penalty": "l1"}


@pytest.fixture(scope="module")
def labelled():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 6))
    return X, np.where(X[:, 0] + rng.logistic(size=90) > 0.5, "yes", "no")


@pytest.mark.parametrize("splitter", [KFold(3), StratifiedKFold(4, shuffle=True, random_state=1)])
def test_a_splitter_is_the_folds_that_it_makes(labelled, splitter, tmp_path):
    X, y = labelled
    folds = np.empty(90, int)
    for number, (_, test) in enumerate(splitter.split(X, y)):
        folds[test] = number
    found = BoostedClassifierCV(cv=splitter, **FEW).fit(X, y)
    given = BoostedClassifierCV(folds=folds, **FEW).fit(X, y)
    np.testing.assert_array_equal(found.fold_losses_, given.fold_losses_)
    listed = BoostedClassifierCV(cv=list(splitter.split(X, y)), **FEW).fit(X, y)
    np.testing.assert_array_equal(listed.fold_losses_, given.fold_losses_)
    table = pd.DataFrame(X).add_prefix("x").assign(label=y)
    np.testing.assert_array_equal(BoostedClassifierCV(cv=splitter, **FEW).fit(table, "label").coef_, given.coef_)
    found.save(tmp_path / "model")
    assert dboost.load_model(tmp_path / "model").alpha_ == found.alpha_


def test_a_regression_and_masks(labelled):
    X, _ = labelled
    halves = np.arange(90) % 2 == 0
    y = X[:, 0] + np.random.default_rng(1).normal(size=90)
    found = BoostedRegressorCV(cv=[(halves, ~halves), (~halves, halves)], **FEW).fit(X, y)
    assert found.fold_losses_.shape == (2, 4)


@pytest.mark.parametrize(
    "cv,said",
    [
        (ShuffleSplit(3, random_state=0), "no split of cv= tests row|tests a row that an earlier one tests"),
        (TimeSeriesSplit(3), "leaves rows out, and a fit trains on all others"),
        (LeaveOneGroupOut(), "does not split these rows.*groups"),
        (GroupKFold(3), "does not split these rows.*groups"),
        ([(np.arange(45), np.arange(45, 90))], "no split of cv= tests row 0"),
        ([(np.arange(90), np.arange(45, 90))], "trains on a row that it tests"),
        ([(np.arange(45), np.arange(45, 91))], "names rows that are not there"),
        ([(np.zeros(3), np.arange(90))], "names rows that are not there"),
    ],
)
def test_what_does_not_test_every_row_once_is_refused(labelled, cv, said):
    with pytest.raises(UsageError, match=said):
        cv_module.folds_of(cv, labelled[1])


@pytest.mark.parametrize("cv", [1, True, "3", KFold, [], [3], None, 2.5])
def test_what_is_no_splitter_is_refused(labelled, cv):
    with pytest.raises(UsageError, match="expected an integer >= 2, a splitter"):
        BoostedClassifierCV(cv=cv, **FEW).fit(*labelled)


def test_a_splitter_needs_the_rows_in_memory(labelled):
    X, y = (da.from_array(part, chunks=45) for part in (labelled[0], labelled[1] == "yes"))
    with pytest.raises(UsageError, match="a splitter as cv= is for data in memory"):
        BoostedClassifierCV(cv=KFold(3), **FEW).fit(X, y)
