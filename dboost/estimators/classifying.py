"""What classifiers have beyond regressors: probabilities and scores.

Covers: ``ClassifyingMixin``. Does not cover: fitting and the prediction of labels (``base``).
"""

from __future__ import annotations

from typing import Any

from sklearn.base import ClassifierMixin

from dboost.estimators import predicting


class ClassifyingMixin(ClassifierMixin):
    """Probabilities and scores of a ``BoostedEstimator`` with labels; not public."""

    _predict: Any

    def predict_proba(self, X: Any) -> Any:
        """Probabilities; input and output as for `predict`.

        Returns
        -------
        float64, shape (m, number of classes); for tasks (m, k), the probability of the positive label
        """
        return self._predict(X, predicting.PROBABILITIES)

    def decision_function(self, X: Any) -> Any:
        """Scores X W + b; input and output as for `predict`.

        Returns
        -------
        float64, shape (m, k); (m,) for two classes and the loss ``log``
        """
        return self._predict(X, predicting.SCORES)
