"""``LeveragingClassifier`` and ``LeveragingRegressor``: one hypothesis per round, chosen by a learner.

Covers: AdaBoost, epsilon-boosting, logistic regression and both forms of LS-Boost, and their l1-penalised form.
Does not cover: the rounds (``dboost.boosting.leveraging``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from dboost.boosting.checks import check_settings
from dboost.boosting.fit import FitSettings
from dboost.boosting.leveraging import Bound, Leveraging, given_bounds, learns
from dboost.errors import UsageError
from dboost.estimators.base import BoostedEstimator
from dboost.estimators.params import FitParameters, flag, given_alpha, given_factors, parameters, shared_settings
from dboost.estimators.scoring import RegressingMixin, TwoClassMixin
from dboost.hypotheses.stumps.family import Stumps
from dboost.losses import Loss


@parameters
class LeveragingEstimator(FitParameters, BoostedEstimator, ABC):
    """What both leveraging estimators share; not public."""

    alpha: float | str = 0.0
    step: str | float = "exact"
    bounds: Any = None
    penalty_factors: Any = None
    hypotheses: Any = None
    fit_intercept: bool = True
    max_rounds: int = 200
    warm_start: bool = False

    @abstractmethod
    def _system(self) -> Leveraging:
        """The settings that the two do not share."""

    def _for_tables(self, settings: FitSettings) -> dict[str, Any]:
        """Stumps, where nobody said what is weighed: the systems of the papers boost weak hypotheses, not columns."""
        of_columns = self.penalty_factors is not None or self.bounds is not None
        return {} if of_columns or self.hypotheses is not None else {"hypotheses": Stumps()}

    def _settings(self) -> FitSettings:
        flag("warm_start", self.warm_start)
        alpha, system = given_alpha(self.alpha), self._system()
        settings = FitSettings(
            **shared_settings(self),
            penalty=system.penalty(alpha),
            alpha=alpha,
            fit_intercept=flag("fit_intercept", self.fit_intercept),
            penalty_factors=given_factors(self.penalty_factors),
            system=system,
        )
        if learns(settings) and (self.checkpoint is not None or self.warm_start):
            raise UsageError(
                "neither a checkpoint nor a warm start can hold what hypotheses=Learned(...) has learned",
                hint="leave checkpoint and warm_start out, or use a family of hypotheses",
            )
        if learns(settings) and settings.alpha == "auto":
            raise UsageError(
                "alpha='auto' is a share of the largest useful strength, which hypotheses=Learned(...) do not have",
                hint="give a number",
            )
        check_settings(settings)
        return settings


@parameters
class LeveragingClassifier(TwoClassMixin, LeveragingEstimator):
    """Two-class boosting by coordinates: AdaBoost, epsilon-boosting, logistic leveraging, and their l1-penalised form.

    Raetsch, Mika & Warmuth, "On the Convergence of Leveraging" (2001). A round finds the hypothesis h of the largest
    ``|sum_i d_i h(x_i)|``, d being minus the derivative of the loss, and moves its weight alone. With ``loss="exp"``,
    hypotheses in {-1, +1} and ``step="exact"`` this is AdaBoost. In terms of its weights it is steepest descent in the
    l1 norm (Stratos, "Boosting as Coordinate Descent").

    Parameters
    ----------
    loss : {"exp", "log"}, default "exp"
    alpha : float or "auto", default 0.0
        Strength of an l1 penalty on the mean loss; the paper's C is ``alpha * sum_i s_i``. With ``alpha > 0`` this is
        Algorithm 2: a hypothesis that has too much weight is moved back first, the rounds end at the optimum of
        ``BoostedClassifier(penalty="l1")``, and the gap to it is certified. ``"auto"`` is as there.
    step : "exact" or float, default "exact"
        ``"exact"`` searches the best step along the hypothesis. A number is the length of every step: epsilon-boosting,
        which follows the l1 path of solutions approximately.
    norm : {"l1", "l2"}, default "l1"
        In which norm a round is a step of steepest descent (Stratos, Lemmas 1.1 and 1.2). ``"l1"`` moves the weight of
        one hypothesis, that of the largest edge; ``"l2"`` is gradient descent: it moves the weights of all hypotheses
        at once, in proportion to their edges, so that the model holds every one after a round. Not with ``alpha > 0``,
        and with at most 100000 hypotheses of a family.
    bounds : (low, high), optional
        Between which every weight stays, ``low <= 0 <= high``: two numbers, or two arrays of shape (n,) for raw
        columns; ``(0, numpy.inf)`` asks for weights that are not negative. The box of the paper's Theorem 1. A round
        moves the weight along which the objective falls fastest within the bounds; there is no certificate, and the fit
        ends when no move within the bounds falls by more than `tol` times the largest edge at the start ("gradient").
    penalty_factors : array-like, shape (n,), or dict of str to float, optional
        What the strength of each feature is multiplied by, with ``alpha > 0``: the paper's vector gamma. As in
        ``BoostedClassifier``.
    hypotheses : Family, optional
        What is weighed: by default ``dboost.Stumps()`` of tables, as in the papers, and the raw columns of sparse rows,
        or with `bounds` or `penalty_factors`. Otherwise a finite family such as
        ``dboost.Stumps(signed=True)`` or ``dboost.Products(max_degree=2)``. Both signs of a hypothesis count.
        ``dboost.Learned(estimator)`` lets a scikit-learn estimator learn one in every round; such a model cannot be
        saved, and such a fit has no checkpoint.
    fit_intercept : bool, default True
        Start from the best constant, and let the constant be one of the hypotheses, without penalty.
    tol : float, default 1e-4
        Without a penalty the fit ends when no ``|sum_i d_i h(x_i)|`` is above `tol` times the largest at the start
        ("gradient"). With one it is the certified relative duality gap ("tol").
    max_rounds : int, default 200
    max_passes : int, optional
    max_seconds : float, optional
    class_weight : "balanced" or dict of label to weight, optional
    classes : sequence of two labels, optional
    warm_start : bool, default False
    checkpoint : path, optional
    callbacks : list, optional
    client : distributed.Client, optional
        As in ``BoostedClassifier``.

    Attributes
    ----------
    coef_, intercept_, classes_, active_features_, stop_reason_, n_iter_, objective_, duality_gap_, model_
        As in ``BoostedClassifier``. There is no gap without a penalty.
    history_ : Table
        One record per round: beside those of every fit "gradient", the largest ``|sum_i d_i h(x_i)|`` per unit of
        weight, and "promised", what an exact step without a penalty is sure to take off the objective: by the largest
        curvature of the loss, or for ``"exp"`` by its edge (nan where there is no such bound). Objective, gap and
        gradient are those before the round's step, whose length is "length".

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = (X - X.mean(axis=0)) / X.std(axis=0)
    >>> model = LeveragingClassifier(loss="log", max_rounds=50).fit(X, y)
    >>> bool(model.score(X, y) > 0.96), len(model.active_features_) <= 50
    (True, True)
    """

    _tasks = ("binary",)
    _task = "binary"

    loss: str = "exp"
    norm: str = "l1"

    def _system(self) -> Leveraging:
        return Leveraging("edge", self.step, self.norm, _bounds(self.bounds))


@parameters
class LeveragingRegressor(RegressingMixin, LeveragingEstimator):
    """Regression by coordinates: both forms of LS-Boost, and the l1-penalised form (the lasso).

    Raetsch, Mika & Warmuth, "On the Convergence of Leveraging" (2001), after Friedman's LS-Boost. With the residuals
    d, a round takes a hypothesis h and moves its weight alone, by ``<d, h> / <h, h>``.

    Parameters
    ----------
    learner : {"joint", "nearest", "edge"}, default "joint"
        What a round takes. ``"joint"`` chooses hypothesis and weight together, the largest ``<d, h>^2 / <h, h>``
        (LS-Boost, second version). ``"nearest"`` takes the h or -h nearest to d (first version); it may come back to a
        small hypothesis at a right angle to d in every round, and never move again. ``"edge"`` is the largest
        ``|<d, h>|``.
    alpha : float or "auto", default 0.0
        Strength of an l1 penalty, as in ``LeveragingClassifier``; not for ``"nearest"``.
    step, bounds, penalty_factors, hypotheses, fit_intercept, tol, max_rounds, max_passes, max_seconds, warm_start,
    checkpoint, callbacks, client
        As in ``LeveragingClassifier``; bounds not for ``"nearest"``.

    Attributes
    ----------
    coef_, intercept_, active_features_, stop_reason_, n_iter_, objective_, duality_gap_, history_, model_
        As in ``LeveragingClassifier``; the objective is half the mean squared residual.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = LeveragingRegressor(max_rounds=30).fit(X, y)
    >>> bool(model.score(X, y) > 0.5)
    True
    """

    _tasks = ("regression",)
    _task = "regression"

    @classmethod
    def _minimises(cls, loss: Loss) -> bool:
        """The squared loss, for which the learners that fit residuals are made."""
        return super()._minimises(loss) and loss.parabolic

    loss = "squared"
    learner: str = "joint"

    def _system(self) -> Leveraging:
        return Leveraging(self.learner, self.step, bounds=_bounds(self.bounds))


def _bounds(bounds: Any) -> tuple[Bound, Bound] | None:
    return None if bounds is None else given_bounds(bounds)
