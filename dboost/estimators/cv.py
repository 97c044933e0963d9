"""Estimators whose strength is chosen by cross-validation along the path.

Does not cover: the choice (``cross_validated``), the fits (``dboost.boosting.cross_validation``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from dboost.errors import ClusterError, UsageError
from dboost.estimators.base import BoostedEstimator
from dboost.estimators.classifier import BoostedClassifier, MultiTaskBoostedClassifier
from dboost.estimators.cross_validated import (
    ChoiceParameters,
    CrossValidation,
    attributes,
    run_cross_validation,
    warn_of_ends,
)
from dboost.estimators.params import parameters
from dboost.estimators.path import RegularizationPath
from dboost.estimators.regressor import BoostedRegressor, MultiTaskBoostedRegressor
from dboost.files.documents import unplain
from dboost.former_names import renamed, warn_renamed
from dboost.model.fitted import Model
from dboost.penalties import get_penalty

_SAVED = "cross_validation"


@parameters
class ChosenByFoldsMixin(ChoiceParameters, BoostedEstimator):
    """A ``BoostedEstimator`` whose strength is chosen by cross-validation; not public."""

    # What has no meaning along a path.
    alpha: ClassVar[str] = "auto"
    prefer: ClassVar[None] = None  # type: ignore[misc]
    warm_start: ClassVar[bool] = False  # type: ignore[misc]
    _fits_several = True
    # The estimator of one strength, with the same parameters but those of the choice.
    _single: ClassVar[type[BoostedEstimator]]

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        feature_names: Sequence[str] | None = None,
        groups: Any = None,
    ) -> Self:
        """Cross-validate along the path and keep the model of the chosen strength.

        Parameters
        ----------
        X, y, sample_weight, feature_names
            As for the ``fit`` of the estimator of one strength.
        groups : array-like, shape (m,), or str, optional
            The file, author or thread that each row is of, or the name of a column of a table that says it and then is
            no feature: no fold parts the rows of a group. A splitter as `cv` is given them too.

        Returns
        -------
        self

        Raises
        ------
        UsageError, DataError
            Before any training.
        ClusterError, StorageError
            During it; with a checkpoint, the next call goes on from there.
        KeyboardInterrupt
            Where it is interrupted. After this and after a ClusterError `path_` holds the strengths that this call had
            fitted to all rows; none of them was chosen, and the other attributes are as before.

        Warns
        -----
        ConvergenceWarning
            With the gap reached, when the model or a fit without some fold ended above `tol`.
        DboostWarning
            When the best strength is an end of the grid, beyond which there may be a better one.
        """
        choice = CrossValidation.of(self)
        choice.check()
        penalty = get_penalty(self.penalty)
        if penalty.weightless:
            raise UsageError(f"penalty {penalty.name!r} has no strength to choose", hint="use another penalty")
        so_far: list[Model] = []
        try:
            given = (X, y, sample_weight, self._template(), so_far.append, feature_names, groups)
            found = run_cross_validation(self, choice, *given)
        except (KeyboardInterrupt, ClusterError) as error:
            if so_far:
                self.path_ = RegularizationPath(tuple(so_far), self._template())
                error.add_note(f"path_ of the estimator keeps the {len(so_far)} strengths that were fitted to all rows")
            raise
        model = found.model
        self._adopt(replace(model, manifest={**model.manifest, _SAVED: found.record}))
        self.path_ = RegularizationPath(found.models, self._template())
        warn_of_ends(self, choice)
        return self

    def _adopt(self, model: Model) -> Self:
        super()._adopt(model)
        record = renamed(unplain(model.manifest[_SAVED]))
        record["table"] = [renamed(row) for row in record["table"]]
        for name, value in attributes(record).items():
            setattr(self, name, value)
        return self

    @property
    def fold_active_rows_(self) -> NDArray[np.int64]:
        """Former name of `fold_n_features_`, kept for one version."""
        warn_renamed("fold_active_rows_", "fold_n_features_")
        found: NDArray[np.int64] = self.fold_n_features_
        return found

    def _template(self) -> BoostedEstimator:
        """An unfitted estimator of one strength with the parameters that both have."""
        known = self._single().get_params(deep=False)
        params = self.get_params(deep=False)
        shared = {name: value for name, value in params.items() if name in known}
        found: BoostedEstimator = clone(self._single(**shared | {"checkpoint": None, "callbacks": None}))
        return found


@parameters
class BoostedClassifierCV(ChosenByFoldsMixin, BoostedClassifier):  # type: ignore[misc]
    """``BoostedClassifier`` whose strength is chosen by k-fold cross-validation along the regularisation path.

    One path is fitted to all rows, each fit to the certified gap `tol`, and one without each fold, to the gap
    `fold_tol`; the model is the point of the first path at the chosen strength. All fits read the same partitions, the
    held-out rows with weight zero, so the data is held once. Folds are drawn as ``StratifiedKFold`` with
    ``shuffle=True`` draws them: a random part of each class, whose rows in two folds differ by one at most. What is
    drawn depends on the order of the rows, their classes and `random_state`, and neither on what they hold nor on
    partitions or engine; labels that are numbers, and those of tasks, are one class. Rows that belong
    together, such as copies and repeated measurements, are given as `folds`.

    Parameters
    ----------
    loss, penalty, update, hypotheses, select, sweeps, features_per_round, tol, max_rounds, max_passes, max_seconds, \
