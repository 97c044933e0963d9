"""Estimators of greedy boosting: AdaBoost+L1, leveraging, JointBoost and ShareBoost.

Covers: their parameters. Does not cover: their rounds (``dboost.boosting``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Self

import numpy as np

from dboost.boosting.adaboost_l1 import AdaBoostL1
from dboost.boosting.fit import FitSettings
from dboost.boosting.jointboost import JointBoost
from dboost.boosting.leveraging import Leveraging, given_bounds, learns
from dboost.boosting.shareboost import ShareBoost
from dboost.boosting.systems import NormalisedEdges, last_of_size
from dboost.errors import UsageError
from dboost.estimators import predicting
from dboost.estimators.base import BoostedEstimator
from dboost.estimators.params import (
    FitParameters,
    flag,
    given_alpha,
    given_factors,
    limit_of,
    number,
    parameters,
    resolve_seed,
    shared_settings,
)
from dboost.estimators.rounds import Table
from dboost.estimators.scoring import ClassifyingMixin, RegressingMixin, TwoClassMixin
from dboost.hypotheses.stumps.family import Stumps
from dboost.losses import Loss
from dboost.losses.exponential import OneVsRestExponential
from dboost.model.fitted import Model
from dboost.penalties import get_penalty


@parameters
class WeakHypothesesEstimator(FitParameters, BoostedEstimator):
    """What the systems share whose papers boost weak hypotheses, not columns; not public."""

    hypotheses: Any = None
    fit_intercept: bool = True

    def _for_tables(self, settings: FitSettings) -> dict[str, Any]:
        """Stumps, where nobody said what is weighed, or something of single columns."""
        said = ("hypotheses", "bounds", "penalty_factors")
        return {"hypotheses": Stumps()} if all(getattr(self, name, None) is None for name in said) else {}


@parameters
class AdaBoostL1Estimator(WeakHypothesesEstimator):
    """What both estimators share; not public."""

    nu: float = 1.0
    keep_zeros: bool = False
    tol: float = 1e-3
    max_rounds: int = 100

    @classmethod
    def _minimises(cls, loss: Loss) -> bool:
        """Losses of which a step of boosting has a length: the exponential one, and those of bounded curvature."""
        return super()._minimises(loss) and (loss.exponential or math.isfinite(loss.kappa))

    def _given_settings(self) -> FitSettings:
        free = flag("fit_intercept", self.fit_intercept)
        # of two classes the constant 1 is a hypothesis, whose weight counts in the budget, and no free intercept
        constant = free and self._tasks == ("binary",)
        system = AdaBoostL1(number("nu", self.nu), constant, flag("keep_zeros", self.keep_zeros))
        penalty = NormalisedEdges()
        return FitSettings(**shared_settings(self), penalty=penalty, fit_intercept=free and not constant, system=system)

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
    max_passes, max_seconds, class_weight, classes, checkpoint, callbacks, client
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

    loss: Any = "exp"

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

    loss: Any = "squared"


@parameters
class LeveragingEstimator(WeakHypothesesEstimator):
    """What both leveraging estimators share; not public."""

    alpha: float | str = 0.0
    step: str | float = "exact"
    bounds: Any = None
    penalty_factors: Any = None
    max_rounds: int = 200
    warm_start: bool = False
    # Of the two one lets the norm be chosen, and one the learner.
    learner, norm = "edge", "l1"

    def _given_settings(self) -> FitSettings:
        flag("warm_start", self.warm_start)
        bounds = None if self.bounds is None else given_bounds(self.bounds)
        alpha, system = given_alpha(self.alpha), Leveraging(self.learner, self.step, self.norm, bounds)
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
    max_passes, max_seconds, class_weight, classes, warm_start, checkpoint, callbacks, client
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

    loss: str = "exp"
    norm: str = "l1"


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

    @classmethod
    def _minimises(cls, loss: Loss) -> bool:
        """The squared loss, for which the learners that fit residuals are made."""
        return super()._minimises(loss) and loss.parabolic

    loss = "squared"
    learner: str = "joint"


@parameters
class JointBoostClassifier(ClassifyingMixin, FitParameters, BoostedEstimator):
    """Classifier of boosted decision stumps, each shared by a set of classes that is searched for.

    JointBoost (Torralba, Murphy & Freeman 2007), the baseline of Shalev-Shwartz, Wexler & Shashua's ShareBoost. Every
    class has a score against the rest under the exponential loss; a round adds one stump to the scores of the classes
    that share it and a constant to each of the others, in weighted least squares. The set is grown greedily, class by
    class, or is the best of all (`search`). With two classes there is one score.

    Parameters
    ----------
    max_rounds : int, default 100
        Stumps to add; one that was added before may be added again.
    hypotheses : Stumps, optional
        The stumps; by default ``dboost.Stumps()``. Where these lie in bins, the candidates are the ends of the bins.
    search : {"greedy", "exhaustive"}, default "greedy"
        How the classes that share a stump are found. ``"greedy"`` begins with the best class and adds one at a time;
        ``"exhaustive"`` tries every set of the K classes, of which there are ``2**K - 1``, and is refused for more than
        12 classes. A round of it takes at least as much off the weighted squares as a greedy round from the same
        scores; a whole fit may still end above a greedy one, as both choose one round at a time.
    tol : float, default 1e-4
        The fit ends once a round takes less than ``0.1 * tol`` of it off the weighted squares (set ``tol=0`` for all
        rounds).
    max_passes, max_seconds, class_weight, classes, checkpoint, callbacks, client
        As in ``BoostedClassifier``.

    Attributes
    ----------
    history_ : Table
        One record per round; ``sharing_classes`` is how many classes share its stump.
    coef_, intercept_, classes_, n_features_in_, feature_names_in_, active_features_, objective_, stop_reason_, n_iter_,
    model_
        As in ``BoostedClassifier``, for the stumps held; a stump is 1 below its threshold and 0 elsewhere. There is no
        certificate: `duality_gap_` is nan.

    Notes
    -----
    Probabilities are those of ``1 / (1 + exp(-2 f))`` for two classes and of the softmax of ``2 f`` for more.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = JointBoostClassifier(max_rounds=10).fit(X, y)
    >>> model.n_iter_, bool(model.score(X, y) > 0.95)
    (10, True)
    """

    max_rounds: int = 100
    hypotheses: Any = None
    search: str = "greedy"

    def _given_settings(self) -> FitSettings:
        given = shared_settings(self) | ({"hypotheses": Stumps()} if self.hypotheses is None else {})
        return FitSettings(**given, penalty="none", system=JointBoost(self.search))

    @classmethod
    def _minimises(cls, loss: Loss) -> bool:
        """Exponential losses of classes."""
        return super()._minimises(loss) and loss.exponential

    def _loss_of(self, task: str, n_outputs: int) -> Any:
        """The exponential loss of the one score, or of every class against the rest."""
        return "exp" if task == "binary" else OneVsRestExponential(n_classes=n_outputs)


# Small enough to change no prediction, and enough for finite weights where the features separate the classes.
RIDGE = 1e-6


@parameters
class ShareBoostClassifier(ClassifyingMixin, FitParameters, BoostedEstimator):
    """Linear classifier that adds one feature, or group of features, at a time and then solves all weights again.

    ShareBoost (Shalev-Shwartz, Wexler & Shashua 2011): forward greedy selection for the mean loss
    ``log sum_r exp(f_r + 1[r != y]) - f_y`` plus ``alpha sum_j omega(W_j)`` over the features held, f = W'x + b. One
    run gives the whole curve of accuracy against features: `path_`, `staged_predict`.

    Parameters
    ----------
    max_rounds : int, default 100
        Features, or groups of them, to add.
    loss : {"margin_softmax", "multinomial", "log"}, default "margin_softmax"
        ``"margin_softmax"`` is the paper's; the margin belongs to training, and predictions are the softmax and the
        largest of f. ``"log"`` is for two classes, with one score.
    rule : {"scaled", "norm", "newton", "line", "row", "full"}, default "scaled"
        Which candidate enters. ``"norm"``: the one with the largest l1 norm of its row of the gradient, as printed in
        the paper, for features of one scale. ``"scaled"``: that norm over the deviation of the column (without an
        intercept, its root mean square), which is what the loss is sure to fall by. The others take the
        `shortlist` best of ``"scaled"``. ``"newton"`` asks how much the second-order model of the loss falls over the
        weights of the candidate; of groups it is the rule to take, since it knows which of their columns say the same.
        ``"line"``, ``"row"`` and ``"full"`` measure the fall of the loss: along the row of the gradient, over all
        weights of the candidate, or over all weights of the model.
    shortlist : int or None, default 10
        With None the costlier rules measure every candidate, and take the one that makes the objective fall most, as
        the paper defines them (section 3.1). Under ``"full"`` a round then fits one model for every feature, under
        ``"line"`` and ``"row"`` it tries every one of them; classes of hypotheses that cannot be listed, or of more
        than ten million, are refused.
    groups : array-like of int, shape (n,), optional
        Number of the group of each raw column. The columns of a group enter together. Families of hypotheses bring
        their own groups.
    penalty : {"l2_squared", "smooth_l1", "smooth_l1/linf", "none"} or penalty object, default "l2_squared"
        On the features held: ``"l2_squared"`` is half the sum of squares, the others are the rounded norms of the paper
        (section 3.3).
    alpha : float or "auto", default "auto"
        Strength of the penalty on the mean loss; ``"auto"`` is 1e-6: without any, weights have no optimum on data that
        the features separate.
    hypotheses : Family, optional
        What is chosen from: by default the raw columns; ``dboost.Products(max_degree=2)`` and the others. Of a class
        without end, such as ``dboost.Products()``, the candidates of a round are those next to the model, and of stumps
        in bins (more than their `max_listed`) those at the ends of the bins; both need ``standardize=False``.
    tol : float, default 1e-3
        A re-optimisation ends with a gradient of at most `tol` times that of the feature that entered, of a group the
        mean over its features.
    max_features : int, optional
        The fit ends once so many features are held.
    bound : float, optional
        Constant C of the generalisation bound (Theorem 1; the paper leaves it open): error in training plus
        ``C sqrt((T k log(T k) log k + T log d + log(1/0.05)) / m)``. With it the fit ends when the bound has not fallen
        for ten rounds, and the model is that of its lowest value.
    keep : int, optional
        Take features out again. After the last round the feature, or group, that the loss misses least leaves, all
        other weights are solved again, and so on down to one; the fit ends with the model of at most `keep` features.
        Chosen beside more features than are kept, these have a lower loss than as many that only entered: with
        ``max_rounds=150, keep=75``, say. `path_` and the ``staged_`` methods are then those of the way back, and
        `stop_reason_` is "kept". A checkpoint of a fit on its way back grows no more.
    corrective : {"newton", "nesterov"}, default "newton"
        What solves all weights again after a feature entered or left: ``"newton"`` is Newton's method with conjugate
        gradients, ``"nesterov"`` the accelerated gradient method that the paper used (section 2.1). Both end at the
        same minimum, to the same gradient; ``"nesterov"`` takes at most 5000 steps and needs many more passes, and what
        it left is in `history_` as "gradient".
    fit_intercept : bool, default True
        The paper has none; it is not penalised and counts as no feature.
    standardize : bool or None, default None
        Penalise each feature by its deviation, as if columns had been scaled. None means so under ``"l2_squared"``; the
        rounded norms do not follow a scale.
    random_state : int, RandomState or None, default 0
        For what a family of hypotheses draws.
    max_passes, max_seconds, class_weight, classes, checkpoint, callbacks, client
        As in ``BoostedClassifier``; with `keep`, what a limit ends is the way back too.
    max_active_rows : optional
        The former name of `max_features`, for one version; it warns (FutureWarning).

    Attributes
    ----------
    path_ : Table
        One record per round, or per model of the way back, fewest features first: ``round``, ``features`` held,
        ``entered`` (names), ``objective``, ``loss``, ``error`` (share of the training examples classified wrongly) and
        ``bound``.
    coef_, intercept_, classes_, n_features_in_, feature_names_in_, active_features_, history_, objective_, alpha_,
    stop_reason_, n_iter_, model_
        As in ``BoostedClassifier``. There is no certificate: `duality_gap_` is nan.

    Notes
    -----
    A feature that entered stays until the way back, if there is one. Ties go to the column that comes first.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = ShareBoostClassifier(max_rounds=2).fit(X, y)
    >>> model.path_.column("features").tolist(), [len(labels) for labels in model.staged_predict(X)]
    ([1, 2], [150, 150])
    """

    loss: str = "margin_softmax"
    rule: str = "scaled"
    shortlist: int | None = 10
    groups: Any = None
    penalty: Any = "l2_squared"
    alpha: float | str = "auto"
    hypotheses: Any = None
    max_rounds: int = 100
    tol: float = 1e-3
    max_features: int | None = None
    bound: float | None = None
    keep: int | None = None
    corrective: str = "newton"
    fit_intercept: bool = True
    standardize: Any = None
    random_state: Any = 0
    max_active_rows: int | None = None  # The former name of `max_features`, kept for one version.

    @classmethod
    def _minimises(cls, loss: Loss) -> bool:
        """Losses of classes with a largest curvature, which the choice of features is by."""
        return super()._minimises(loss) and math.isfinite(loss.kappa)

    def _given_settings(self) -> FitSettings:
        if self.loss is None:
            raise UsageError("loss=None", hint=f"expected one of {', '.join(map(repr, self._losses()))}")
        shared = shared_settings(self)
        alpha, penalty = self.alpha, get_penalty(self.penalty)
        if isinstance(alpha, str) and alpha == "auto" and not penalty.weightless:
            alpha = RIDGE
        asked = self.standardize
        scaled = penalty.degree > 0 and not penalty.weightless if asked is None else flag("standardize", asked)
        return FitSettings(
            **shared,
            penalty=self.penalty,
            alpha=alpha,
            max_features=limit_of(self, "max_features"),
            fit_intercept=flag("fit_intercept", self.fit_intercept),
            standardize=scaled,
            random_state=resolve_seed(self.random_state),
            system=ShareBoost(self.rule, self.shortlist, _groups(self.groups), self.bound, self.keep, self.corrective),
        )

    def _adopt(self, model: Model) -> Self:
        super()._adopt(model)
        self.path_ = path_of(model)
        return self

    # ---- prediction ------------------------------------------------------------------------------------------------

    def staged_predict(self, X: Any) -> Iterator[Any]:
        """Labels by the model of each round, in order.

        Parameters
        ----------
        X : as for `fit`
            In memory the features are computed once. Dask and Parquet input is read again for every round.

        Yields
        ------
        As `predict`
            What a fit with ``max_rounds`` 1, 2, ... predicts.
        """
        return self._staged(X, predicting.LABELS)

    def staged_predict_proba(self, X: Any) -> Iterator[Any]:
        """Probabilities by the model of each round; input and output as for `staged_predict`."""
        return self._staged(X, predicting.PROBABILITIES)

    def staged_decision_function(self, X: Any) -> Iterator[Any]:
        """Scores by the model of each round; input and output as for `staged_predict`."""
        return self._staged(X, predicting.SCORES)

    def _staged(self, X: Any, what: str) -> Iterator[Any]:
        kind, X = self._readable(X)
        return predicting.staged(self.model_, X, kind, what)


def _groups(groups: Any) -> tuple[int, ...] | None:
    if groups is None:
        return None
    found = np.asarray(groups)
    if found.ndim != 1 or found.dtype.kind not in "iu":
        raise UsageError(
            f"groups is an array of {found.dtype} and shape {found.shape}", hint="expected an integer for each column"
        )
    return tuple(found.tolist())


def path_of(model: Model) -> Table:
    """One record per model of the path, fewest features first."""
    stages = model.stages
    if stages is None:
        return Table()
    words, before, records = model.hypotheses.words(), 0, []
    of_size = last_of_size(model.history)
    for count in stages.counts.tolist():
        record = of_size[count]
        entered = [words[j] for j in stages.order[before:count].tolist()]
        keep = {name: record.get(name, math.nan) for name in ("objective", "loss", "error", "bound")}
        records.append({"round": record["round"], "features": count, "entered": ", ".join(entered)} | keep)
        before = count
    return Table(records)
