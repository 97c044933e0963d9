"""The keys of the model, and how it is fitted: what estimators of every kind may take.

Covers: ``ModelSettings`` and the values that only it has (labels, weights, factors, families of hypotheses).
Does not cover: keys that only some estimators have (``model_settings``), what the keys mean (``estimators``).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from . import registries
from .config import Expected, Takes, boolean, boolean_or, key, names, one_named, one_of, parameter, real, whole


def _strength(value: object) -> Any:
    """A finite number of at least 0, "auto" or "quick"."""
    return value if value == "quick" else real(0.0, word="auto")(value)


def labels(value: object) -> tuple[Any, ...]:
    """Labels: a TOML array, or one flag with commas; a flag takes JSON too, for labels that hold commas.

    Whole numbers of a flag are numbers; ``["1", "2"]`` as JSON are texts.
    """
    found: Any = value
    if isinstance(value, str):
        try:
            found = json.loads(value) if value.lstrip().startswith("[") else [_label(word) for word in value.split(",")]
        except json.JSONDecodeError:
            found = None
    if not isinstance(found, list | tuple) or not found or not all(isinstance(one, str | int) for one in found):
        raise Expected("labels separated by commas, or a JSON array of them")
    return tuple(found)


def _label(word: str) -> str | int:
    return int(word) if word.lstrip("-").isdecimal() and str(int(word)) == word else word


def label_weights(value: object) -> Any:
    """ "balanced", or a table of label to weight (a flag takes it as JSON)."""
    wanted = 'the word "balanced" or a table {label = weight}'
    if value == "balanced":
        return value
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except json.JSONDecodeError:
            raise Expected(wanted + ' (as a flag in JSON: {"spam": 2})') from None
    if not isinstance(value, Mapping) or not value:
        raise Expected(wanted)
    weigh = real(0.0)
    return {label: weigh(weight) for label, weight in value.items()}


def factors(value: object) -> dict[str, Any] | tuple[Any, ...]:
    """A table of feature to factor, or a factor for every column; a flag takes either as JSON."""
    wanted = "a table {feature = factor} or a number for each feature, from 0 to inf"
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except json.JSONDecodeError:
            raise Expected(wanted + ' (as a flag in JSON: {"price": 0.5, "id": "inf"})') from None
    if isinstance(value, Mapping) and value:
        return {str(name): _factor(one, wanted) for name, one in value.items()}
    if isinstance(value, list | tuple) and value:
        return tuple(_factor(one, wanted) for one in value)
    raise Expected(wanted)


def groups(value: object) -> dict[str, list[str | int]] | tuple[int, ...]:
    """A table of group to its columns, or the label of a group for every column; a flag takes either as JSON."""
    wanted = "a table {group = [features]} or a whole number from 0 on for each feature"
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except json.JSONDecodeError:
            raise Expected(wanted + ' (as a flag in JSON: {"colour": ["red", "green"]})') from None
    if isinstance(value, Mapping) and value:
        return {str(name): _columns_of(one, wanted) for name, one in value.items()}
    if isinstance(value, list | tuple) and value and all(_is_place(one) for one in value):
        return tuple(value)
    raise Expected(wanted)


def _columns_of(value: object, wanted: str) -> list[str | int]:
    """The columns of a group, by name or by place."""
    known = isinstance(value, list | tuple) and all(isinstance(one, str) or _is_place(one) for one in value)
    if not (isinstance(value, list | tuple) and known and value):
        raise Expected(wanted)
    return list(value)


def _is_place(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _factor(value: object, wanted: str) -> float | str:
    """A number from 0 on, which JSON has no other way to say is infinite than the word."""
    number = math.inf if value == "inf" else value
    if isinstance(number, bool) or not isinstance(number, int | float) or not number >= 0:
        raise Expected(wanted)
    return "inf" if math.isinf(number) else float(number)


def _side(free: str) -> Callable[[object], Any]:
    """Takes 0 for all features, a table of feature to bound, or a bound for every column; a flag takes them as JSON."""
    wanted = f"0 for every feature, a table {{feature = 0}} or 0 or {free} for each"

    def bound(one: object) -> float | str:
        number = float(one) if one == free else one
        if isinstance(number, bool) or not isinstance(number, int | float) or number not in (0, float(free)):
            raise Expected(wanted)
        return 0.0 if number == 0 else free

    def side(value: object) -> Any:
        if isinstance(value, str) and value != free:
            try:
                value = json.loads(value)
            except json.JSONDecodeError:
                raise Expected(wanted + ' (as a flag in JSON: 0, {"price": 0})') from None
        if isinstance(value, Mapping) and value:
            return {str(name): bound(one) for name, one in value.items()}
        if isinstance(value, list | tuple) and value:
            return tuple(bound(one) for one in value)
        return bound(value)

    return side


def _families(value: object) -> Any:
    """A family of hypotheses as a table with its name, or several to be joined; a flag takes the name, or JSON."""
    wanted = 'a table {family = "products", max_degree = 2}, or several in an array'
    if isinstance(value, str):
        try:
            value = json.loads(value) if value.lstrip().startswith(("{", "[")) else {"family": value}
        except json.JSONDecodeError:
            raise Expected(wanted + ' (as a flag a name, or JSON: {"family": "products", "max_degree": 2})') from None
    tables: list[Any] = value if isinstance(value, list) else [value]
    if not tables or not all(isinstance(table, Mapping) and isinstance(table.get("family"), str) for table in tables):
        raise Expected(wanted)
    return [dict(table) for table in tables]


families = Takes(_families, lambda: f"one of {', '.join(registries.families())}, or JSON with its parameters")


def _losses(value: object) -> str:
    """A loss, or one for each of several targets: a TOML array, or one text with commas."""
    given = value.split(",") if isinstance(value, str) else value
    one = one_named(registries.losses)
    if not isinstance(given, list | tuple) or not given:
        raise Expected(one.wants())
    return ",".join(one(name.strip() if isinstance(name, str) else name) for name in given)


def _losses_wanted() -> str:
    return f"one of {', '.join(registries.losses())}, or one for each target, with commas"


losses = Takes(_losses, _losses_wanted, registries.losses)


@dataclass(frozen=True, kw_only=True)
class ModelSettings:
    """The model, and how it is fitted."""

    loss: str | None = key(
        losses,
        None,
        "what is minimised; squared, epsilon_insensitive, poisson, huber and quantile are regression, multitask and "
        "multitarget (of numbers) take several columns, as does one loss for each, such as squared,poisson,log "
        "(default: by the labels, log for two classes and multinomial for more)",
    )
    epsilon: float | None = key(
        real(0.0),
        None,
        "of loss epsilon_insensitive half the width of its tube, of huber the error from which it is linear "
        "(default: theirs)",
    )
    quantile: float | None = key(
        real(0.0, open_end=True), None, "of loss quantile: the share of labels that is to be below (default: 0.5)"
    )
    width: float | None = key(
        real(0.0, open_end=True), None, "of loss quantile: how far its kink is rounded off (default: 0.1)"
    )
    penalty: str | None = parameter("penalty", one_named(registries.penalties), "what ties the weights of a feature")
    hypotheses: Any = key(families, None, "what is weighed, a family of hypotheses (default: the raw columns)")
    alpha: float | str | None = parameter(
        "alpha",
        _strength,
        "strength of the penalty on the mean loss; auto chooses features on held-out rows, then refits them; quick is "
        "one fit at 0.05 of the least that uses no feature",
    )
    prefer: str | None = key(
        one_of("few", "accurate"),
        None,
        "with alpha auto: fewer features than the default, or as accurate as any (default: the fewest features within "
        "one standard error of the best)",
    )
    max_features: int | None = key(whole(1), None, "with alpha auto: at most so many features (default: no limit)")
    update: str | None = parameter("update", one_named(registries.updates), "how weights move")
    select: str | None = parameter("select", one_named(registries.selections), "order of features")
    sweeps: int | None = key(
        whole(1),
        None,
        "sweeps of updates gradboost and adaboost between two scorings; 1 is the paper's loop (default: until solved)",
    )
    rows_per_round: int | None = key(whole(1), None, "features that may join in one round (default: chosen by the fit)")
    tol: float | None = parameter("tol", real(0.0, open_end=True), "certified relative duality gap to reach")
    max_rounds: int | None = parameter("max_rounds", whole(1), "limit of rounds")
    max_passes: int | None = key(whole(1), None, "limit of passes over the data (default: none)")
    max_seconds: float | None = key(real(0.0, open_end=True), None, "limit of seconds of training (default: none)")
    max_active_rows: int | None = key(whole(1), None, "limit of features in use (default: none)")
    fit_intercept: bool | None = parameter("fit_intercept", boolean, "fit an intercept, which is never penalised")
    standardize: bool | str | None = parameter(
        "standardize",
        boolean_or("auto"),
        "scale columns for the penalty; weights are reported unscaled; auto does it for tables, and not for text",
    )
    penalty_factors: Any = key(
        factors,
        None,
        'what multiplies alpha for single features: {"price": 0.5, "id": "inf"}; 0 leaves one without penalty, inf out '
        "(default: 1 each)",
    )
    column_groups: Any = key(
        groups,
        None,
        'features that enter together, under the penalties l1/l2 and l1/linf: {"colour": ["red", "green"]} (default: '
        "each by itself)",
    )
    positive: bool | None = key(boolean, None, "no weight may be negative (default: weights of both signs)")
    lower: Any = key(
        _side("-inf"), None, 'no weight of these features may be negative: 0 for all, {"price": 0} (default: any)'
    )
    upper: Any = key(
        _side("inf"), None, 'no weight of these features may be positive: 0 for all, {"price": 0} (default: any)'
    )
    offset: tuple[str, ...] | None = key(
        names, None, "column that is added to the scores as it is; several classes need one each (default: none)"
    )
    classes: tuple[Any, ...] | None = key(
        labels, None, "all labels there may be, of which the data need not hold every one (default: those it holds)"
    )
    class_weight: Any = key(
        label_weights, None, 'balanced, or weights by label: {"spam": 2}, {"1": 2} (default: every class weighs 1)'
    )
    random_state: int | None = parameter("random_state", whole(0), "seed of every random choice")
