"""The names that the library knows, and the values it takes where none is given, for help texts and errors."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from typing import Any


def _words(*places: str) -> Callable[[], tuple[str, ...]]:
    """The words of tables that are named as ``module:table``, one after another."""

    def words() -> tuple[str, ...]:
        found: list[str] = []
        for module, _, table in (place.partition(":") for place in places):
            found += getattr(import_module(module, __package__), table)
        return tuple(found)

    return words


losses = _words("dboost.losses:LOSSES")
penalties = _words("dboost.penalties:PENALTIES")
selections = _words("dboost.solvers.row_updates:SELECTIONS")
families = _words("dboost.hypotheses:FAMILIES")
corrective = _words("dboost.boosting.shareboost:CORRECTIVE")
searches = _words("dboost.boosting.jointboost:SEARCHES")
norms = _words("dboost.boosting.leveraging:NORMS")
learners = _words("dboost.boosting.systems:RULES")
# what chooses: a strength in cross-validation, or a candidate in ShareBoost
rules = _words("dboost.estimators.cv:RULES", "dboost.boosting.shareboost:RULES")
places = _words(".places.registry:PLACES")

# name in a run file -> the class; "boosted" is one of four, by the loss
ESTIMATORS = {
    "boosted": "BoostedClassifier",
    "regressor": "BoostedRegressor",
    "multitask": "MultiTaskBoostedClassifier",
    "multitarget": "MultiTaskBoostedRegressor",
    "shareboost": "ShareBoostClassifier",
    "jointboost": "JointBoostClassifier",
    "adaboost_l1": "AdaBoostL1Classifier",
    "adaboost_l1_regressor": "AdaBoostL1Regressor",
    "leveraging": "LeveragingClassifier",
    "leveraging_regressor": "LeveragingRegressor",
    "one_vs_rest": "OneVsRestBoostedClassifier",
}


def updates() -> tuple[str, ...]:
    """Every update of a fit."""
    from dboost.boosting.checks import FORWARD, UPDATES

    return (*UPDATES, FORWARD)


def scorings() -> tuple[str, ...]:
    """What judges a strength in cross-validation: two sums over the rows, and the scorers of scikit-learn."""
    from dboost.estimators.scoring import SUMS, scorer_names

    return (*SUMS, *scorer_names())


def estimator(name: str) -> Any:
    """The class of an estimator."""
    if name == "one_vs_rest":
        from dboost.estimators.one_vs_rest import OneVsRestBoostedClassifier

        return OneVsRestBoostedClassifier
    import dboost

    return getattr(dboost, ESTIMATORS[name])


def parameters_of(kind: Any) -> set[str]:
    """The parameters of an estimator, or of a function."""
    return set(inspect.signature(kind).parameters)


def default(name: str) -> Callable[[], str | None]:
    """What an estimator takes for a parameter that is not given, in words; None where it has no default of its own."""

    def shown() -> str | None:
        import dboost

        for kind in (dboost.BoostedClassifier, dboost.BoostedClassifierCV):
            found = inspect.signature(kind).parameters.get(name)
            if found is not None and found.default is not None:
                return in_words(found.default)
        return None

    return shown


def in_words(value: object) -> str:
    """A default as a person writes it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
