"""Strengths and parameters chosen by held-out rows, of any estimator: cross-validation and successive halving.

Covers: ``cross_validated`` and the estimators ending in CV; how a strength is asked to be chosen; the folds a user
gives, as a splitter of scikit-learn, a list of its splits or the fold of each row; the record of what the folds say,
the attributes made from it, and which strength that chooses; ``successive_halving``.
Does not cover: the fits and rungs (``dboost.boosting.cross_validation``), the folds that are drawn
(``dboost.passes.draws``).
"""

from __future__ import annotations

import math
import pickle
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid

from dboost.boosting.cross_validation import FoldScores, cross_validate, judged, kept, rungs
from dboost.boosting.fit import FitResult, FitSettings, warn_if_empty, warn_if_open
from dboost.boosting.path import asked
from dboost.boosting.planned import placed
from dboost.boosting.relaxed import NoRefit, Refit, Relaxation, refitted, refusal, unchanged
from dboost.data.labels.labels import check_weight
from dboost.data.named_columns import take_column, without
from dboost.data.planned import Plan, count_rows
from dboost.errors import ClusterError, ConvergenceWarning, DataError, UsageError
from dboost.estimators.base import BoostedEstimator
from dboost.estimators.checkpoint import FoldFolder
from dboost.estimators.classifier import BoostedClassifier, MultiTaskBoostedClassifier
from dboost.estimators.earlier import TOL as RELAXED_TOL
from dboost.estimators.earlier import blend, gammas_of
from dboost.estimators.earlier import warn_of_ends as warn_of_refit
from dboost.estimators.fitting import Prepared, model_of, prepared
from dboost.estimators.params import count, number, parameters
from dboost.estimators.path import RegularizationPath, check_grid, for_several_fits
from dboost.estimators.predicting import kind_of
from dboost.estimators.regressor import BoostedRegressor, MultiTaskBoostedRegressor
from dboost.estimators.rounds import Table
from dboost.estimators.scoring import HeldOut, scorer_of
from dboost.files.documents import unplain
from dboost.files.paths import PathLike
from dboost.former_names import renamed, warn_renamed
from dboost.hypotheses.base import is_whole
from dboost.losses import get_loss
from dboost.model.fitted import Model
from dboost.notices import warn_user
from dboost.partition import NUMBERS
from dboost.passes.draws import Groups, Places
from dboost.passes.folds import Folds
from dboost.passes.subsamples import Subsample
from dboost.penalties import get_penalty

_OTHERS = "give a splitter such as KFold, groups= where it needs them, or folds= with the fold of each row"


def is_splitter(cv: Any) -> bool:
    """Whether it is an object that splits, or a list of pairs."""
    if hasattr(cv, "split") and hasattr(cv, "get_n_splits"):
        return not isinstance(cv, type)
    return isinstance(cv, list | tuple) and bool(cv) and all(isinstance(one, tuple) and len(one) == 2 for one in cv)


def folds_of(cv: Any, y: Any, groups: Any = None) -> NDArray[np.int64]:
    """The fold of each row, int64 (m,), of a splitter or a list of (training, test) rows that test each row once."""
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


def check_choice(choice: ChoiceParameters) -> None:
    """Refuse parameters of the cross-validation without meaning."""
    if choice.folds is None and not is_whole(choice.cv, 2) and not is_splitter(choice.cv):
        raise UsageError(
            f"cv={choice.cv!r}",
            hint="expected an integer >= 2, a splitter of scikit-learn, or folds= with the fold of each row",
        )
    check_grid(choice.alphas, choice.n_alphas, choice.eps)
    if choice.fold_tol is not None:
        number("fold_tol", choice.fold_tol)
    if choice.rule not in RULES:
        raise UsageError(f"rule={choice.rule!r}", hint=f"expected one of {', '.join(RULES)}")
    scorer_of(choice.scoring)
    gammas_of(choice.relax)


