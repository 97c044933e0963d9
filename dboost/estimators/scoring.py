"""What estimators of labels and of numbers have beyond fitting: probabilities, accuracy, R^2, for every kind of input.

Covers: ``ClassifyingMixin``, ``TwoClassMixin``, ``RegressingMixin``, the labels and weights that scores compare with.
Does not cover: fitting and the prediction of labels (``base``), richer metrics (``dboost.metrics``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin

from dboost.data.labels.factorise import factorise
from dboost.data.labels.labels import check_weight
from dboost.data.labels.targets import many_targets, regression_targets
from dboost.data.named_columns import split_named
from dboost.data.planned import count_rows
from dboost.errors import DataError, UsageError
from dboost.estimators import predicting
from dboost.estimators.fitting import check_labels
from dboost.estimators.params import parameters
from dboost.estimators.predicting import kind_of
from dboost.losses import Loss, get_loss, loss_of_model, refuse_invalid

Agree = Callable[[Any, NDArray[Any]], tuple[Any, Any]]


def accuracy(estimator: Any, X: Any, y: Any, sample_weight: Any, agree: Agree) -> float:
    """Weighted share of correct labels.

    `agree`: ``agree(y, predicted)`` gives, per example, the correct and the counted labels.
    """
    predicted, y, weight = _compared(estimator, X, y, sample_weight)
    correct, counted = agree(y, predicted)
    correct, counted = (np.asarray(part, dtype=np.float64).reshape(len(weight), -1) for part in (correct, counted))
    total = float(weight @ counted.sum(axis=1))
    if not total > 0:
        raise DataError("nothing to score: no label has a positive weight")
    return float(weight @ correct.sum(axis=1)) / total


def explained(estimator: Any, X: Any, y: Any, sample_weight: Any) -> float:
    """The share of the deviance that predictions explain; for most losses R^2, as ``sklearn.metrics.r2_score`` has it.

    A loss with a deviance of its own (``Loss.deviance``) has 1 - (sum of the deviances from the predictions) / (sum of
    those from the best constant), as ``sklearn.metrics.d2_tweedie_score`` and ``d2_pinball_score`` do.
    """
    predicted, y, weight = _compared(estimator, X, y, sample_weight)
    if not np.any(weight > 0):
        raise DataError("nothing to score: no target has a positive weight")
    # a loss with parameters is one of the estimator; the model tells its name
    given = getattr(estimator, "loss", None)
    loss = loss_of_model(estimator.model_.loss) if given is None else get_loss(given)
    if estimator.model_.task == "multitarget":
        return _explained_on_average(loss, many_targets(y), np.asarray(predicted), weight)
    target = regression_targets(y)
    if loss is not None:
        check_labels(loss, target)
    return _explained_of(loss, target, np.asarray(predicted, np.float64), weight)


def _explained_of(
    loss: Loss | None, target: NDArray[np.float64], predicted: NDArray[np.float64], weight: NDArray[np.float64]
) -> float:
    """The share of the deviance of one target, all of it observed."""
    from sklearn.metrics import r2_score

    mean = np.full_like(target, 0.0 if loss is None else loss.middle(target, weight))
    from_mean = None if loss is None else loss.deviance(target, mean)
    if loss is None or from_mean is None:
        return float(r2_score(target, predicted, sample_weight=weight))
    from_predicted = loss.deviance(target, predicted)
    assert from_predicted is not None
    left, whole = float(weight @ from_predicted), float(weight @ from_mean)
    return 1.0 - left / whole if whole > 0.0 else float(left == 0.0)


def _explained_on_average(
    loss: Loss | None, targets: NDArray[np.float64], predicted: NDArray[Any], weight: NDArray[np.float64]
) -> float:
    """The mean over the targets of the share that is explained, of each over the rows where it is observed."""
    if targets.shape != predicted.shape:
        raise DataError(f"targets have shape {targets.shape}, the model predicts {predicted.shape}")
    seen = ~np.isnan(targets) & (weight > 0)[:, None]
    if not np.any(seen):
        raise DataError("nothing to score: no target is observed with a positive weight")
    if loss is not None:
        refuse_invalid(loss, targets)
    shares = [
        _explained_of(loss and loss.of_output(r), targets[rows, r], predicted[rows, r], weight[rows])
        for r, rows in enumerate(seen.T)
        if np.any(rows)
    ]
    return float(np.mean(shares))


def _compared(estimator: Any, X: Any, y: Any, sample_weight: Any) -> tuple[NDArray[Any], Any, NDArray[np.float64]]:
    """Predictions, labels and weights of the same rows, in memory."""
    if kind_of(X) in ("array", "frame"):
        predicted, y, sample_weight = _computed(estimator, X, y, sample_weight)
    else:
        X, y, sample_weight = labels_and_weights(X, y, sample_weight)
        predicted = estimator.predict(X)
    if count_rows(y) != len(predicted):
        raise DataError(
            f"Found input variables with inconsistent numbers of samples: X has {len(predicted)} rows, "
            f"y has {count_rows(y)}"
        )
    return predicted, y, check_weight(sample_weight, len(predicted))


def labels_and_weights(X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
    """The rows without columns that are labels or weights, and labels and weights in memory.

    Returns: As it was given; of data on disk those of the column, or of ones.
    """
    kind = kind_of(X)
    if kind == "parquet":
        if y is not None or sample_weight is not None:
            raise UsageError("y and sample_weight were given beside ParquetData", hint="it names its own columns")
        from dboost.data.parquet.plan import blocks_of

        raws = [block.read(features=False, label=True) for block in blocks_of(X, labels=True)]
        if not raws:
            raise DataError("no rows to score", file=str(X.path))
        y = np.concatenate([raw.label_array() for raw in raws])
        return X, y, np.concatenate([raw.weight_array() for raw in raws])
    X, y, sample_weight, _, _ = split_named(X, y, sample_weight)
    if y is None:
        raise UsageError("score needs y")
    if kind in ("array", "frame"):
        import dask

        y, sample_weight = dask.compute(y, sample_weight)
    return X, y, sample_weight


def _computed(estimator: Any, X: Any, y: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
    """Predictions, labels and weights of dask collections, computed in one go."""
    import dask

    X, y, sample_weight, _, _ = split_named(X, y, sample_weight)
    if y is None:
        raise UsageError("score needs y")
    predicted, y, sample_weight = dask.compute(estimator.predict(X), y, sample_weight)
    return np.asarray(predicted), y, sample_weight


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


def predicts_counts(loss: Any) -> bool:
    """Whether a loss, or each of several, takes no target below zero: its mean is an exponential."""
    losses = loss if isinstance(loss, list | tuple) else [loss]
    try:
        known = [get_loss(one) for one in losses]
    except UsageError:  # which a fit says
        return False
    return bool(known) and all(link.exponential for one in known for link in one.links(one.targets or 1))


class RegressingMixin(RegressorMixin):  # type: ignore[misc]
    """R^2 or D^2 of a ``BoostedEstimator`` with targets; not public."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = predicts_counts(self.loss)
        return tags

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The share of the variance that the predictions explain, R^2 (``sklearn.metrics.r2_score``).

        With ``loss="poisson"`` the share of the Poisson deviance, D^2, as scikit-learn's ``PoissonRegressor`` has it
        (``sklearn.metrics.d2_tweedie_score`` with ``power=1``), and with ``loss="quantile"`` that of the pinball loss
        (``sklearn.metrics.d2_pinball_score``). Of several targets it is the mean of their R^2, each over the rows where
        it is observed.

        Parameters
        ----------
        X : as for `fit`
        y : targets, or the name of the target column of a table; None for ``ParquetData``
        sample_weight : array-like, shape (m,), or the name of a column of a table, optional

        Returns
        -------
        float
            1 for perfect predictions, 0 for those of the best constant; below 0 for worse ones.
        """
        return explained(self, X, y, sample_weight)
