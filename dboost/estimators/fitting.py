"""From the input of ``fit`` to a fitted model: plan, engine, core fit, model.

Covers: scikit-learn's checks of local input, and what it refuses in labels, without sorting what need not be sorted;
what a fit opens and closes, checkpoints, and the model with its certificate and manifest.
Does not cover: warm starts (``earlier``), attributes of estimators (``base``), encoding (``dboost.data``), or any
mathematics.
"""

from __future__ import annotations

import math
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context

import dboost
from dboost.boosting.fit import FitResult, FitSettings, FitState, Fitting, with_fixed
from dboost.boosting.planned import columns_of
from dboost.columns.given import by_name
from dboost.data.labels.labels import weights_by_label
from dboost.data.labels.tags import OF_TAGS, TAGS, are_tags, as_arrow
from dboost.data.memory.in_memory import check_names
from dboost.data.named_columns import GROUPS, WEIGHT, Named, names_of, split_named, table_behind
from dboost.data.plan import build_plan
from dboost.data.planned import Plan
from dboost.engine.base import Engine
from dboost.engine.select import open_engine
from dboost.errors import DataError, UsageError, quoting_no_values
from dboost.estimators.checkpoint import CheckpointWriter, check_place, identity, read_checkpoint, write_checkpoint
from dboost.estimators.params import loss_name, loss_spec, penalty_spec
from dboost.estimators.predicting import kind_of
from dboost.estimators.transformed_rows import named as with_feature_names
from dboost.files.documents import plain
from dboost.first_compile import announce
from dboost.hypotheses import Chosen
from dboost.hypotheses.columns import ColumnSet
from dboost.interruption import as_raised
from dboost.losses import Loss, get_loss, refuse_invalid
from dboost.model.fitted import Certificate, Model, Origin
from dboost.model.stages import Stages
from dboost.notices import warn_user

Float = NDArray[np.float64]

# Parameters that belong to a process, and those that are no part of a saved model: these, and the folds of given rows.
PROCESS = ("client", "callbacks", "checkpoint")
UNSAVED = (*PROCESS, "folds")
# Score of a declared class without examples below the lowest intercept: its probability vanishes, its log is finite.
_ABSENT = -700.0
# Numbers that were less their mean have one of this share of the largest again at most.
_ROUNDED = 2.0**-50


@dataclass(frozen=True)
class Prepared:
    """What a fit needs: the plan, the open engine and the settings with the loss decided."""

    plan: Plan
    engine: Engine
    settings: FitSettings
    # All classes, declared ones without examples included; the plan holds those with examples.
    classes: NDArray[Any]
    # Columns of the data that are no features.
    named: Named
    # The sample weights of data in memory, as values.
    weight: Any
    # Whether the data is a table, whose columns may be in any unit, rather than sparse rows, as text is.
    dense: bool


@contextmanager
def prepared(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    feature_names: Sequence[str] | None = None,
    groups: Any = None,
) -> Iterator[Prepared]:
    """Check the parameters and the data, and open the engine; it is closed at the end."""
    announce()
    settings: FitSettings = estimator._settings()
    if estimator.checkpoint is not None:
        check_place(estimator.checkpoint, folder=estimator._fits_several)
    task = estimator._task if estimator.loss is None else get_loss(estimator.loss).task
    kind = kind_of(X)
    if kind in ("matrix", "table"):
        X, y, sample_weight, groups, named = split_named(X, y, sample_weight, groups)
        X, y = _checked_local(estimator, X, y, kind, task)
    elif table_behind(X) is not None:
        X, y, sample_weight, groups, named = split_named(X, y, sample_weight, groups)
    else:
        named = _named_in_place(X, y, sample_weight, groups)
    with as_raised(), open_engine(estimator.client, distributed_input=kind in ("parquet", "frame", "array")) as engine:

        def planned(task: str, classes: Any, class_weight: Any) -> Plan:
            how = {"task": task, "classes": classes, "class_weight": class_weight, "engine": engine, "groups": groups}
            plan = build_plan(X, y, sample_weight, **how)
            return with_feature_names(plan, X, feature_names)

        plan = planned(task, estimator.classes, estimator.class_weight)
        classes, notes = task_classes(plan), plan.notes
        seen = _seen(plan)
        if not seen.all():
            # Without examples the best intercept of a class is minus infinity: no fit reaches it, so the class is left
            # out and put back into the model.
            weight, found = estimator.class_weight, classes[seen].tolist()
            if isinstance(weight, Mapping):
                named = weights_by_label(weight, classes.tolist())
                weight = {label: factor for label, factor in named.items() if label in found}
            plan = replace(planned(plan.task, classes[seen], weight), notes=notes)
        for note in notes:
            warn_user(note)
        if plan.streams:
            warn_user(
                f"the data takes {plan.nbytes_estimate / 2**30:.2g} GiB decoded, more than may stay in memory: "
                "its partitions are read again in every pass"
            )
        if settings.offset is not None:
            if not seen.all():
                raise UsageError(
                    f"offset= has a column for each class, and class {classes[~seen].tolist()[0]!r} has no example",
                    hint="leave it out of classes= and its column out of offset=",
                )
        # columns that the data does not have are known before anything is computed
        columns_of(plan, settings)
        loss = estimator._loss_of(plan.task, plan.n_outputs)
        dense = _dense(X, kind, plan)
        settings = replace(settings, loss=loss, **(estimator._for_tables(settings) if dense else {}))
        yield Prepared(plan, engine, settings, classes, named, sample_weight, dense)


