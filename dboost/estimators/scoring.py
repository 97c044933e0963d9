"""How good predictions are: what estimators of labels and of numbers have beyond fitting, scorers, early stopping.

Covers: probabilities, accuracy and R^2 for every kind of input (``ClassifyingMixin``, ``TwoClassMixin``,
``RegressingMixin``); scorers of scikit-learn, by name or as callables, and the trial on made-up rows that tells before
any fit whether one can be asked of an estimator; ``EarlyStopping``, which ends a fit when rows that it does not see are
predicted no better any more. These rows may be any input of a fit: of collections of Dask and of data on disk only
labels, weights and scores X W + b come to this process, 8 (k + 2) bytes a row.
``HeldOut`` brings to the driver what a scorer needs of the rows of each fold. Of data in memory the rows themselves are
handed to the scorer, as ``sklearn.model_selection.cross_val_score`` does; of others their scores, and only predictions
can be asked of them. One fold is scored at a time, so that the driver holds, beside what a fit takes, the held-out rows
of one fold: their labels and weights, and a copy of their features or, for as many strengths as take 64 MB and for one
at least, twice their scores of 8 k bytes a row.
Does not cover: fitting and the prediction of labels (``base``), richer metrics (``dboost.metrics``), or which strength
the held-out rows choose (``cv``).
"""

from __future__ import annotations

import copy
import inspect
import math
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin, clone

from dboost.boosting.fit import FitResult, Fitting
from dboost.data.labels.factorise import factorise
from dboost.data.labels.labels import check_weight
from dboost.data.labels.targets import many_targets, regression_targets
from dboost.data.named_columns import as_trained, labels_as_trained, split_named
from dboost.data.planned import Plan, count_rows
from dboost.engine.base import Engine
from dboost.errors import DataError, UsageError, type_name
from dboost.estimators import predicting
from dboost.estimators.fitting import Prepared, check_labels, class_places, model_of
from dboost.estimators.params import count, loss_name, parameters
from dboost.estimators.predicting import MARGINS, Margins, kind_of
from dboost.estimators.rounds import ModelCallback, Record
from dboost.hypotheses.columns import ColumnSet
from dboost.losses import Loss, get_loss, loss_of_model, refuse_invalid
from dboost.model.fitted import Certificate, Model
from dboost.partition import NUMBERS, SEVERAL
from dboost.passes import Point
from dboost.passes.folds import Folds, Left
from dboost.passes.held_out import held_out_margins, held_out_rows, weight_facts

Agree = Callable[[Any, NDArray[Any]], tuple[Any, Any]]


def accuracy(estimator: Any, X: Any, y: Any, sample_weight: Any, agree: Agree) -> float:
    """Weighted share of correct labels; ``agree(y, predicted)`` gives those that are correct and those that count."""
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
    lazy = kind_of(X) in ("array", "frame")
    X, y, sample_weight = labels_and_weights(estimator, X, y, sample_weight, compute=not lazy)
    predicted = estimator.predict(X)
    if lazy:
        import dask

        predicted, y, sample_weight = dask.compute(predicted, y, sample_weight)
        predicted, y = np.asarray(predicted), labels_as_trained(y, _label_names(estimator))
    if count_rows(y) != len(predicted):
        raise DataError(
            f"Found input variables with inconsistent numbers of samples: X has {len(predicted)} rows, "
            f"y has {count_rows(y)}"
        )
    if not len(predicted):
        raise DataError("nothing to score: X has no rows")
    return predicted, y, check_weight(sample_weight, len(predicted))


def labels_and_weights(
    estimator: Any, X: Any, y: Any, sample_weight: Any, compute: bool = True
) -> tuple[Any, Any, Any]:
    """The rows without columns that are labels or weights, and labels and weights, of Dask computed or as they are.

    Several label columns that have the names of the model's come in its order once they are computed. Weights of data
    on disk are those of the column, or ones.
    """
    kind = kind_of(X)
    if kind == "parquet":
        if y is not None or sample_weight is not None:
            raise UsageError("y and sample_weight were given beside ParquetData", hint="it names its own columns")
        from dboost.data.parquet.plan import blocks_of

        names = _label_names(estimator)
        if names is not None and not isinstance(X.label, str | None):
            given, X = X.label, copy.copy(X)
            X.label = as_trained(given, names)
        raws = [block.read(features=False, label=True) for block in blocks_of(X, labels=True)]
        if not raws:
            raise DataError("no rows to score", file=str(X.path))
        y = np.concatenate([raw.label_array() for raw in raws])
        return X, y, np.concatenate([raw.weight_array() for raw in raws])
    X, y, sample_weight, _, _ = split_named(X, y, sample_weight)
    if y is None:
        raise UsageError("score needs y")
    if kind in ("array", "frame"):
        if not compute:
            return X, y, sample_weight
        import dask

        y, sample_weight = dask.compute(y, sample_weight)
    return X, labels_as_trained(y, _label_names(estimator)), sample_weight


