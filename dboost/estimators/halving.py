"""Successive halving over parameters of an estimator, on growing shares of the rows.

Covers: ``successive_halving``: candidates of a grid, which of them share a path, what is said of every rung.
Does not cover: the rungs and their fits (``dboost.boosting.cross_validation``).
"""

from __future__ import annotations

import math
import pickle
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sklearn.base import clone
from sklearn.model_selection import ParameterGrid

from dboost.boosting.cross_validation import judged, kept, rungs
from dboost.boosting.planned import placed
from dboost.data.named_columns import without
from dboost.errors import UsageError
from dboost.estimators.base import BoostedEstimator
from dboost.estimators.cross_validated import FOLD_TOL
from dboost.estimators.fitting import Prepared, prepared
from dboost.estimators.params import count
from dboost.losses import get_loss
from dboost.partition import NUMBERS
from dboost.passes.draws import Groups, Places
from dboost.passes.subsamples import Subsample
from dboost.problem.state import FitSettings

SCORINGS = ("loss", "error")
# They say what the data is, where it is fitted, or when a fit ends, and are the same for all candidates.
_OF_ALL = ("classes", "class_weight", "client", "callbacks", "checkpoint", "random_state", "tol")


@dataclass(frozen=True)
class _Candidate:
    """Some values of the grid."""

    params: dict[str, Any]  # As they were given
    settings: FitSettings  # Of the estimator with them
    group: int  # Candidates of one group differ in their strength alone, and are fitted along one path


def successive_halving(
    X: Any,
    y: Any = None,
    *,
    estimator: BoostedEstimator,
    param_grid: Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]],
    sample_weight: Any = None,
    feature_names: Sequence[str] | None = None,
    groups: Any = None,
    factor: float = 3.0,
    cv: int = 3,
    scoring: str = "loss",
    min_rows: int = 1000,
    client: Any = None,
) -> Any:
    """Choose among parameters: all of them on few rows, the best of them on more, and fit the best to all rows.

    Every candidate is cross-validated within the rows of its rung. From a rung to the next the rows become `factor`
    times as many and the candidates as many times fewer, so that each rung costs about the same, and all of them less
    than one cross-validation of every candidate (Jamieson & Talwalkar 2016; scikit-learn's ``HalvingGridSearchCV``,
    whose rows must be in memory). Candidates that differ in `alpha` alone are fitted along one path.

    Parameters
    ----------
    X, y, sample_weight, feature_names
        As for the ``fit`` of the estimator: in memory, on disk or on Dask.
    estimator : estimator
        With the parameters that all candidates have. Not changed. Limits of passes and seconds are those of each fit;
        callbacks and a checkpoint are of the last one, to all rows.
    param_grid : dict of str to sequence, or sequence of such
        Parameters of the estimator and the values to try, as for scikit-learn's ``GridSearchCV``. An `alpha` is a
        number: a share such as 0.1 of the largest useful strength is another number on other rows.
    groups
        As for the ``fit`` of ``BoostedClassifierCV``: rungs and folds have whole groups.
    factor : float, default 3
        Above 1.
    cv : int, default 3
        Folds within each rung, drawn as those of ``BoostedClassifierCV`` are.
    scoring : {"loss", "error"}, default "loss"
        Mean loss, or mean share of wrong labels, of the held-out rows, by weight. Candidates of several losses are
        compared by "error".
    min_rows : int, default 1000
        The first rung has at least about so many rows.
    client : dask.distributed.Client, optional
        By default that of the estimator.

    Returns
    -------
    estimator
        A copy with the best parameters, fitted to all rows, with `best_params_`, `best_score_` (the less, the better)
        and `halving_results_`: one dict for each candidate of each rung, with "rung", "rows", "params", "mean", "sd"
        over the folds, "gap", the largest of the fits, and "kept".

    Raises
    ------
    UsageError, DataError
        Before any training.

    Notes
    -----
    A rung has a random share of the rows of each class, and of each two rows at least: drawn by their places in the
    order of the data and `random_state`, so that it depends neither on partitions nor on workers. The rows of a rung
    are among those of the next. On fewer rows a stronger penalty is best: the best `alpha` falls about as the root of
    the number of rows. A grid should therefore hold several, and a small `factor` lets more of them survive.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> import dboost
    >>> X, y = load_digits(return_X_y=True)
    >>> grid = {"penalty": ["l1/l2", "l1"], "alpha": [0.03, 0.01, 0.003]}
    >>> model = dboost.successive_halving(
    ...     X / 16, y, estimator=dboost.BoostedClassifier(tol=1e-3), param_grid=grid, min_rows=500
    ... )
    >>> model.best_params_["alpha"], sorted({row["rung"] for row in model.halving_results_})
    (0.003, [0, 1])
    """
    given = _listed(estimator, param_grid)
    _check(factor, cv, scoring, min_rows)
    base = clone(estimator)
    if client is not None:
        base.set_params(client=client)
    first = clone(base).set_params(**given[0])
    with prepared(first, X, y, sample_weight, feature_names, groups) as parts:
        if parts.plan.task in NUMBERS and scoring == "error":
            raise UsageError("scoring='error' of a regression, which has no wrong labels", hint="use scoring='loss'")
        candidates = _candidates(base, given, parts, scoring)
        parts.engine.set_plan(parts.plan.items, parts.plan.rows, uuid.uuid4().hex[:12])
        results, best = _run_rungs(parts, candidates, factor, cv, scoring, min_rows)
    fitted: Any = clone(base).set_params(**best["params"])
    names = {} if feature_names is None else {"feature_names": feature_names}
    if isinstance(groups, str):
        X = without(X, [groups])
    fitted.fit(X, y, sample_weight=sample_weight, **names)
    fitted.halving_results_, fitted.best_params_, fitted.best_score_ = results, best["params"], best["mean"]
    return fitted