def _dense(X: Any, kind: str, plan: Plan) -> bool:
    """As ``Prepared.dense``."""
    if kind == "parquet":
        return bool(plan.items) and plan.items[0].layout.kind != "lists"
    if kind == "table":
        return not all("Sparse" in str(kind) for kind in getattr(X, "dtypes", ["dense"]))
    if kind == "array":
        return isinstance(X._meta, np.ndarray)
    return kind == "frame" or not hasattr(X, "tocsr")


def _named_in_place(X: Any, y: Any, sample_weight: Any, groups: Any) -> dict[str, Any]:
    """As ``split_named``, of data whose columns are taken apart where it is."""
    if hasattr(X, "named"):
        return dict(X.named())
    given = {"y": y, WEIGHT: sample_weight, GROUPS: groups}
    return {what: name for what, name in given.items() if isinstance(name, str)}


def _seen(plan: Plan) -> NDArray[np.bool_]:
    """Which classes have examples; those of tasks always have, and a regression has none."""
    if plan.task == "regression":
        return np.ones(0, dtype=bool)
    if plan.task == "multitask" or plan.class_counts is None or plan.class_weights is None:
        return np.ones(plan.n_outputs, dtype=bool)
    counts, weights = np.array(plan.class_counts), np.array(plan.class_weights)
    labels = task_classes(plan)
    if np.any((counts > 0) & (weights == 0)):
        label = labels.tolist()[int(np.argmax((counts > 0) & (weights == 0)))]
        raise UsageError(f"class_weight is 0 for label {label!r}", hint="leave these rows out instead")
    if np.count_nonzero(counts) < 2:
        only = labels.tolist()[int(np.argmax(counts))]
        raise DataError(
            f"only one class: every label is {only!r}, expected at least two classes", hint="check the label column"
        )
    return counts > 0


