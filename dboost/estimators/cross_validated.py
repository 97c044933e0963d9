"""A strength of the penalty, or the worth of a model, by cross-validation along the path, for every estimator.

Covers: ``cross_validated``; what the folds say and which strength that chooses; the folds a user gives.
Does not cover: the fits (``dboost.boosting.cross_validation``) and the folds by hash (``dboost.passes.folds``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from dboost.boosting.checks import check_settings
from dboost.boosting.cross_validation import cross_validate
from dboost.boosting.fit import FitResult, FitSettings, warn_if_open
from dboost.boosting.fold_scores import FoldScores
from dboost.data.labels.labels import check_weight
from dboost.data.named_columns import take_column
from dboost.data.planned import Plan
from dboost.errors import ConvergenceWarning, DataError, UsageError
from dboost.estimators.base import BoostedEstimator
from dboost.estimators.fitting import model_of, prepared
from dboost.estimators.history import Table
from dboost.estimators.live_line import live_line
from dboost.estimators.params import number
from dboost.estimators.path import RegularizationPath, check_grid, of_several_fits, told_of
from dboost.estimators.predicting import kind_of
from dboost.estimators.splits import folds_of, is_splitter
from dboost.files.paths import PathLike
from dboost.model.fitted import Model
from dboost.model.tasks import NUMBERS
from dboost.notices import warn_user
from dboost.passes.folds import Folds
from dboost.penalties import get_penalty

RULES = ("1se", "best")
SCORINGS = ("loss", "error")
FOLD_TOL = 1e-3
# Strengths whose ratio is so near to 1 are the same: a grid that begins at alpha_max is off by rounding only.
_SAME = 1e-9


@dataclass(frozen=True)
class Choice:
    """How a strength is chosen; see ``BoostedClassifierCV`` for the meaning of each.

    Parameters
    ----------
    cv, folds, alphas, n_alphas, eps, fold_tol, scoring, rule
    """

    cv: Any = 10
    folds: Any = None
    alphas: Sequence[float] | None = None
    n_alphas: int = 50
    eps: float = 1e-2
    fold_tol: float | None = None
    scoring: str = "loss"
    rule: str = "1se"

    def check(self) -> None:
        """Refuse parameters of the cross-validation without meaning.

        Raises
        ------
        UsageError
        """
        number_of_folds = isinstance(self.cv, int | np.integer) and not isinstance(self.cv, bool) and self.cv >= 2
        if self.folds is None and not number_of_folds and not is_splitter(self.cv):
            raise UsageError(
                f"cv={self.cv!r}",
                hint="expected an integer >= 2, a splitter of scikit-learn, or folds= with the fold of each row",
            )
        if self.alphas is None:
            check_grid(self.n_alphas, self.eps)
        elif len(self.alphas) == 0:
            raise UsageError("alphas is empty", hint="give at least one strength, or leave alphas out")
        if self.fold_tol is not None:
            number("fold_tol", self.fold_tol)
        for name, value, known in (("scoring", self.scoring, SCORINGS), ("rule", self.rule, RULES)):
            if value not in known:
                raise UsageError(f"{name}={value!r}", hint=f"expected one of {', '.join(known)}")


@dataclass(frozen=True)
class Validated:
    """What a cross-validation came to.

    Parameters
    ----------
    models : tuple of Model
        The path of all rows, strongest penalty first.
    record : dict
        What the folds say of each, as JSON; see `attributes`.
    chosen : int
        Place of the strength that the rule chooses.
    """

    models: tuple[Model, ...]
    record: dict[str, Any]
    chosen: int


def cross_validated(
    X: Any,
    y: Any = None,
    *,
    estimator: BoostedEstimator,
    sample_weight: Any = None,
    feature_names: Sequence[str] | None = None,
    cv: Any = 10,
    folds: Any = None,
    alphas: Sequence[float] | None = None,
    n_alphas: int = 50,
    eps: float = 1e-2,
    fold_tol: float | None = None,
    scoring: str = "loss",
    rule: str = "1se",
    checkpoint: PathLike | None = None,
    callbacks: Any = None,
    on_model: Callable[[Model], None] | None = None,
    client: Any = None,
) -> Any:
    """Cross-validate any estimator, and fit it to all rows.

    An estimator whose `alpha` is "auto", and whose path has a beginning, gets its strength chosen along the path, as
    ``BoostedClassifierCV`` does it for ``BoostedClassifier``. Others, and those with a number as `alpha`, are judged
    at that strength. Either may be given strengths to choose from.

    Parameters
    ----------
    X, y, sample_weight, feature_names
        As for the ``fit`` of the estimator.
    estimator : estimator
        Not changed.
    on_model : callable, optional
        Called with the model of all rows at each strength once its fit has ended.
    cv, folds, alphas, n_alphas, eps, fold_tol, scoring, rule, checkpoint, callbacks, client
        As in ``BoostedClassifierCV``. A regression has no share of wrong labels to score.

    Returns
    -------
    estimator
        A fitted copy at the chosen strength, with the attributes that ``BoostedClassifierCV`` has beside those of
        ``BoostedClassifier``: `alphas_`, `cv_results_`, `fold_losses_` and so on, `path_`. They are not saved.

    Raises
    ------
    UsageError, DataError
        Before any training.
    ClusterError, StorageError
        During it; with a checkpoint, the next call goes on from there.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> import dboost
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = cross_validated(X, y, estimator=dboost.BoostedRegressor(), cv=5, n_alphas=10, eps=1e-3)
    >>> model.fold_losses_.shape, bool(model.alpha_ >= model.alpha_best_)
    ((5, 10), True)
    """
    choice = Choice(cv, folds, alphas, n_alphas, eps, fold_tol, scoring, rule)
    choice.check()
    chosen = clone(estimator).set_params(checkpoint=checkpoint, callbacks=callbacks, client=client)
    if alphas is not None and "alpha" in chosen.get_params(deep=False):
        # some have no penalty unless it is asked for
        chosen.set_params(alpha="auto")
    chosen._fits_several = True
    found = validated(chosen, choice, X, y, sample_weight, on_model, feature_names)
    template = clone(estimator).set_params(checkpoint=None, callbacks=None)
    fitted: Any = clone(template)
    fitted.set_params(client=client)._adopt(found.models[found.chosen])
    for name, value in attributes(found.record, scoring).items():
        setattr(fitted, name, value)
    fitted.path_ = RegularizationPath(found.models, template)
    warn_of_ends(fitted, choice)
    return fitted


def validated(
    estimator: Any,
    choice: Choice,
    X: Any,
    y: Any,
    sample_weight: Any,
    on_model: Callable[[Model], None] | None = None,
    feature_names: Sequence[str] | None = None,
) -> Validated:
    """Fit the path of an estimator with and without each fold; `choice` was checked.

    Its `checkpoint` is a folder, and its `callbacks` are told of all fits.
    """
    functions = of_several_fits(estimator.callbacks)
    given = choice.folds
    if given is None and is_splitter(choice.cv):
        if kind_of(X) not in ("table", "matrix"):
            raise UsageError(
                "a splitter as cv= is for data in memory", hint="use a number, for folds by a hash of the rows"
            )
        given = folds_of(choice.cv, take_column(X, y, "y")[1] if isinstance(y, str) else y)
    elif isinstance(given, str):
        if kind_of(X) != "table":
            raise UsageError(f"folds={given!r} names a column, but X is no table in memory", hint="use cv=")
        X, given = take_column(X, given, "folds")
    elif given is not None and kind_of(X) not in ("table", "matrix"):
        raise UsageError("folds= is for data in memory", hint="use cv=, which makes folds by a hash of the rows")
    with live_line(estimator.callbacks, X) as line, prepared(estimator, X, y, sample_weight, feature_names) as parts:
        if isinstance(choice.folds, str):
            parts = replace(parts, named={**parts.named, "folds": choice.folds})
        settings, plan = parts.settings, parts.plan
        if plan.task in NUMBERS and choice.scoring == "error":
            raise UsageError("scoring='error' of a regression, which has no wrong labels", hint="use scoring='loss'")
        alphas = _strengths(settings, choice)
        folds = Folds(int(choice.cv), settings.random_state) if given is None else _given(given, plan, parts.weight)
        fold_tol = max(FOLD_TOL, settings.tol) if choice.fold_tol is None else float(choice.fold_tol)
        keeper = None
        if estimator.checkpoint is not None:
            from dboost.estimators.path_checkpoint import FoldFolder

            keeper = FoldFolder(estimator.checkpoint, plan, settings, folds, fold_tol)
        grid = (alphas, choice.n_alphas, choice.eps)

        def tell(result: FitResult) -> None:
            if on_model is not None:
                on_model(model_of(estimator, parts, result))

        told = told_of([*functions, *line])
        results, scores = cross_validate(plan, parts.engine, settings, folds, fold_tol, *grid, told, keeper, tell)
        models = tuple(model_of(estimator, parts, result) for result in results)
    record = _record(models, scores)
    chosen = _choose(record, choice.scoring)[choice.rule]
    _warn_of_gaps(results[chosen], settings, scores, fold_tol)
    return Validated(models, record | {"scoring": choice.scoring}, chosen)


def _strengths(settings: FitSettings, choice: Choice) -> Sequence[float] | None:
    """The strengths; None where they begin at the least that uses no feature."""
    if choice.alphas is not None:
        for alpha in choice.alphas:
            check_settings(replace(settings, alpha=alpha))
        return choice.alphas
    if settings.alpha != "auto":
        return [float(settings.alpha)]
    # a system of its own may have nothing that a strength could be of
    return None if settings.system is None or get_penalty(settings.penalty).threshold else [0.0]


def _warn_of_gaps(result: FitResult, settings: FitSettings, scores: FoldScores, fold_tol: float) -> None:
    """Warn where the model, or a fit without some fold, ended above its tolerance."""
    warn_if_open(result, settings)
    late = int(np.count_nonzero(scores.gap > fold_tol))
    if late:
        warn_user(
            f"{late} of {scores.gap.size} fits without a fold stopped above fold_tol={fold_tol:g}, "
            f"at a certified relative gap of {scores.gap.max():.2g} at worst",
            ConvergenceWarning,
        )


def warn_of_ends(fitted: Any, choice: Choice) -> None:
    """Warn where the least score is at an end of the strengths, beyond which there may be a lesser one."""
    best, alphas, end = fitted.alpha_best_, fitted.alphas_, None
    if len(alphas) < 2:
        return
    if best == alphas[-1]:
        less = "smaller alphas" if choice.alphas is not None else f"a smaller eps than {choice.eps:g}"
        end = f"the weakest of {len(alphas)} strengths", less
    elif best == alphas[0] and not best >= fitted.alpha_max_ * (1.0 - _SAME):
        # from alpha_max on every model is the same: it uses no feature; some penalties have none, which is nan
        end = f"the strongest of {len(alphas)} strengths", "larger alphas"
    if end is not None:
        warn_user(
            f"alpha_best_={best:.4g} is {end[0]}, an end of the grid: the least {choice.scoring} may lie beyond it; "
            f"give {end[1]}"
        )


def attributes(record: dict[str, Any], scoring: str) -> dict[str, Any]:
    """The fitted attributes that say what the folds say."""
    best = _choose(record, scoring)
    alphas = np.array([r["alpha"] for r in record["table"]])
    return {
        "alphas_": alphas,
        "alpha_best_": float(alphas[best["best"]]),
        "alpha_1se_": float(alphas[best["1se"]]),
        "cv_results_": Table(record["table"]),
        "fold_losses_": np.array(record["loss"]),
        "fold_errors_": np.array(record["error"]),
        "fold_gaps_": np.array(record["gap"]),
        "fold_weights_": np.array(record["weight"]),
        "fold_active_rows_": np.array(record["active_rows"], dtype=np.int64),
    }


def _given(folds: Any, plan: Plan, sample_weight: Any) -> Folds:
    """Folds given row by row, cut as the plan cut the rows."""
    labels = np.asarray(folds)
    if labels.ndim != 1:
        raise UsageError(f"folds has shape {labels.shape}", hint="expected one fold per row, shape (m,)")
    if labels.dtype.kind == "f" and not np.all(np.isfinite(labels)):
        raise DataError("folds holds missing values", hint="give every row a fold")
    names, codes = np.unique(labels, return_inverse=True)
    weight = check_weight(sample_weight, labels.shape[0])
    kept = codes[weight > 0.0].astype(np.int32)
    if kept.shape[0] != plan.n_rows:
        raise DataError(f"folds has {labels.shape[0]} rows, X has another number", hint="give one fold per row")
    ends = np.cumsum(plan.rows)
    pieces = np.split(kept, ends[:-1])
    keys = [item.key for item in plan.items]
    return Folds(len(names), given=dict(zip(keys, pieces, strict=True)))


def _record(models: Sequence[Model], scores: FoldScores) -> dict[str, Any]:
    """What cross-validation found, as JSON."""
    loss, se_loss = _mean_and_error(scores.loss, scores.weight)
    error, se_error = _mean_and_error(scores.error, scores.weight)
    table = [
        {
            "alpha": float(model.certificate.alpha),
            "mean_loss": float(loss[t]),
            "se_loss": float(se_loss[t]),
            "mean_error": float(error[t]),
            "se_error": float(se_error[t]),
            "active_rows": int(model.W.shape[0]),
        }
        for t, model in enumerate(models)
    ]
    names = ("loss", "error", "gap", "weight", "active_rows")
    return {"table": table} | {name: getattr(scores, name).tolist() for name in names}


def _mean_and_error(
    values: NDArray[np.float64], weight: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean over folds (F, T) by weight, and its standard error."""
    share = (weight / weight.sum())[:, None]
    mean = np.sum(share * values, axis=0)
    spread = np.sum(share * (values - mean) ** 2, axis=0)
    return mean, np.sqrt(spread / (values.shape[0] - 1))


def _choose(record: dict[str, Any], scoring: str) -> dict[str, int]:
    """Place of the strength that each rule chooses; ties go to the larger strength."""
    mean = np.array([r[f"mean_{scoring}"] for r in record["table"]])
    error = np.array([r[f"se_{scoring}"] for r in record["table"]])
    best = int(np.argmin(mean))
    return {"best": best, "1se": int(np.argmax(mean <= mean[best] + error[best]))}
