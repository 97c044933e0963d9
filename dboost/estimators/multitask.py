"""``MultiTaskBoostedClassifier``: several binary labels per example, some of them missing."""

from __future__ import annotations

from typing import Any

from dboost.data.labels.targets import task_labels
from dboost.estimators.base import BoostedEstimator
from dboost.estimators.classifying import ClassifyingMixin
from dboost.estimators.scoring import accuracy


class MultiTaskBoostedClassifier(ClassifyingMixin, BoostedEstimator):
    """Binary classifiers for several tasks that share their features, fitted to a certified optimum.

    Minimises the sum over tasks of the log-loss of the observed labels, with one row of weights per feature tied across
    the tasks by the penalty; see ``BoostedClassifier`` for the objective and the parameters not described here.

    Parameters
    ----------
    loss : {"multitask"}, optional
        One log-loss per column of Y.
    classes : sequence of str, optional
        Names of the tasks; by default the columns of a table, or 0..k-1.
    class_weight : None
        Has no meaning for several tasks; use `sample_weight`.
    others
        As in ``BoostedClassifier``.

    Attributes
    ----------
    classes_ : array, shape (k,)
        Names of the tasks.
    coef_ : float64 array, shape (k, n)
    intercept_ : float64 array, shape (k,)

    Notes
    -----
    Y has shape (m, k) with labels 0/1, -1/+1 or booleans, and NaN or None where a label is missing. Predictions are
    0 and 1, shape (m, k); probabilities are those of the positive label, shape (m, k).

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 0.0]])
    >>> Y = np.array([[0, 1], [0, 1], [1, 0], [1, np.nan]])
    >>> MultiTaskBoostedClassifier(alpha=0.1).fit(X, Y).predict(X).tolist()
    [[0, 1], [0, 1], [1, 0], [1, 0]]
    """

    _tasks = ("multitask",)
    _task = "multitask"

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Share of correct labels among the observed ones, over all tasks.

        Unlike scikit-learn's subset accuracy for several labels, this counts each label by itself: with missing labels
        an example is never correct as a whole.

        Parameters
        ----------
        X : as for `fit`
        y : labels, shape (m, k), NaN where missing; None for ``ParquetData``
        sample_weight : array-like, shape (m,), or the name of a column of a table, optional

        Returns
        -------
        float
        """
        return accuracy(self, X, y, sample_weight, _agree)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        tags.target_tags.two_d_labels = True
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.multi_label = True
        return tags


def _agree(y: Any, predicted: Any) -> tuple[Any, Any]:
    """Per example: number of correct and of observed labels."""
    signs = task_labels(y)
    observed = signs != 0
    return ((signs > 0) == (predicted > 0)) & observed, observed