max_features, fit_intercept, standardize, penalty_factors, column_groups, positive, lower, upper, offset, \
class_weight, classes, random_state, client, rows_per_round, max_active_rows
        As in ``BoostedClassifier``; `random_state` is the seed of the folds too. The penalty must have a strength.
        The limits hold for each fit of the paths, that of one strength to the rows outside one fold.
    cv : int, splitter, or list of (training rows, test rows), default 10
        Number of folds, at least 2. For data in memory also a splitter of scikit-learn, or what it splits into, whose
        test sets hold every row once and that trains on all others, such as ``StratifiedKFold``. Of groups give the
        group of each row as `folds`. A splitter is not saved with the model.
    folds : array-like, shape (m,), or str, optional
        The fold of each row, any labels, in place of `cv`; or the name of the column of a table that has them, which is
        then no feature. For data in memory only. It is not saved with the model.
    alphas : sequence of float, optional
        Strengths. By default `n_alphas` of them, geometric from the smallest that uses no feature down to `eps` times
        it, the same for every fold.
    n_alphas : int, default 50
    eps : float, default 1e-2
    fold_tol : float, optional
        Certified gap of the fits without a fold. By default 1e-3, or `tol` where that is larger: what a fold tells of a
        strength is uncertain by the standard error over folds, which is well above it.
    scoring : "loss" (or None), "error", str or callable, default "loss"
        What is best on the held-out rows: the least mean loss, the least share of wrong labels, or the greatest score
        of a scorer, a name of scikit-learn's (``"roc_auc"``, ``"balanced_accuracy"``, ``"neg_log_loss"``; all of them
        in ``sklearn.metrics.get_scorer_names``) or a callable ``scorer(estimator, X, y)``. Where rows have weights
        other than one, these are given as `sample_weight`, without class weights. Of data in memory a callable is given
        the held-out rows, of Dask and Parquet data rows that only the predictions of the estimator can read. A callable
        is not saved with the model.
    rule : {"1se", "best"}, default "1se"
        ``"best"`` takes the strength that is best on the mean of the folds, ``"1se"`` the largest whose mean is within
        one standard error of it.
    relax : bool or sequence of float, optional
        Whether the model of each strength is also judged after its features were fitted again without a penalty, wholly
        or in part (``dboost.relaxed``): at shares `gamma` of the penalised model, 0, 0.25, 0.5, 0.75 and 1 for True, or
        those given. Each fold refits its own features. Strength and share are chosen together by `rule`, which for
        ``"1se"`` takes the largest strength and then the largest share. Where a refit has no finite optimum, in any
        fold, only the penalised model is chosen from, and a warning says so. For ``BoostedClassifier`` and its like, on
        columns.

    checkpoint : path, optional
        A folder. A cross-validation that was broken off goes on there in the next call of `fit` with the same data and
        parameters, with the bits of the undisturbed one, and makes no fit again that had ended.
    callbacks : list of functions, optional
        Called with the record of each round of each fit, one call at a time: ``"fold"`` is the fold that is held out,
        None for a fit of all rows, ``"strength"`` the place of the strength. A true result ends that one fit.

    Attributes
    ----------
    alpha_ : float
        The chosen strength; all attributes of ``BoostedClassifier`` are those of the model there.
    alpha_best_, alpha_1se_ : float
        What each rule chooses.
    alphas_ : float64 array, shape (T,)
        All strengths, falling.
    cv_results_ : Table
        One record per strength: alpha, mean and standard error of loss and error, features used by the path's model.
        With a scorer also `mean_test_score`, `std_test_score` and `rank_test_score`, as ``GridSearchCV`` has them, and
        `se_test_score`, the standard error of the mean. With `relax` one per strength and share, `gamma`.
    fold_losses_, fold_errors_ : float64 arrays, shape (F, T)
        Means over the held-out rows of each fold that has rows.
    fold_gaps_ : float64 array, shape (F, T)
        Certified gaps of the fits.
    fold_n_features_ : int64 array, shape (F, T)
    fold_weights_ : float64 array, shape (F,)
        Weight of the rows of each fold.
    fold_scores_ : float64 array, shape (F, T)
        With a scorer: what it says of each fold, greater is better.
    best_score_ : float
        With a scorer: the best mean score.
    gammas_ : float64 array, shape (G,)
        With `relax`: the shares, falling. Arrays of shape (F, T) have the shape (F, T, G) then.
    gamma_best_, gamma_1se_ : float
        With `relax`: what each rule chooses beside the strength.
    relaxed_ : dict
        With `relax`: the `gamma` of the model, and how its refit ended; see ``dboost.relaxed``.
    path_ : RegularizationPath
        The path of all rows. It is not saved.

    Notes
    -----
    Means over folds are weighted by the folds, and the standard error is that of such a mean, as in glmnet:
    ``sqrt(sum_f w_f (x_f - mean)**2 / sum_f w_f / (F - 1))``. Under a scorer every fold counts as much, as in
    scikit-learn: ``cross_val_score`` of ``BoostedClassifier`` at a strength, with the same folds, gives a column of
    `fold_scores_`.

    A scorer needs the held-out rows on the driver, of one fold at a time. Beside their labels that takes a copy of
    their features where these are in memory; of Dask and Parquet data it takes, for as many strengths as fit into 64 MB
    and for one at least, twice the scores X W + b of the rows, 8 k bytes each.

    A class of one row, or with `folds` any, may have all its rows in one fold. Without them it is unknown, and the fit
    is that of the other classes. On the held-out rows such a class gets the probability of half a row, whatever the
    strength, and its rows count as wrong. A scorer sees a model of all classes that never says that one, as a fit with
    ``classes=`` is. Of a fold without a row of some class, scorers of probabilities are told all classes; those that
    need a row of each are refused.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = BoostedClassifierCV(penalty="l1/l2", cv=5, n_alphas=10).fit(X, y)
    >>> bool(model.alpha_best_ <= model.alpha_1se_ == model.alpha_), model.fold_losses_.shape
    (True, (5, 10))
    >>> model = BoostedClassifierCV(penalty="l1/l2", cv=5, n_alphas=10, scoring="balanced_accuracy").fit(X, y)
    >>> bool(model.best_score_ > 0.9), model.fold_scores_.shape
    (True, (5, 10))
    """

    _single = BoostedClassifier


@parameters
class BoostedRegressorCV(ChosenByFoldsMixin, BoostedRegressor):  # type: ignore[misc]
    """``BoostedRegressor`` whose strength is chosen by k-fold cross-validation along the regularisation path.

    See ``BoostedClassifierCV`` for what is fitted and how folds are made, and ``BoostedRegressor`` for the losses.

    Parameters
    ----------
    loss, penalty, update, hypotheses, select, sweeps, features_per_round, tol, max_rounds, max_passes, max_seconds, \
