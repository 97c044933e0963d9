"""Scorers of scikit-learn, by name or as callables, and what is refused of them before any fit.

Covers: ``Scorer``, its name, and the trial on made-up rows that tells whether it can be asked of an estimator.
Does not cover: the held-out rows that it is asked about (``held_out``), or which strength that chooses
(``cross_validated``).
"""

from __future__ import annotations

import copy
import inspect
import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from dboost.errors import UsageError
from dboost.estimators.fitting import Prepared
from dboost.estimators.params import loss_name
from dboost.estimators.predicting import Margins
from dboost.hypotheses.columns import ColumnSet
from dboost.losses import get_loss
from dboost.model.fitted import Certificate, Model
from dboost.partition import NUMBERS

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
    """Refuse, before any fit, a scorer that cannot be asked about the models of an estimator.

    `template`: Unfitted, of one strength.
    """
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
            f"scoring={scorer.name!r} cannot judge a {type(template).__name__} of loss {loss!r} on {kind}: {fault}",
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
    """Refuse a scorer that cannot be asked about such rows.

    `weighted`: Whether rows have weights other than one. `missing`: Whether labels of tasks are missing.
    """
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
