"""What classifiers have beyond regressors: probabilities, scores and accuracy.

Covers: ``ClassifyingMixin``, ``TwoClassMixin`` and ``agree``. Does not cover: fitting and the prediction of labels
(``base``).
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassifierMixin

from dboost.data.labels.factorise import factorise
from dboost.errors import DataError
from dboost.estimators import predicting
from dboost.estimators.params import parameters
from dboost.estimators.scoring import accuracy


@parameters
class ClassifyingMixin(ClassifierMixin):  # type: ignore[misc]
    """Probabilities, scores and accuracy of a ``BoostedEstimator`` with labels; not public."""

    class_weight: Any = None
    classes: Any = None
    _predict: ClassVar[Any]

    def predict_proba(self, X: Any) -> Any:
        """Probabilities; input and output as for `predict`.

        Returns
        -------
        float64, shape (m, number of classes); for tasks (m, k), the probability of the positive label
        """
        return self._predict(X, predicting.PROBABILITIES)

    def predict_log_proba(self, X: Any) -> Any:
        """Natural logarithms of `predict_proba`, finite where a probability rounds to zero.

        Returns
        -------
        float64, of the shape of `predict_proba`
        """
        return self._predict(X, predicting.LOG_PROBABILITIES)

    def decision_function(self, X: Any) -> Any:
        """Scores X W + b; input and output as for `predict`.

        Returns
        -------
        float64, shape (m, k); (m,) for two classes and the loss ``log``
        """
        return self._predict(X, predicting.SCORES)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Share of correct labels.

        Parameters
        ----------
        X : as for `fit`
        y : labels, or the name of the label column of a table; None for ``ParquetData``
        sample_weight : array-like, shape (m,), or the name of a column of a table, optional

        Returns
        -------
        float
        """
        return accuracy(self, X, y, sample_weight, agree)


class TwoClassMixin(ClassifyingMixin):
    """A ``BoostedEstimator`` that refuses more than two classes; not public."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def agree(y: Any, predicted: Any) -> tuple[Any, Any]:
    """Per example: correct or not, and that it counts."""
    found, expected = factorise(y)[0], factorise(predicted)[0]
    numbers = {"int", "float"}
    if found != expected and not {found, expected} <= numbers:
        # NumPy compares 1 with "1" without a word, and every label would count as wrong.
        raise DataError(f"labels of type {found}, the model predicts {expected}", hint="give the labels as in the fit")
    labels = np.asarray(y)
    labels = labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels
    return labels == predicted, np.ones(len(labels))