def judged_by(choice: ChoiceParameters) -> str:
    """The name of what judges the strengths."""
    scorer = scorer_of(choice.scoring)
    return scorer.name if scorer is not None else str(choice.scoring or "loss")


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
    choice = ChoiceParameters(
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
    check_choice(choice)
    chosen = clone(estimator).set_params(checkpoint=checkpoint, callbacks=callbacks, client=client)
    if alphas is not None and "alpha" in chosen.get_params(deep=False):
        # some have no penalty unless it is asked for
        chosen.set_params(alpha="auto")
    chosen._fits_several = True
    template = clone(estimator).set_params(checkpoint=None, callbacks=None)
    given = (X, y, sample_weight, template, on_model, feature_names, groups)
    models, record, model = run_cross_validation(chosen, choice, *given)
    fitted: Any = clone(template)
    fitted.set_params(client=client)._adopt(model)
    for name, value in attributes(record).items():
        setattr(fitted, name, value)
    fitted.path_ = RegularizationPath(models, template)
    warn_of_ends(fitted, choice)
    return fitted


def run_cross_validation(
    estimator: Any,
    choice: ChoiceParameters,
    X: Any,
    y: Any,
    sample_weight: Any,
    template: BoostedEstimator,
    on_model: Callable[[Model], None] | None = None,
    feature_names: Sequence[str] | None = None,
    groups: Any = None,
) -> tuple[tuple[Model, ...], dict[str, Any], Model]:
    """Fit the path of an estimator with and without each fold; `template` is the unfitted one of one strength.

    Returns the path of all rows, what the folds say of it (``recorded``), and the model that the rule chooses.
    """
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
        scorer, gammas = scorer_of(choice.scoring), gammas_of(choice.relax)
        relaxation = Relaxation(gammas, RELAXED_TOL) if gammas else None
        if gammas and refusal(settings):
            raise UsageError(
                f"relax={choice.relax!r} is for fits of penalised columns, and {refusal(settings)}",
                hint="leave relax out",
            )
        judge = None if scorer is None else HeldOut(scorer, template, parts, X)
        alphas = asked(settings, choice.alphas)
        if alphas is None and settings.system is not None and not get_penalty(settings.penalty).threshold:
            # a system of its own may have nothing that a strength could be of
            alphas = [0.0]
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
    return models, record, model


def _chosen(
    choice: ChoiceParameters, parts: Prepared, models: Sequence[Model], results: Sequence[FitResult], scores: FoldScores
) -> tuple[dict[str, Any], int, Refit | None]:
    """The record, the place in its table that the rule chooses, and the refit of all rows there; None without relax."""
    gammas = gammas_of(choice.relax)
    while True:
        record = recorded(models, scores, judged_by(choice), gammas)
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


def warn_of_ends(fitted: Any, choice: ChoiceParameters) -> None:
    """Warn where the best strength is at an end of them, beyond which there may be a better one."""
    best, alphas = fitted.alpha_best_, fitted.alphas_
    if len(alphas) < 2:
        return
    if best == alphas[-1]:
        end, more = "weakest", "smaller alphas" if choice.alphas is not None else f"a smaller eps than {choice.eps:g}"
    elif best == alphas[0] and not best >= fitted.alpha_max_ * (1.0 - _SAME):
        # from alpha_max on every model is the same: it uses no feature; some penalties have none, which is nan
        end, more = "strongest", "larger alphas"
    else:
        return
    sought = f"{'least' if scorer_of(choice.scoring) is None else 'greatest'} {judged_by(choice)}"
    warn_user(
        f"alpha_best_={best:.4g} is the {end} of {len(alphas)} strengths, an end of the grid: the {sought} may lie "
        f"beyond it; give {more}"
    )


def _given(folds: Any, plan: Plan, sample_weight: Any) -> Folds:
    """Folds given row by row, cut as the plan cut the rows."""
    labels = np.asarray(folds)
    if labels.ndim != 1:
        raise UsageError(f"folds has shape {labels.shape}", hint="expected one fold per row, shape (m,)")
    no_number = labels.dtype.kind == "f" and not np.all(np.isfinite(labels))
    if no_number or (labels.dtype.kind == "O" and any(one is None or one != one for one in labels.tolist())):
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


_SAVED = "cross_validation"


@parameters
class ChosenByFoldsMixin(ChoiceParameters, BoostedEstimator):
    """A ``BoostedEstimator`` whose strength is chosen by cross-validation; not public."""

    # What has no meaning along a path.
    alpha: ClassVar[str] = "auto"
    prefer: ClassVar[None] = None  # type: ignore[misc]
    warm_start: ClassVar[bool] = False  # type: ignore[misc]
    _fits_several = True
    # The estimator of one strength, with the same parameters but those of the choice.
    _single: ClassVar[type[BoostedEstimator]]

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        feature_names: Sequence[str] | None = None,
        groups: Any = None,
    ) -> Self:
        """Cross-validate along the path and keep the model of the chosen strength.

        Parameters
        ----------
        X, y, sample_weight, feature_names
            As for the ``fit`` of the estimator of one strength.
        groups : array-like, shape (m,), or str, optional
            The file, author or thread that each row is of, or the name of a column of a table that says it and then is
            no feature: no fold parts the rows of a group. A splitter as `cv` is given them too.

        Returns
        -------
        self

        Raises
        ------
        UsageError, DataError
            Before any training.
        ClusterError, StorageError
            During it; with a checkpoint, the next call goes on from there.
        KeyboardInterrupt
            Where it is interrupted. After this and after a ClusterError `path_` holds the strengths that this call had
            fitted to all rows; none of them was chosen, and the other attributes are as before.

        Warns
        -----
        ConvergenceWarning
            With the gap reached, when the model or a fit without some fold ended above `tol`.
        DboostWarning
            When the best strength is an end of the grid, beyond which there may be a better one.
        """
        check_choice(self)
        penalty = get_penalty(self.penalty)
        if penalty.weightless:
            raise UsageError(f"penalty {penalty.name!r} has no strength to choose", hint="use another penalty")
        so_far: list[Model] = []
        try:
            given = (X, y, sample_weight, self._template(), so_far.append, feature_names, groups)
            # the estimator says itself how its strength is chosen
            models, record, model = run_cross_validation(self, self, *given)
        except (KeyboardInterrupt, ClusterError) as error:
            if so_far:
                self.path_ = RegularizationPath(tuple(so_far), self._template())
                error.add_note(f"path_ of the estimator keeps the {len(so_far)} strengths that were fitted to all rows")
            raise
        self._adopt(replace(model, manifest={**model.manifest, _SAVED: record}))
        self.path_ = RegularizationPath(models, self._template())
        warn_of_ends(self, self)
        return self

    def _adopt(self, model: Model) -> Self:
        super()._adopt(model)
        record = renamed(unplain(model.manifest[_SAVED]))
        record["table"] = [renamed(row) for row in record["table"]]
        for name, value in attributes(record).items():
            setattr(self, name, value)
        return self

    @property
    def fold_active_rows_(self) -> NDArray[np.int64]:
        """Former name of `fold_n_features_`, kept for one version."""
        warn_renamed("fold_active_rows_", "fold_n_features_")
        found: NDArray[np.int64] = self.fold_n_features_
        return found

    def _template(self) -> BoostedEstimator:
        """An unfitted estimator of one strength with the parameters that both have."""
        known = self._single().get_params(deep=False)
        params = self.get_params(deep=False)
        shared = {name: value for name, value in params.items() if name in known}
        found: BoostedEstimator = clone(self._single(**shared | {"checkpoint": None, "callbacks": None}))
        return found