def _label_names(estimator: Any) -> list[Any] | None:
    """Names of the label columns that an estimator learned; None where it learned one, or nothing yet."""
    model = getattr(estimator, "model_", None)
    if model is None or model.task not in SEVERAL or model.tags is not None:
        return None
    return list(model.classes.tolist())


@parameters
class ClassifyingMixin(ClassifierMixin):  # type: ignore[misc]
    """Probabilities, scores and accuracy of a ``BoostedEstimator`` with labels; not public."""

    _tasks: ClassVar[tuple[str, ...]] = ("binary", "multiclass")
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

    _tasks: ClassVar[tuple[str, ...]] = ("binary",)

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

    _tasks: ClassVar[tuple[str, ...]] = ("regression",)

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


# What sums over the held-out rows tell, so that no row of them has to come to the driver.
SUMS = ("loss", "error")
# Rows of each class that a scorer is tried on: enough for every metric that ranks, folds or pairs them.
_TRIED = 4


@dataclass(frozen=True)
class Scorer:
    """Says how good predictions are; greater is better."""

    # As in ``sklearn.metrics.get_scorer_names``, or what a callable is called.
    name: str
    # ``call(estimator, X, y)`` or, where rows have weights, ``call(estimator, X, y, sample_weight=weight)``.
    call: Callable[..., Any]

    @property
    def metric(self) -> Any:
        """The function of labels and predictions that a scorer of scikit-learn calls; None of another callable."""
        return getattr(self.call, "_score_func", None)

    @property
    def takes_weights(self) -> bool:
        """Whether it can be told the weights of the rows."""
        try:
            taken = inspect.signature(self.call if self.metric is None else self.metric).parameters.values()
        except (TypeError, ValueError):
            return False
        return any(one.name == "sample_weight" or one.kind is one.VAR_KEYWORD for one in taken)

    @property
    def ways(self) -> tuple[str, ...]:
        """The methods of an estimator of which a scorer of scikit-learn asks the first that there is."""
        ways = getattr(self.call, "_response_method", "predict")
        return (ways,) if isinstance(ways, str) else tuple(ways)

    def told_classes(self, estimator: Any, y: Any) -> Callable[..., Any]:
        """What is called: where it has a score for each class, told all of them, as rows may lack some."""
        classes = getattr(estimator, "classes_", None)
        if self.metric is None or classes is None or np.ndim(y) != 1 or "predict" in self.ways:
            return self.call
        told: Any = copy.copy(self.call)
        if "labels" in inspect.signature(self.metric).parameters:
            # those that whoever made the scorer named count before
            told._kwargs = {"labels": classes} | told._kwargs
        return cast(Callable[..., Any], told)

    def __call__(self, estimator: Any, X: Any, y: Any, weight: NDArray[np.float64] | None) -> float:
        """The score as a number."""
        call = self.told_classes(estimator, y)
        found = call(estimator, X, y) if weight is None else call(estimator, X, y, sample_weight=weight)
        value = np.asarray(found)
        if value.ndim or value.dtype.kind not in "fiub":
            raise TypeError(f"it gave {type(found).__name__} {found!r}, expected one number")
        return float(value)


def scorer_names() -> tuple[str, ...]:
    """The names that scikit-learn has for scorers."""
    from sklearn.metrics import get_scorer_names

    return tuple(get_scorer_names())


