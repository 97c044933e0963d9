"""``BoostedClassifierCV``: the strength of the penalty chosen by cross-validation along the path.

Covers: the estimator and its parameters. Does not cover: what it shares with others that choose (``chosen_by_folds``).
"""

from __future__ import annotations

from dboost.estimators.chosen_by_folds import ChosenByFoldsMixin
from dboost.estimators.classifier import BoostedClassifier
from dboost.estimators.params import parameters


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
    fold_active_rows_ : int64 array, shape (F, T)
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
