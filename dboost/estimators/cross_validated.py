"""A strength of the penalty, or the worth of a model, by cross-validation along the path, for every estimator.

Covers: ``cross_validated``; how a strength is asked to be chosen; the folds a user gives, as a splitter of
scikit-learn, a list of its splits or the fold of each row; the record of what the folds say, the attributes made from
it, and which strength that chooses. Does not cover: the fits (``dboost.boosting.cross_validation``), the folds that are
drawn (``dboost.passes.draws``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from dboost.boosting.checks import check_settings
from dboost.boosting.cross_validation import FoldScores, cross_validate
from dboost.boosting.fit import FitResult, FitSettings, warn_if_empty, warn_if_open
from dboost.boosting.relaxed import NoRefit, Refit, Relaxation, refitted, refusal, unchanged
from dboost.data.labels.labels import check_weight
from dboost.data.named_columns import take_column
from dboost.data.planned import Plan, count_rows
from dboost.errors import ConvergenceWarning, DataError, UsageError
from dboost.estimators.base import BoostedEstimator
from dboost.estimators.checkpoint import FoldFolder
from dboost.estimators.fitting import Prepared, model_of
from dboost.estimators.held_out import HeldOut
from dboost.estimators.params import number, parameters
from dboost.estimators.path import RegularizationPath, check_grid, for_several_fits
from dboost.estimators.predicting import kind_of
from dboost.estimators.relaxed import TOL as RELAXED_TOL
from dboost.estimators.relaxed import blend, gammas_of
from dboost.estimators.relaxed import warn_of_ends as warn_of_refit
from dboost.estimators.rounds import Table
from dboost.estimators.scoring import Scorer, scorer_of
from dboost.files.paths import PathLike
from dboost.model.fitted import Model
from dboost.notices import warn_user
from dboost.partition import NUMBERS
from dboost.passes.folds import Folds
from dboost.penalties import get_penalty

_OTHERS = "give a splitter such as KFold, groups= where it needs them, or folds= with the fold of each row"


def is_splitter(cv: Any) -> bool:
    """Whether it is an object that splits, or a list of pairs."""
    if hasattr(cv, "split") and hasattr(cv, "get_n_splits"):
        return not isinstance(cv, type)
    return isinstance(cv, list | tuple) and bool(cv) and all(isinstance(one, tuple) and len(one) == 2 for one in cv)


def folds_of(cv: Any, y: Any, groups: Any = None) -> NDArray[np.int64]:
    """The fold of each row, int64 (m,), of a splitter or a list of (training rows, test rows).

    Some splitters spread the labels (m,) or (m, k) evenly, others keep the groups (m,) together.

    Raises
    ------
    UsageError
        Where it does not test every row once, trains on others than all the rest, or needs groups that are not given.
    """
    m = count_rows(y)
    if hasattr(cv, "split"):
        try:
            splits = list(cv.split(np.zeros((m, 1)), np.asarray(y), groups=groups))
        except (TypeError, ValueError) as fault:
            raise UsageError(f"cv={cv!r} does not split these rows: {fault}", hint=_OTHERS) from fault
    else:
        splits = list(cv)
    found = np.full(m, -1, dtype=np.int64)
    for place, (train, test) in enumerate(splits):
        tested, trained = _rows(test, m, place), _rows(train, m, place)
        if np.any(tested & trained):
            raise UsageError(f"split {place} of cv= trains on a row that it tests", hint=_OTHERS)
        if not np.all(tested | trained):
            raise UsageError(f"split {place} of cv= leaves rows out, and a fit trains on all others", hint=_OTHERS)
        if np.any(found[tested] >= 0):
            raise UsageError(f"split {place} of cv= tests a row that an earlier one tests", hint=_OTHERS)
        found[tested] = place
    if np.any(found < 0):
        raise UsageError(f"no split of cv= tests row {int(np.argmin(found))}", hint=_OTHERS)
    return found


def _rows(given: Any, m: int, number: int) -> NDArray[np.bool_]:
    """Which rows are among some, by number or as a mask."""
    rows = np.asarray(given)
    if rows.dtype == np.bool_ and rows.shape == (m,):
        return rows
    if rows.ndim != 1 or rows.dtype.kind not in "iu" or np.any((rows < 0) | (rows >= m)):
        hint = f"expected rows from 0 to {m - 1}"
        raise UsageError(f"split {number} of cv= names rows that are not there", hint=hint)
    found = np.zeros(m, dtype=np.bool_)
    found[rows] = True
    return found


Array = NDArray[np.float64]


def recorded(models: Sequence[Model], scores: FoldScores, scoring: str, gammas: Sequence[float] = ()) -> dict[str, Any]:
    """What cross-validation found of the models of all rows, as JSON; `gammas` are the shares judged of each model."""
    shares = max(1, len(gammas))
    loss, se_loss = _mean_and_error(scores.loss, scores.weight)
    error, se_error = _mean_and_error(scores.error, scores.weight)
    table = [
        {
            "alpha": float(models[t // shares].certificate.alpha),
            **({"gamma": float(gammas[t % shares])} if gammas else {}),
            "mean_loss": float(loss[t]),
            "se_loss": float(se_loss[t]),
            "mean_error": float(error[t]),
            "se_error": float(se_error[t]),
            "features": int(models[t // shares].W.shape[0]),
        }
        for t in range(len(models) * shares)
    ]
    names = ["loss", "error", "gap", "weight", "features"]
    if np.any(np.isfinite(scores.score)):
        names.append("score")
        for row, more in zip(table, _of_scorer(scores.score), strict=True):
            row |= more
    found: dict[str, Any] = {"table": table, "scoring": scoring}
    if gammas:
        found["gammas"] = list(gammas)
    return found | {name: getattr(scores, name).tolist() for name in names}


def attributes(record: dict[str, Any]) -> dict[str, Any]:
    """The fitted attributes that say what the folds say."""
    best = choose(record)
    alphas = np.array([r["alpha"] for r in record["table"]])
    gammas = np.array(record.get("gammas", []))

    def of_folds(name: str, kind: Any = np.float64) -> NDArray[Any]:
        values = np.array(record[name], dtype=kind)
        return values.reshape(len(values), -1, len(gammas)) if len(gammas) else values

    found = {
        "alphas_": alphas[:: max(1, len(gammas))],
        "alpha_best_": float(alphas[best["best"]]),
        "alpha_1se_": float(alphas[best["1se"]]),
        "cv_results_": Table(record["table"]),
        "fold_losses_": of_folds("loss"),
        "fold_errors_": of_folds("error"),
        "fold_gaps_": of_folds("gap"),
        "fold_weights_": np.array(record["weight"]),
        "fold_n_features_": of_folds("features", np.int64),
    }
    if len(gammas):
        found["gammas_"] = gammas
        found["gamma_best_"], found["gamma_1se_"] = (
            float(gammas[best[rule] % len(gammas)]) for rule in ("best", "1se")
        )
    if "score" in record:
        found["fold_scores_"] = of_folds("score")
        found["best_score_"] = float(record["table"][best["best"]]["mean_test_score"])
    return found


def choose(record: dict[str, Any]) -> dict[str, int]:
    """Place in the table that each rule chooses; ties go to the larger strength, and then to the larger share."""
    table, scoring = record["table"], record["scoring"]
    if "score" in record:
        # a greater score is better, a lesser loss
        mean = -np.array([r["mean_test_score"] for r in table])
        error = np.array([r["se_test_score"] for r in table])
    else:
        mean = np.array([r[f"mean_{scoring}"] for r in table])
        error = np.array([r[f"se_{scoring}"] for r in table])
    # what some fold does not know is not chosen
    mean = np.where(np.isnan(mean), np.inf, mean)
    best = int(np.argmin(mean))
    return {"best": best, "1se": int(np.argmax(mean <= mean[best] + error[best]))}


def _of_scorer(score: Array) -> list[dict[str, Any]]:
    """What a scorer says of each strength, under the names of ``GridSearchCV``: every fold counts as much."""
    mean, error = _mean_and_error(score, np.ones(len(score)))
    spread = score.std(axis=0)
    known = np.where(np.isnan(mean), -np.inf, mean)
    rank = 1 + np.sum(known[None, :] > known[:, None], axis=1)
    return [
        {
            "mean_test_score": float(mean[t]),
            "std_test_score": float(spread[t]),
            "se_test_score": float(error[t]),
            "rank_test_score": int(rank[t]),
        }
        for t in range(len(mean))
    ]


def _mean_and_error(values: Array, weight: Array) -> tuple[Array, Array]:
    """Mean over folds (F, T) by weight, and its standard error."""
    share = (weight / weight.sum())[:, None]
    mean = np.sum(share * values, axis=0)
    spread = np.sum(share * (values - mean) ** 2, axis=0)
    return mean, np.sqrt(spread / (values.shape[0] - 1))


RULES = ("1se", "best")
FOLD_TOL = 1e-3
# Strengths whose ratio is so near to 1 are the same: a grid that begins at alpha_max is off by rounding only.
_SAME = 1e-9


@parameters
class ChoiceParameters:
    """How a strength is chosen; see ``BoostedClassifierCV`` for the meaning of each."""

    cv: Any = 10
    folds: Any = None
    alphas: Sequence[float] | None = None
    n_alphas: int = 50
    eps: float = 1e-2
    fold_tol: float | None = None
    scoring: Any = "loss"
    rule: str = "1se"
    relax: Any = None


@parameters
class CrossValidation(ChoiceParameters):
    """The same by itself, apart from the estimator that takes it."""

    @classmethod
    def of(cls, estimator: Any) -> CrossValidation:
        """That of an estimator with these parameters."""
        return cls(**{item.name: getattr(estimator, item.name) for item in fields(ChoiceParameters)})

    def check(self) -> None:
        """Refuse parameters of the cross-validation without meaning."""
        number_of_folds = isinstance(self.cv, int | np.integer) and not isinstance(self.cv, bool) and self.cv >= 2
        if self.folds is None and not number_of_folds and not is_splitter(self.cv):
            raise UsageError(
                f"cv={self.cv!r}",
                hint="expected an integer >= 2, a splitter of scikit-learn, or folds= with the fold of each row",
            )
        check_grid(self.alphas, self.n_alphas, self.eps)
        if self.fold_tol is not None:
            number("fold_tol", self.fold_tol)
        if self.rule not in RULES:
            raise UsageError(f"rule={self.rule!r}", hint=f"expected one of {', '.join(RULES)}")
        scorer_of(self.scoring)
        gammas_of(self.relax)

    @property
    def gammas(self) -> tuple[float, ...]:
        """The shares of the penalised model that are judged, falling; none where only that is."""
        return gammas_of(self.relax)

    @property
    def scorer(self) -> Scorer | None:
        """What judges the strengths; None where that is a sum over the held-out rows."""
        return scorer_of(self.scoring)

    @property
    def judged_by(self) -> str:
        """The name of what judges the strengths."""
        scorer = self.scorer
        return scorer.name if scorer is not None else str(self.scoring or "loss")


@dataclass(frozen=True)
class CrossValidated:
    """What a cross-validation came to."""

    models: tuple[Model, ...]  # The path of all rows, strongest penalty first
    record: dict[str, Any]  # What the folds say of each, as JSON; see ``recorded``
    model: Model  # That of all rows which the rule chooses


def cross_validated(
    X: Any,
    y: Any = None,
    *,
    estimator: BoostedEstimator,
    sample_weight: Any = None,
    feature_names: Sequence[str] | None = None,
    groups: Any = None,
    cv: Any = 10,
    folds: Any = None,
    alphas: Sequence[float] | None = None,
    n_alphas: int = 50,
    eps: float = 1e-2,
    fold_tol: float | None = None,
    scoring: Any = "loss",
    rule: str = "1se",
    relax: Any = None,
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
    groups
        As for the ``fit`` of ``BoostedClassifierCV``.
    cv, folds, alphas, n_alphas, eps, fold_tol, scoring, rule, relax, checkpoint, callbacks, client
        As in ``BoostedClassifierCV``. A regression has no share of wrong labels, but scorers such as ``"r2"``.

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
    choice = CrossValidation(
        cv=cv,
        folds=folds,
        alphas=alphas,
        n_alphas=n_alphas,
        eps=eps,
        fold_tol=fold_tol,
        scoring=scoring,
        rule=rule,
        relax=relax,
    )
    choice.check()
    chosen = clone(estimator).set_params(checkpoint=checkpoint, callbacks=callbacks, client=client)
    if alphas is not None and "alpha" in chosen.get_params(deep=False):
        # some have no penalty unless it is asked for
        chosen.set_params(alpha="auto")
    chosen._fits_several = True
    template = clone(estimator).set_params(checkpoint=None, callbacks=None)
    found = run_cross_validation(chosen, choice, X, y, sample_weight, template, on_model, feature_names, groups)
    fitted: Any = clone(template)
    fitted.set_params(client=client)._adopt(found.model)
    for name, value in attributes(found.record).items():
        setattr(fitted, name, value)
    fitted.path_ = RegularizationPath(found.models, template)
    warn_of_ends(fitted, choice)
    return fitted


def run_cross_validation(
    estimator: Any,
    choice: CrossValidation,
    X: Any,
    y: Any,
    sample_weight: Any,
    template: BoostedEstimator,
    on_model: Callable[[Model], None] | None = None,
    feature_names: Sequence[str] | None = None,
    groups: Any = None,
) -> CrossValidated:
    """Fit the path of an estimator with and without each fold; `template` is the unfitted one of one strength."""
    given = choice.folds
    if given is not None and groups is not None:
        raise UsageError("folds= and groups= both say which rows are held out together", hint="use one of them")
    if given is None and is_splitter(choice.cv):
        if kind_of(X) not in ("table", "matrix"):
            raise UsageError(
                "a splitter as cv= is for data in memory", hint="use a number: each class is then spread over the folds"
            )
        values = (
            take_column(X, one, what)[1] if isinstance(one, str) else one
            for what, one in (("y", y), ("groups", groups))
        )
        given = folds_of(choice.cv, *values)
    elif isinstance(given, str):
        if kind_of(X) != "table":
            raise UsageError(f"folds={given!r} names a column, but X is no table in memory", hint="use cv=")
        X, given = take_column(X, given, "folds")
    elif given is not None and kind_of(X) not in ("table", "matrix"):
        raise UsageError("folds= is for data in memory", hint="use a number as cv=")
    with for_several_fits(estimator, X, y, sample_weight, feature_names, groups) as (parts, callback):
        if isinstance(choice.folds, str):
            parts = replace(parts, named={**parts.named, "folds": choice.folds})
        settings, plan = parts.settings, parts.plan
        if plan.task in NUMBERS and choice.scoring == "error":
            raise UsageError("scoring='error' of a regression, which has no wrong labels", hint="use scoring='loss'")
        scorer, gammas = choice.scorer, choice.gammas
        relaxation = Relaxation(gammas, RELAXED_TOL) if gammas else None
        if gammas and refusal(settings):
            raise UsageError(
                f"relax={choice.relax!r} is for fits of penalised columns, and {refusal(settings)}",
                hint="leave relax out",
            )
        judge = None if scorer is None else HeldOut(scorer, template, parts, X)
        alphas = _strengths(settings, choice)
        if given is None and choice.cv > plan.n_rows:
            what = f"cv={choice.cv}, but there are {plan.n_rows} rows (n_samples = {plan.n_rows})"
            raise UsageError(what, hint="give at most one fold for each")
        folds = Folds(int(choice.cv), settings.random_state) if given is None else _given(given, plan, parts.weight)
        fold_tol = max(FOLD_TOL, settings.tol) if choice.fold_tol is None else float(choice.fold_tol)
        keeper = None
        if estimator.checkpoint is not None:
            name = None if scorer is None else scorer.name
            keeper = FoldFolder(estimator.checkpoint, plan, settings, folds, fold_tol, name, gammas)
        grid = (alphas, choice.n_alphas, choice.eps)

        def report(result: FitResult) -> None:
            if on_model is not None:
                on_model(model_of(estimator, parts, result))

        results, scores = cross_validate(
            plan, parts.engine, settings, folds, fold_tol, *grid, callback, keeper, report, judge, relaxation
        )
        models = tuple(model_of(estimator, parts, result) for result in results)
        record, place, refit = _chosen(choice, parts, models, results, scores)
        place, share = divmod(place, max(1, len(gammas)))
        model = models[place]
        if refit is not None:
            model = blend(estimator, parts, model, results[place], refit, gammas[share])
    _warn_of_gaps(results[place], settings, scores, fold_tol)
    warn_if_empty(results[place])
    if refit is not None:
        warn_of_refit(refit, RELAXED_TOL)
        _warn_of_infinite_refits(record, gammas)
    return CrossValidated(models, record, model)


def _chosen(
    choice: CrossValidation, parts: Prepared, models: Sequence[Model], results: Sequence[FitResult], scores: FoldScores
) -> tuple[dict[str, Any], int, Refit | None]:
    """The record, the place in its table that the rule chooses, and the refit of all rows there; None without relax."""
    gammas = choice.gammas
    while True:
        record = recorded(models, scores, choice.judged_by, gammas)
        place = choose(record)[choice.rule]
        if not gammas:
            return record, place, None
        strength, share = divmod(place, len(gammas))
        if gammas[share] == 1.0:
            return record, place, unchanged(results[strength])
        try:
            return record, place, refitted(parts.plan, parts.engine, parts.settings, results[strength], RELAXED_TOL)
        except NoRefit:
            # the features of all rows may have no refit where those of every fold had one: it is chosen without it then
            first = strength * len(gammas)
            cells = range(first, first + len(gammas))
            scores = scores.without([cell for cell in cells if gammas[cell - first] < 1.0])


def _warn_of_infinite_refits(record: dict[str, Any], gammas: tuple[float, ...]) -> None:
    """Say at how many strengths there was nothing but the penalised model to choose."""
    loss = np.array([row["mean_loss"] for row in record["table"]]).reshape(-1, len(gammas))
    lacking = int(np.isnan(loss).any(axis=1).sum())
    if lacking:
        warn_user(
            f"at {lacking} of {len(loss)} strengths the features of some fold have no finite refit without a penalty, "
            "as where they separate the classes: there only the penalised model is chosen from"
        )


def _strengths(settings: FitSettings, choice: CrossValidation) -> Sequence[float] | None:
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


def warn_of_ends(fitted: Any, choice: CrossValidation) -> None:
    """Warn where the best strength is at an end of them, beyond which there may be a better one."""
    best, alphas, end = fitted.alpha_best_, fitted.alphas_, None
    if len(alphas) < 2:
        return
    if best == alphas[-1]:
        less = "smaller alphas" if choice.alphas is not None else f"a smaller eps than {choice.eps:g}"
        end = f"the weakest of {len(alphas)} strengths", less
    elif best == alphas[0] and not best >= fitted.alpha_max_ * (1.0 - _SAME):
        # from alpha_max on every model is the same: it uses no feature; some penalties have none, which is nan
        end = f"the strongest of {len(alphas)} strengths", "larger alphas"
    sought = f"least {choice.judged_by}" if choice.scorer is None else f"greatest {choice.judged_by}"
    if end is not None:
        warn_user(
            f"alpha_best_={best:.4g} is {end[0]}, an end of the grid: the {sought} may lie beyond it; give {end[1]}"
        )


def _given(folds: Any, plan: Plan, sample_weight: Any) -> Folds:
    """Folds given row by row, cut as the plan cut the rows."""
    labels = np.asarray(folds)
    if labels.ndim != 1:
        raise UsageError(f"folds has shape {labels.shape}", hint="expected one fold per row, shape (m,)")
    if labels.dtype.kind == "f" and not np.all(np.isfinite(labels)):
        raise DataError("folds holds missing values", hint="give every row a fold")
    if labels.dtype.kind == "O" and any(one is None or one != one for one in labels.tolist()):
        raise DataError("folds holds missing values", hint="give every row a fold")
    try:
        names, codes = np.unique(labels, return_inverse=True)
    except TypeError as fault:
        raise DataError("folds holds values of types that have no order", hint="give numbers, or texts") from fault
    weight = check_weight(sample_weight, labels.shape[0])
    kept = codes[weight > 0.0].astype(np.int32)
    if kept.shape[0] != plan.n_rows:
        raise DataError(f"folds has {labels.shape[0]} rows, X has another number", hint="give one fold per row")
    ends = np.cumsum(plan.rows)
    pieces = np.split(kept, ends[:-1])
    keys = [item.key for item in plan.items]
    return Folds(len(names), given=dict(zip(keys, pieces, strict=True)))
