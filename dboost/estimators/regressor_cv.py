"""``BoostedRegressorCV``: ``BoostedRegressor`` with its strength chosen by cross-validation along the path."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dboost.estimators.chosen_by_folds import ChosenByFoldsMixin
from dboost.estimators.regressor import BoostedRegressor
from dboost.files.paths import PathLike


class BoostedRegressorCV(ChosenByFoldsMixin, BoostedRegressor):
    """``BoostedRegressor`` whose strength is chosen by k-fold cross-validation along the regularisation path.

    See ``BoostedClassifierCV`` for what is fitted and how folds are made, and ``BoostedRegressor`` for the losses.

    Parameters
    ----------
    loss, penalty, update, hypotheses, select, sweeps, rows_per_round, tol, max_rounds, max_passes, max_seconds, \
max_active_rows, fit_intercept, standardize, penalty_factors, column_groups, positive, lower, upper, offset, \
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

    def __init__(
        self,
        *,
        loss: Any = "squared",
        penalty: Any = "l1",
        cv: Any = 10,
        folds: Any = None,
        alphas: Sequence[float] | None = None,
        n_alphas: int = 50,
        eps: float = 1e-2,
        fold_tol: float | None = None,
        scoring: Any = "loss",
        rule: str = "1se",
        relax: Any = None,
        update: str = "newton",
        hypotheses: Any = None,
        select: str = "greedy",
        sweeps: int | None = None,
        rows_per_round: int | None = None,
        tol: float = 1e-4,
        max_rounds: int = 1000,
        max_passes: int | None = None,
        max_seconds: float | None = None,
        max_active_rows: int | None = None,
        fit_intercept: bool = True,
        standardize: bool | str = "auto",
        penalty_factors: Any = None,
        column_groups: Any = None,
        positive: bool = False,
        lower: Any = None,
        upper: Any = None,
        offset: Any = None,
        random_state: Any = 0,
        checkpoint: PathLike | None = None,
        callbacks: Any = None,
        client: Any = None,
    ) -> None:
        self.loss = loss
        self.penalty = penalty
        self.cv = cv
        self.folds = folds
        self.alphas = alphas
        self.n_alphas = n_alphas
        self.eps = eps
        self.fold_tol = fold_tol
        self.scoring = scoring
        self.rule = rule
        self.relax = relax
        self.update = update
        self.hypotheses = hypotheses
        self.select = select
        self.sweeps = sweeps
        self.rows_per_round = rows_per_round
        self.tol = tol
        self.max_rounds = max_rounds
        self.max_passes = max_passes
        self.max_seconds = max_seconds
        self.max_active_rows = max_active_rows
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.penalty_factors = penalty_factors
        self.column_groups = column_groups
        self.positive = positive
        self.lower = lower
        self.upper = upper
        self.offset = offset
        # the base knows of classes, of which there are none
        self.class_weight = self.classes = None
        self.random_state = random_state
        self.checkpoint = checkpoint
        self.callbacks = callbacks
        self.client = client
