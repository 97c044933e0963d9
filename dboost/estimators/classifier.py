"""Classifiers: of two or more classes, and of several tasks at once.

Covers: their parameters, thresholds and tags of tasks. Does not cover: their fits (``base``).
"""

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
from dboost.hypotheses.base import is_whole
from dboost.metrics import Evaluation, margin_norm, partial, summarise
from dboost.model.tasks import best_f1, least_with_precision


@parameters
class BoostedClassifier(ClassifyingMixin, FitParameters, ObjectiveParameters, BoostedEstimator):
    """Linear classifier with few features, each shared by the classes, fitted to a certified optimum.

    Minimises ``sum_i s_i loss(y_i, W'x_i + b) / sum_i s_i + alpha sum_j omega(W_j)``, W_j being the weights of feature
    j for all classes (Duchi & Singer 2009). The intercept b is not penalised.

    The first seven parameters, up to `hypotheses`, are what most need. Then come what is said of single columns and
    labels (to `classes`), limits (`max_rounds` and the next three), how the optimum is reached (to `random_state`), and
    where a fit begins, runs and what it leaves (from `warm_start`).

    Parameters
    ----------
    loss : {"log", "exp", "multinomial", "margin_softmax"} or loss object, optional
        By default ``"log"`` for two classes (one score) and ``"multinomial"`` for more. ``"exp"`` is AdaBoost's
        exponential loss for two classes, whose score f means the probability ``1 / (1 + exp(-2f))``.
        ``"margin_softmax"`` is ``"multinomial"`` with a head start of one for every wrong class in training
        (Shalev-Shwartz, Wexler & Shashua 2011), an upper bound on the number of mistakes.
    penalty : {"l1", "l1/l2", "l1/linf", "l1/l2+l1", "l2", "l2_squared", "smooth_l1", "none"} or penalty object
        What ties the weights of a feature together; by default ``"l1/linf"``. ``"l1/l2+l1"`` weighs both parts
        equally; another mix is ``dboost.penalties.SparseGroup(l1_ratio)``. The last four put no single feature to
        zero: ``"l2"`` is the Euclidean norm of all weights, ``"l2_squared"`` half its square (ridge), ``"smooth_l1"``
        the rounded l1 norm of Dekel et al. (2005), less its value at zero, or
        ``dboost.penalties.SmoothL1(sharpness)``. Under ``"smooth_l1"`` and ``"none"`` a fit stops by its gradient,
        without a certificate. ``"smooth_l1/linf"`` rounds the largest entry of a row in the same way, for
        ``update="newton"``.
    alpha : float or "auto", default "auto"
        Strength of the penalty on the mean loss; glmnet's lambda, and ``1 / (C * sum_i s_i)`` in scikit-learn's terms.
        ``"auto"`` selects features and then refits them, both on strengths that are judged on rows which these fits do
        not see: a path of the penalty, and ridges of all columns, which rank those past its end. The selected features
        are fitted again with a ridge, to `tol`, since it is shrinking that costs accuracy. The model of the path itself
        is taken, without a refit, with `hypotheses`, `update`, `offset`, signs, `penalty_factors`, `column_groups`, or
        a penalty under which no single feature vanishes. `callbacks` are told of all fits, ``"fold"`` being what is
        held out, and limits hold for each. ``"quick"`` is one fit without held-out rows, at 0.05 times the smallest
        strength at which no feature is used, as are fits of fewer than ten rows; ``"l2_squared"`` and ``"smooth_l1"``
        have no such strength: there it is ``1 / sum_i s_i``, scikit-learn's ``C=1``.
    standardize : bool or "auto", default "auto"
        Penalise each feature by its standard deviation, as if columns had been scaled; weights are on the original
        scale and sparse data stays sparse. ``"auto"`` does so for tables (dense arrays, frames, Parquet tables), whose
        columns may be in any unit, and not for sparse rows, as text is; nor with `hypotheses`, or for a penalty of a
        norm and a ridge, which follows no scale. With False, a column in small units is all but left out by the
        penalty, and one in large units all but free; a warning says so where they differ much. A constant column has no
        deviation to be scaled by and is left out, with a warning where it was asked for.
    class_weight : "balanced" or dict of label to weight, optional
        Where labels are numbers, their texts name them too, as in JSON: ``{"1": 2.0}``.
    tol : float, default 1e-4
        Target of the certified relative duality gap.
    prefer : {"few", "accurate"}, optional
        With ``alpha="auto"``, which model is taken. By default that with the fewest features whose loss and share of
        wrong labels are within one standard error of the difference to those of the best that was seen; of sparse rows
        more than half of the features only where these are better by one standard error of the best. ``"few"`` allows
        the standard error of the best one, which is larger; ``"accurate"`` takes the best.
    max_features : int, optional
        At most so many features. With ``alpha="auto"`` as many, unless fewer are better; at a strength that is given
        the fit may end above `tol`.
    hypotheses : Family, optional
        What is weighed: by default the raw columns. ``dboost.Products(max_degree=2)``, ``dboost.Kernels()``,
        ``dboost.Stumps()`` and ``dboost.Columns()``, or several joined by ``|``, are families of columns that are
        computed from the raw ones where they are needed. A prediction reads raw rows, and only the columns of the
        hypotheses held.
    fit_intercept : bool, default True
    penalty_factors : array-like, shape (n,), or dict of str to float, optional
        What the strength of each feature is multiplied by, from 0 on; by the feature's name as a dict or a series that
        is indexed by names, 1 for those it does not name. A feature with a smaller factor enters earlier, one with
        ``inf`` never does, and one with 0 is in every model, without penalty, as the intercept is, unless `lower` or
        `upper` hold its weights at zero. They are taken as they are, where glmnet divides its `penalty.factor` by their
        mean. See ``dboost.adaptive_factors``.
    column_groups : array-like of int, shape (n,), or dict of str to list, optional
        Which features belong together, as the columns that a category was made into do: the label of the group of each
        feature, or the features of each group by name or place, where those in no list are groups of their own. All
        features of a group enter a model together, or not at all. With the penalty ``"l1/l2"`` a group of p features
        costs ``sqrt(p)`` times the Euclidean norm of all its weights, with ``"l1/linf"`` p times their largest size;
        `penalty_factors` multiply the weights within, and one of 0 takes a feature out. Groups of one feature each
        change nothing.
    positive : bool, default False
        Whether no weight is negative: ``lower=0`` for every feature. The intercept may have any sign.
    lower, upper : number, array-like of shape (n,), or dict of str to float, optional
        The sign that the weights of each feature may have: ``lower`` is 0 where none is negative and ``-inf``
        elsewhere, ``upper`` is 0 where none is positive and ``inf`` elsewhere; as a dict by the feature's name. For
        other bounds see ``LeveragingClassifier``. R's `lower.limits` and `upper.limits`.
    offset : str, int or sequence of these, optional
        Columns of X, by name or place, that are added to the scores as they are, one for each output: of two classes
        and the loss ``"log"`` one, of more one for each class in the order of ``classes_``. Such a column is no
        feature: it has the weight 1, in ``coef_`` too, and a prediction needs it as the fit does. R's `offset`,
        xgboost's `base_margin`.
    classes : sequence, optional
        All labels there may be, where the data does not hold every one.
    max_rounds : int, default 1000
    max_passes : int, optional
        The fit ends once it has made so many passes over the data, those before a resumed checkpoint included, with
        `stop_reason_` "max_passes". Only the certificate of its last model is made beyond them.
    max_seconds : float, optional
        The fit ends once its rounds have taken so long, counted anew when it is resumed, with `stop_reason_`
        "max_seconds". How far it then came depends on the machine.
    update : {"newton", "gradboost", "adaboost", "forward"}, default "newton"
        How the weights of the chosen features move: blocks of exact curvature, or the quadratic and exponential bounds
        of Duchi & Singer. These reach the same optimum; ``"newton"`` needs tens of passes over the data.
        ``"forward"`` is classical boosting, for ``penalty="none"``: a round moves the best single feature and nothing
        is re-optimised. It ends after `max_rounds`, or once no step gains more than ``0.1 * tol`` of the loss (set
        ``tol=0`` for all rounds). Of a class of hypotheses without end, such as ``dboost.Products()``, it looks at
        those next to the model.
    select : {"greedy", "cyclic", "random", "template", "template_uniform"}, default "greedy"
        The order in which ``"gradboost"`` and ``"adaboost"`` update features: one at a time, or all at once in a
        template, with the constant of each feature or one for all. ``penalty="l2"`` needs a template.
    sweeps : int, optional
        At most so many updates, or sweeps of them, of ``"gradboost"`` and ``"adaboost"`` between two scorings of all
        features. 1 is the loop of the paper's Figs. 2 and 3, which scores before every update. By default the chosen
        features are solved to a share of the gap first, in at most a thousand passes a round (fewer on large data).
    features_per_round : int, optional
        At most so many new features per round; chosen by the fit when missing.
    random_state : int, RandomState or None, default 0
    warm_start : bool, default False
        Start from the weights of the last fit. Classes and features must agree with it.
    checkpoint : path, optional
        A file that holds the state after each round or, where rounds are short, after some of them, so that writing it
        takes at most a twentieth of the time; the last state is written in any case. A later fit with the same data and
        settings goes on from it, with the bits of the undisturbed fit; other data or settings are refused. It stays
        after the fit.
    callbacks : list, optional
        Functions of a round's record, of which a true result ends the fit, and objects with the hooks of
        ``sklearn.callback`` (scikit-learn 1.9).
    client : distributed.Client, optional
        Runs the fit. By default the current client for Dask and Parquet input, and this process otherwise. It is
        dropped on pickling.
    rows_per_round, max_active_rows : optional
        Former names of `features_per_round` and `max_features`, for one version; they warn (FutureWarning).

    Attributes
    ----------
    coef_ : float64 array, shape (k or 1, n)
        Built on each access. With `hypotheses`, the weights of those held, shape (k or 1, number held), in the order
        of `active_features_`.
    intercept_ : float64 array, shape (k or 1,)
    classes_ : array, shape (number of classes,)
    n_features_in_ : int
    feature_names_in_ : object array, shape (n,)
        Where the data has names.
    active_features_ : list of str
        Names of the features or hypotheses used, in words, such as "price^2 * area".
    history_ : Table
        One record per round: objective, gap, rows in and out, seconds, bytes moved.
    duality_gap_, objective_, alpha_, alpha_max_ : float
    frontier_ : Table
        With ``alpha="auto"``: the models that were judged, by their number of features, each better than all with
        fewer: `features`, the held-out `score` (share of right labels, or of the loss explained) and its standard error
        `se_score`, `loss` and `se_loss`, the `alpha` of the path (0 past its end) and the `ridge`; `chosen` marks what
        was taken. All scores are of the rows that the search held out; of about 1,000 to 6,000 rows the choice among
        the last two or three models saw others too.
    relaxed_ : dict
        Of a refit: its `ridge`, `stop_reason`, `rounds` and `passes`, and the `selection_gap` that was certified for
        the fit that selected. ``objective_`` and ``duality_gap_`` are those of the refit, ``alpha_`` and
        ``alpha_max_`` those of the selection.
    stop_reason_ : str
        "tol" or "gradient" (done), "max_rounds", "max_passes", "max_seconds", "max_features", "max_opened" (the
        search of hypotheses had to end), "callback", "precision" (numbers are not exact enough to go on, or scores of
        data far from zero to show `tol`), or "stalled" (at the pace of its last rounds the fit would not reach `tol` in
        a million more).
    n_iter_ : int
        Rounds.
    induction_stop_ : int or None
        The round after which no feature entered any more; None when features still entered in the last round before
        the fit ended.
    model_ : dboost.model.fitted.Model
        What predicts, and what is saved.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = BoostedClassifier(penalty="l1/l2", alpha=0.05).fit(X, y)
    >>> bool(model.duality_gap_ <= 1e-4), model.coef_.shape
    (True, (3, 4))
    """


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
    called as the labels were, 0 and 1 or -1 and 1, shape (m, k); probabilities are those of the positive label, shape
    (m, k).

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
        by : {"f1", "micro_f1", "precision", "half"}, default "f1"
            The threshold of each tag with the best F1 on these rows, where ten rows of all tags together stand beside
            those of the tag, since the best one of a few rows is of no use for others; one threshold of all tags with
            the best micro F1; the least one of each tag from which on the share `at_least` of those that are named is
            true; or one half.
        at_least : float, optional
            With ``by="precision"``.
        top : int, optional
            Name so many tags at most, the most probable ones.
        fewest : int, default 0
            Name so many tags at least. With `top` the same, each row has so many tags.

        Returns
        -------
        self
            A tag that no row here has keeps one half, but by ``"micro_f1"``.

        Raises
        ------
        UsageError
            The model is not one of lists of tags, or a parameter has no meaning.
        """
        if by not in ("f1", "micro_f1", "precision", "half") or (by == "precision") != (at_least is not None):
            hint = "use 'f1', 'micro_f1', 'half', or 'precision' and a share"
            raise UsageError(f"by={by!r}, at_least={at_least!r}", hint=hint)
        if at_least is not None and not 0.0 < at_least <= 1.0:
            raise UsageError(f"at_least={at_least!r}", hint="give a share above 0, at most 1")
        for name, value, low in (("top", top, 1), ("fewest", fewest, 0)):
            if value is not None and not is_whole(value, low):
                raise UsageError(f"{name}={value!r}", hint=f"give a whole number of at least {low}")
        if top is not None and fewest > top:
            raise UsageError(f"fewest={fewest} is above top={top}", hint="give top= at least as many as fewest=")
        F, signs, weight = self._judged(X, y, sample_weight)
        model = self._fitted_attribute("thresholds_")
        if model.tags is None:
            raise UsageError(
                "the model was fitted on columns of labels, not on lists of tags", hint="give lists to fit"
            )
        rule: dict[str, Any] = {} if top is None else {"top": int(top)}
        rule |= {"fewest": int(fewest)} if fewest else {}
        if by != "half":
            kept = weight > 0
            P, true, weight = model.probabilities(F)[kept], signs[kept] > 0, weight[kept]
            if at_least is None:
                rule["thresholds"] = best_f1(P, true, weight, of_all=by == "micro_f1")
            else:
                choose = least_with_precision(at_least)
                rule["thresholds"] = [choose(P[:, r], true[:, r], weight) for r in range(P.shape[1])]
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
        rows, labels, weight = labels_and_weights(self, X, y, sample_weight)
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
