"""``ShareBoostClassifier``: few features, each shared by the classes, and the whole path from one run."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Self

import numpy as np

from dboost.boosting.checks import check_settings
from dboost.boosting.fit import FitSettings
from dboost.boosting.shareboost import ShareBoost
from dboost.boosting.systems import last_of_size
from dboost.errors import UsageError
from dboost.estimators import predicting
from dboost.estimators.base import BoostedEstimator
from dboost.estimators.history import Table
from dboost.estimators.params import FitParameters, flag, limit_of, parameters, resolve_seed, shared_settings
from dboost.estimators.scoring import ClassifyingMixin
from dboost.losses import Loss
from dboost.model.fitted import Model
from dboost.penalties import get_penalty

# Small enough to change no prediction, and enough for finite weights where the features separate the classes.
RIDGE = 1e-6


@parameters
class ShareBoostClassifier(ClassifyingMixin, FitParameters, BoostedEstimator):
    """Linear classifier that adds one feature, or group of features, at a time and then solves all weights again.

    ShareBoost (Shalev-Shwartz, Wexler & Shashua 2011): forward greedy selection for the mean loss
    ``log sum_r exp(f_r + 1[r != y]) - f_y`` plus ``alpha sum_j omega(W_j)`` over the features held, f = W'x + b. One
    run gives the whole curve of accuracy against features: `path_`, `staged_predict`.

    Parameters
    ----------
    max_rounds : int, default 100
        Features, or groups of them, to add.
    max_passes : int, optional
    max_seconds : float, optional
        As in ``BoostedClassifier``; with `keep`, what they end is the way back too.
    loss : {"margin_softmax", "multinomial", "log"}, default "margin_softmax"
        ``"margin_softmax"`` is the paper's; the margin belongs to training, and predictions are the softmax and the
        largest of f. ``"log"`` is for two classes, with one score.
    rule : {"scaled", "norm", "newton", "line", "row", "full"}, default "scaled"
        Which candidate enters. ``"norm"``: the one with the largest l1 norm of its row of the gradient, as printed in
        the paper, for features of one scale. ``"scaled"``: that norm over the deviation of the column (without an
        intercept, its root mean square), which is what the loss is sure to fall by. The others take the
        `shortlist` best of ``"scaled"``. ``"newton"`` asks how much the second-order model of the loss falls over the
        weights of the candidate; of groups it is the rule to take, since it knows which of their columns say the same.
        ``"line"``, ``"row"`` and ``"full"`` measure the fall of the loss: along the row of the gradient, over all
        weights of the candidate, or over all weights of the model.
    shortlist : int or None, default 10
        With None the costlier rules measure every candidate, and take the one that makes the objective fall most, as
        the paper defines them (section 3.1). Under ``"full"`` a round then fits one model for every feature, under
        ``"line"`` and ``"row"`` it tries every one of them; classes of hypotheses that cannot be listed, or of more
        than ten million, are refused.
    groups : array-like of int, shape (n,), optional
        Number of the group of each raw column. The columns of a group enter together. Families of hypotheses bring
        their own groups.
    penalty : {"l2_squared", "smooth_l1", "smooth_l1/linf", "none"} or penalty object, default "l2_squared"
        On the features held: ``"l2_squared"`` is half the sum of squares, the others are the rounded norms of the paper
        (section 3.3).
    alpha : float or "auto", default "auto"
        Strength of the penalty on the mean loss; ``"auto"`` is 1e-6: without any, weights have no optimum on data that
        the features separate.
    hypotheses : Family, optional
        What is chosen from: by default the raw columns; ``dboost.Products(max_degree=2)`` and the others. Of a class
        without end, such as ``dboost.Products()``, the candidates of a round are those next to the model, and of stumps
        in bins (more than their `max_listed`) those at the ends of the bins; both need ``standardize=False``.
    tol : float, default 1e-3
        A re-optimisation ends with a gradient of at most `tol` times that of the feature that entered, of a group the
        mean over its features.
    max_features : int, optional
        The fit ends once so many features are held.
    bound : float, optional
        Constant C of the generalisation bound (Theorem 1; the paper leaves it open): error in training plus
        ``C sqrt((T k log(T k) log k + T log d + log(1/0.05)) / m)``. With it the fit ends when the bound has not fallen
        for ten rounds, and the model is that of its lowest value.
    keep : int, optional
        Take features out again. After the last round the feature, or group, that the loss misses least leaves, all
        other weights are solved again, and so on down to one; the fit ends with the model of at most `keep` features.
        Chosen beside more features than are kept, these have a lower loss than as many that only entered: with
        ``max_rounds=150, keep=75``, say. `path_` and the ``staged_`` methods are then those of the way back, and
        `stop_reason_` is "kept". A checkpoint of a fit on its way back grows no more.
    corrective : {"newton", "nesterov"}, default "newton"
        What solves all weights again after a feature entered or left: ``"newton"`` is Newton's method with conjugate
        gradients, ``"nesterov"`` the accelerated gradient method that the paper used (section 2.1). Both end at the
        same minimum, to the same gradient; ``"nesterov"`` takes at most 5000 steps and needs many more passes, and what
        it left is in `history_` as "gradient".
    fit_intercept : bool, default True
        The paper has none; it is not penalised and counts as no feature.
    standardize : bool or None, default None
        Penalise each feature by its deviation, as if columns had been scaled. None means so under ``"l2_squared"``; the
        rounded norms do not follow a scale.
    class_weight : "balanced" or dict of label to weight, optional
    classes : sequence, optional
        All labels there may be, where the data does not hold every one.
    random_state : int, RandomState or None, default 0
        For what a family of hypotheses draws.
    checkpoint : path, optional
        As in ``BoostedClassifier``.
    callbacks : list, optional
        As in ``BoostedClassifier``.
    client : distributed.Client, optional
        As in ``BoostedClassifier``.
    max_active_rows : optional
        The former name of `max_features`, for one version; it warns (FutureWarning).

    Attributes
    ----------
    path_ : Table
        One record per round, or per model of the way back, fewest features first: ``round``, ``features`` held,
        ``entered`` (names), ``objective``, ``loss``, ``error`` (share of the training examples classified wrongly) and
        ``bound``.
    coef_, intercept_, classes_, n_features_in_, feature_names_in_, active_features_, history_, objective_, alpha_,
    stop_reason_, n_iter_, model_
        As in ``BoostedClassifier``. There is no certificate: `duality_gap_` is nan.

    Notes
    -----
    A feature that entered stays until the way back, if there is one. Ties go to the column that comes first.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ShareBoostClassifier(max_rounds=2).fit(X, y)
    >>> model.path_.column("features").tolist(), [len(labels) for labels in model.staged_predict(X)]
    ([1, 2], [150, 150])
    """

    _tasks = ("binary", "multiclass")
    _task = "classification"
    loss: str = "margin_softmax"
    rule: str = "scaled"
    shortlist: int | None = 10
    groups: Any = None
    penalty: Any = "l2_squared"
    alpha: float | str = "auto"
    hypotheses: Any = None
    max_rounds: int = 100
    tol: float = 1e-3
    max_features: int | None = None
    bound: float | None = None
    keep: int | None = None
    corrective: str = "newton"
    fit_intercept: bool = True
    standardize: Any = None
    random_state: Any = 0
    max_active_rows: int | None = None  # The former name of `max_features`, kept for one version.

    @classmethod
    def _minimises(cls, loss: Loss) -> bool:
        """Losses of classes with a largest curvature, which the choice of features is by."""
        return super()._minimises(loss) and math.isfinite(loss.kappa)

    def _settings(self) -> FitSettings:
        """The parameters, checked together, as settings of the core fit."""
        if self.loss is None:
            raise UsageError("loss=None", hint=f"expected one of {', '.join(map(repr, self._losses()))}")
        shared = shared_settings(self)
        alpha, penalty = self.alpha, get_penalty(self.penalty)
        if isinstance(alpha, str) and alpha == "auto" and not penalty.weightless:
            alpha = RIDGE
        asked = self.standardize
        scaled = penalty.degree > 0 and not penalty.weightless if asked is None else flag("standardize", asked)
        settings = FitSettings(
            **shared,
            penalty=self.penalty,
            alpha=alpha,
            max_features=limit_of(self, "max_features"),
            fit_intercept=flag("fit_intercept", self.fit_intercept),
            standardize=scaled,
            random_state=resolve_seed(self.random_state),
            system=ShareBoost(self.rule, self.shortlist, _groups(self.groups), self.bound, self.keep, self.corrective),
        )
        check_settings(settings)
        return settings

    def _adopt(self, model: Model) -> Self:
        super()._adopt(model)
        self.path_ = path_of(model)
        return self

    # ---- prediction ------------------------------------------------------------------------------------------------

    def staged_predict(self, X: Any) -> Iterator[Any]:
        """Labels by the model of each round, in order.

        Parameters
        ----------
        X : as for `fit`
            In memory the features are computed once. Dask and Parquet input is read again for every round.

        Yields
        ------
        As `predict`
            What a fit with ``max_rounds`` 1, 2, ... predicts.
        """
        return self._staged(X, predicting.LABELS)

    def staged_predict_proba(self, X: Any) -> Iterator[Any]:
        """Probabilities by the model of each round; input and output as for `staged_predict`."""
        return self._staged(X, predicting.PROBABILITIES)

    def staged_decision_function(self, X: Any) -> Iterator[Any]:
        """Scores by the model of each round; input and output as for `staged_predict`."""
        return self._staged(X, predicting.SCORES)

    def _staged(self, X: Any, what: str) -> Iterator[Any]:
        kind, X = self._readable(X)
        return predicting.staged(self.model_, X, kind, what)


def _groups(groups: Any) -> tuple[int, ...] | None:
    if groups is None:
        return None
    found = np.asarray(groups)
    if found.ndim != 1 or found.dtype.kind not in "iu":
        raise UsageError(
            f"groups is an array of {found.dtype} and shape {found.shape}", hint="expected an integer for each column"
        )
    return tuple(found.tolist())


def path_of(model: Model) -> Table:
    """One record per model of the path, fewest features first."""
    stages = model.stages
    if stages is None:
        return Table()
    words, before, records = model.hypotheses.words(), 0, []
    of_size = last_of_size(model.history)
    for count in stages.counts.tolist():
        record = of_size[count]
        entered = [words[j] for j in stages.order[before:count].tolist()]
        keep = {name: record.get(name, math.nan) for name in ("objective", "loss", "error", "bound")}
        records.append({"round": record["round"], "features": count, "entered": ", ".join(entered)} | keep)
        before = count
    return Table(records)
