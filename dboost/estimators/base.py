"""What the estimators share: parameters, fitting, fitted attributes, prediction, saving.

Covers: ``BoostedEstimator``, the scikit-learn shape of a fit and its model.
Does not cover: what differs between labels (``classifier``, ``regressor``), or any mathematics.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn import config_context
from sklearn.base import BaseEstimator
from sklearn.utils import check_array
from sklearn.utils.validation import _check_n_features, check_is_fitted, validate_data

from dboost.boosting.checks import check_settings
from dboost.boosting.fit import (
    FitResult,
    FitSettings,
    FitState,
    Fitting,
    warn_if_dropped,
    warn_if_empty,
    warn_if_open,
    warn_if_uneven,
)
from dboost.data.memory.in_memory import check_names
from dboost.data.named_columns import as_named, names_of, without
from dboost.errors import ClusterError, UsageError, quoting_no_values
from dboost.estimators import predicting, repr
from dboost.estimators.earlier import followed, start_from
from dboost.estimators.fitting import PROCESS, model_of, model_so_far, prepared, run
from dboost.estimators.params import fit_settings
from dboost.estimators.repr import ShownMixin
from dboost.estimators.rounds import (
    CallbackDispatcher,
    CallbackSupportMixin,
    Table,
    induction_stop,
    live_line,
    registered,
    split,
    with_callbacks,
)
from dboost.estimators.selecting import FRONTIER, chooses, holds_out, searched
from dboost.files.documents import unplain
from dboost.files.paths import PathLike
from dboost.losses import LOSSES, Loss, losses_of
from dboost.model.fitted import Model
from dboost.penalties import get_penalty

# Why a model that an interrupt or the loss of the cluster has left stopped.
INTERRUPTED = "interrupted"


class ByReferenceMixin:
    """Clones share `client`, which cannot be copied, and `callbacks`, which are there to be looked at after a fit."""

    client: Any
    callbacks: Any

    def __getstate__(self) -> dict[str, Any]:
        # A client belongs to one process.
        found: dict[str, Any] = super().__getstate__() | {"client": None}  # type: ignore[operator]
        return found

    def __sklearn_clone__(self) -> Self:
        bare = copy.copy(self)
        bare.client, bare.callbacks = None, None
        new: Self = super(ByReferenceMixin, bare).__sklearn_clone__()  # type: ignore[misc]
        new.client, new.callbacks = self.client, self.callbacks
        return new


class BoostedEstimator(ByReferenceMixin, ShownMixin, CallbackSupportMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the estimators; not public."""

    # The kinds of labels it takes.
    _tasks: ClassVar[tuple[str, ...]] = ()
    # Whether its checkpoint is a folder of several fits.
    _fits_several = False
    # What an estimator lets nobody choose.
    loss: Any = None
    class_weight: Any = None
    classes: Any = None
    warm_start: bool = False
    # Of those that choose a strength, and of every fit.
    prefer: str | None
    tol: float
    checkpoint: Any
    callbacks: Any
    client: Any

    @classmethod
    @cache
    def _get_param_names(cls) -> list[str]:
        """As of scikit-learn, which reads the constructor anew whenever it is asked."""
        return list(super()._get_param_names())

    # ---- fit -------------------------------------------------------------------------------------------------------

    def _settings(self) -> FitSettings:
        """The parameters, checked one by one and together, as settings of the core fit."""
        settings = self._given_settings()
        check_settings(settings)
        return settings

    def _given_settings(self) -> FitSettings:
        """The parameters as settings, checked one by one."""
        return fit_settings(self)

    def _for_tables(self, settings: FitSettings) -> dict[str, Any]:
        """What a fit of a table has by default: it is standardised, unless penalty or hypotheses follow no scale."""
        penalty = get_penalty(settings.penalty)
        plain = settings.hypotheses is None and settings.system is None and settings.update != "forward"
        can = plain and penalty.degree > 0 and not penalty.weightless
        return {"standardize": True} if can and getattr(self, "standardize", None) == "auto" else {}

    def _loss_of(self, task: str, n_outputs: int) -> Any:
        """What is minimised on labels of that kind."""
        return losses_of(task)[0] if self.loss is None else self.loss

    @property
    def _task(self) -> str:
        """What a plan is asked for when `loss` is None."""
        return self._tasks[0] if len(self._tasks) == 1 else "classification"

    @classmethod
    def _minimises(cls, loss: Loss) -> bool:
        """Whether estimators of this kind can minimise a loss; by what the loss says of itself."""
        return loss.task in cls._tasks

    @classmethod
    def _losses(cls) -> tuple[str, ...]:
        """Names of the losses that it can minimise, the default first."""
        return tuple(name for name, loss in LOSSES.items() if cls._minimises(loss))

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        feature_names: Sequence[str] | None = None,
        groups: Any = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array, SciPy sparse matrix, pandas or Arrow table, dask array or DataFrame, or ParquetData
            Shape (m, n). Local input runs in this process, unless `client` is given; Dask and Parquet input runs on
            `client`, else on the current client, else in this process.
        y : array-like, or str
            Labels, or the name of the label column of a table. None for ``ParquetData``, which names its own.
        sample_weight : array-like, shape (m,), or str, optional
            Weights, or the name of a column of a table that has them; a column that is named is no feature. A weight
            of 2 equals the row twice, a weight of 0 its absence.
        feature_names : sequence of str, optional
            A name for each feature of data that has none, such as a sparse matrix. Tables, prepared Parquet and what
            ``TextFeatures`` and ``TableFeatures`` give have their own.
        groups : array-like, shape (m,), or str, optional
            With ``alpha="auto"``: the file, author or thread that each row is of, or the name of a column of a table
            that says it and then is no feature. Rows of a group are held out together, as ``GroupKFold`` of
            scikit-learn has it: models are judged on groups that they have not seen. ``ParquetData`` names its own.

        Returns
        -------
        self

        Raises
        ------
        UsageError, DataError
            Before any training.
        ClusterError, StorageError
            During it; with a checkpoint, the next call goes on from the last round.
        KeyboardInterrupt
            Where it is interrupted. After this and after a ClusterError the fitted attributes are those of the model of
            the last round, whose `stop_reason_` is "interrupted"; its `duality_gap_` holds, as that of any round.

        Warns
        -----
        ConvergenceWarning
            With the gap reached, when the fit ended without reaching `tol`.
        """
        hooks, functions = split(self.callbacks)
        with (
            registered(self, hooks),
            live_line(self.callbacks, X, self.tol) as line,
            prepared(self, X, y, sample_weight, feature_names, groups) as parts,
        ):
            plan, settings, most = parts.plan, parts.settings, None
            if choosing := chooses(parts, getattr(self, "alpha", None)):
                # the search has a point with so many features, and its fits have no limit
                most, settings = settings.max_features, replace(settings, max_features=None)
                parts = replace(parts, settings=settings)
            if groups is not None and not holds_out(settings, getattr(self, "alpha", None)):
                raise UsageError(
                    "groups= says which rows are held out together, and such a fit holds none out",
                    hint='leave groups out, or give alpha="auto"',
                )
            start = None
            if self.warm_start and hasattr(self, "model_"):
                start = start_from(self.model_, parts)
            fitting = Fitting(plan, parts.engine, settings)
            if getattr(self, "standardize", None) is True or not settings.fit_intercept:
                warn_if_dropped(fitting)
            if parts.dense:
                warn_if_uneven(fitting)
            if start is not None:
                start = followed(self.model_, start, fitting.problem.pool)
            rounds = CallbackDispatcher(self, [*functions, *line], X, y, sample_weight)
            so_far: list[Callable[[str], Model]] = []
            record: dict[str, Any] = {}

            def note(state: FitState, as_given: Callable[[FitState], FitState] = fitting.as_given) -> None:
                """Remember how the model of this round is made, which few ask for."""
                pool = fitting.problem.pool
                so_far[:] = [lambda reason: model_so_far(self, parts, as_given(state), pool, reason)]

            def on_round(record: dict[str, Any], state: FitState) -> bool:
                note(state)
                return rounds(record, lambda: _attributes(so_far[0]("running")))

            def on_refit(record: dict[str, Any], state: FitState) -> bool:
                note(state, lambda state: state)
                return rounds(record, lambda: _attributes(so_far[0]("running")))

            def last_fit(fitting: Fitting, alpha: float, start: Any, callback: Any) -> FitResult:
                return run(fitting, replace(fitting.settings, alpha=alpha), start, self.checkpoint, callback)

            try:
                if choosing:
                    told = rounds.after_judged_round, on_round, on_refit
                    result, record = searched(parts, fitting, self.prefer, most, start, *told, last_fit)
                else:
                    result = run(fitting, settings, start, self.checkpoint, on_round, note)
            except (KeyboardInterrupt, ClusterError) as error:
                if so_far:
                    # a note, since a warning may be turned into another exception than the one that ends the fit
                    error.add_note(self._keep_so_far(so_far[0](INTERRUPTED)))
                raise
            model = model_of(self, parts, result)
            self._adopt(replace(model, manifest={**model.manifest, **record}))
            rounds.finish(lambda: _attributes(self.model_))
        warn_if_open(result, settings)
        if settings.system is None:
            warn_if_empty(result)
        return self

    def _keep_so_far(self, model: Model) -> str:
        """Take the fitted attributes of a fit that was broken off; returns what to say of it."""
        self._adopt(model)
        gap = model.certificate.gap
        reached = "without a certificate yet" if math.isnan(gap) else f"at a certified relative gap of {gap:.2g}"
        return f"the estimator keeps the model of round {model.certificate.n_iter}, {reached}"

    def _adopt(self, model: Model) -> Self:
        """Take the fitted attributes from a model."""
        if model.feature_names is None:
            self.__dict__.pop("feature_names_in_", None)
        for name, value in _attributes(model).items():
            setattr(self, name, value)
        return self

    @property
    def coef_(self) -> NDArray[np.float64]:
        """Weights of all features, shape (k or 1, n); built anew on each access, as prediction never needs it.

        With `hypotheses`, the weights of those that the model holds, shape (k or 1, number held), in the order of
        `active_features_` and of what these name: of monomials of raw features, though the fit scales them.
        """
        model = self._fitted_attribute("coef_")
        if not model.plain:
            return model.weights.T.copy()
        coef = np.zeros((model.n_outputs, model.n_features))
        coef[:, model.active] = model.W.T
        return coef

    @property
    def intercept_(self) -> NDArray[np.float64]:
        """Scores of a row of zeros, shape (k or 1,): a copy, as `coef_` is, of what the certificate is about.

        A score that is to be moved, as for another share of the classes, is moved after ``decision_function``.
        """
        return self._fitted_attribute("intercept_").intercept.copy()

    def _fitted_attribute(self, name: str) -> Model:
        model: Model | None = self.__dict__.get("model_")
        if model is None:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r} before it is fitted")
        return model

    # ---- prediction ------------------------------------------------------------------------------------------------

    def predict(self, X: Any) -> Any:
        """Labels, or the target of a regression.

        Parameters
        ----------
        X : as for `fit`
            Of a dask array or DataFrame the prediction is lazy and of the same kind (for one value per row of a
            DataFrame a Series, with its index). ``ParquetData`` is read in this process, block by block, and gives a
            NumPy array. Only the columns the model uses are read from Dask and Parquet.

        Returns
        -------
        array, or dask collection
        """
        return self._predict(X, predicting.LABELS)

    def _readable(self, X: Any) -> tuple[str, Any]:
        """The kind of some rows, and the rows as scikit-learn checks them, without labels that were given by name."""
        if "model_" not in self.__dict__:
            check_is_fitted(self, "model_")
        kind = predicting.kind_of(X)
        if kind == "matrix" and issparse(X) and _sound(X) and X.shape[1] == self.n_features_in_:
            return kind, X
        return kind, self._checked(X, kind)

    @quoting_no_values()
    @config_context(array_api_dispatch=False)  # type: ignore[untyped-decorator]
    def _checked(self, X: Any, kind: str) -> Any:
        """Rows of a kind as scikit-learn checks them."""
        if kind == "matrix":
            if issparse(X):
                # such rows cannot have names: scikit-learn would warn of that at every prediction of a fit that had
                X = check_array(X, accept_sparse=True, dtype="numeric", ensure_min_samples=0, estimator=self)
                _check_n_features(self, X, reset=False)
            else:
                # it sums all values to see whether one is infinite, and the sum of large ones may be no number
                with np.errstate(over="ignore", invalid="ignore"):
                    given = {"accept_sparse": True, "dtype": "numeric", "ensure_min_samples": 0}
                    X = validate_data(self, X, reset=False, **given)
        elif kind in ("table", "frame"):
            X = without(as_named(X), predicting.named_columns(self.model_))
            if kind == "table" and hasattr(X, "columns"):
                # before scikit-learn, which lets another library refuse two columns of one name
                check_names(names_of(X))
                validate_data(self, X, reset=False, skip_check_array=True)
        return X

    def _predict(self, X: Any, what: str) -> Any:
        kind, X = self._readable(X)
        return predicting.predict(self.model_, X, kind, what)

    # ---- the fitted object -----------------------------------------------------------------------------------------

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the features (with `hypotheses`: of the hypotheses) the model uses, in words.

        Parameters
        ----------
        input_features : sequence of str, optional
            Names of all features, where the fit had none; where it had, they must be the same.

        Returns
        -------
        object array, shape (number of active features,)
        """
        check_is_fitted(self, "model_")
        model = self.model_
        if input_features is not None:
            names = [str(name) for name in input_features]
            if len(names) != model.n_features:
                raise UsageError(f"input_features has {len(names)} names, the fit had {model.n_features} features")
            if model.feature_names is not None and list(model.feature_names) != names:
                raise UsageError("input_features is not equal to feature_names_in_")
            if model.plain:
                return np.array([names[j] for j in model.active.tolist()], dtype=object)
            if model.feature_names is None:
                raise UsageError(
                    "input_features cannot name induced hypotheses of a fit without names",
                    hint="fit on a table, or leave input_features out",
                )
        return np.array(model.hypotheses.words(), dtype=object)

    def save(self, path: PathLike, *, force: bool = False) -> None:
        """Write the model as a folder (``model.json``, ``arrays.safetensors``); see ``dboost.load_model``.

        Parameters
        ----------
        path : path
        force : bool
            Replace the folder of an earlier model.

        Raises
        ------
        UsageError
            When the folder exists.
        StorageError
            When it cannot be written.
        """
        check_is_fitted(self, "model_")
        self.model_.save(path, force=force)

    def to_local(self) -> Self:
        """A copy without client, callbacks and checkpoint: it predicts without Dask and pickles small."""
        check_is_fitted(self, "model_")
        local = copy.copy(self)
        local.set_params(**{name: None for name in PROCESS if name in local.get_params(deep=False)})
        local.__dict__.pop("_skl_callbacks", None)
        return local

    def to_sklearn(self) -> Any:
        """The same model as a plain one of scikit-learn; see ``dboost.interop.linear.to_sklearn``."""
        from dboost.interop.linear import to_sklearn

        return to_sklearn(self)

    def __sklearn_is_fitted__(self) -> bool:
        return "model_" in self.__dict__

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # ---- what a person sees ----------------------------------------------------------------------------------------

    def _map_text(self) -> str:
        model = self.__dict__.get("model_")
        return "" if model is None else repr.text_map(model, self.tol)

    def _map_html(self) -> str:
        model = self.__dict__.get("model_")
        return "" if model is None else repr.html_map(model, self.tol)