def _run_rungs(
    parts: Prepared, candidates: list[_Candidate], factor: float, cv: int, scoring: str, min_rows: int
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """What every rung says of its candidates, and the row of the best in the last."""
    results: list[dict[str, Any]] = []
    left = list(range(len(candidates)))
    rows: list[dict[str, Any]] = []
    places = placed(parts.plan, parts.engine)
    for number, rung in enumerate(rungs(len(candidates), factor, parts.plan.n_rows, min_rows)):
        rows = [{} for _ in candidates]
        for group in sorted({candidates[c].group for c in left}):
            mine = [c for c in left if candidates[c].group == group]
            scores = _scores_of_group(parts, [candidates[c] for c in mine], places, rung.share, cv, scoring)
            for c, said in zip(mine, scores, strict=True):
                rows[c] = {"rung": number, **said}
        # of equals the one that was given first
        ranked = sorted(left, key=lambda c: (rows[c]["mean"], c))
        last = rung.share >= 1.0
        left = sorted(ranked[: 1 if last else kept(len(ranked), factor)])
        for c in ranked:
            rows[c]["kept"] = c in left
        results += [rows[c] for c in sorted(ranked)]
    return results, rows[left[0]]


def _scores_of_group(
    parts: Prepared, some: list[_Candidate], rows_of_all: Places | Groups, share: float, cv: int, scoring: str
) -> list[dict[str, Any]]:
    """What the folds of a rung say of the candidates of one group."""
    settings = some[0].settings
    strengths = [float(one.settings.alpha) for one in some]
    alphas = sorted(set(strengths), reverse=True)
    drawn = Subsample(share, settings.random_state, rows_of_all)
    tol = max(FOLD_TOL, settings.tol)
    scores, rows = judged(parts.plan, parts.engine, settings, alphas, drawn, cv, tol)
    table = scores.error if scoring == "error" else scores.loss
    mean = scores.weight @ table / scores.weight.sum()
    places = [alphas.index(alpha) for alpha in strengths]
    return [
        {
            "rows": rows,
            "params": one.params,
            "mean": float(mean[place]),
            "sd": float(table[:, place].std(ddof=1)),
            "gap": float(scores.gap[:, place].max()),
        }
        for one, place in zip(some, places, strict=True)
    ]


def _listed(estimator: BoostedEstimator, param_grid: Any) -> list[dict[str, Any]]:
    """All candidates, in the order of ``ParameterGrid``."""
    try:
        given = list(ParameterGrid(param_grid))
    except (TypeError, ValueError) as error:
        raise UsageError(f"param_grid: {error}", hint="give a dict of parameters and lists of values") from error
    known = estimator.get_params(deep=False)
    for params in given:
        for name in params:
            if name not in known:
                kind = type(estimator).__name__
                raise UsageError(f"param_grid has {name!r}, which is no parameter of {kind}", hint="see its parameters")
            if name in _OF_ALL:
                raise UsageError(
                    f"param_grid has {name!r}, which is the same for all candidates", hint="set it in the estimator"
                )
    return given


def _check(factor: float, cv: int, scoring: str, min_rows: int) -> None:
    if not (isinstance(factor, int | float) and math.isfinite(factor) and factor > 1.0):
        raise UsageError(f"factor={factor!r}", hint="expected a number above 1")
    for name, value in (("cv", cv), ("min_rows", min_rows)):
        count(name, value, 2)
    if scoring not in SCORINGS:
        raise UsageError(
            f"scoring={scoring!r}",
            hint="expected 'loss' or 'error'; for other scorers and data in memory there is HalvingGridSearchCV",
        )


def _candidates(base: BoostedEstimator, given: list[dict[str, Any]], parts: Prepared, scoring: str) -> list[_Candidate]:
    """The candidates with their settings; the loss of each is of the task that the data was planned for."""
    plan, found, groups = parts.plan, [], []
    for params in given:
        one: Any = clone(base).set_params(**params)
        settings = one._settings()
        if settings.alpha == "auto":
            raise UsageError(
                f"alpha='auto' of the candidate {params}", hint="give numbers as 'alpha' in param_grid or the estimator"
            )
        if one.loss is not None and get_loss(one.loss).task != plan.task:
            raise UsageError(
                f"loss={one.loss!r} is of the task {get_loss(one.loss).task!r}, others are of {plan.task!r}",
                hint="judge losses of one task at a time",
            )
        settings = replace(settings, loss=one._loss_of(plan.task, plan.n_outputs))
        # by what is fitted: parameters may be arrays, which do not compare as a whole
        kind = pickle.dumps(replace(settings, alpha=0.0))
        if kind not in groups:
            groups.append(kind)
        found.append(_Candidate(params, settings, groups.index(kind)))
    losses = {get_loss(one.settings.loss).name for one in found}
    if len(losses) > 1 and scoring == "loss":
        raise UsageError(
            f"scoring='loss' over the losses {', '.join(sorted(losses))}, whose values do not compare",
            hint="use scoring='error', or one loss",
        )
    return found
