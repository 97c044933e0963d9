"""From the input of ``fit`` to a fitted model: plan, engine, core fit, model.

Covers: scikit-learn's checks of local input, what a fit opens and closes, warm starts, checkpoints, and the model with
its certificate and manifest.
Does not cover: attributes of estimators (``base``), or any mathematics.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dboost.boosting.fit import FitResult, FitSettings, FitState
from dboost.data.plan import Plan, build_plan, split_label
from dboost.engine.base import Engine
from dboost.engine.select import open_engine
from dboost.errors import DataError, UsageError
from dboost.estimators.params import fit_settings, penalty_spec
from dboost.estimators.predicting import kind_of
from dboost.model import TASKS, Certificate, Columns, Model
from dboost.modelfile import plain

# What a plan is asked for, by loss.
_PLANNED = {None: "classification", "log": "binary", "multinomial": "multiclass", "multitask": "multitask"}
# Parameters that are no part of a saved model: they belong to a process.
UNSAVED = ("client", "callbacks", "checkpoint")


@dataclass(frozen=True)
class Prepared:
    """What a fit needs: the plan, the open engine and the settings with the loss decided."""

    plan: Plan
    engine: Engine
    settings: FitSettings


@contextmanager
def prepared(estimator: Any, X: Any, y: Any, sample_weight: Any) -> Iterator[Prepared]:
    """Check the parameters and the data, and open the engine; it is closed at the end.

    Raises
    ------
    UsageError, DataError, ValueError
        Everything that can be known to be wrong before training.
    """
    settings = fit_settings(estimator, estimator._losses)
    loss = "multitask" if estimator._losses == ("multitask",) else estimator.loss
    kind = kind_of(X)
    if kind in ("matrix", "table"):
        X, y = _checked_local(estimator, X, y, kind, multitask=loss == "multitask")
    with open_engine(estimator.client, distributed_input=kind in ("parquet", "frame", "array")) as engine:
        plan = build_plan(
            X,
            y,
            sample_weight,
            task=_PLANNED[loss],
            classes=estimator.classes,
            class_weight=estimator.class_weight,
            engine=engine,
        )
        yield Prepared(plan, engine, replace(settings, loss=TASKS[plan.task]))


def _checked_local(estimator: Any, X: Any, y: Any, kind: str, multitask: bool) -> tuple[Any, Any]:
    """scikit-learn's checks, with its messages and warnings, for what is in memory."""
    from sklearn.utils import assert_all_finite, column_or_1d
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import validate_data

    if isinstance(y, str):
        X, y = split_label(X, y)
    if kind == "table":
        if hasattr(X, "columns"):
            validate_data(estimator, X, skip_check_array=True)
    else:
        X = validate_data(estimator, X, accept_sparse=True, dtype="numeric")
    if y is None or type(y).__module__.split(".")[0] == "pyarrow":
        return X, y
    if not hasattr(y, "dtype") and not hasattr(y, "columns"):
        y = np.asarray(y)
    if multitask:
        _check_tasks(np.asarray(y))
        return X, y
    y = column_or_1d(y, warn=True)
    if y.dtype.kind == "f":
        assert_all_finite(y, input_name="y")
    if y.dtype.kind in "iufb":
        check_classification_targets(y)
    return X, y


def _check_tasks(y: Any) -> None:
    """Refuse, in scikit-learn's words, numbers that are clearly no labels of binary tasks."""
    from sklearn.utils.multiclass import type_of_target

    if y.dtype.kind not in "iuf" or not np.all(np.isfinite(y)):
        return
    found = type_of_target(y, input_name="y")
    rule = "labels of tasks are 0/1, -1/+1 or booleans, NaN where missing"
    if "continuous" in found:
        raise DataError(f"Unknown label type: {found}", hint=rule)
    if "multiclass" in found:
        raise DataError(
            f"Only binary classification is supported. The type of the target is {found}.",
            hint=f"{rule}; BoostedClassifier takes many classes",
        )


