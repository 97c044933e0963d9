"""What a fit takes from an earlier one: its weights as a start, or factors of the penalty.

Covers: the earlier weights among the candidates of this fit: of columns by their names and of classes by their labels
where these have changed; what cannot be carried over; ``adaptive_factors``, by which what the earlier fit used much is
charged little (Zou 2006). Does not cover: what the fit makes of its start (``dboost.boosting``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from dboost.boosting.fit import FitResult, FitState
from dboost.boosting.planned import columns_of
from dboost.errors import UsageError
from dboost.estimators.fitting import Prepared, class_places
from dboost.estimators.params import number
from dboost.files.documents import plain
from dboost.hypotheses.capabilities import Following
from dboost.model.fitted import Model
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
        if not isinstance(pool, Following):
            raise UsageError("hypotheses of this family depend on the rows")
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
