"""``AdaBoostL1Classifier`` and ``AdaBoostL1Regressor``: boosting within an l1 budget that grows.

Covers: what the two ask of the rounds, and what they say of a fit. Does not cover: the rounds
(``dboost.boosting.adaboost_l1``).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

from dboost.boosting.adaboost_l1 import AdaBoostL1
from dboost.boosting.checks import check_settings
from dboost.boosting.fit import FitSettings
from dboost.boosting.systems import NormalisedEdges
from dboost.estimators.base import BoostedEstimator
from dboost.estimators.params import FitParameters, flag, number, parameters, shared_settings
from dboost.estimators.scoring import RegressingMixin, TwoClassMixin
from dboost.hypotheses.stumps.family import Stumps
from dboost.losses import Loss


@parameters
class AdaBoostL1Estimator(FitParameters, BoostedEstimator, ABC):
    """What both estimators share; not public."""

    hypotheses: Any = None
    nu: float = 1.0
    keep_zeros: bool = False
    fit_intercept: bool = True
    tol: float = 1e-3
    max_rounds: int = 100

    @classmethod
    def _minimises(cls, loss: Loss) -> bool:
        """Losses of which a step of boosting has a length: the exponential one, and those of bounded curvature."""
        return super()._minimises(loss) and (loss.exponential or math.isfinite(loss.kappa))

    @abstractmethod
    def _constant(self) -> bool:
        """Whether the constant 1 is a hypothesis, whose weight counts in the budget."""

    def _for_tables(self, settings: FitSettings) -> dict[str, Any]:
        """Stumps, where nobody said what is weighed: the systems of the papers boost weak hypotheses, not columns."""
        return {"hypotheses": Stumps()} if self.hypotheses is None else {}

    def _settings(self) -> FitSettings:
        constant = self._constant()
        system = AdaBoostL1(number("nu", self.nu), constant, flag("keep_zeros", self.keep_zeros))
        # a constant that is a hypothesis of the system is no free intercept
        free = flag("fit_intercept", self.fit_intercept) and not constant
        settings = FitSettings(**shared_settings(self), penalty=NormalisedEdges(), fit_intercept=free, system=system)
        check_settings(settings)
        return settings

    def _last(self, name: str) -> float:
        history = self._fitted_attribute(name + "_").history
        return float(history[-1][name]) if history else math.nan

    @property
    def budget_(self) -> float:
        """The l1 budget of the last round."""
        return self._last("budget")


@parameters
class AdaBoostL1Classifier(TwoClassMixin, AdaBoostL1Estimator):
    """Two-class boosting that solves all weights anew in every round, within an l1 budget that grows.

    AdaBoost+L1 of Xi, Xiang, Ramadge & Schapire, "Speed and Sparsity of Regularized Boosting". A round takes the
    hypothesis h of the largest edge ``e = sum_i d_i y_i h(x_i)``, lets the budget r grow by
    ``(nu / 2) log((1 + e) / (1 - e))``, AdaBoost's step, and minimises the loss of the hypotheses taken so far over
    weights of at most r in sum. Weights of zero leave, unless `keep_zeros` is set. The least margin
    ``min_i y_i f(x_i) / sum_j |al_j|`` tends to the largest there is, theta*, which is at most the largest edge of any
    round: their distance is certified.

    Parameters
    ----------
    loss : {"exp", "log"} or loss object, default "exp"
        ``"exp"`` is the exponential loss of the paper's algorithm, ``"log"`` the logistic loss that the paper names as
        another, which examples with wrong labels move less. Weights d are proportional to the slope of the loss, and
        the margin tends to the largest with either.
    hypotheses : Family, optional
        What is weighed: by default ``dboost.Stumps()`` of tables, as in the paper, and the raw columns of sparse rows;
        ``dboost.Columns()`` are the raw columns of tables. Otherwise a finite family such as
        ``dboost.Stumps(signed=True)`` or ``dboost.Products(max_degree=2)``. A hypothesis is divided by its largest
        absolute value on the training data, and counts with both signs.
    nu : float, default 1.0
        In (0, 1]. Smaller values let the budget grow more slowly, in more rounds.
    keep_zeros : bool, default False
        Whether a hypothesis whose weight became zero stays among those that later rounds solve for. The paper's
        algorithm keeps all that were ever taken, and so does True; False drops them. Both are AdaBoost+L1 with the same
        certificates, but not the same path: within a larger budget a hypothesis that was kept may get weight again
        at once, while one that was dropped must first have the largest edge of a round. On the first rounds, while no
        weight has become zero, the two agree. True costs products with more hypotheses in every round.
    fit_intercept : bool, default True
        Whether the constant 1 is one of the hypotheses; its weight counts in the budget and in margins as any other.
    tol : float, default 1e-3
        The fit stops when the margin is certified to be within `tol` of the best one ("tol"), when the budget is large
        enough to guarantee that ("budget"), or when no hypothesis has an edge above `tol` ("edge"): then no weights
        separate the classes, and the best margin is at most `tol`.
    max_rounds : int, default 100
    max_passes : int, optional
    max_seconds : float, optional
    class_weight : "balanced" or dict of label to weight, optional
    classes : sequence of two labels, optional
    checkpoint : path, optional
    callbacks : list, optional
    client : distributed.Client, optional
        As in ``BoostedClassifier``.

    Attributes
    ----------
    margin_ : float
        Least normalised margin of the training data.
    margin_gap_ : float
        Certified: no weights have a margin larger than ``margin_ + margin_gap_``.
    budget_ : float
        The budget r of the last round.
    duality_gap_ : float
        Certified: the loss is at most this share above the least one within the budget, over all hypotheses, taken or
        not. It says nothing of larger budgets, and so nothing of the best margin.
    objective_ : float
        Mean loss.
    history_ : Table
        One record per round: beside those of every fit the largest edge when it began ("edge"), and after it "budget",
        "l1_norm", "margin", "margin_gap" and "ensemble", the number of hypotheses that the next round solves for beside
        the one it takes.
    coef_, intercept_, classes_, active_features_, stop_reason_, n_iter_, model_
        As in ``BoostedClassifier``. A score f means the probability ``1 / (1 + exp(-2f))`` with the exponential loss,
        and ``1 / (1 + exp(-f))`` with the logistic.

    Examples
    --------
    >>> import numpy as np
    >>> from dboost import Columns
    >>> X = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1.0]])
    >>> model = AdaBoostL1Classifier(hypotheses=Columns(), max_rounds=20).fit(X, [1, 1, 1, 0])
    >>> model.predict(X).tolist(), round(model.margin_, 2)
    ([1, 1, 1, 0], 0.33)
    """

    _tasks = ("binary",)
    _task = "binary"

    loss: Any = "exp"

    def _constant(self) -> bool:
        return flag("fit_intercept", self.fit_intercept)

    @property
    def margin_(self) -> float:
        """Least normalised margin of the training data."""
        return self._last("margin")

    @property
    def margin_gap_(self) -> float:
        """Certified distance of the margin from the best one."""
        return self._last("margin_gap")


@parameters
class AdaBoostL1Regressor(RegressingMixin, AdaBoostL1Estimator):
    """Regression that solves all weights anew in every round, within an l1 budget that grows.

    The rounds of ``AdaBoostL1Classifier`` for labels that are numbers: with the residuals u, a round takes the
    hypothesis h of the largest edge ``|sum_i u_i h(x_i)| / sum_i |u_i|``, lets the budget grow by `nu` times the step
    that boosting would take along it, that of LS-Boost with the squared loss, and solves for all weights within the
    budget. Every model of the way is the lasso of its budget, and its distance from it is certified.

    Parameters
    ----------
    loss : {"squared", "epsilon_insensitive", "huber", "quantile"} or loss object, default "squared"
        As in ``BoostedRegressor``.
    fit_intercept : bool, default True
        Whether there is an intercept; it is free, and counts in no budget.
    tol : float, default 1e-3
        The fit stops when no hypothesis has an edge above `tol` ("edge"): the residuals are as good as orthogonal to
        all of them. How many rounds to take is the choice: by `max_rounds`, or by ``EarlyStopping``.
    hypotheses, nu, keep_zeros
        As in ``AdaBoostL1Classifier``.
    max_rounds, max_passes, max_seconds, checkpoint, callbacks, client
        As in ``BoostedRegressor``.

    Attributes
    ----------
    budget_ : float
        The budget r of the last round.
    duality_gap_ : float
        Certified: the loss is at most this share above the least one within the budget, over all hypotheses, taken or
        not.
    objective_ : float
        Mean loss.
    history_ : Table
        As in ``AdaBoostL1Classifier``; "margin" and "margin_gap" have no meaning and are NaN.
    coef_, intercept_, active_features_, stop_reason_, n_iter_, model_
        As in ``BoostedRegressor``.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> from dboost import Columns
    >>> model = AdaBoostL1Regressor(hypotheses=Columns(), nu=0.3, max_rounds=8).fit(X, y)
    >>> round(model.score(X, y), 2), model.active_features_, bool(model.duality_gap_ < 1e-6)
    (0.47, ['x1', 'x2', 'x3', 'x6', 'x8'], True)
    """

    _tasks = ("regression",)
    _task = "regression"

    loss: Any = "squared"

    def _constant(self) -> bool:
        return False
