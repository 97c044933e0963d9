"""From settings to an estimator, refused here when they have no meaning.

Covers: the class by its name and loss, the parameters that were given, families of hypotheses.
Does not cover: paths and cross-validation (``training``).
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import dboost
from dboost.errors import UsageError

from . import registries
from .config import given
from .model_settings import ALL, EstimatorSettings, ModelSettings

# Keys that are parameters of the loss, not of the estimator.
LOSS_PARAMETERS = ("epsilon", "quantile", "width")


def made(kind: Any, parameters: Mapping[str, Any], **more: Any) -> Any:
    """An estimator, its parameters checked together; one for each class takes them for its parts."""
    parameters = dict(parameters)
    if kind.__name__ == registries.ESTIMATORS["one_vs_rest"]:
        inner = registries.estimator(parameters.pop("of", "shareboost"))
        parameters.setdefault("loss", "log")
        more.pop("checkpoint", None)
        return kind(made(inner, parameters, **more))
    estimator = kind(**parameters, **more)
    estimator._settings()
    return estimator


def kind_and_parameters(settings: ModelSettings) -> tuple[Any, dict[str, Any]]:
    """The class of estimator that the settings name, and the parameters that were given."""
    parameters = given(settings, ModelSettings)
    if isinstance(settings, EstimatorSettings):
        parameters |= given(settings, EstimatorSettings)
    rule = getattr(settings, "rule", None)
    if rule is not None and getattr(settings, "cv", None) is None:
        parameters["rule"] = rule
    name = parameters.pop("estimator", None)
    loss = parameters.get("loss")
    own = {key: parameters.pop(key) for key in LOSS_PARAMETERS if key in parameters}
    kind = registries.estimator(name or "boosted")
    if name in (None, "boosted"):
        kind = _by_loss(loss)
    if kind is not dboost.BoostedClassifier and name in (None, "boosted", "regressor", "multitask", "multitarget"):
        shown = f"loss {loss!r}" if loss is not None else f"estimator {name!r}"
        if parameters.pop("class_weight", None) is not None:
            raise UsageError(f"class_weight has no meaning for {shown}", hint="use a column of example weights")
        if issubclass(kind, dboost.BoostedRegressor) and parameters.pop("classes", None) is not None:
            raise UsageError(f"classes has no meaning for {shown}", hint="leave classes= out")
    if own:
        parameters["loss"] = _with_parameters(loss, own)
    if parameters.get("shortlist") == ALL:
        parameters["shortlist"] = None
    if "bounds" in parameters:
        parameters["bounds"] = tuple(float(side) for side in parameters["bounds"])
    if "penalty_factors" in parameters:
        parameters["penalty_factors"] = _numbers(parameters["penalty_factors"])
    for side in ("lower", "upper"):
        if side in parameters:
            parameters[side] = _numbers(parameters[side])
    if "hypotheses" in parameters:
        parameters["hypotheses"] = family_of(parameters["hypotheses"])
    _refuse_foreign(kind, name or "boosted", parameters)
    return kind, parameters


def _with_parameters(loss: Any, own: Mapping[str, Any]) -> Any:
    """A loss with parameters of its own; one that has no such parameter is refused with those that do."""
    from dboost.losses import LOSSES

    for name, value in own.items():
        taking = [one for one, known in LOSSES.items() if hasattr(known, name)]
        if loss not in taking:
            with_loss = "without a loss" if loss is None else f"with loss {loss!r}"
            raise UsageError(f"{name}={value:g} {with_loss}", hint=f"it belongs to {', '.join(taking)}")
    made: Any = type(LOSSES[loss])
    return made(**own)


def _by_loss(loss: Any) -> Any:
    from dboost.losses import get_loss

    by_task: dict[str, Any] = {"multitask": dboost.MultiTaskBoostedClassifier, "regression": dboost.BoostedRegressor}
    by_task["multitarget"] = dboost.MultiTaskBoostedRegressor
    return by_task.get("" if loss is None else get_loss(loss).task, dboost.BoostedClassifier)


def taken(kind: Any, of: str = "shareboost") -> set[str]:
    """Parameters that an estimator takes; one for each class takes those of its parts."""
    names = registries.parameters_of(kind)
    if kind.__name__ == registries.ESTIMATORS["one_vs_rest"]:
        return (taken(registries.estimator(of)) - {"checkpoint", "classes"}) | {"of"}
    return names


def _refuse_foreign(kind: Any, name: str, parameters: Mapping[str, Any]) -> None:
    """Refuse a parameter of other estimators, and name those."""
    takes = taken(kind, parameters.get("of", "shareboost"))
    for key in parameters:
        if key not in takes:
            others = [other for other in registries.estimators() if key in taken(registries.estimator(other))]
            hint = f"it belongs to estimator {', '.join(others)}" if others else f"leave {key}= out"
            raise UsageError(f"{key} has no meaning for estimator {name!r}", hint=hint)


def _numbers(factors: Any) -> Any:
    """Factors or bounds as numbers: settings, which are also written as JSON, hold infinity as a word."""
    if isinstance(factors, int | float | str):
        return float(factors)
    if isinstance(factors, Mapping):
        return {name: float(one) for name, one in factors.items()}
    return [float(one) for one in factors]


def family_of(tables: list[dict[str, Any]]) -> Any:
    """The family of hypotheses of the settings; several tables are a union."""
    from dboost.hypotheses import family_from_json

    if len(tables) == 1:
        return family_from_json(tables[0])
    return family_from_json({"family": "union", "members": tables})


def own_defaults(name: str | None) -> dict[str, Any]:
    """The defaults of an estimator's parameters, by name."""
    kind = registries.estimator(name or "boosted")
    found = inspect.signature(kind).parameters
    return {key: item.default for key, item in found.items() if item.default is not inspect.Parameter.empty}
