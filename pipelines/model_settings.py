"""The keys of a model: what is trained, how it is fitted, and along which strengths."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StrictInt, StrictStr

from . import registries
from .config import (
    FromOne,
    FromTwo,
    FromZero,
    Names,
    NonNegative,
    OneOf,
    Positive,
    Says,
    Switch,
    Text,
    from_json,
    key,
    parameter,
    parts,
)

ALL = "all"
"""The word for a shortlist without an end, which is None in Python."""


def _labels(value: object) -> object:
    """A flag takes labels with commas, or JSON, for labels that hold commas; whole numbers of a flag are numbers."""
    if not isinstance(value, str):
        return value
    return from_json(value) if value.lstrip().startswith("[") else [_label(word) for word in value.split(",")]


def _label(word: str) -> str | int:
    return int(word) if word.lstrip("-").isdecimal() and str(int(word)) == word else word


def _endless(value: object) -> object:
    """A number, infinite where a word says so: JSON, as which settings are written too, has no other way to say it."""
    if value in ("inf", "-inf"):
        return float(str(value))
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(value)
    return value


def _in_words(value: float) -> float | str:
    return value if math.isfinite(value) else "inf" if value > 0 else "-inf"


def _side(free: str) -> Any:
    """Takes a bound of one side: 0, or infinity for none."""

    def bound(value: float) -> float | str:
        if value not in (0.0, float(free)):
            raise ValueError(value)
        return _in_words(value)

    return AfterValidator(bound)


def _some(value: Any) -> Any:
    """A table or a list that is not empty."""
    if isinstance(value, Mapping | list | tuple) and not value:
        raise ValueError(value)
    return value


def _families(value: object) -> object:
    """A flag takes the name of a family, or JSON; one table stands for a list of it."""
    if isinstance(value, str):
        value = from_json(value) if value.lstrip().startswith(("{", "[")) else {"family": value}
    return value if isinstance(value, list) else [value]


def _named(tables: list[dict[str, Any]]) -> list[dict[str, Any]]:
    if not all(isinstance(table.get("family"), str) for table in tables):
        raise ValueError(tables)
    return tables


def _joined(value: object) -> object:
    found = parts(value)
    return ",".join(map(str, found)) if isinstance(found, list | tuple) else found


def _ordered(value: tuple[float, float]) -> tuple[float | str, float | str]:
    if not value[0] <= value[1]:
        raise ValueError(value)
    return _in_words(value[0]), _in_words(value[1])


Labels = Annotated[
    tuple[StrictStr | StrictInt, ...],
    BeforeValidator(_labels),
    Field(min_length=1),
    Says("labels separated by commas, or a JSON array of them"),
]
ClassWeight = Annotated[
    Literal["balanced"] | dict[Any, NonNegative],
    AfterValidator(_some),
    BeforeValidator(lambda value: value if value == "balanced" else from_json(value)),
    Says(
        'the word "balanced" or a table {label = weight}, each a finite number of at least 0',
        flag='in JSON: {"spam": 2}',
    ),
]
Factor = Annotated[float, BeforeValidator(_endless), Field(ge=0), AfterValidator(_in_words)]
Factors = Annotated[
    dict[str, Factor] | tuple[Factor, ...],
    AfterValidator(_some),
    BeforeValidator(from_json),
    Says(
        "a table {feature = factor} or a number for each feature, from 0 to inf",
        flag='in JSON: {"price": 0.5, "id": "inf"}',
    ),
]
Place = Annotated[StrictInt, Field(ge=0)]
ColumnGroups = Annotated[
    dict[str, Annotated[list[StrictStr | Place], Field(min_length=1)]] | tuple[Place, ...],
    AfterValidator(_some),
    BeforeValidator(from_json),
    Says(
        "a table {group = [features]} or a whole number from 0 on for each feature",
        flag='in JSON: {"colour": ["red", "green"]}',
    ),
]
Low = Annotated[float, BeforeValidator(_endless), _side("-inf")]
High = Annotated[float, BeforeValidator(_endless), _side("inf")]
Lower = Annotated[
    Low | dict[str, Low] | tuple[Low, ...],
    AfterValidator(_some),
    BeforeValidator(lambda value: value if value == "-inf" else from_json(value)),
    Says("0 for every feature, a table {feature = 0} or 0 or -inf for each", flag='in JSON: 0, {"price": 0}'),
]
Upper = Annotated[
    High | dict[str, High] | tuple[High, ...],
    AfterValidator(_some),
    BeforeValidator(lambda value: value if value == "inf" else from_json(value)),
    Says("0 for every feature, a table {feature = 0} or 0 or inf for each", flag='in JSON: 0, {"price": 0}'),
]
Families = Annotated[
    list[dict[str, Any]],
    AfterValidator(_named),
    BeforeValidator(_families),
    Field(min_length=1),
    Says(
        'a table {family = "products", max_degree = 2}, or several in an array',
        lambda: f"one of {', '.join(registries.families())}, or JSON with its parameters",
        'a name, or JSON: {"family": "products", "max_degree": 2}',
    ),
]
Losses = Annotated[
    str,
    OneOf(
        registries.losses,
        lambda: f"one of {', '.join(registries.losses())}, or one for each target, with commas",
        several=True,
    ),
    BeforeValidator(_joined),
]
Standardize = Annotated[Switch | Literal["auto"], Says('true, false or "auto"', True)]
Strengths = Annotated[
    tuple[Positive, ...],
    BeforeValidator(parts),
    Field(min_length=1),
    Says("numbers above 0, separated by commas", True),
]
Bounds = Annotated[
    tuple[Annotated[float, Field(allow_inf_nan=True)], Annotated[float, Field(allow_inf_nan=True)]],
    AfterValidator(_ordered),
    BeforeValidator(parts),
    Says("two numbers, the lower one first, separated by a comma; inf and -inf for none"),
]
Scoring = Annotated[str, OneOf(registries.scorings, lambda: "loss, error, or a scorer of scikit-learn")]


@dataclass(frozen=True, kw_only=True)
class ModelSettings:
    """The model, and how it is fitted."""

    loss: Losses | None = key(
        None,
        "what is minimised; squared, epsilon_insensitive, poisson, huber and quantile are regression, multitask and "
        "multitarget (of numbers) take several columns, as does one loss for each, such as squared,poisson,log "
        "(default: by the labels, log for two classes and multinomial for more)",
    )
    epsilon: NonNegative | None = key(
        None,
        "of loss epsilon_insensitive half the width of its tube, of huber the error from which it is linear "
        "(default: theirs)",
    )
    quantile: Positive | None = key(None, "of loss quantile: the share of labels that is to be below (default: 0.5)")
    width: Positive | None = key(None, "of loss quantile: how far its kink is rounded off (default: 0.1)")
    penalty: Annotated[str, OneOf(registries.penalties)] | None = parameter(
        "penalty", "what ties the weights of a feature"
    )
    hypotheses: Families | None = key(None, "what is weighed, a family of hypotheses (default: the raw columns)")
    alpha: NonNegative | Literal["auto"] | Literal["quick"] | None = parameter(
        "alpha",
        "strength of the penalty on the mean loss; auto chooses features on held-out rows, then refits them; quick is "
        "one fit at 0.05 of the least that uses no feature",
    )
    prefer: Literal["few", "accurate"] | None = key(
        None,
        "with alpha auto: fewer features than the default, or as accurate as any (default: the fewest features within "
        "one standard error of the best)",
    )
    max_features: FromOne | None = key(None, "at most so many features (default: no limit)")
    update: Annotated[str, OneOf(registries.updates)] | None = parameter("update", "how weights move")
    select: Annotated[str, OneOf(registries.selections)] | None = parameter("select", "order of features")
    sweeps: FromOne | None = key(
        None,
        "sweeps of updates gradboost and adaboost between two scorings; 1 is the paper's loop (default: until solved)",
    )
    features_per_round: FromOne | None = key(None, "features that may join in one round (default: chosen by the fit)")
    tol: Positive | None = parameter("tol", "certified relative duality gap to reach")
    max_rounds: FromOne | None = parameter("max_rounds", "limit of rounds")
    max_passes: FromOne | None = key(None, "limit of passes over the data (default: none)")
    max_seconds: Positive | None = key(None, "limit of seconds of training (default: none)")
    fit_intercept: Switch | None = parameter("fit_intercept", "fit an intercept, which is never penalised")
    standardize: Standardize | None = parameter(
        "standardize",
        "scale columns for the penalty; weights are reported unscaled; auto does it for tables, and not for text",
    )
    penalty_factors: Factors | None = key(
        None,
        'what multiplies alpha for single features: {"price": 0.5, "id": "inf"}; 0 leaves one without penalty, inf out '
        "(default: 1 each)",
    )
    column_groups: ColumnGroups | None = key(
        None,
        'features that enter together, under the penalties l1/l2 and l1/linf: {"colour": ["red", "green"]}; of '
        "shareboost a whole number for each column (default: each by itself)",
    )
    positive: Switch | None = key(None, "no weight may be negative (default: weights of both signs)")
    lower: Lower | None = key(
        None, 'no weight of these features may be negative: 0 for all, {"price": 0} (default: any)'
    )
    upper: Upper | None = key(
        None, 'no weight of these features may be positive: 0 for all, {"price": 0} (default: any)'
    )
    offset: Names | None = key(
        None, "column that is added to the scores as it is; several classes need one each (default: none)"
    )
    classes: Labels | None = key(
        None, "all labels there may be, of which the data need not hold every one (default: those it holds)"
    )
    class_weight: ClassWeight | None = key(
        None, 'balanced, or weights by label: {"spam": 2}, {"1": 2} (default: every class weighs 1)'
    )
    random_state: FromZero | None = parameter("random_state", "seed of every random choice")


@dataclass(frozen=True, kw_only=True)
class EstimatorSettings:
    """Which estimator is trained, and what only some of them take."""

    estimator: Annotated[str, OneOf(registries.ESTIMATORS.keys)] | None = key(
        None, "what is trained (default: boosted, whose kind follows from the loss)"
    )
    of: Literal["shareboost", "boosted"] | None = key(
        None, "what one_vs_rest trains for each class (default: shareboost)"
    )
    shortlist: FromOne | Literal["all"] | None = key(
        None, "of shareboost: candidates whose fall is measured, or all of them (default: 10)"
    )
    corrective: Annotated[str, OneOf(registries.corrective)] | None = key(
        None, "of shareboost: what solves all weights again (default: newton)"
    )
    bound: Positive | None = key(None, "of shareboost: constant of the generalisation bound (default: none)")
    keep: FromOne | None = key(None, "of shareboost: features that are left on the way back (default: all)")
    search: Annotated[str, OneOf(registries.searches)] | None = key(
        None, "of jointboost: how sharing classes are found (default: greedy)"
    )
    nu: Positive | None = key(None, "of adaboost_l1: how fast the budget grows (default: 1)")
    keep_zeros: Switch | None = key(
        None, "of adaboost_l1: solve again for hypotheses whose weight became zero (default: no)"
    )
    step: Positive | Literal["exact"] | None = key(
        None, "of leveraging: exact, or the length of a step (default: exact)"
    )
    bounds: Bounds | None = key(None, "of leveraging: low,high, between which every weight stays (default: none)")
    norm: Annotated[str, OneOf(registries.norms)] | None = key(
        None, "of leveraging: l1 moves one hypothesis, l2 all at once (default: l1)"
    )
    learner: Annotated[str, OneOf(registries.learners)] | None = key(
        None, "of leveraging_regressor: what a round takes (default: joint)"
    )


@dataclass(frozen=True, kw_only=True)
class CrossValidationSettings:
    """How alpha is chosen by cross-validation."""

    cv: FromTwo | None = key(
        None,
        "judge by so many folds: alpha is chosen where the estimator has a path of strengths (default: no folds)",
    )
    n_alphas: FromTwo | None = parameter("n_alphas", "strengths that --cv tries, falling by a constant factor")
    eps: Positive | None = parameter("eps", "the least of them, as a share of the largest")
    rule: Annotated[str, OneOf(registries.rules)] | None = parameter(
        "rule",
        "with cv, best: best on the folds, 1se: the largest alpha within one standard error of it; "
        "of shareboost, which candidate enters: scaled, norm, line, row or full",
    )
    scoring: Scoring | None = parameter(
        "scoring",
        "what chooses on the folds: the least mean loss or share of errors, or the greatest score, such as roc_auc",
    )
    fold_tol: Positive | None = key(
        None, "gap of the fits without a fold (default: 0.001, or tol where that is larger)"
    )


@dataclass(frozen=True, kw_only=True)
class PathSettings:
    """A path of models along falling strengths."""

    path: FromOne | None = key(None, "fit a path of so many strengths, each from the last (default: one strength)")
    alphas: Strengths | None = key(
        None, "the strengths themselves (default: from the least that uses no feature down to eps times it)"
    )


@dataclass(frozen=True, kw_only=True)
class StartSettings:
    """Where a fit begins."""

    start: Text | None = key(
        None, "folder of a model to start from; its weights are carried over by the names of features"
    )


@dataclass(frozen=True, kw_only=True)
class TrainedSettings(EstimatorSettings, ModelSettings, CrossValidationSettings, PathSettings, StartSettings):
    """How the model is chosen."""

    groups: Text | None = key(
        None,
        "column, such as the file or author of a document, whose rows are held out together where alpha is chosen "
        "(default: rows one by one)",
    )
