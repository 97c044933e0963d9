"""The estimators among scikit-learn's tools."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.feature_selection import SelectFromModel
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dboost import (
    BoostedClassifier,
    JointBoostClassifier,
    MultiTaskBoostedClassifier,
    OneVsRestBoostedClassifier,
    ShareBoostClassifier,
)


def test_grid_search_chooses_a_strength(multiclass):
    X, y = multiclass
    search = GridSearchCV(BoostedClassifier(alpha="quick", penalty="l1/l2"), {"alpha": [0.02, 0.5]}, cv=3).fit(X, y)
    assert search.best_params_ == {"alpha": 0.02}
    assert search.best_estimator_.predict(X).tolist() == search.predict(X).tolist()


def test_pipelines_calibration_and_selection(multiclass):
    X, y = multiclass
    scores = cross_val_score(make_pipeline(StandardScaler(), BoostedClassifier(alpha=0.05)), X, y, cv=3)
    assert scores.min() > 0.5
    assert CalibratedClassifierCV(BoostedClassifier(alpha=0.05), cv=3).fit(X, y).predict_proba(X).shape == (150, 3)
    chosen = SelectFromModel(BoostedClassifier(alpha=0.1), threshold=1e-12).fit(X, y)
    model = BoostedClassifier(alpha=0.1).fit(X, y)
    assert np.flatnonzero(chosen.get_support()).tolist() == model.model_.active.tolist()


def test_tasks_with_an_l1_penalty_are_separate_problems(tasks):
    """The l1 penalty ties nothing: each task alone, with its own intercept, gives the same column."""
    X, Y = tasks
    Y = np.nan_to_num(Y).astype(int)
    together = MultiTaskBoostedClassifier(penalty="l1", alpha=0.03, tol=1e-7).fit(X, Y)
    apart = MultiOutputClassifier(BoostedClassifier(penalty="l1", alpha=0.03, tol=1e-7)).fit(X, Y)
    for column, single in zip(together.coef_, apart.estimators_, strict=True):
        np.testing.assert_allclose(column, single.coef_[0], atol=1e-3)
    assert together.objective_ == pytest.approx(sum(single.objective_ for single in apart.estimators_), rel=1e-6)


@pytest.mark.parametrize("loss", ["log", "exp"])
def test_log_probabilities_of_two_classes(binary, loss):
    check_log_probabilities(BoostedClassifier(loss=loss, alpha=0.01).fit(*binary), binary[0])


@pytest.mark.parametrize(
    "estimator",
    [BoostedClassifier(alpha=0.01), ShareBoostClassifier(max_rounds=3), JointBoostClassifier(max_rounds=3)],
)
def test_log_probabilities_of_many_classes(multiclass, estimator):
    check_log_probabilities(estimator.fit(*multiclass), multiclass[0])


def test_log_probabilities_of_tasks(tasks):
    check_log_probabilities(MultiTaskBoostedClassifier(alpha=0.01).fit(*tasks), tasks[0])


def check_log_probabilities(model, X):
    """Where probabilities are well above zero, logarithms of them; far out, finite where these round to zero."""
    np.testing.assert_allclose(model.predict_log_proba(X), np.log(model.predict_proba(X)), rtol=1e-9, atol=1e-12)
    far = 1e4 * X
    logs = model.predict_log_proba(far)
    assert np.isfinite(logs).all()
    np.testing.assert_allclose(np.exp(logs), model.predict_proba(far), atol=1e-12)


def test_log_probabilities_of_one_against_the_rest(multiclass):
    X, y = multiclass
    model = OneVsRestBoostedClassifier(BoostedClassifier(alpha=0.01)).fit(X, y)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), model.predict_proba(X), rtol=1e-12)
