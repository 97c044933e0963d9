"""``BoostedClassifierCV``: the strength of the penalty chosen by cross-validation along the path.

Covers: the estimator, the choice of the strength, the folds a user gives.
Does not cover: the fits (``dboost.boosting.cross_validation``) and the folds by hash (``dboost.passes.folds``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from dboost.boosting.checks import check_settings
from dboost.boosting.cross_validation import FoldScores, cross_validate
from dboost.boosting.fit import warn_if_open
from dboost.data.labels.labels import check_weight
from dboost.data.named_columns import take_column
from dboost.data.plan import Plan
from dboost.errors import ConvergenceWarning, DataError, UsageError
from dboost.estimators.classifier import BoostedClassifier
from dboost.estimators.fitting import model_of, prepared
from dboost.estimators.history import Table
from dboost.estimators.params import number
from dboost.estimators.path import RegularizationPath, check_grid, of_several_fits
from dboost.estimators.predicting import kind_of
from dboost.files.paths import PathLike
from dboost.model.fitted import Model
from dboost.notices import warn_user
from dboost.passes.folds import Folds

RULES = ("1se", "best")
SCORINGS = ("loss", "error")
FOLD_TOL = 1e-3
# Strengths whose ratio is so near to 1 are the same: a grid that begins at alpha_max is off by rounding only.
_SAME = 1e-9
_SAVED = "cross_validation"


class BoostedClassifierCV(BoostedClassifier):
    """``BoostedClassifier`` whose strength is chosen by k-fold cross-validation along the regularisation path.

    One path is fitted to all rows, each fit to the certified gap `tol`, and one without each fold, to the gap
    `fold_tol`; the model is the point of the first path at the chosen strength. All fits read the same partitions, the
    held-out rows with weight zero, so the data is held once. The fold of a row is a hash of its features and its label:
    it depends neither on partitions, engine nor order of the rows, and copies of a row share a fold, so that none is
    judged by a model that was trained on another (folds of data with few different rows are uneven for that reason).

    Parameters
    ----------
    loss, penalty, update, hypotheses, select, sweeps, rows_per_round, tol, max_rounds, max_passes, max_seconds, \