@quoting_no_values()
@config_context(array_api_dispatch=False)  # type: ignore[untyped-decorator]
def _checked_local(estimator: Any, X: Any, y: Any, kind: str, task: str) -> tuple[Any, Any]:
    """scikit-learn's checks, messages and warnings of data in memory; arrays of other libraries become NumPy's."""
    from scipy.sparse import issparse
    from sklearn.utils import assert_all_finite, column_or_1d
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import validate_data

    # scikit-learn notes the names of columns while it checks them: an estimator is as before where its fit fails
    estimator = copy(estimator)
    if kind == "table":
        if hasattr(X, "columns"):
            # before scikit-learn, which lets another library refuse them
            check_names(names_of(X))
            validate_data(estimator, X, skip_check_array=True)
    elif not ((issparse(X) or type(X) is np.ndarray) and X.ndim == 2 and all(X.shape) and X.dtype.kind in "fiub"):
        # planning reads every value of the others once, and names the row and the column of one that is not finite
        X = validate_data(estimator, X, accept_sparse=True, dtype="numeric")
    if task == "multitask" and are_tags(y):
        return X, as_arrow(y)
    if y is None or type(y).__module__.split(".")[0] == "pyarrow":
        return X, y
    if not hasattr(y, "dtype") and not hasattr(y, "columns"):
        try:
            y = np.asarray(y)
        except ValueError:
            what = "y holds lists of several lengths or kinds, where each row has one label"
            raise DataError(what, hint=OF_TAGS) from None
    else:
        y = _typed(y)
    if task == "multitarget":
        # they may be missing, and are checked where they are encoded
        return X, y
    if task == "multitask":
        check_tasks(np.asarray(y))
        return X, y
    if task == "regression":
        check_one_target(y)
    if type(y) is not np.ndarray or y.ndim != 1 or y.dtype.kind not in "fiub":
        y = column_or_1d(y, warn=True)
    if y.dtype.kind == "f":
        assert_all_finite(y, input_name="y")
    if task == "regression" and estimator.loss is not None:
        check_labels(get_loss(estimator.loss), y)
    if task != "regression" and y.dtype.kind in "iufb" and not few_integers(y):
        check_classification_targets(y)
    return X, y


def _typed(y: Any) -> Any:
    """Labels of pandas of which none is missing, as NumPy's type that holds them.

    scikit-learn turns whole numbers and booleans of a type that may be missing, and categories of booleans, into
    floats, which merges large identifiers.
    """
    if hasattr(y, "columns") and len(y.columns) == 1 and hasattr(y, "iloc"):
        column = y.iloc[:, 0]
        found = _typed(column)
        return y if found is column else np.reshape(found, (-1, 1))
    kind = getattr(y, "dtype", None)
    wanted = getattr(kind, "numpy_dtype", None)
    categories = hasattr(kind, "categories")
    if not (isinstance(wanted, np.dtype) or categories) or not hasattr(y, "isna") or y.isna().any():
        return y
    return np.asarray(y) if categories else y.to_numpy(dtype=wanted)


def run(
    fitting: Fitting,
    settings: FitSettings,
    start: FitResult | None,
    checkpoint: Any,
    on_round: Callable[[dict[str, Any], FitState], bool],
    note: Callable[[FitState], None] | None = None,
) -> FitResult:
    """Run the core fit from its checkpoint, if it has one; `note` takes each state before it is written."""
    if checkpoint is None:
        with as_raised():
            return fitting.fit(settings.alpha, start, on_round)
    plan = fitting.plan
    mine = identity(plan, settings)
    resume = read_checkpoint(checkpoint, mine, plan.n_features, plan.n_outputs)

    def write_and_report(record: dict[str, Any], state: FitState) -> bool:
        if note is not None:
            note(state)
        # The last round only certifies; from the state before it, a finished fit ends again with the same bits. So
        # does, from the state before it, one whose last round a limit has cut short.
        if record["step"] != "certificate" and not state.cut:
            writer.update(state)
        return on_round(record, state)

    writer: CheckpointWriter[FitState] = CheckpointWriter(lambda state: write_checkpoint(checkpoint, mine, state))
    with writer.closing(), as_raised():
        return fitting.fit(settings.alpha, start, write_and_report, resume)


def class_places(parts: Prepared) -> NDArray[np.int64]:
    """Place of each class of the plan among all classes."""
    every = parts.classes.tolist()
    return np.array([every.index(label) for label in task_classes(parts.plan).tolist()], dtype=np.int64)


def task_classes(plan: Plan) -> Any:
    """Classes of a plan; tasks without names are numbered, and a regression has none."""
    if plan.task == "regression":
        return np.zeros(0, dtype=np.int64)
    return np.arange(plan.n_outputs) if plan.classes is None else plan.classes


