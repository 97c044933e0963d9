"""The estimators among scikit-learn's tools."""

from __future__ import annotations

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.feature_selection import SelectFromModel
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dboost import BoostedClassifier


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