max_active_rows, fit_intercept, standardize, class_weight, classes, random_state, client
        As in ``BoostedClassifier``; `random_state` enters the hash of the folds too. The penalty must have a strength.
        The limits hold for each fit of the paths, that of one strength to the rows outside one fold.
    cv : int, default 10
        Number of folds, at least 2.
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
    scoring : {"loss", "error"}, default "loss"
        What is least: the mean loss of the held-out rows, or the share of them that is labelled wrongly.
    rule : {"1se", "best"}, default "1se"
        ``"best"`` takes the strength with the least mean score, ``"1se"`` the largest whose mean is within one standard
        error of it.

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
    fold_losses_, fold_errors_ : float64 arrays, shape (F, T)
        Means over the held-out rows of each fold that has rows.
    fold_gaps_ : float64 array, shape (F, T)
        Certified gaps of the fits.
    fold_active_rows_ : int64 array, shape (F, T)
    fold_weights_ : float64 array, shape (F,)
        Weight of the rows of each fold.
    path_ : RegularizationPath
        The path of all rows. It is not saved.

    Notes
    -----
    Means over folds are weighted by the folds, and the standard error is that of such a mean, as in glmnet:
    ``sqrt(sum_f w_f (x_f - mean)**2 / sum_f w_f / (F - 1))``.

    A class may have all its rows in one fold. Without them it is unknown, and the fit is that of the other classes. On
    the held-out rows such a class gets the probability of half a row, whatever the strength, and its rows count as
    wrong.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = BoostedClassifierCV(penalty="l1/l2", cv=5, n_alphas=10).fit(X, y)
    >>> bool(model.alpha_best_ <= model.alpha_1se_ == model.alpha_), model.fold_losses_.shape
    (True, (5, 10))
    """

    # What has no meaning along a path.
    alpha = "auto"
    warm_start = False
    _fits_several = True

    def __init__(
        self,
        *,
        loss: Any = None,
        penalty: Any = "l1/linf",
        cv: int = 10,
        folds: Any = None,
        alphas: Sequence[float] | None = None,
        n_alphas: int = 50,
        eps: float = 1e-2,
        fold_tol: float | None = None,
        scoring: str = "loss",
        rule: str = "1se",
        update: str = "newton",
        hypotheses: Any = None,
        select: str = "greedy",
        sweeps: int | None = None,
        rows_per_round: int | None = None,
        tol: float = 1e-4,
        max_rounds: int = 1000,
        max_passes: int | None = None,
        max_seconds: float | None = None,
        max_active_rows: int | None = None,
        fit_intercept: bool = True,
        standardize: bool = False,
        class_weight: Any = None,
        classes: Any = None,
        random_state: Any = 0,
        checkpoint: PathLike | None = None,
        callbacks: Any = None,
        client: Any = None,
    ) -> None:
        self.loss = loss
        self.penalty = penalty
        self.cv = cv
        self.folds = folds
        self.alphas = alphas
        self.n_alphas = n_alphas
        self.eps = eps
        self.fold_tol = fold_tol
        self.scoring = scoring
        self.rule = rule
        self.update = update
        self.hypotheses = hypotheses
        self.select = select
        self.sweeps = sweeps
        self.rows_per_round = rows_per_round
        self.tol = tol
        self.max_rounds = max_rounds
        self.max_passes = max_passes
        self.max_seconds = max_seconds
        self.max_active_rows = max_active_rows
        self.fit_intercept = fit_intercept
        self.standardize = standardize
        self.class_weight = class_weight
        self.classes = classes
        self.random_state = random_state
        self.checkpoint = checkpoint
        self.callbacks = callbacks
        self.client = client

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Cross-validate along the path and keep the model of the chosen strength.

        Parameters
        ----------
        X, y, sample_weight
            As for ``BoostedClassifier.fit``.

        Returns
        -------
        self

        Raises
        ------
        UsageError, DataError
            Before any training.
        ClusterError, StorageError
            During it; with a checkpoint, the next call goes on from there.

        Warns
        -----
        ConvergenceWarning
            With the gap reached, when the model or a fit without some fold ended above `tol`.
        DboostWarning
            When the best strength is an end of the grid, beyond which there may be a better one.
        """
        self._check()
        told = of_several_fits(self.callbacks)
        given = self.folds
        if isinstance(given, str):
            if kind_of(X) != "table":
                raise UsageError(f"folds={given!r} names a column, but X is no table in memory", hint="use cv=")
            X, given = take_column(X, given, "folds")
        elif given is not None and kind_of(X) not in ("table", "matrix"):
            raise UsageError("folds= is for data in memory", hint="use cv=, which makes folds by a hash of the rows")
        with prepared(self, X, y, sample_weight) as parts:
            if isinstance(self.folds, str):
                parts = replace(parts, named={**parts.named, "folds": self.folds})
            settings = parts.settings
            if getattr(settings.penalty, "name", settings.penalty) == "none":
                raise UsageError("penalty 'none' has no strength to choose", hint="use another penalty")
            for alpha in self.alphas if self.alphas is not None else ():
                check_settings(replace(settings, alpha=alpha))
            if given is None:
                folds = Folds(int(self.cv), settings.random_state)
            else:
                folds = _given(given, parts.plan, parts.weight)
            fold_tol = max(FOLD_TOL, settings.tol) if self.fold_tol is None else float(self.fold_tol)
            grid = (self.alphas, self.n_alphas, self.eps)
            keeper = None
            if self.checkpoint is not None:
                from dboost.estimators.path_checkpoint import FoldFolder

                keeper = FoldFolder(self.checkpoint, parts.plan, settings, folds, fold_tol)
            results, scores = cross_validate(parts.plan, parts.engine, settings, folds, fold_tol, *grid, told, keeper)
            models = tuple(model_of(self, parts, result) for result in results)
        record = _record(models, scores)
        chosen = _choose(record, self.scoring)[self.rule]
        model = models[chosen]
        model = replace(model, manifest={**model.manifest, _SAVED: record | {"scoring": self.scoring}})
        self._adopt(model)
        self.path_ = RegularizationPath(models, _template(self))
        warn_if_open(results[chosen], settings)
        late = int(np.count_nonzero(scores.gap > fold_tol))
        if late:
            warn_user(
                f"{late} of {scores.gap.size} fits without a fold stopped above fold_tol={fold_tol:g}, "
                f"at a certified relative gap of {scores.gap.max():.2g} at worst",
                ConvergenceWarning,
            )
        self._warn_of_ends()
        return self

    def _warn_of_ends(self) -> None:
        """Warn where the least score is at an end of the strengths, beyond which there may be a lesser one."""
        best, end = self.alpha_best_, None
        if len(self.alphas_) < 2:
            return
        if best == self.alphas_[-1]:
            less = "smaller alphas" if self.alphas is not None else f"a smaller eps than {self.eps:g}"
            end = f"the weakest of {len(self.alphas_)} strengths", less
        elif best == self.alphas_[0] and not best >= self.alpha_max_ * (1.0 - _SAME):
            # from alpha_max on every model is the same: it uses no feature; some penalties have none, which is nan
            end = f"the strongest of {len(self.alphas_)} strengths", "larger alphas"
        if end is not None:
            warn_user(
                f"alpha_best_={best:.4g} is {end[0]}, an end of the grid: the least {self.scoring} may lie beyond it; "
                f"give {end[1]}"
            )

    def _check(self) -> None:
        """Refuse parameters of the cross-validation without meaning."""
        if self.folds is None and (
            isinstance(self.cv, bool) or not isinstance(self.cv, int | np.integer) or self.cv < 2
        ):
            raise UsageError(f"cv={self.cv!r}", hint="expected an integer >= 2, or folds= with the fold of each row")
        if self.alphas is None:
            check_grid(self.n_alphas, self.eps)
        elif len(self.alphas) == 0:
            raise UsageError("alphas is empty", hint="give at least one strength, or leave alphas out")
        if self.fold_tol is not None:
            number("fold_tol", self.fold_tol)
        for name, value, known in (("scoring", self.scoring, SCORINGS), ("rule", self.rule, RULES)):
            if value not in known:
                raise UsageError(f"{name}={value!r}", hint=f"expected one of {', '.join(known)}")

    def _adopt(self, model: Model) -> Self:
        super()._adopt(model)
        record = model.manifest[_SAVED]
        best = _choose(record, record["scoring"])
        self.alphas_ = np.array([r["alpha"] for r in record["table"]])
        self.alpha_best_, self.alpha_1se_ = (float(self.alphas_[best[rule]]) for rule in ("best", "1se"))
        self.cv_results_ = Table(record["table"])
        self.fold_losses_, self.fold_errors_ = np.array(record["loss"]), np.array(record["error"])
        self.fold_gaps_, self.fold_weights_ = np.array(record["gap"]), np.array(record["weight"])
        self.fold_active_rows_ = np.array(record["active_rows"], dtype=np.int64)
        return self


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


def _template(estimator: BoostedClassifierCV) -> BoostedClassifier:
    """An unfitted classifier with the parameters that both have."""
    known = BoostedClassifier().get_params(deep=False)
    params = estimator.get_params(deep=False)
    shared = {name: value for name, value in params.items() if name in known}
    return clone(BoostedClassifier(**shared | {"checkpoint": None, "callbacks": None}))
