"""``MultiTaskBoostedClassifier``: several binary labels per example, some of them missing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dboost.data.labels.labels import check_weight
from dboost.data.labels.tags import TAGS, are_tags, tag_signs
from dboost.data.labels.targets import task_labels
from dboost.errors import DataError, UsageError
from dboost.estimators import predicting
from dboost.estimators.base import BoostedEstimator
from dboost.estimators.params import FitParameters, ObjectiveParameters, parameters
from dboost.estimators.scoring import ClassifyingMixin, accuracy, labels_and_weights
from dboost.metrics import Evaluation, margin_norm, partial, summarise
from dboost.model.thresholds import best_f1, least_with_precision


@parameters
class MultiTaskBoostedClassifier(ClassifyingMixin, FitParameters, ObjectiveParameters, BoostedEstimator):
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

    Y may also be one list of tags (texts) for each example: every tag is a task, `classes` names those that are
    learned where these are not all (``dboost.frequent_tags``), and predictions are lists of tags. Which are named is a
    matter of thresholds on their probabilities, one half each unless ``choose_thresholds`` chose others.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0], [3.0, 0.0]])
    >>> Y = np.array([[0, 1], [0, 1], [1, 0], [1, np.nan]])
    >>> MultiTaskBoostedClassifier(alpha=0.1).fit(X, Y).predict(X).tolist()
    [[0, 1], [0, 1], [1, 0], [1, 0]]
    >>> tags = [["sky"], ["sky"], ["sea", "sand"], ["sea", "sand"]]
    >>> MultiTaskBoostedClassifier(alpha=0.1).fit(X, tags).predict(X).tolist()
    [['sky'], ['sky'], ['sand', 'sea'], ['sand', 'sea']]
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
        if getattr(self, "model_", None) is not None and self.model_.tags is not None:
            return 1.0 - self.judge(X, y, sample_weight).error
        return accuracy(self, X, y, sample_weight, _agree)

    def judge(self, X: Any, y: Any = None, sample_weight: Any = None) -> Evaluation:
        """All measures of rows: micro and macro F1, precision among the best, coverage, and those of each task.

        Parameters
        ----------
        X, y, sample_weight
            As for ``score``.

        Returns
        -------
        dboost.metrics.Evaluation
        """
        F, signs, weight = self._judged(X, y, sample_weight)
        chosen = None if self.model_.tags is None else self.model_.chosen_tags(F)
        return summarise(partial(F, signs, weight, chosen), margin_norm(self.model_.W))

    def choose_thresholds(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        by: str = "f1",
        at_least: float | None = None,
        top: int | None = None,
        fewest: int = 0,
    ) -> Any:
        """Choose from which probability on each tag is named, on rows that were held out; it is saved with the model.

        Parameters
        ----------
        X, y, sample_weight
            As for ``score``; lists of tags.
        by : {"f1", "precision", "half"}, default "f1"
            The threshold of each tag with the best F1 on these rows; the least one from which on the share `at_least`
            of those that are named is true; or one half.
        at_least : float, optional
            With ``by="precision"``.
        top : int, optional
            Name so many tags at most, the most probable ones.
        fewest : int, default 0
            Name so many tags at least. With `top` the same, each row has so many tags.

        Returns
        -------
        self
            A tag that no row here has keeps one half.

        Raises
        ------
        UsageError
            The model is not one of lists of tags, or a parameter has no meaning.
        """
        if by not in ("f1", "precision", "half") or (by == "precision") != (at_least is not None):
            raise UsageError(f"by={by!r}, at_least={at_least!r}", hint="use 'f1', 'half', or 'precision' and a share")
        if at_least is not None and not 0.0 < at_least <= 1.0:
            raise UsageError(f"at_least={at_least!r}", hint="give a share above 0, at most 1")
        for name, value, low in (("top", top, 1), ("fewest", fewest, 0)):
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < low):
                raise UsageError(f"{name}={value!r}", hint=f"give a whole number of at least {low}")
        F, signs, weight = self._judged(X, y, sample_weight)
        model = self._fitted_attribute("thresholds_")
        if model.tags is None:
            raise UsageError(
                "the model was fitted on columns of labels, not on lists of tags", hint="give lists to fit"
            )
        rule: dict[str, Any] = {} if top is None else {"top": top}
        rule |= {"fewest": fewest} if fewest else {}
        if by != "half":
            P = model.probabilities(F)
            kept = weight > 0
            choose = best_f1 if at_least is None else least_with_precision(at_least)
            rule["thresholds"] = [choose(P[kept, r], signs[kept, r] > 0, weight[kept]) for r in range(P.shape[1])]
        about = model.manifest
        return self._adopt(replace(model, manifest={**about, "data": {**about["data"], TAGS: rule}}))

    @property
    def thresholds_(self) -> Any:
        """From which probability on each tag is named, shape (k,)."""
        rule = self._fitted_attribute("thresholds_").tags
        if rule is None:
            raise AttributeError("thresholds_ is there after a fit on lists of tags")
        return np.array(rule.get("thresholds", [0.5] * len(self.classes_)))

    def _judged(self, X: Any, y: Any, sample_weight: Any) -> Any:
        """Scores, signs and weights of rows, in memory."""
        rows, labels, weight = labels_and_weights(X, y, sample_weight)
        F = self._predict(rows, predicting.MARGINS)
        F = np.asarray(F.compute() if hasattr(F, "__dask_graph__") else F, dtype=np.float64)
        signs = tag_signs(labels, self.classes_.tolist()) if are_tags(labels) else task_labels(labels)
        if signs.shape != F.shape:
            raise DataError(f"labels of shape {signs.shape} for predictions of shape {F.shape}")
        return F, signs, check_weight(weight, len(F))

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
