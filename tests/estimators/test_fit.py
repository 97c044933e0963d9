"""Fitting and its attributes: inputs, labels, weights, the certificate."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from dboost import (
    BoostedClassifier,
    DataError,
    DboostWarning,
    MultiTaskBoostedClassifier,
    load_model,
)

TIGHT = 1e-8


def objective(model, X, y, weight=None):
    """The objective of design and docstring, written out from coef_ and intercept_."""
    s = np.ones(len(y)) if weight is None else np.asarray(weight, dtype=float)
    F = X @ model.coef_.T + model.intercept_
    if F.shape[1] == 1:
        signs = np.where(y == model.classes_[1], 1, -1)
        loss = np.logaddexp(0, -signs * F[:, 0])
    else:
        codes = np.searchsorted(model.classes_, y)
        loss = np.logaddexp.reduce(F, axis=1) - F[np.arange(len(y)), codes]
    norms = {
        "l1": np.abs(model.coef_).sum(axis=0),
        "l1/l2": np.sqrt((model.coef_**2).sum(axis=0)),
        "l1/linf": np.abs(model.coef_).max(axis=0),
    }
    return s @ loss / s.sum() + model.alpha_ * norms[model.penalty].sum()


@pytest.mark.parametrize("penalty", ["l1", "l1/l2", "l1/linf"])
def test_attributes_state_the_objective_and_its_certificate(multiclass, penalty):
    X, y = multiclass
    model = BoostedClassifier(standardize=False, penalty=penalty, alpha=0.05).fit(X, y)
    assert model.classes_.tolist() == ["ant", "bee", "cat"]
    assert model.coef_.shape == (3, 12)
    assert model.intercept_.shape == (3,)
    assert model.n_features_in_ == 12
    assert not hasattr(model, "feature_names_in_")
    value = objective(model, X, y)
    assert model.objective_ == pytest.approx(value, rel=1e-10)
    assert 0 <= model.duality_gap_ <= model.tol
    assert model.stop_reason_ == "tol"
    assert model.n_iter_ == len(model.history_) >= 1
    assert model.history_[-1]["gap"] == pytest.approx(model.duality_gap_)
    assert model.alpha_ == 0.05 < model.alpha_max_
    used = np.flatnonzero(np.any(model.coef_ != 0, axis=0))
    assert 0 < len(used) < 12
    assert model.active_features_ == [f"x{j}" for j in used]
    assert model.get_feature_names_out().tolist() == model.active_features_


def test_auto_alpha_and_alpha_max(multiclass):
    X, y = multiclass
    model = BoostedClassifier(alpha="quick").fit(X, y)
    assert model.alpha_ == pytest.approx(0.05 * model.alpha_max_)
    assert BoostedClassifier(alpha=model.alpha_max_ * 1.001).fit(X, y).active_features_ == []
    assert BoostedClassifier(alpha=model.alpha_max_ * 0.99, tol=1e-6).fit(X, y).active_features_ != []
    null = BoostedClassifier(alpha=model.alpha_max_ * 1.001).fit(X, y)
    frequencies = np.array([(y == c).mean() for c in null.classes_])
    np.testing.assert_allclose(null.predict_proba(X[:2]), [frequencies, frequencies], rtol=1e-6)


@pytest.mark.parametrize("loss", ["log", "multinomial"])
def test_two_classes_either_way(binary, loss):
    X, y = binary
    model = BoostedClassifier(standardize=False, loss=loss, penalty="l1", alpha=0.05, tol=1e-8).fit(X, y)
    assert model.coef_.shape == ((1, 12) if loss == "log" else (2, 12))
    assert model.predict_proba(X).shape == (len(y), 2)
    assert model.decision_function(X).shape == ((len(y),) if loss == "log" else (len(y), 2))
    assert model.score(X, y) == np.mean(model.predict(X) == y) > 0.8


def test_class_weight_is_a_sample_weight(multiclass):
    X, y = multiclass
    factors = {"ant": 3.0, "bee": 0.5}
    weight = np.array([factors.get(label, 1.0) for label in y])
    a = BoostedClassifier(alpha=0.03, class_weight=factors, tol=TIGHT).fit(X, y)
    b = BoostedClassifier(alpha=0.03, tol=TIGHT).fit(X, y, weight)
    np.testing.assert_allclose(a.coef_, b.coef_, atol=1e-7)
    counts = {label: np.mean(y == label) for label in a.classes_}
    balanced = BoostedClassifier(alpha=0.03, class_weight="balanced", tol=TIGHT).fit(X, y)
    by_hand = BoostedClassifier(alpha=0.03, tol=TIGHT).fit(X, y, np.array([1 / (3 * counts[label]) for label in y]))
    np.testing.assert_allclose(balanced.coef_, by_hand.coef_, atol=1e-6)


def test_declared_classes_without_examples_are_kept(multiclass):
    X, y = multiclass
    plain = BoostedClassifier(alpha=0.05).fit(X, y)
    model = BoostedClassifier(alpha=0.05, classes=["ant", "asp", "bee", "cat"]).fit(X, y)
    assert model.classes_.tolist() == ["ant", "asp", "bee", "cat"]
    assert model.duality_gap_ <= model.tol
    assert model.coef_[[0, 2, 3]].tobytes() == plain.coef_.tobytes()
    assert not model.coef_[1].any()
    P = model.predict_proba(X)
    np.testing.assert_allclose(P[:, [0, 2, 3]], plain.predict_proba(X), rtol=1e-12)
    assert P[:, 1].max() < 1e-250
    again = BoostedClassifier(alpha=0.05, classes=["ant", "asp", "bee", "cat"], warm_start=True)
    assert again.fit(X, y).fit(X, y).coef_.shape == (4, 12)
    with pytest.raises(DataError, match="cat"):
        BoostedClassifier(alpha="quick", classes=["ant", "bee"]).fit(X, y)
    with pytest.raises(DataError, match="only one class"):
        BoostedClassifier(alpha="quick", classes=["ant", "bee"]).fit(X, np.full(len(y), "ant"))


def test_texts_of_numbers_weigh_them_in_fits_and_in_what_is_saved(multiclass, tmp_path):
    X, y = multiclass
    codes = np.unique(y, return_inverse=True)[1]
    models = []
    for given in ({"1": 3.0, "7": 2.0}, {1: 3.0, 7: 2.0}):
        # A class without examples is left out of the fit, and its weight with it.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DboostWarning)
            models.append(BoostedClassifier(alpha=0.03, classes=[0, 1, 2, 7], class_weight=given).fit(X, codes))
    assert models[0].coef_.tobytes() == models[1].coef_.tobytes()
    models[0].save(tmp_path / "m")
    assert load_model(tmp_path / "m").get_params()["class_weight"] == {0: 1.0, 1: 3.0, 2: 1.0, 7: 2.0}


def test_missing_labels_leave_their_entries_out(tasks):
    X, Y = tasks
    model = MultiTaskBoostedClassifier(standardize=False, penalty="l1/l2", alpha=0.02).fit(X, Y)
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.coef_.shape == (3, 12)
    F = X @ model.coef_.T + model.intercept_
    seen = ~np.isnan(Y)
    loss = np.where(seen, np.logaddexp(0, -(2 * np.nan_to_num(Y) - 1) * F), 0).sum() / len(Y)
    penalty = 0.02 * np.sqrt((model.coef_**2).sum(axis=0)).sum()
    assert model.objective_ == pytest.approx(loss + penalty, rel=1e-9)
    np.testing.assert_array_equal(model.predict(X), (F > 0).astype(int))
    np.testing.assert_allclose(model.predict_proba(X), 1 / (1 + np.exp(-F)), rtol=1e-10)
    right = ((F > 0) == (Y == 1))[seen].mean()
    assert model.score(X, Y) == pytest.approx(right)
    coded = np.where(seen, 2 * np.nan_to_num(Y) - 1, np.nan)
    signed = MultiTaskBoostedClassifier(standardize=False, penalty="l1/l2", alpha=0.02).fit(X, coded)
    assert signed.coef_.tobytes() == model.coef_.tobytes()


def test_task_names_come_from_the_table(tasks):
    X, Y = tasks
    model = MultiTaskBoostedClassifier(alpha=0.02).fit(X, pd.DataFrame(Y, columns=["left", "up", "far"]))
    assert model.classes_.tolist() == ["left", "up", "far"]
    named = MultiTaskBoostedClassifier(alpha=0.02, classes=["a", "b", "c"]).fit(X, Y)
    assert named.classes_.tolist() == ["a", "b", "c"]


def test_probabilities_have_the_link_of_the_loss(binary):
    X, y = binary
    model = BoostedClassifier(loss="exp", penalty="l1", alpha=0.03).fit(X, y)
    f = model.decision_function(X)
    P = model.predict_proba(X)
    np.testing.assert_allclose(P[:, 1], 1.0 / (1.0 + np.exp(-2.0 * f)), rtol=1e-13)
    np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=1e-14)
    # The score that minimises the mean loss of one group is half its log-odds.
    constant = BoostedClassifier(loss="exp", alpha=10.0).fit(X, y)
    assert constant.predict_proba(X[:1])[0, 1] == pytest.approx(y.mean(), rel=1e-9)


def test_the_ridge_is_scikit_learns_logistic_regression(multiclass):
    """With alpha left alone it is its C = 1."""
    X, y = multiclass
    ours = BoostedClassifier(standardize=False, alpha="quick", penalty="l2_squared", tol=1e-10).fit(X, y)
    theirs = LogisticRegression(C=1.0, tol=1e-9, max_iter=10_000).fit(X, y)
    assert ours.alpha_ == pytest.approx(1.0 / len(y))
    assert ours.duality_gap_ <= 1e-10 and ours.stop_reason_ == "tol"
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
    np.testing.assert_allclose(
        ours.intercept_ - ours.intercept_.mean(), theirs.intercept_ - theirs.intercept_.mean(), atol=1e-4
    )