def scorer_of(scoring: Any) -> Scorer | None:
    """What a parameter `scoring` asks for; None for what sums over the rows tell: None, "loss" and "error"."""
    if scoring is None or (isinstance(scoring, str) and scoring in SUMS):
        return None
    if isinstance(scoring, str) and scoring in scorer_names():
        from sklearn.metrics import get_scorer

        return Scorer(scoring, get_scorer(scoring))
    if isinstance(scoring, str) or not callable(scoring) or isinstance(scoring, type):
        raise UsageError(
            f"scoring={scoring!r}",
            hint=f"expected None, {', '.join(map(repr, SUMS))}, a callable(estimator, X, y), or one of scikit-learn's "
            f"scorers: {', '.join(scorer_names())}",
        )
    return Scorer(_called(scoring), scoring)


def check_scorer(scorer: Scorer, template: Any, parts: Prepared) -> None:
    """Refuse, before any fit, a scorer that cannot be asked about models of the unfitted `template`."""
    if scorer.metric is None:
        # nobody knows what a function does with rows, which cannot be made up for it
        return
    loss = loss_name(parts.settings.loss)
    if not any(hasattr(template, way) for way in scorer.ways):
        raise UsageError(
            f"scoring={scorer.name!r} needs {' or '.join(scorer.ways)}, which models of loss {loss!r} do not have",
            hint="use a scorer of predictions, or scoring='loss'",
        )
    if parts.plan.task == "multitask" and not {"predict", "decision_function"} & set(scorer.ways):
        # scikit-learn would take the probabilities of tasks for those of classes, which sum to one
        raise UsageError(
            f"scoring={scorer.name!r} needs probabilities of classes, and those of loss {loss!r} are one of each task",
            hint="use a scorer of predictions or scores, such as 'f1_macro' or 'roc_auc', or scoring='loss'",
        )
    model, y, F = _made_up(template, parts)
    try:
        _tried(scorer, template, model, y, F)
    except Exception as fault:
        kinds = {"regression": "numbers", "multitask": f"{len(model.classes)} tasks"}
        kind = kinds.get(parts.plan.task, f"{len(model.classes)} classes")
        raise UsageError(
            f"scoring={scorer.name!r} cannot judge {type_name(template)} of loss {loss!r} on {kind}: {fault}",
            hint="use another scorer, or sklearn.metrics.make_scorer with the arguments that it lacks",
        ) from fault


def needs_classes(scorer: Scorer, template: Any, parts: Prepared, present: Sequence[int]) -> bool:
    """Whether a scorer says nothing of rows of some of the classes, by number, as it needs the others too."""
    if scorer.metric is None:
        return False
    model, y, F = _made_up(template, parts)
    kept = np.isin(y, model.classes[list(present)])
    try:
        return not math.isfinite(_tried(scorer, template, model, y[kept], F[kept]))
    except Exception:
        return True


def _tried(scorer: Scorer, template: Any, model: Model, y: NDArray[Any], F: NDArray[np.float64]) -> float:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return scorer(clone(template)._adopt(model), Margins(F, model.n_features), y, None)


def check_rows(scorer: Scorer, weighted: bool, missing: bool) -> None:
    """Refuse a scorer that cannot be asked about rows of different weights, or about missing labels of tasks."""
    if weighted and not scorer.takes_weights:
        raise UsageError(
            f"scoring={scorer.name!r} takes no sample_weight, and the rows have weights",
            hint="leave the weights out, or use another scorer",
        )
    if missing and scorer.metric is not None:
        raise UsageError(
            f"scoring={scorer.name!r} needs every label, and some are missing",
            hint="use scoring='loss' or 'error', which skip them",
        )


def labels_of(y: NDArray[Any], task: str, classes: Any) -> NDArray[Any]:
    """Labels as a user gave them, from those of a partition; of tasks 0 and 1, or nan where some are missing."""
    if task in NUMBERS:
        return y
    if task == "multitask":
        return (y > 0).astype(np.int64) if np.all(y) else np.where(y == 0, np.nan, (y > 0).astype(np.float64))
    found: NDArray[Any] = classes[y if y.ndim == 1 else (y[:, 0] > 0).astype(np.int64)]
    return found


