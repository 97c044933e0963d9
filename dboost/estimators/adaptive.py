"""Factors of the penalty from an earlier fit: what it used much is charged little in the next one (Zou 2006)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from dboost.errors import UsageError
from dboost.estimators.params import number
from dboost.penalties.rows import norm2


def adaptive_factors(first: Any, gamma: float = 1.0) -> NDArray[np.float64]:
    """Factors ``1 / ||W_j||_2**gamma`` from a first fit, for the ``penalty_factors`` of a second one.

    The second fit penalises little what the first one found large, and leaves out what it did not use: the adaptive
    lasso of Zou (2006), and its form for rows of weights. Its weights are less biased towards zero, and under Zou's
    conditions its support is the right one as the number of examples grows.

    Parameters
    ----------
    first : estimator
        Fitted on columns, not on induced hypotheses. A fit with ``penalty="l2_squared"`` gives every feature a finite
        factor; a sparse one leaves out the features that it does not use.
    gamma : float, default 1.0
        At least 0; 0 keeps the support of the first fit and no more of it.

    Returns
    -------
    float64 array, shape (n,)
        ``inf`` for a feature whose weights are all zero.

    Raises
    ------
    UsageError
        Where the first fit uses no feature, or uses induced hypotheses.

    Examples
    --------
    >>> from sklearn.base import clone
    >>> from sklearn.datasets import load_diabetes
    >>> import dboost
    >>> X, y = load_diabetes(return_X_y=True)
    >>> first = dboost.BoostedRegressor(alpha=0.1).fit(X, y)
    >>> second = clone(first).set_params(alpha=20.0, penalty_factors=adaptive_factors(first)).fit(X, y)
    >>> set(second.active_features_) < set(first.active_features_), bool(second.duality_gap_ <= 1e-4)
    (True, True)
    """
    check_is_fitted(first, "model_")
    model, power = first.model_, number("gamma", gamma)
    if not model.plain:
        raise UsageError(
            "the first fit is one of induced hypotheses, which have no column of the data to give a factor to",
            hint="fit it without hypotheses=",
        )
    length = np.zeros(model.n_features)
    length[model.active] = norm2(model.W)
    if not length.any():
        raise UsageError("the first fit uses no feature", hint="give it a smaller alpha")
    with np.errstate(over="ignore"):
        found = np.array([size**-power if size > 0.0 else math.inf for size in length.tolist()])
    return found
