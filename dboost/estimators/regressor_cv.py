"""``BoostedRegressorCV``: ``BoostedRegressor`` with its strength chosen by cross-validation along the path."""

from __future__ import annotations

from dboost.estimators.chosen_by_folds import ChosenByFoldsMixin
from dboost.estimators.params import parameters
from dboost.estimators.regressor import BoostedRegressor


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
    alpha_, alpha_best_, alpha_1se_, alphas_, cv_results_, fold_losses_, fold_gaps_, fold_active_rows_, \
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
