"""``relaxed``: a fitted estimator whose features are fitted again without a penalty, wholly or in part.

Covers: the function, what ``relax`` of a cross-validation may be, the model of a blend.
Does not cover: the refit (``dboost.boosting.relaxed``), or how a share is chosen (``cross_validated``).
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from dboost.boosting.fit import FitResult
from dboost.boosting.relaxed import REACHED, Refit, between, refitted, refusal, unchanged
from dboost.data.named_columns import take_column
from dboost.errors import ConvergenceWarning, UsageError
from dboost.estimators.earlier import start_from
from dboost.estimators.fitting import Prepared, model_of, prepared
from dboost.estimators.params import number
from dboost.estimators.predicting import kind_of
from dboost.model.fitted import Model
from dboost.notices import warn_user

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
    """The model between a penalised one and its refit.

    `model`: The penalised one: what it is at gamma = 1. `result`: Its weights, among the columns of the data.
    """
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