@parameters
class BoostedClassifierCV(ChosenByFoldsMixin, BoostedClassifier):  # type: ignore[misc]
    """``BoostedClassifier`` whose strength is chosen by k-fold cross-validation along the regularisation path.

    One path is fitted to all rows, each fit to the certified gap `tol`, and one without each fold, to the gap
    `fold_tol`; the model is the point of the first path at the chosen strength. All fits read the same partitions, the
    held-out rows with weight zero, so the data is held once. Folds are drawn as ``StratifiedKFold`` with
    ``shuffle=True`` draws them: a random part of each class, whose rows in two folds differ by one at most. What is
    drawn depends on the order of the rows, their classes and `random_state`, and neither on what they hold nor on
    partitions or engine; labels that are numbers, and those of tasks, are one class. Rows that belong
    together, such as copies and repeated measurements, are given as `folds`.

    Parameters
    ----------
    loss, penalty, update, hypotheses, select, sweeps, features_per_round, tol, max_rounds, max_passes, max_seconds, \
max_features, fit_intercept, standardize, penalty_factors, column_groups, positive, lower, upper, offset, \
class_weight, classes, random_state, client, rows_per_round, max_active_rows
        As in ``BoostedClassifier``; `random_state` is the seed of the folds too. The penalty must have a strength.
        The limits hold for each fit of the paths, that of one strength to the rows outside one fold.
    cv : int, splitter, or list of (training rows, test rows), default 10
        Number of folds, at least 2. For data in memory also a splitter of scikit-learn, or what it splits into, whose
        test sets hold every row once and that trains on all others, such as ``StratifiedKFold``. Of groups give the
        group of each row as `folds`. A splitter is not saved with the model.
    folds : array-like, shape (m,), or str, optional
        The fold of each row, any labels, in place of `cv`; or the name of the column of a table that has them, which is
        then no feature. For data in memory only. It is not saved with the model.
    alphas : sequence of float, optional
        Strengths. By default `n_alphas` of them, geometric from the smallest that uses no feature down to `eps` times
        it, the same for every fold.
    n_alphas : int, default 50
    eps : float, default 1e-2
    fold_tol : float, optional
        Certified gap of the fits without a fold. By default 1e-3, or `tol` where that is larger: what a fold tells of a
        strength is uncertain by the standard error over folds, which is well above it.
    scoring : "loss" (or None), "error", str or callable, default "loss"
        What is best on the held-out rows: the least mean loss, the least share of wrong labels, or the greatest score
        of a scorer, a name of scikit-learn's (``"roc_auc"``, ``"balanced_accuracy"``, ``"neg_log_loss"``; all of them
        in ``sklearn.metrics.get_scorer_names``) or a callable ``scorer(estimator, X, y)``. Where rows have weights
        other than one, these are given as `sample_weight`, without class weights. Of data in memory a callable is given
        the held-out rows, of Dask and Parquet data rows that only the predictions of the estimator can read. A callable
        is not saved with the model.
    rule : {"1se", "best"}, default "1se"
        ``"best"`` takes the strength that is best on the mean of the folds, ``"1se"`` the largest whose mean is within
        one standard error of it.
    relax : bool or sequence of float, optional
        Whether the model of each strength is also judged after its features were fitted again without a penalty, wholly
        or in part (``dboost.relaxed``): at shares `gamma` of the penalised model, 0, 0.25, 0.5, 0.75 and 1 for True, or
        those given. Each fold refits its own features. Strength and share are chosen together by `rule`, which for
        ``"1se"`` takes the largest strength and then the largest share. Where a refit has no finite optimum, in any
        fold, only the penalised model is chosen from, and a warning says so. For ``BoostedClassifier`` and its like, on
        columns.

    checkpoint : path, optional
        A folder. A cross-validation that was broken off goes on there in the next call of `fit` with the same data and
        parameters, with the bits of the undisturbed one, and makes no fit again that had ended.
    callbacks : list of functions, optional
        Called with the record of each round of each fit, one call at a time: ``"fold"`` is the fold that is held out,
        None for a fit of all rows, ``"strength"`` the place of the strength. A true result ends that one fit.

    Attributes
    ----------
    alpha_ : float
        The chosen strength; all attributes of ``BoostedClassifier`` are those of the model there.
    alpha_best_, alpha_1se_ : float
        What each rule chooses.
    alphas_ : float64 array, shape (T,)
        All strengths, falling.
    cv_results_ : Table
        One record per strength: alpha, mean and standard error of loss and error, features used by the path's model.
        With a scorer also `mean_test_score`, `std_test_score` and `rank_test_score`, as ``GridSearchCV`` has them, and
        `se_test_score`, the standard error of the mean. With `relax` one per strength and share, `gamma`.
    fold_losses_, fold_errors_ : float64 arrays, shape (F, T)
        Means over the held-out rows of each fold that has rows.
    fold_gaps_ : float64 array, shape (F, T)
        Certified gaps of the fits.
    fold_n_features_ : int64 array, shape (F, T)
    fold_weights_ : float64 array, shape (F,)
        Weight of the rows of each fold.
    fold_scores_ : float64 array, shape (F, T)
        With a scorer: what it says of each fold, greater is better.
    best_score_ : float
        With a scorer: the best mean score.
    gammas_ : float64 array, shape (G,)
        With `relax`: the shares, falling. Arrays of shape (F, T) have the shape (F, T, G) then.
    gamma_best_, gamma_1se_ : float
        With `relax`: what each rule chooses beside the strength.
    relaxed_ : dict
        With `relax`: the `gamma` of the model, and how its refit ended; see ``dboost.relaxed``.
    path_ : RegularizationPath
        The path of all rows. It is not saved.

    Notes
    -----
    Means over folds are weighted by the folds, and the standard error is that of such a mean, as in glmnet:
    ``sqrt(sum_f w_f (x_f - mean)**2 / sum_f w_f / (F - 1))``. Under a scorer every fold counts as much, as in
    scikit-learn: ``cross_val_score`` of ``BoostedClassifier`` at a strength, with the same folds, gives a column of
    `fold_scores_`.

    A scorer needs the held-out rows on the driver, of one fold at a time. Beside their labels that takes a copy of
    their features where these are in memory; of Dask and Parquet data it takes, for as many strengths as fit into 64 MB
    and for one at least, twice the scores X W + b of the rows, 8 k bytes each.

    A class of one row, or with `folds` any, may have all its rows in one fold. Without them it is unknown, and the fit
    is that of the other classes. On the held-out rows such a class gets the probability of half a row, whatever the
    strength, and its rows count as wrong. A scorer sees a model of all classes that never says that one, as a fit with
    ``classes=`` is. Of a fold without a row of some class, scorers of probabilities are told all classes; those that
    need a row of each are refused.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = BoostedClassifierCV(penalty="l1/l2", cv=5, n_alphas=10).fit(X, y)
    >>> bool(model.alpha_best_ <= model.alpha_1se_ == model.alpha_), model.fold_losses_.shape
    (True, (5, 10))
    >>> model = BoostedClassifierCV(penalty="l1/l2", cv=5, n_alphas=10, scoring="balanced_accuracy").fit(X, y)
    >>> bool(model.best_score_ > 0.9), model.fold_scores_.shape
    (True, (5, 10))
    """

    _single = BoostedClassifier


