"""``BoostedRegressor``: one number per example; ``MultiTaskBoostedRegressor``: several, some of them missing."""

from __future__ import annotations

from typing import Any

from dboost.estimators.base import BoostedEstimator
from dboost.estimators.params import FitParameters, ObjectiveParameters, parameters
from dboost.estimators.scoring import RegressingMixin


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

    loss: Any = "squared"
    penalty: Any = "l1"


@parameters
class MultiTaskBoostedRegressor(BoostedRegressor):
    """Linear regressions of several targets that share their features, fitted to a certified optimum.

    Minimises ``sum_i s_i sum_r (y_ir - w_r'x_i - b_r)^2 / 2 / sum_i s_i + alpha * sum_j omega(w_j)``, where r goes
    through the observed targets of an example and w_j is the row of weights of a feature: with ``"l1/l2"`` or
    ``"l1/linf"`` a feature is used by every target or by none. With ``"l1/l2"`` and no missing target it is the
    objective of scikit-learn's ``MultiTaskLasso``, and with ``"l1/l2+ridge"`` that of ``MultiTaskElasticNet``.

    Parameters
    ----------
    loss : "multitarget" or list of losses, default "multitarget"
        Half the squared residual of every observed target. A list has a loss for each target, in the order of their
        columns: ``"squared"``, ``"huber"``, ``"quantile"``, ``"epsilon_insensitive"``, ``"poisson"`` for counts,
        ``"log"`` for a target that is 0 or 1, or objects of these such as ``dboost.losses.Huber(0.5)``; it may also be
        written as ``"squared,poisson,log"``. A target counts in the objective by the size of its loss: bring numbers
        of other units to a like scale first.
    penalty : {"l1/l2", "l1/linf", "l1", ...} or penalty object, default "l1/l2"
    offset : list of columns, optional
        One for each target.
    others
        As in ``BoostedRegressor``.

    Attributes
    ----------
    coef_ : float64 array, shape (k, n)
    intercept_ : float64 array, shape (k,)
    target_names_ : array, shape (k,)
        The columns of a table of targets, else 0..k-1.
    others
        As in ``BoostedRegressor``.

    Notes
    -----
    Targets have shape (m, k), NaN or None where one is missing; predictions have the same shape. In ``ParquetData``
    they are several label columns, or one column of lists.

    With a loss for each target, predictions are the mean of each: the probability of 1 for ``"log"``, e^ of the score
    for ``"poisson"``. `score` is then the mean of what is explained of each target's own deviance.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 6))
    >>> Y = np.column_stack([X[:, 0] + X[:, 1], X[:, 0] - X[:, 1], 2 * X[:, 1]])
    >>> model = MultiTaskBoostedRegressor(alpha=0.1).fit(X, Y)
    >>> np.flatnonzero(model.coef_.any(axis=0)).tolist(), model.predict(X).shape
    ([0, 1], (100, 3))

    A number and a label of the same examples, with the features that both have:

    >>> Y = np.column_stack([X[:, 0] + X[:, 1], X[:, 0] > X[:, 1]]).astype(float)
    >>> both = MultiTaskBoostedRegressor(loss=["squared", "log"], alpha=0.1).fit(X, Y)
    >>> np.flatnonzero(both.coef_.any(axis=0)).tolist(), bool(both.predict(X)[:, 1].max() < 1.0)
    ([0, 1], True)
    """

    _tasks = ("multitarget",)

    loss: Any = "multitarget"
    penalty: Any = "l1/l2"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        return tags