max_features, fit_intercept, standardize, penalty_factors, column_groups, positive, lower, upper, offset, \
random_state, client
        As in ``BoostedRegressor``. The penalty must have a strength.
    scoring : "loss" (or None), str or callable, default "loss"
        The mean loss of the held-out rows, or a scorer such as ``"r2"`` or ``"neg_mean_absolute_error"``, as in
        ``BoostedClassifierCV``; a regression has no wrong labels.
    cv, folds, alphas, n_alphas, eps, fold_tol, rule, relax, checkpoint, callbacks
        As in ``BoostedClassifierCV``.

    Attributes
    ----------
    alpha_, alpha_best_, alpha_1se_, alphas_, cv_results_, fold_losses_, fold_gaps_, fold_n_features_, \
fold_weights_, fold_scores_, best_score_, gammas_, gamma_best_, gamma_1se_, \
relaxed_, path_
        As in ``BoostedClassifierCV``.
    others
        As in ``BoostedRegressor``, of the model of the chosen strength.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = BoostedRegressorCV(cv=5, n_alphas=10, eps=1e-3).fit(X, y)
    >>> bool(model.alpha_best_ <= model.alpha_1se_ == model.alpha_), model.fold_losses_.shape
    (True, (5, 10))
    """

    _single = BoostedRegressor


@parameters
class MultiTaskBoostedClassifierCV(BoostedClassifierCV, MultiTaskBoostedClassifier):  # type: ignore[misc]
    """``MultiTaskBoostedClassifier`` whose strength is chosen by k-fold cross-validation along the path.

    Parameters
    ----------
    loss, classes, class_weight
        As in ``MultiTaskBoostedClassifier``.
    others
        As in ``BoostedClassifierCV``; ``scoring="error"`` is the share of the observed labels that is wrong. A scorer
        of scikit-learn needs every label, and predictions (``"f1_macro"``) or scores (``"roc_auc"``): the probabilities
        of tasks are none of classes.

    Attributes
    ----------
    alpha_, alpha_best_, alpha_1se_, alphas_, cv_results_, fold_losses_, fold_errors_, fold_scores_, \
