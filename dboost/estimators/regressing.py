"""What regressors have beyond other estimators: the share of the variance that they explain.

Covers: ``RegressingMixin``. Does not cover: fitting and prediction (``base``).
"""

from __future__ import annotations

from typing import Any

from sklearn.base import RegressorMixin

from dboost.estimators.scoring import r_squared


class RegressingMixin(RegressorMixin):  # type: ignore[misc]
    """R^2 of a ``BoostedEstimator`` with targets; not public."""

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """R^2 of the predictions, as ``sklearn.metrics.r2_score`` defines it.

        Parameters
        ----------
        X : as for `fit`
        y : targets, or the name of the target column of a table; None for ``ParquetData``
        sample_weight : array-like, shape (m,), or the name of a column of a table, optional

        Returns
        -------
        float
            1 for perfect predictions, 0 for those of the weighted mean; below 0 for worse ones.
        """
        return r_squared(self, X, y, sample_weight)