def model_of(estimator: Any, parts: Prepared, result: FitResult) -> Model:
    """The model of a result, with its certificate and manifest."""
    plan, settings, classes, names = parts.plan, parts.settings, parts.classes, parts.plan.feature_names
    W = np.asarray(result.W, dtype=np.float64)
    intercept = np.asarray(result.intercept, dtype=np.float64)
    if plan.task == "multiclass" and not get_loss(settings.loss).separable:
        W = _without_common_part(W, result.active, settings, plan)
    if settings.offset is not None:
        # the scores of a model are those of its columns: it holds the offsets as columns of weight one
        active, W = with_fixed(result.active, W, columns_of(plan, settings).offset)
        result = replace(result, active=active, W=W)
    hypotheses, W, origin, places = _held(result, W, names)
    stages = stages_of(result, places)
    if plan.task == "multiclass":
        if not get_loss(settings.loss).separable:
            # Only differences between classes enter the softmax: without this their common part would be rounding noise
            intercept = centred_intercept(intercept)
        W, intercept = _with_absent(parts, W, intercept)
        if stages is not None:
            weights, _ = _with_absent(parts, stages.weights, np.zeros(plan.n_outputs))
            every = [_with_absent(parts, stages.weights[:0], centred_intercept(b))[1] for b in stages.intercepts]
            stages = replace(stages, weights=weights, intercepts=np.array(every).reshape(-1, len(classes)))
    return Model(
        task=plan.task,
        loss=str(loss_name(settings.loss)),
        penalty=str(penalty_spec(settings.penalty)["name"]),
        hypotheses=hypotheses,
        W=W,
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
            "data": {
                "fingerprint": plan.fingerprint,
                "rows": plan.n_rows,
                "notes": list(plan.notes),
                "named": plain(dict(parts.named)),
                **({TAGS: {}} if plan.coder.kind == TAGS else {}),
                **({"negative": -1} if plan.coder.negative else {}),
            },
            "versions": dict(_installed()),
        },
        history=tuple(dict(record) for record in result.history),
        origin=origin,
        stages=stages,
    )


def _without_common_part(
    W: NDArray[np.float64], active: NDArray[np.int64], settings: FitSettings, plan: Plan
) -> NDArray[np.float64]:
    """The weights that no penalty and no bound ties, centred: what all classes have in common changes no softmax.

    It would be whatever the way to the optimum left in it. Steps of boosting are kept as they were taken.
    """
    if settings.update == "forward" or settings.signs is not None:
        return W
    if penalty_spec(settings.penalty)["name"] == "none":
        return np.asarray(W - W.mean(axis=1, keepdims=True))
    if settings.penalty_factors is None:
        return W
    unpenalised = np.isin(active, columns_of(plan, settings).free)
    return np.where(unpenalised[:, None], W - W.mean(axis=1, keepdims=True), W)


def centred_intercept(intercept: Float) -> Float:
    """The intercept of a softmax less its mean; one that has none but for rounding as it is, which its gap is of."""
    mean = intercept.mean()
    return intercept if abs(mean) <= _ROUNDED * np.abs(intercept).max() else intercept - mean


def model_so_far(estimator: Any, parts: Prepared, state: FitState, pool: Any, reason: str = "running") -> Model:
    """The model of a fit that had stopped here; its certificate is the round's record."""
    last = state.history[-1]
    result = FitResult(
        active=state.active,
        W=state.W,
        intercept=state.intercept,
        objective=last["objective"],
        lower_bound=last["lower_bound"],
        gap=last["gap"],
        stop_reason=reason,
        n_iter=state.round,
        passes=state.passes,
        alpha=last["alpha"],
        alpha_max=math.nan,
        history=list(state.history),
        trace=np.zeros((0, 3)),
        state=state,
        pool=pool,
    )
    return model_of(estimator, parts, result)


def stages_of(result: FitResult, places: NDArray[np.int64]) -> Stages | None:
    """The models of all rounds, where the fit kept them; `places`: of the rows of the result in the model."""
    carried = result.state.carried
    # on its way back a fit keeps models that do not grow out of each other
    if "order" not in carried:
        return None
    return Stages(**{**carried, "order": places[np.searchsorted(result.active, carried["order"])]})


def _held(
    result: FitResult, W: Float, names: tuple[str, ...] | None
) -> tuple[Chosen, Float, Origin | None, NDArray[np.int64]]:
    """The hypotheses of a result, their weights in the same order, where induced ones came from, and their places."""
    if result.pool is None:
        active = np.asarray(result.active, dtype=np.int64)
        chosen = ColumnSet(active, None if names is None else tuple(names[j] for j in active.tolist()))
        return chosen, W, None, np.arange(len(active))
    # By key, not in the order of induction: the model of an optimum does not tell the way there.
    held = [result.state.keys[i] for i in result.active.tolist()]
    order = sorted(range(len(held)), key=held.__getitem__)
    keys = tuple(held[i] for i in order)
    origin = Origin(float(result.pool.size), str(result.pool.token), keys)
    places = np.empty(len(order), dtype=np.int64)
    places[order] = np.arange(len(order))
    return result.pool.chosen(keys, names), np.ascontiguousarray(W[order]), origin, places


