"""``MultiTaskBoostedRegressorCV``: several targets with one strength, chosen by cross-validation along the path."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dboost.estimators.multitask_regressor import MultiTaskBoostedRegressor
from dboost.estimators.regressor_cv import BoostedRegressorCV
from dboost.files.paths import PathLike


class MultiTaskBoostedRegressorCV(BoostedRegressorCV, MultiTaskBoostedRegressor):
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

    def __init__(
        self,
        *,
        loss: Any = "multitarget",
        penalty: Any = "l1/l2",
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