def _made_up(template: Any, parts: Prepared) -> tuple[Model, NDArray[Any], NDArray[np.float64]]:
    """A model without features, and labels and scores of rows that never were."""
    task, classes = parts.plan.task, parts.classes
    k = {"binary": 1, "regression": 1}.get(task, len(classes))
    rng = np.random.default_rng(0)
    count = _TRIED * max(len(classes), 2)
    F = rng.uniform(0.5, 1.5, size=(count, k))
    if task == "regression":
        y: NDArray[Any] = rng.uniform(0.5, 1.5, size=count)
        if get_loss(parts.settings.loss).invalid(-np.ones(1)) >= 0:
            # a loss of counts
            y = np.round(1.0 + y)
    elif task == "multitarget":
        # what every loss of one target takes: counts that are 0 and 1
        y = np.tile(np.array([[0.0], [1.0]]), (count // 2, k))
    elif task == "multitask":
        F -= 1.0
        y = np.tile(np.array([[0], [1]]), (count // 2, k))
    else:
        F -= 1.0
        y = np.tile(classes, count // len(classes))
    model = Model(
        task=task,
        loss=str(loss_name(parts.settings.loss)),
        penalty="none",
        hypotheses=ColumnSet(np.zeros(0, np.int64)),
        W=np.zeros((0, k)),
        intercept=np.zeros(k),
        classes=classes,
        n_features=parts.plan.n_features,
        certificate=Certificate(math.nan, math.nan, math.nan, "trial", 0.0, 0.0, 0, 0),
    )
    return model, y, F


def _called(scoring: Any) -> str:
    """The name of a callable, the same in every process."""
    if hasattr(scoring, "_score_func"):
        return repr(scoring)
    name = getattr(scoring, "__qualname__", None) or type(scoring).__qualname__
    return f"{getattr(scoring, '__module__', type(scoring).__module__)}.{name}"


class EarlyStopping(ModelCallback):
    """A callback that ends a fit once `rounds` rounds in a row have not raised a score.

    The fitted estimator has the model of the round after which it ended, and `stop_reason_` "callback"; the best one is
    in `best_estimator_`. Where a penalty is weak (ShareBoost, AdaBoost+L1, leveraging), the number of rounds is what
    keeps a model simple. The optimum of a penalised fit does not depend on how many rounds lead to it, so that its
    strength is chosen instead, by a cross-validation.

    Parameters
    ----------
    X, y, sample_weight : as for ``fit`` and ``score`` of the estimator
        Rows that the fit does not see; ``ParquetData`` names its own labels and weights.
    scoring : str or callable, optional
        A scorer of scikit-learn, by name or as a callable ``scoring(estimator, X, y)``; greater is better. Of
        collections of Dask and of data on disk it is given rows of which nothing but their scores is known, so it has
        to ask for predictions. By default the estimator's own ``score``: the share of correct labels, or R^2.
    rounds : int, default 10
        Rounds without a better score after which the fit ends.
    gain : float, default 0
        By how much a score must be above the best one to count as better.

    Attributes
    ----------
    best_estimator_ : estimator
        Fitted, that of the best score; of several the first. It has no client, callbacks and checkpoint.
    best_score_ : float
    best_round_ : int
    scores_ : list of float
        After each round of the last fit.

    Notes
    -----
    A fit that goes on from a checkpoint begins to count anew: the scores before it are not kept in the checkpoint.

    Examples
    --------
    >>> import numpy as np
    >>> from dboost import AdaBoostL1Classifier, EarlyStopping
    >>> X = np.random.default_rng(0).normal(size=(200, 5))
    >>> y = X[:, 0] + 0.5 * X[:, 1] > 0
    >>> stop = EarlyStopping(X[150:], y[150:], scoring="neg_log_loss", rounds=3)
    >>> model = AdaBoostL1Classifier(callbacks=[stop]).fit(X[:150], y[:150])
    >>> stop.best_round_ <= model.n_iter_
    True
    """

    def __init__(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, scoring: Any = None, rounds: int = 10,
        gain: float = 0.0,
    ) -> None:  # fmt: skip
        count("rounds", rounds)
        if not isinstance(gain, int | float | np.number) or not 0.0 <= gain < math.inf:
            raise UsageError(f"gain={gain!r}", hint="expected a finite number >= 0")
        scorer = Scorer("score", _own_score) if scoring is None else scorer_of(scoring)
        if scorer is None:
            raise UsageError(
                f"scoring={scoring!r} is one of cross-validations",
                hint="use a scorer of scikit-learn, such as 'neg_log_loss' or 'accuracy'",
            )
        self._scorer = scorer
        self._rows, self._given = X, (y, sample_weight)
        self._kind = kind_of(X)
        self.rounds, self.gain = rounds, gain
        self.begin()

    def begin(self) -> None:
        """Forget the scores of an earlier fit."""
        self.scores_: list[float] = []
        self.best_score_, self.best_round_ = -math.inf, 0
        self.best_estimator_: Any = None
        self._known: Any = None

    def after_round(self, record: Record, estimator: Any) -> bool:
        """Score the model of a round.

        `record`: Of the round. `estimator`: As if the fit had ended here. Returns: Whether the fit is to end.
        """
        where = f"scoring={self._scorer.name!r} of EarlyStopping after round {record['round']}"
        try:
            score = self._score(estimator)
        except Exception as fault:
            raise DataError(f"{where} failed: {fault}") from fault
        if not math.isfinite(score):
            raise DataError(f"{where} is {score}, expected a finite number")
        self.scores_.append(score)
        if self.best_estimator_ is None or score > self.best_score_ + self.gain:
            self.best_score_, self.best_round_, self.best_estimator_ = score, record["round"], estimator
        return bool(record["round"] - self.best_round_ >= self.rounds)

    def _score(self, estimator: Any) -> float:
        if self._known is None:
            X, y, weight = labels_and_weights(estimator, self._rows, *self._given)
            weight = None if weight is None else check_weight(weight, count_rows(y))
            # a scorer that knows of no weights can be asked about rows that all weigh the same
            self._known = X, y, None if weight is None or np.all(weight == weight[0]) else weight
        X, y, weight = self._known
        if self._kind in ("array", "frame", "parquet"):
            F = np.asarray(estimator._predict(X, MARGINS), dtype=np.float64)
            X = Margins(F, estimator.n_features_in_)
        return self._scorer(estimator, X, y, weight)


def _own_score(estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    return float(estimator.score(X, y, sample_weight))


Array = NDArray[np.float64]

# Bytes of the scores of the held-out rows, and of the models, that come and go in one pass.
MARGIN_BYTES = 64_000_000
MODEL_BYTES = 4_000_000
_HINT = "use another scoring="


class HeldOut:
    """Asks a scorer about the rows of each fold of the input X, by copies of an unfitted `template` of one strength."""

    def __init__(self, scorer: Scorer, template: Any, parts: Prepared, X: Any) -> None:
        self._scorer, self._template, self._parts = scorer, template, parts
        coder = parts.plan.coder
        self._given = coder.factors, coder.exponent
        self._weighted = False
        check_scorer(scorer, template, parts)
        self._kind = kind_of(X)
        self._X: Any = None
        if self._kind in ("matrix", "table"):
            self._X = X.tocsr() if hasattr(X, "tocsr") else X if self._kind == "table" else np.asarray(X)
            weight = check_weight(parts.weight, len(X) if not hasattr(X, "shape") else X.shape[0])
            # the plan has left out the rows of weight zero
            self._places = np.flatnonzero(weight > 0.0)
        self._turn = threading.Lock()

    def begin(self, engine: Engine, folds: Folds, masses: dict[str, Any]) -> None:
        """Look at the weights and labels of all rows, and the classes of each fold; refuse what has no score."""
        facts = engine.map_reduce(weight_facts, *self._given, name="weights").peak
        self._weighted = bool(facts["weights"][0] > 0.0)
        check_rows(self._scorer, self._weighted, bool(facts["missing"][0] > 0.0))
        lacking = np.argwhere((masses["mass"] <= 0.0) & (masses["rows"][:, None] > 0.0)) if "mass" in masses else ()
        for number in dict.fromkeys(int(fold) for fold, _ in lacking):
            self._check_classes(number, folds, masses["mass"])

    def _check_classes(self, number: int, folds: Folds, mass: Array) -> None:
        """Refuse a fold that lacks classes, where the scorer needs all of them."""
        places = class_places(self._parts)
        present = np.flatnonzero(mass[number] > 0.0)
        if not needs_classes(self._scorer, self._template, self._parts, places[present].tolist()):
            return
        plan = self._parts.plan
        assert plan.classes is not None and plan.class_counts is not None
        label = plan.classes.tolist()[np.flatnonzero(mass[number] <= 0.0)[0]]
        fewest = min(plan.class_counts)
        hint = "give folds that spread each class"
        if folds.given is None:
            hint = f"use cv={fewest} or fewer, as the rarest class has {fewest} rows"
        if fewest < 2:
            hint = "leave out the classes of fewer than two rows"
        raise DataError(
            f"scoring={self._scorer.name!r} needs each class in each fold, and fold {number} of {folds.count} has no "
            f"row of class {label!r}",
            hint=f"{hint}, or another scoring=, such as 'loss' or 'neg_log_loss'",
        )

    def __call__(self, engine: Engine, fitting: Fitting, left: Left, results: Sequence[FitResult]) -> Array:
        """The score of each result on the held-out rows, float64 (T,); a DataError where one fails or is not finite."""
        with self._turn:
            plan = self._parts.plan
            found = engine.map_reduce(held_out_rows, left, *self._given, name="held-out").parts
            y = labels_of(np.concatenate(found["y"]), plan.task, plan.classes)
            weight = np.concatenate(found["weight"]) if self._weighted else None
            # a fit without a fold may have fewer classes; its plan is this one of these
            fitted = cast(Plan, fitting.plan)
            # scikit-learn's measures of several labels take -1 for a label, as all that is not zero
            fitted = replace(fitted, coder=replace(fitted.coder, negative=0))
            parts = replace(self._parts, plan=fitted, settings=fitting.settings)
            models = [model_of(self._template, parts, result) for result in results]
            if self._X is not None:
                starts = np.cumsum([0, *plan.rows[:-1]])
                rows = [mine + start for mine, start in zip(found["rows"], starts.tolist(), strict=True)]
                X = _taken(self._X, self._places[np.concatenate(rows)])
                seen: Iterator[Any] = iter([X] * len(models))
            else:
                points = [_point(fitting, parts, *pair) for pair in zip(results, models, strict=True)]
                seen = self._margins(engine, left, points, len(y))
            return np.array([self._one(model, X, y, weight, left) for model, X in zip(models, seen, strict=True)])

    def _one(self, model: Any, X: Any, y: NDArray[Any], weight: Array | None, left: Left) -> float:
        estimator = clone(self._template)._adopt(model)
        if self._kind == "matrix":
            # rows without names are those of the fit, whose names may have been given beside it
            estimator.__dict__.pop("feature_names_in_", None)
        where = f"scoring={self._scorer.name!r} on fold {left.number} at alpha={model.certificate.alpha:.6g}"
        try:
            found = self._scorer(estimator, X, y, weight)
        except Exception as fault:
            raise DataError(f"{where} failed: {fault}", hint=_HINT) from fault
        if not math.isfinite(found):
            raise DataError(f"{where} is {found}, expected a finite number", hint=_HINT)
        return found

    def _margins(self, engine: Engine, left: Left, points: Sequence[Point], rows: int) -> Iterator[Margins]:
        """The held-out rows under each model, known by their scores; a few models in each pass."""
        start = 0
        while start < len(points):
            stop, margins, models = start, 0, 0
            while stop < len(points):
                margins += 8 * rows * points[stop].W.shape[1]
                models += points[stop].W.nbytes
                if stop > start and (margins > MARGIN_BYTES or models > MODEL_BYTES):
                    break
                stop += 1
            asked = tuple(points[start:stop])
            found = engine.map_reduce(held_out_margins, left, asked, name="margins").parts["margins"]
            for F in np.concatenate(found, axis=1):
                yield Margins(F, self._parts.plan.n_features)
            start = stop


def _point(fitting: Fitting, parts: Prepared, result: FitResult, model: Any) -> Point:
    """Where the scores of a model are computed: with all its outputs, of classes without rows outside the fold too."""
    point = fitting.point_of(result)
    if parts.plan.task != "multiclass":
        return point
    W = np.zeros((len(point.W), len(parts.classes)))
    W[:, class_places(parts)] = point.W
    return replace(point, W=W, intercept=model.intercept)


def _taken(X: Any, rows: NDArray[np.int64]) -> Any:
    """Some rows of a matrix or a table."""
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    if hasattr(X, "take") and hasattr(X, "column_names"):
        return X.take(rows)
    return X[rows]
