"""Fitted linear models as plain ones of scikit-learn: the same predictions, without dboost."""

from __future__ import annotations

import pickle
from functools import cache

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.exceptions import NotFittedError

import dboost
from dboost import BoostedClassifier, BoostedRegressor, MultiTaskBoostedClassifier
from dboost.errors import UsageError
from dboost.losses import LOSSES

TINY = 1e-12


def data(task):
    """Rows of each kind of labels."""
    if task == "multiclass":
        X, y = load_iris(return_X_y=True)
        return X, np.array(["setosa", "versicolor", "virginica"])[y]
    if task == "binary":
        X, y = load_breast_cancer(return_X_y=True)
        return X / X.std(axis=0), y
    X, y = load_diabetes(return_X_y=True)
    if task == "multitarget":
        return X, np.column_stack([y, np.where(y > 200, np.nan, y**2 / 100)])
    return X, y if task == "regression" else np.where(np.column_stack([y > 80, y > 150, y > 220]), 1, -1)


@cache
def fitted(loss, alpha=1e-3):
    """A model of a loss and its rows, for both ways out."""
    task = LOSSES[loss].task
    X, y = data(task)
    cls = {"regression": BoostedRegressor, "multitask": MultiTaskBoostedClassifier}
    cls["multitarget"] = dboost.MultiTaskBoostedRegressor
    return cls.get(task, BoostedClassifier)(loss=loss, alpha=alpha, max_rounds=30, tol=1e-3).fit(X, y), X


@pytest.mark.filterwarnings("ignore::dboost.ConvergenceWarning")
@pytest.mark.parametrize("loss", LOSSES)
def test_a_plain_model_predicts_the_same(loss):
    ours, X = fitted(loss)
    plain = pickle.loads(pickle.dumps(ours.to_sklearn()))
    assert type(plain).__module__.startswith("sklearn.") and plain.n_features_in_ == X.shape[1]
    if LOSSES[loss].task in ("regression", "multitarget"):
        np.testing.assert_allclose(plain.predict(X), ours.predict(X), rtol=TINY)
        return
    assert np.array_equal(plain.predict(X), ours.predict(X))
    chances = plain.predict_proba(X)
    if LOSSES[loss].task == "multitask":
        chances = np.column_stack([one[:, 1] for one in chances])
    np.testing.assert_allclose(chances, ours.predict_proba(X), atol=TINY)


def test_a_softmax_of_two_classes_is_the_one_score_that_scikit_learn_has():
    X, y = data("binary")
    softmax = [BoostedClassifier(loss=loss, penalty="l1/l2", alpha=0.01, tol=1e-2) for loss in LOSSES
               if LOSSES[loss].task == "multiclass"]  # fmt: skip
    for ours in (*softmax, dboost.ShareBoostClassifier(max_rounds=3)):
        ours.fit(X, np.array(["no", "yes"])[y])
        plain = ours.to_sklearn()
        assert plain.coef_.shape == (1, X.shape[1]) and plain.intercept_.shape == (1,)
        np.testing.assert_allclose(plain.predict_proba(X), ours.predict_proba(X), atol=TINY)
        assert np.array_equal(plain.predict(X), ours.predict(X))


def test_what_is_no_linear_function_of_the_columns_is_refused():
    X, y = data("binary")
    model = BoostedClassifier(alpha=0.05, hypotheses=dboost.Stumps(), max_rounds=3, tol=0.5).fit(X[:, :3], y)
    with pytest.raises(UsageError, match="stumps is no linear function of the columns"):
        model.to_sklearn()
    with pytest.raises(NotFittedError):
        BoostedClassifier().to_sklearn()
