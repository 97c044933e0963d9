"""What is made of an earlier fit: a start, factors of the penalty, or its features fitted again without a penalty.

Covers: the earlier weights among the candidates of this fit: of columns by their names and of classes by their labels
where these have changed; what cannot be carried over; ``adaptive_factors``, by which what the earlier fit used much is
charged little (Zou 2006); ``relaxed``, what ``relax`` of a cross-validation may be, the model of a blend.
Does not cover: what the fit makes of its start (``dboost.boosting``), the refit (``dboost.boosting.relaxed``).
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from dboost.boosting.fit import FitResult, FitState
from dboost.boosting.planned import columns_of
from dboost.boosting.relaxed import REACHED, Refit, between, refitted, refusal, unchanged
from dboost.data.named_columns import take_column
from dboost.errors import ConvergenceWarning, UsageError
from dboost.estimators.fitting import Prepared, class_places, model_of, prepared
from dboost.estimators.params import number
from dboost.estimators.predicting import kind_of
from dboost.files.documents import plain
from dboost.model.fitted import Model
from dboost.notices import warn_user
from dboost.penalties.rows import norm2

Float = NDArray[np.float64]


def start_from(model: Model, parts: Prepared) -> FitResult:
    """An earlier model as the start of a fit."""
    plan = parts.plan
    hint = "set warm_start=False to start from nothing"
    names = model.feature_names, plan.feature_names
    renamed = names[0] != names[1] and model.plain and None not in names
    if not renamed and (model.n_features != plan.n_features or names[0] != names[1]):
        raise UsageError(
            f"warm_start: the earlier fit had {model.n_features} features, this one has {plan.n_features}"
            + ("" if model.n_features != plan.n_features else " with other names"),
            hint=hint,
        )
    mine, theirs = parts.classes.tolist(), model.classes.tolist()
    if model.task != plan.task or (mine != theirs and (plan.task != "multiclass" or not set(mine) & set(theirs))):
        raise UsageError("warm_start: the classes differ from those of the earlier fit", hint=hint)
    columns = class_places(parts) if plan.task == "multiclass" else np.arange(plan.n_outputs)
    W, intercept = model.W, model.intercept
    if mine != theirs:
        W, intercept = _by_label(W, theirs, mine), _by_label(intercept[None], theirs, mine)[0]
    active = np.zeros(0, np.int64)
    if renamed:
        active, W = _by_name(model, W, plan.feature_names or ())
    W, intercept = np.ascontiguousarray(W[:, columns]), intercept[columns]
    if not parts.settings.fit_intercept:
        intercept = np.zeros_like(intercept)
    family = parts.settings.hypotheses
    earlier = None if family is None or model.plain else model.manifest["estimator"]["params"]["hypotheses"]
    # where nobody said, it is the family that the data decided both times
    other = family is not None and earlier is not None and plain(family.to_json()) != earlier
    if model.plain != (family is None) or other:
        raise UsageError("warm_start: the hypotheses differ from those of the earlier fit", hint=hint)
    keys = () if model.origin is None else model.origin.keys
    if not renamed:
        active = np.arange(len(keys), dtype=np.int64) if keys else model.active
    if parts.settings.offset is not None:
        # a model holds its offsets as columns of weight one, which no fit moves
        free = ~np.isin(active, columns_of(plan, parts.settings).offset)
        active, W = active[free], W[free]
    cert = model.certificate
    return FitResult(
        active=active,
        W=W,
        intercept=intercept,
        objective=cert.objective,
        lower_bound=cert.lower_bound,
        gap=cert.gap,
        stop_reason=cert.stop_reason,
        n_iter=0,
        passes=0,
        alpha=cert.alpha,
        alpha_max=cert.alpha_max,
        history=[],
        trace=np.zeros((0, 3)),
        state=FitState(active, W, intercept, lam=0.0, keys=keys),
    )


def _by_label(W: Float, theirs: list[Any], mine: list[Any]) -> Float:
    """Columns of an earlier W in the order of the labels of this fit; a label that is new begins at zero."""
    found = np.zeros((W.shape[0], len(mine)))
    for place, label in enumerate(mine):
        if label in theirs:
            found[:, place] = W[:, theirs.index(label)]
    return found


def _by_name(model: Model, W: Float, names: Sequence[str]) -> tuple[NDArray[np.int64], Float]:
    """Rows of an earlier W at the columns that have their names now; those whose names are gone are left out."""
    place = {name: at for at, name in enumerate(names)}
    at = np.array([place.get(name, -1) for name in model.hypotheses.words()], dtype=np.int64)
    kept = np.flatnonzero(at >= 0)
    order = kept[np.argsort(at[kept], kind="stable")]
    return at[order], W[order]


def followed(model: Model, start: FitResult, pool: Any) -> FitResult:
    """A start whose hypotheses are among those of the pool, with weights that mean the same there."""
    if model.origin is None or model.origin.token == pool.token:
        return start
    try:
        places, factors = pool.follow(model.hypotheses, model.origin.keys)
    except UsageError as fault:
        raise UsageError(
            "warm_start: the candidate hypotheses differ from those of the earlier fit, as the data does",
            hint="set warm_start=False to start from nothing",
        ) from fault
    active, W = np.arange(len(places), dtype=np.int64), start.W[places] * factors[:, None]
    keys = tuple(model.origin.keys[place] for place in places.tolist())
    return replace(start, active=active, W=W, state=replace(start.state, active=active, W=W, keys=keys))


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


# Shares of the penalised model that a cross-validation tries, as cv.glmnet does.
GAMMAS = (0.0, 0.25, 0.5, 0.75, 1.0)
TOL = 1e-9
# Where a saved model keeps how it was blended.
BLEND = "relaxed"


def relaxed(
    fitted: Any,
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    feature_names: Sequence[str] | None = None,
    *,
    gamma: float = 0.0,
    tol: float = TOL,
    client: Any = None,
) -> Any:
    """Fit the features that a model uses again, without a penalty, and go from the model towards that.

    A penalty chooses features, and shrinks their weights too. The relaxed fit (Meinshausen 2007; Hastie, Tibshirani and
    Tibshirani 2020; ``relax=TRUE`` of glmnet) keeps the choice and undoes the shrinking: its weights are
    ``gamma W + (1 - gamma) W_refit``, and its intercept likewise, where W_refit minimises the loss alone over the
    features whose rows of W are not zero. Signs of weights (`positive`, `lower`, `upper`) are kept: a feature that has
    one may then have the weight zero, and be no part of the refit.

    Of features that determine each other, such as two copies of a column, the refit is one of several that predict the
    same on the data.

    Parameters
    ----------
    fitted : estimator
        ``BoostedClassifier``, ``BoostedRegressor``, ``MultiTaskBoostedClassifier`` or one of these that chooses by
        cross-validation, fitted on columns. It is not changed, and its own parameters hold (`loss`, `class_weight`,
        `offset`, `fit_intercept`, `max_rounds` and other limits).
    X, y, sample_weight, feature_names
        The data of the fit, as for its ``fit``.
    gamma : float, default 0.0
        From 0, the refit alone, to 1, the model as it was, bit for bit.
    tol : float, default 1e-9
        Of the refit: what its last step promises to lower the mean loss by, relative to it; with signs its certified
        relative duality gap.
    client : distributed.Client, optional
        As in ``BoostedClassifier``.

    Returns
    -------
    estimator
        A fitted copy. `relaxed_` says how it came about: `gamma`, the `stop_reason` of the refit ("gradient" or
        "precision" at the optimum, "tol" of one with signs, "none" where none was needed), the largest `gradient` of
        the mean loss by a weight there, `rounds` and `passes`. `objective_` is the mean loss of the refit where gamma
        is 0, and not known in between. There is no duality gap, but of a refit with signs where gamma is 0.

    Raises
    ------
    UsageError
        Where parameters have no meaning, the data is not like that of the fit, or it was none of penalised columns.
    DataError
        Where the refit has no finite optimum, as of classes that the features separate, or more weights than examples.

    Warns
    -----
    ConvergenceWarning
        When a limit ended the refit before its optimum.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> import dboost
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = dboost.BoostedRegressor(alpha=1.0).fit(X, y)
    >>> refit, half = relaxed(model, X, y), relaxed(model, X, y, gamma=0.5)
    >>> refit.active_features_ == model.active_features_, bool(model.score(X, y) < half.score(X, y) < refit.score(X, y))
    (True, True)
    >>> refit.relaxed_["stop_reason"], refit.relaxed_["gradient"] < 1e-6
    ('gradient', True)
    """
    check_is_fitted(fitted, "model_")
    share, accuracy = checked_gamma("gamma", gamma), number("tol", tol)
    model = fitted.model_
    estimator = clone(fitted).set_params(client=client, checkpoint=None, callbacks=None)
    if not hasattr(estimator, "penalty") or not model.plain:
        what = "hypotheses are no columns of the data" if not model.plain else "it has no penalty"
        raise UsageError(f"a relaxed fit is one of penalised columns, and of this one {what}", hint="fit another one")
    if isinstance(getattr(fitted, "folds", None), str) and kind_of(X) == "table":
        X, _ = take_column(X, fitted.folds, "folds")
    with prepared(estimator, X, y, sample_weight, feature_names) as parts:
        why = refusal(parts.settings)
        if why:
            raise UsageError(f"a relaxed fit is one of penalised columns, and {why}", hint="fit another estimator")
        _check_alike(model, parts)
        start = start_from(model, parts)
        parts.engine.set_plan(parts.plan.items, parts.plan.rows, uuid.uuid4().hex[:12])
        # the model as it was needs none, which may not exist
        refit = unchanged(start)
        if share < 1.0:
            refit = refitted(parts.plan, parts.engine, parts.settings, start, accuracy)
        warn_of_ends(refit, accuracy)
        found = blend(estimator, parts, model, start, refit, share)
    # how the model came about is what it was, but for this
    found = replace(found, manifest={**model.manifest, BLEND: found.manifest[BLEND]})
    return clone(fitted).set_params(client=client)._adopt(found)


def gammas_of(relax: Any) -> tuple[float, ...]:
    """The shares that a cross-validation tries, falling; none where `relax` asks for none."""
    if relax is None or relax is False:
        return ()
    if relax is True:
        return tuple(sorted(GAMMAS, reverse=True))
    if isinstance(relax, str) or not isinstance(relax, Sequence | np.ndarray) or not len(relax):
        raise UsageError(f"relax={relax!r}", hint=f"expected None, True for the shares {GAMMAS}, or shares from 0 to 1")
    return tuple(sorted({checked_gamma("relax", one) for one in relax}, reverse=True))


def checked_gamma(name: str, value: Any) -> float:
    """A share from 0 to 1, or UsageError."""
    found = number(name, value)
    if found > 1.0:
        raise UsageError(f"{name}={value!r}", hint="expected a share of the penalised model, from 0 to 1")
    return found


def blend(estimator: Any, parts: Prepared, model: Model, result: FitResult, refit: Refit, gamma: float) -> Model:
    """The model between a penalised one, whose weights `result` has, and its refit."""
    told = {
        "gamma": gamma,
        "stop_reason": refit.stop_reason,
        "gradient": refit.gradient,
        "rounds": refit.n_iter,
        "passes": refit.passes,
    }
    found = model if gamma == 1.0 else model_of(estimator, parts, between(result, refit, gamma))
    return replace(found, manifest={**found.manifest, BLEND: told})


def warn_of_ends(refit: Refit, tol: float) -> None:
    """Warn where a limit ended a refit."""
    if refit.stop_reason not in (*REACHED, "none"):
        warn_user(
            f"the refit without a penalty stopped ({refit.stop_reason}) at a gradient of {refit.gradient:.2g}, before "
            f"its steps promised less than tol={tol:g}, after {refit.n_iter} rounds",
            ConvergenceWarning,
        )


def _check_alike(model: Model, parts: Prepared) -> None:
    """Refuse other data than that of the fit."""
    plan = parts.plan
    pairs = (
        ("features", model.n_features, plan.n_features),
        ("names of features", model.feature_names, plan.feature_names),
        ("kind of labels", model.task, plan.task),
        ("classes", model.classes.tolist(), parts.classes.tolist()),
    )
    for what, theirs, mine in pairs:
        if theirs != mine:
            raise UsageError(
                f"the data has other {what} than that of the fit: {_short(mine)}, expected {_short(theirs)}",
                hint="give the data that the model was fitted on",
            )


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