def run(
    fitting: Any,
    settings: FitSettings,
    start: FitResult | None,
    checkpoint: Any,
    on_round: Callable[[dict[str, Any], FitState], bool],
) -> FitResult:
    """Run the core fit, from the checkpoint where there is one, and keep it up to date."""
    if checkpoint is None:
        return fitting.fit(settings.alpha, start, on_round)
    from dboost.estimators.checkpoint import identity, read_checkpoint, write_checkpoint

    plan = fitting.plan
    mine = identity(plan, settings)
    resume = read_checkpoint(checkpoint, mine, plan.n_features, plan.n_outputs)

    def kept(record: dict[str, Any], state: FitState) -> bool:
        # The last round only certifies; from the state before it, a finished fit ends again with the same bits.
        if record["step"] != "certificate":
            write_checkpoint(checkpoint, mine, state)
        return on_round(record, state)

    return fitting.fit(settings.alpha, start, kept, resume)


def start_from(model: Model, plan: Plan, settings: FitSettings) -> FitResult:
    """An earlier model as the start of a fit.

    Raises
    ------
    UsageError
        When classes or features differ.
    """
    hint = "set warm_start=False to start from nothing"
    if model.n_features != plan.n_features or model.feature_names != plan.feature_names:
        raise UsageError(
            f"warm_start: the earlier fit had {model.n_features} features, this one has {plan.n_features}"
            + ("" if model.n_features != plan.n_features else " with other names"),
            hint=hint,
        )
    if model.task != plan.task or model.classes.tolist() != task_classes(plan).tolist():
        raise UsageError("warm_start: the classes differ from those of the earlier fit", hint=hint)
    cert = model.certificate
    state = FitState(model.active, model.W, model.intercept, lam=0.0)
    return FitResult(
        active=model.active,
        W=model.W,
        intercept=model.intercept if settings.fit_intercept else np.zeros_like(model.intercept),
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
        state=state,
    )


def task_classes(plan: Plan) -> Any:
    """Classes of a plan; tasks without names are numbered."""
    return np.arange(plan.n_outputs) if plan.classes is None else plan.classes


def model_of(estimator: Any, plan: Plan, settings: FitSettings, result: FitResult) -> Model:
    """The model of a result, with its certificate and manifest."""
    names, classes = plan.feature_names, task_classes(plan)
    intercept = np.asarray(result.intercept, dtype=np.float64)
    if plan.task == "multiclass":
        # Only differences between classes enter the softmax: without this their common part would be rounding noise.
        intercept = intercept - intercept.mean()
    chosen = None if names is None else tuple(names[j] for j in result.active.tolist())
    return Model(
        task=plan.task,
        penalty=str(penalty_spec(settings.penalty)["name"]),
        hypotheses=Columns(np.asarray(result.active, dtype=np.int64), chosen),
        W=np.asarray(result.W, dtype=np.float64),
        intercept=intercept,
        classes=classes,
        n_features=plan.n_features,
        certificate=Certificate(
            objective=float(result.objective),
            gap=float(result.gap),
            lower_bound=float(result.lower_bound),
            stop_reason=str(result.stop_reason),
            alpha=float(result.alpha),
            alpha_max=float(result.alpha_max),
            n_iter=int(result.n_iter),
            passes=int(result.passes),
        ),
        feature_names=names,
        manifest={
            "estimator": {"class": type(estimator).__name__, "params": saved_params(estimator, settings, classes)},
            "data": {"fingerprint": plan.fingerprint, "rows": plan.n_rows, "notes": list(plan.notes)},
            "versions": _versions(),
        },
        history=tuple(plain(record) for record in result.history),
    )


def saved_params(estimator: Any, settings: FitSettings, classes: Any) -> dict[str, Any]:
    """Constructor parameters as JSON. Labels are not repeated: they are those of the model."""
    params = {name: value for name, value in estimator.get_params(deep=False).items() if name not in UNSAVED}
    params["penalty"] = penalty_spec(settings.penalty)
    params["random_state"] = settings.random_state
    params["classes"] = "given" if estimator.classes is not None else None
    if estimator.class_weight is not None and not isinstance(estimator.class_weight, str):
        params["class_weight"] = [estimator.class_weight.get(label, 1.0) for label in classes.tolist()]
    return {name: plain(value) for name, value in params.items()}


def _versions() -> dict[str, str]:
    import numba
    import scipy
    import sklearn

    import dboost

    modules = {"dboost": dboost, "numpy": np, "scipy": scipy, "numba": numba, "scikit-learn": sklearn}
    return {"python": platform.python_version()} | {name: module.__version__ for name, module in modules.items()}
