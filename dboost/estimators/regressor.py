"""``BoostedRegressor``: one number per example."""

from __future__ import annotations

from typing import Any

from dboost.estimators.base import BoostedEstimator
from dboost.estimators.regressing import RegressingMixin
from dboost.files.paths import PathLike


class BoostedRegressor(RegressingMixin, BoostedEstimator):
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

    def __init__(
        self,
        *,
        loss: Any = "squared",
        penalty: Any = "l1",
        alpha: float | str = "auto",
        prefer: str | None = None,
        max_features: int | None = None,
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
        warm_start: bool = False,
        random_state: Any = 0,
        checkpoint: PathLike | None = None,
        callbacks: Any = None,
        client: Any = None,
    ) -> None:
        # The classes that the base knows of stay None.
        super().__init__(
            loss=loss,
            penalty=penalty,
            alpha=alpha,
            prefer=prefer,
            max_features=max_features,
            update=update,
            hypotheses=hypotheses,
            select=select,
            sweeps=sweeps,
            rows_per_round=rows_per_round,
            tol=tol,
            max_rounds=max_rounds,
            max_passes=max_passes,
            max_seconds=max_seconds,
            max_active_rows=max_active_rows,
            fit_intercept=fit_intercept,
            standardize=standardize,
            penalty_factors=penalty_factors,
            column_groups=column_groups,
            positive=positive,
            lower=lower,
            upper=upper,
            offset=offset,
            warm_start=warm_start,
            random_state=random_state,
            checkpoint=checkpoint,
            callbacks=callbacks,
            client=client,
        )