@parameters
class BoostedRegressorCV(ChosenByFoldsMixin, BoostedRegressor):  # type: ignore[misc]
    """``BoostedRegressor`` whose strength is chosen by k-fold cross-validation along the regularisation path.

    See ``BoostedClassifierCV`` for what is fitted and how folds are made, and ``BoostedRegressor`` for the losses.

    Parameters
    ----------
    loss, penalty, update, hypotheses, select, sweeps, features_per_round, tol, max_rounds, max_passes, max_seconds, \
max_features, fit_intercept, standardize, penalty_factors, column_groups, positive, lower, upper, offset, \
random_state, client
        As in ``BoostedRegressor``. The penalty must have a strength.
    scoring : "loss" (or None), str or callable, default "loss"
        The mean loss of the held-out rows, or a scorer such as ``"r2"`` or ``"neg_mean_absolute_error"``, as in
        ``BoostedClassifierCV``; a regression has no wrong labels.
    cv, folds, alphas, n_alphas, eps, fold_tol, rule, relax, checkpoint, callbacks
        As in ``BoostedClassifierCV``.

    Attributes
    ----------
    alpha_, alpha_best_, alpha_1se_, alphas_, cv_results_, fold_losses_, fold_gaps_, fold_n_features_, \
fold_weights_, fold_scores_, best_score_, gammas_, gamma_best_, gamma_1se_, \
relaxed_, path_
        As in ``BoostedClassifierCV``.
    others
        As in ``BoostedRegressor``, of the model of the chosen strength.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = BoostedRegressorCV(cv=5, n_alphas=10, eps=1e-3).fit(X, y)
    >>> bool(model.alpha_best_ <= model.alpha_1se_ == model.alpha_), model.fold_losses_.shape
    (True, (5, 10))
    """

    _single = BoostedRegressor