def _sound(X: Any) -> bool:
    """Whether scikit-learn has nothing to say of sparse rows; to ask it takes longer than to predict one of them."""
    known = X.ndim == 2 and X.format in ("csr", "csc") and X.dtype in (np.float32, np.float64) and all(X.shape)
    return bool(known and np.isfinite(X.data).all())


def _attributes(model: Model) -> dict[str, Any]:
    """The fitted attributes that follow from a model."""
    cert = model.certificate
    found = {
        "model_": model,
        "n_features_in_": model.n_features,
        "active_features_": model.hypotheses.words(),
        "history_": Table(model.history),
        "objective_": cert.objective,
        "duality_gap_": cert.gap,
        "stop_reason_": cert.stop_reason,
        "n_iter_": cert.n_iter,
        "induction_stop_": induction_stop(model.history),
        "alpha_": cert.alpha,
        "alpha_max_": cert.alpha_max,
    }
    if model.task == "multitarget":
        found["target_names_"] = model.classes
    elif model.task != "regression":
        found["classes_"] = model.classes
    if FRONTIER in model.manifest:
        found["frontier_"] = Table(model.manifest[FRONTIER])
    if "relaxed" in model.manifest:
        found["relaxed_"] = unplain(model.manifest["relaxed"])
    if model.feature_names is not None:
        found["feature_names_in_"] = np.array(model.feature_names, dtype=object)
    return found
