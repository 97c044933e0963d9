"""``MultiTaskBoostedRegressor``: several numbers per example, some of them missing."""

from __future__ import annotations

from typing import Any

from dboost.estimators.params import parameters
from dboost.estimators.regressor import BoostedRegressor


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
    _task = "multitarget"

    loss: Any = "multitarget"
    penalty: Any = "l1/l2"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        return tags