@parameters
class MultiTaskBoostedClassifierCV(BoostedClassifierCV, MultiTaskBoostedClassifier):  # type: ignore[misc]
    """``MultiTaskBoostedClassifier`` whose strength is chosen by k-fold cross-validation along the path.

    Parameters
    ----------
    loss, classes, class_weight
        As in ``MultiTaskBoostedClassifier``.
    others
        As in ``BoostedClassifierCV``; ``scoring="error"`` is the share of the observed labels that is wrong. A scorer
        of scikit-learn needs every label, and predictions (``"f1_macro"``) or scores (``"roc_auc"``): the probabilities
        of tasks are none of classes.

    Attributes
    ----------
    alpha_, alpha_best_, alpha_1se_, alphas_, cv_results_, fold_losses_, fold_errors_, fold_scores_, \
best_score_, gammas_, gamma_best_, gamma_1se_, relaxed_, path_
        As in ``BoostedClassifierCV``.
    others
        As in ``MultiTaskBoostedClassifier``, of the model of the chosen strength.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(90, 5))
    >>> Y = np.column_stack([X[:, 0] + rng.normal(size=90) > 0, X[:, 1] > 0]).astype(float)
    >>> model = MultiTaskBoostedClassifierCV(penalty="l1/l2", cv=3, n_alphas=6).fit(X, Y)
    >>> model.fold_losses_.shape, model.predict(X).shape
    ((3, 6), (90, 2))
    """

    _single = MultiTaskBoostedClassifier


