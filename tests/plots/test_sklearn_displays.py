"""scikit-learn's Display classes draw our estimators as they draw its own.

Covers: every display that has ``from_estimator``. Does not cover: how the pictures look, which is scikit-learn's.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from sklearn import calibration, inspection, metrics, model_selection
from sklearn.datasets import load_breast_cancer, load_diabetes

import dboost

plt = pytest.importorskip("matplotlib.pyplot")

X, y = load_breast_cancer(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)
MODEL = dboost.BoostedClassifier(alpha=0.01)
TWO = np.argsort(-np.abs((X * (2 * y - 1)[:, None]).sum(axis=0)))[:2]

DISPLAYS = {
    "roc": lambda m: metrics.RocCurveDisplay.from_estimator(m.fit(X, y), X, y),
    "precision and recall": lambda m: metrics.PrecisionRecallDisplay.from_estimator(m.fit(X, y), X, y),
    "detection error": lambda m: metrics.DetCurveDisplay.from_estimator(m.fit(X, y), X, y),
    "confusion": lambda m: metrics.ConfusionMatrixDisplay.from_estimator(m.fit(X, y), X, y),
    "calibration": lambda m: calibration.CalibrationDisplay.from_estimator(m.fit(X, y), X, y),
    "partial dependence": lambda m: inspection.PartialDependenceDisplay.from_estimator(m.fit(X, y), X, TWO[:1]),
    "decision boundary": lambda m: inspection.DecisionBoundaryDisplay.from_estimator(m.fit(X[:, TWO], y), X[:, TWO]),
    "learning curve": lambda m: model_selection.LearningCurveDisplay.from_estimator(
        m, X, y, cv=2, train_sizes=[0.5, 1]
    ),
    "validation curve": lambda m: model_selection.ValidationCurveDisplay.from_estimator(
        m, X, y, param_name="alpha", param_range=[0.1, 0.01], cv=2
    ),
}


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    plt.close("all")


@pytest.mark.full
@pytest.mark.parametrize("name", DISPLAYS)
def test_a_classifier_is_drawn(name: str) -> None:
    display = DISPLAYS[name](MODEL)
    assert display.figure_.axes


def test_a_regressor_is_drawn() -> None:
    X, y = load_diabetes(return_X_y=True)
    display = metrics.PredictionErrorDisplay.from_estimator(dboost.BoostedRegressor(alpha="quick").fit(X, y), X, y)
    assert display.ax_.collections