best_score_, gammas_, gamma_best_, gamma_1se_, relaxed_, path_
        As in ``BoostedClassifierCV``.
    others
        As in ``MultiTaskBoostedClassifier``, of the model of the chosen strength.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(90, 5))
    >>> Y = np.column_stack([X[:, 0] + rng.normal(size=90) > 0, X[:, 1] > 0]).astype(float)
    >>> model = MultiTaskBoostedClassifierCV(penalty="l1/l2", cv=3, n_alphas=6).fit(X, Y)
    >>> model.fold_losses_.shape, model.predict(X).shape
    ((3, 6), (90, 2))
    """

    _tasks = ("multitask",)
    _task = "multitask"
    _single = MultiTaskBoostedClassifier


@parameters
class MultiTaskBoostedRegressorCV(BoostedRegressorCV, MultiTaskBoostedRegressor):  # type: ignore[misc]
    """``MultiTaskBoostedRegressor`` whose strength is chosen by k-fold cross-validation along the path.

    Parameters
    ----------
    loss, penalty, offset
        As in ``MultiTaskBoostedRegressor``.
    others
        As in ``BoostedRegressorCV``; the loss of held-out rows is summed over their observed targets.

    Attributes
    ----------
    alpha_, alpha_best_, alpha_1se_, alphas_, cv_results_, fold_losses_, fold_scores_, relaxed_, path_
        As in ``BoostedRegressorCV``.
    others
        As in ``MultiTaskBoostedRegressor``, of the model of the chosen strength.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(90, 5))
    >>> Y = X[:, :2] + rng.normal(size=(90, 2))
    >>> model = MultiTaskBoostedRegressorCV(cv=3, n_alphas=6).fit(X, Y)
    >>> model.fold_losses_.shape, model.predict(X).shape
    ((3, 6), (90, 2))
    """

    _tasks = ("multitarget",)
    _task = "multitarget"
    _single = MultiTaskBoostedRegressor

    loss: Any = "multitarget"
    penalty: Any = "l1/l2"