def _with_absent(parts: Prepared, W: Float, intercept: Float) -> tuple[Float, Float]:
    """Weights and intercepts of all classes, from those of the classes with examples."""
    place = class_places(parts)
    whole = np.zeros((len(W), len(parts.classes)))
    whole[:, place] = W
    scores = np.full(len(parts.classes), intercept.min() + _ABSENT)
    scores[place] = intercept
    return whole, scores


def saved_params(estimator: Any, settings: FitSettings, classes: Any) -> dict[str, Any]:
    """Constructor parameters as JSON. Labels are not repeated: they are those of the model."""
    params = {name: value for name, value in estimator.get_params(deep=False).items() if name not in UNSAVED}
    if "cv" in params and not isinstance(params["cv"], int | np.integer):
        # a splitter is of given rows, as folds are
        del params["cv"]
    if callable(params.get("scoring")):
        # a saved model runs no code; what the folds said keeps the name
        del params["scoring"]
    if "penalty" in params:
        params["penalty"] = penalty_spec(settings.penalty)
    if "random_state" in params:
        params["random_state"] = settings.random_state
    if params.get("loss") is not None and not isinstance(params["loss"], str):
        params["loss"] = loss_spec(params["loss"])
    for name in ("penalty_factors", "lower", "upper"):
        if params.get(name) is not None:
            params[name] = by_name(name, params[name])
    if params.get("hypotheses") is not None:
        params["hypotheses"] = params["hypotheses"].to_json()
    if "classes" in params:
        params["classes"] = "given" if estimator.classes is not None else None
    if estimator.class_weight is not None and not isinstance(estimator.class_weight, str):
        named = weights_by_label(estimator.class_weight, classes.tolist())
        params["class_weight"] = [named.get(label, 1.0) for label in classes.tolist()]
    return {name: plain(value) for name, value in params.items()}


@cache
def _installed() -> dict[str, str]:
    # read from the packages' metadata files, which takes longer than a round of a small fit
    packages = ("numpy", "scipy", "numba", "scikit-learn")
    return {"python": platform.python_version(), "dboost": dboost.__version__} | {p: version(p) for p in packages}


def few_integers(y: Any) -> bool:
    """Whether labels are integers of a small range; scikit-learn sorts them to know, which takes a tenth of a fit."""
    return bool(y.dtype.kind in "iu") and y.size > 0 and 2 * (int(y.max()) - int(y.min()) + 1) <= y.size


def check_one_target(y: Any) -> None:
    """Refuse several columns as the target of a regression."""
    shape = tuple(y.shape)
    if len(shape) > 1 and shape[1] != 1:
        raise DataError(
            f"y should be a 1d array, got an array of shape {shape} instead: a regression has one target",
            hint="fit one BoostedRegressor for each column of y",
        )


def check_labels(loss: Loss, y: Any) -> None:
    """Refuse numbers that a loss is not defined for, with the row of the first; other kinds of labels pass."""
    if y.dtype.kind in "biuf":
        refuse_invalid(loss, np.asarray(y, np.float64).reshape(-1))


def check_tasks(y: Any) -> None:
    """Refuse, in scikit-learn's words, numbers that are clearly no labels of binary tasks."""
    from sklearn.utils.multiclass import type_of_target

    if y.dtype.kind not in "iuf" or not np.all(np.isfinite(y)) or two_labels(y):
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


def two_labels(y: Any) -> bool:
    """Whether finite numbers are all 0 or 1, or all -1 or +1; scikit-learn sorts them, which takes rounds of a fit."""
    if not y.size or y.min() < -1 or y.max() > 1 or (y.dtype.kind == "f" and not np.array_equal(y, np.rint(y))):
        return False
    return bool(y.min() >= 0 or np.all(y))