@parameters
class MultiTaskBoostedRegressorCV(BoostedRegressorCV, MultiTaskBoostedRegressor):  # type: ignore[misc]
    """``MultiTaskBoostedRegressor`` whose strength is chosen by k-fold cross-validation along the path.

    Parameters
    ----------
    loss, penalty, offset
        As in ``MultiTaskBoostedRegressor``.
    others
        As in ``BoostedRegressorCV``; the loss of held-out rows is summed over their observed targets.

    Attributes
    ----------
    alpha_, alpha_best_, alpha_1se_, alphas_, cv_results_, fold_losses_, fold_scores_, relaxed_, path_
        As in ``BoostedRegressorCV``.
    others
        As in ``MultiTaskBoostedRegressor``, of the model of the chosen strength.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(90, 5))
    >>> Y = X[:, :2] + rng.normal(size=(90, 2))
    >>> model = MultiTaskBoostedRegressorCV(cv=3, n_alphas=6).fit(X, Y)
    >>> model.fold_losses_.shape, model.predict(X).shape
    ((3, 6), (90, 2))
    """

    _single = MultiTaskBoostedRegressor

    loss: Any = "multitarget"
    penalty: Any = "l1/l2"


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
    for place, rung in enumerate(rungs(len(candidates), factor, parts.plan.n_rows, min_rows)):
        rows = [{} for _ in candidates]
        for group in sorted({candidates[c].group for c in left}):
            mine = [c for c in left if candidates[c].group == group]
            scores = _scores_of_group(parts, [candidates[c] for c in mine], places, rung.share, cv, scoring)
            for c, said in zip(mine, scores, strict=True):
                rows[c] = {"rung": place, **said}
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
