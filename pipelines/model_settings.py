"""The keys that say which model is trained, and along which strengths.

Covers: the estimator by name and the keys that only some estimators have, cross-validation, paths.
Does not cover: what the keys mean for the estimator (``training``), the keys that all share (``fit_settings``).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any

from . import registries
from .config import Expected, Takes, boolean, key, one_named, one_of, parameter, real, string, whole
from .fit_settings import ModelSettings


def _strengths(value: object) -> tuple[float, ...]:
    wanted = "numbers above 0, separated by commas"
    found = value.split(",") if isinstance(value, str) else value
    if not isinstance(found, list | tuple) or not found:
        raise Expected(wanted)
    return tuple(real(0.0, open_end=True)(one.strip() if isinstance(one, str) else one) for one in found)


def _groups(value: object) -> tuple[int, ...]:
    found = value.split(",") if isinstance(value, str) else value
    if not isinstance(found, list | tuple) or not found:
        raise Expected("a whole number for each column, separated by commas")
    return tuple(whole(0)(one.strip() if isinstance(one, str) else one) for one in found)


def _scoring(value: object) -> Any:
    return one_named(registries.scorings)(value)


# the names are many: an error and the completion of a shell list them, the help does not
scorings = Takes(_scoring, lambda: "loss, error, or a scorer of scikit-learn", registries.scorings)


def _bounds(value: object) -> tuple[float | str, float | str]:
    wanted = "two numbers, the lower one first, separated by a comma; inf and -inf for none"
    found = value.split(",") if isinstance(value, str) else value
    if not isinstance(found, list | tuple) or len(found) != 2:
        raise Expected(wanted)
    try:
        low, high = (float(one) for one in found)
    except (TypeError, ValueError):
        raise Expected(wanted) from None
    if not low <= high:
        raise Expected(wanted)
    # settings are also written as JSON, which has no infinity
    return low if low > -inf else "-inf", high if high < inf else "inf"


ALL = "all"
"""The word for a shortlist without an end, which is None in Python."""

strengths = Takes(_strengths, lambda: "numbers above 0, separated by commas")


@dataclass(frozen=True, kw_only=True)
class EstimatorSettings:
    """Which estimator is trained, and what only some of them take."""

    estimator: str | None = key(
        one_named(registries.estimators), None, "what is trained (default: boosted, whose kind follows from the loss)"
    )
    of: str | None = key(
        one_named(registries.binary), None, "what one_vs_rest trains for each class (default: shareboost)"
    )
    shortlist: int | str | None = key(
        whole(1, word=ALL), None, "of shareboost: candidates whose fall is measured, or all of them (default: 10)"
    )
    corrective: str | None = key(
        one_named(registries.corrective), None, "of shareboost: what solves all weights again (default: newton)"
    )
    groups: tuple[int, ...] | None = key(_groups, None, "of shareboost: the group of each column (default: none)")
    bound: float | None = key(
        real(0.0, open_end=True), None, "of shareboost: constant of the generalisation bound (default: none)"
    )
    keep: int | None = key(whole(1), None, "of shareboost: features that are left on the way back (default: all)")
    search: str | None = key(
        one_named(registries.searches), None, "of jointboost: how sharing classes are found (default: greedy)"
    )
    nu: float | None = key(real(0.0, open_end=True), None, "of adaboost_l1: how fast the budget grows (default: 1)")
    keep_zeros: bool | None = key(
        boolean, None, "of adaboost_l1: solve again for hypotheses whose weight became zero (default: no)"
    )
    step: float | str | None = key(
        real(0.0, open_end=True, word="exact"), None, "of leveraging: exact, or the length of a step (default: exact)"
    )
    bounds: tuple[float | str, float | str] | None = key(
        _bounds, None, "of leveraging: low,high, between which every weight stays (default: none)"
    )
    norm: str | None = key(
        one_named(registries.norms), None, "of leveraging: l1 moves one hypothesis, l2 all at once (default: l1)"
    )
    learner: str | None = key(
        one_named(registries.learners), None, "of leveraging_regressor: what a round takes (default: joint)"
    )


@dataclass(frozen=True, kw_only=True)
class CrossValidationSettings:
    """How alpha is chosen by cross-validation."""

    cv: int | None = key(
        whole(2),
        None,
        "judge by so many folds: alpha is chosen where the estimator has a path of strengths (default: no folds)",
    )
    n_alphas: int | None = parameter("n_alphas", whole(2), "strengths that --cv tries, falling by a constant factor")
    eps: float | None = parameter("eps", real(0.0, open_end=True), "the least of them, as a share of the largest")
    rule: str | None = parameter(
        "rule", one_of("1se", "best"), "best: best on the folds; 1se: the largest alpha within one standard error of it"
    )
    scoring: str | None = parameter(
        "scoring",
        scorings,
        "what chooses on the folds: the least mean loss or share of errors, or the greatest score, such as roc_auc",
    )
    fold_tol: float | None = key(
        real(0.0, open_end=True), None, "gap of the fits without a fold (default: 0.001, or tol where that is larger)"
    )


@dataclass(frozen=True, kw_only=True)
class PathSettings:
    """A path of models along falling strengths."""

    path: int | None = key(
        whole(1), None, "fit a path of so many strengths, each from the last (default: one strength)"
    )
    alphas: tuple[float, ...] | None = key(
        strengths, None, "the strengths themselves (default: from the least that uses no feature down to eps times it)"
    )


@dataclass(frozen=True, kw_only=True)
class StartSettings:
    """Where a fit begins."""

    start: str | None = key(
        string, None, "folder of a model to start from; its weights are carried over by the names of features"
    )


@dataclass(frozen=True, kw_only=True)
class TrainedSettings(EstimatorSettings, ModelSettings, CrossValidationSettings, PathSettings, StartSettings):
    """How the model is chosen."""

    rule: str | None = parameter(
        "rule",
        one_named(registries.rules),
        "with cv, best: best on the folds, 1se: the largest alpha within one standard error of it; "
        "of shareboost, which candidate enters: scaled, norm, line, row or full",
    )
