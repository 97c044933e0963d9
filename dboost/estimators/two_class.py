"""What classifiers of two classes share beyond other classifiers.

Covers: ``TwoClassMixin``. Does not cover: fitting.
"""

from __future__ import annotations

from typing import Any

from dboost.estimators.classifier import agree
from dboost.estimators.classifying import ClassifyingMixin
from dboost.estimators.scoring import accuracy


class TwoClassMixin(ClassifyingMixin):
    """Probabilities, scores and accuracy of a ``BoostedEstimator`` with two classes; not public."""

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Share of correct labels.

        Parameters
        ----------
        X : as for `fit`
        y : labels, or the name of the label column of a table; None for ``ParquetData``
        sample_weight : array-like, shape (m,), optional

        Returns
        -------
        float
        """
        return accuracy(self, X, y, sample_weight, agree)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags
