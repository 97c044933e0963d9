"""What regressors have beyond other estimators: the share of the variance, or of the deviance, that they explain.

Covers: ``RegressingMixin``. Does not cover: fitting and prediction (``base``).
"""

from __future__ import annotations

from typing import Any

from sklearn.base import RegressorMixin

from dboost.errors import UsageError
from dboost.estimators.scoring import explained
from dboost.losses import get_loss


def predicts_counts(loss: Any) -> bool:
    """Whether a loss, or each of several, takes no target below zero: its mean is an exponential."""
    losses = loss if isinstance(loss, list | tuple) else [loss]
    try:
        known = [get_loss(one) for one in losses]
    except UsageError:  # which a fit says
        return False
    return bool(known) and all(link.exponential for one in known for link in one.links(one.targets or 1))


class RegressingMixin(RegressorMixin):  # type: ignore[misc]
    """R^2 or D^2 of a ``BoostedEstimator`` with targets; not public."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = predicts_counts(self.loss)
        return tags

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The share of the variance that the predictions explain, R^2 (``sklearn.metrics.r2_score``).

        With ``loss="poisson"`` the share of the Poisson deviance, D^2, as scikit-learn's ``PoissonRegressor`` has it
        (``sklearn.metrics.d2_tweedie_score`` with ``power=1``), and with ``loss="quantile"`` that of the pinball loss
        (``sklearn.metrics.d2_pinball_score``). Of several targets it is the mean of their R^2, each over the rows where
        it is observed.

        Parameters
        ----------
        X : as for `fit`
        y : targets, or the name of the target column of a table; None for ``ParquetData``
        sample_weight : array-like, shape (m,), or the name of a column of a table, optional

        Returns
        -------
        float
            1 for perfect predictions, 0 for those of the best constant; below 0 for worse ones.
        """
        return explained(self, X, y, sample_weight)
