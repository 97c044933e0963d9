"""``MultiTaskBoostedRegressorCV``: several targets with one strength, chosen by cross-validation along the path."""

from __future__ import annotations

from typing import Any

from dboost.estimators.params import parameters
from dboost.estimators.regressor import MultiTaskBoostedRegressor
from dboost.estimators.regressor_cv import BoostedRegressorCV


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
