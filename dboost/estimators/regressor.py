"""``BoostedRegressor``: one number per example."""

from __future__ import annotations

from typing import Any

from dboost.estimators.base import BoostedEstimator
from dboost.estimators.params import FitParameters, ObjectiveParameters, parameters
from dboost.estimators.regressing import RegressingMixin


@parameters
class BoostedRegressor(RegressingMixin, FitParameters, ObjectiveParameters, BoostedEstimator):
    """Linear regression with few features or induced hypotheses, fitted to a certified optimum.

    Minimises ``sum_i s_i loss(y_i, w'x_i + b) / sum_i s_i + alpha * sum_j omega(w_j)`` (Duchi & Singer 2009); see
    ``BoostedClassifier`` for the parameters not described here.

    Parameters
    ----------
    loss : {"squared", "epsilon_insensitive", "poisson", "huber", "quantile"} or loss object, default "squared"
        ``"squared"`` is half the squared residual. ``"epsilon_insensitive"`` is the smooth tube of Duchi & Singer 2009;
        ``dboost.losses.EpsilonInsensitive(epsilon=0.5)`` gives its width. ``"poisson"`` is half the Poisson deviance of
        counts y >= 0 from the mean ``exp(w'x + b)``, which `predict` gives: the objective of scikit-learn's
        ``PoissonRegressor`` and the mean of ``y log y - y``, which makes it zero where every prediction is right.
        ``"huber"`` is the squared loss up to an error of 1.35 and grows linearly beyond;
        ``dboost.losses.Huber(epsilon)`` gives another. ``"quantile"`` predicts the median, and
        ``dboost.losses.Quantile(0.9)`` the ninth decile: the pinball loss, rounded off over a width of 0.1 about its
        kink, or over ``Quantile(0.9, width)``. The certificate is for the rounded loss, and no model is better by more
        than it says and an eighth of the width under the pinball loss itself.
    penalty : {"l1", "none", ...} or penalty object, default "l1"
        There is one output, so that ``"l1/l2"`` and ``"l1/linf"`` are ``"l1"``.
    hypotheses : Family, optional
        As in ``BoostedClassifier``.
    others
        As in ``BoostedClassifier``. There are no classes, so neither `classes` nor `class_weight`.

    Attributes
    ----------
    coef_ : float64 array, shape (1, n), or (1, number held) with `hypotheses`
    intercept_ : float64 array, shape (1,)
    others
        As in ``BoostedClassifier``; there is no ``classes_``.

    Notes
    -----
    Targets have shape (m,). Several targets per example are refused.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = BoostedRegressor(alpha=0.5).fit(X, y)
    >>> bool(model.duality_gap_ <= 1e-4), model.coef_.shape, model.predict(X).shape
    (True, (1, 10), (442,))
    """

    _tasks = ("regression",)
    _task = "regression"

    loss: Any = "squared"
    penalty: Any = "l1"
