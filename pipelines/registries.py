"""The names that the library knows, and the values it takes where none is given, for help texts and errors.

Covers: losses, penalties, updates, selections, families of hypotheses, the defaults of estimators. Each is looked up
when it is asked for, because a command that needs none of them shall not load the library for it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any


def losses() -> tuple[str, ...]:
    """Every loss that `dboost train` takes."""
    from dboost.losses import LOSSES

    return tuple(LOSSES)


def penalties() -> tuple[str, ...]:
    """Every penalty that has a name."""
    from dboost.penalties import PENALTIES

    return tuple(PENALTIES)


def updates() -> tuple[str, ...]:
    """Every update of a fit."""
    from dboost.boosting.updates import FORWARD, UPDATES

    return (*UPDATES, FORWARD)


def selections() -> tuple[str, ...]:
    """Every order of features."""
    from dboost.solvers.row_updates import SELECTIONS

    return tuple(SELECTIONS)


def families() -> tuple[str, ...]:
    """Every family of hypotheses that a table can name."""
    from dboost.hypotheses import FAMILIES

    return tuple(FAMILIES)


def places() -> tuple[str, ...]:
    """Every kind of cluster."""
    from .places.registry import PLACES

    return tuple(PLACES)


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


def estimators() -> tuple[str, ...]:
    """Every estimator that can be trained."""
    return tuple(ESTIMATORS)


def binary() -> tuple[str, ...]:
    """What can be trained for each class against the others."""
    return "shareboost", "boosted"


def estimator(name: str) -> Any:
    """The class of an estimator."""
    if name == "one_vs_rest":
        from dboost.estimators.one_vs_rest import OneVsRestBoostedClassifier

        return OneVsRestBoostedClassifier
    import dboost

    return getattr(dboost, ESTIMATORS[name])


def parameters_of(kind: Any) -> set[str]:
    """The parameters of an estimator."""
    return set(inspect.signature(kind).parameters)


def rules() -> tuple[str, ...]:
    """What chooses: a strength in cross-validation, or a candidate in ShareBoost."""
    from dboost.boosting.shareboost.choice import RULES
    from dboost.estimators.cross_validated import RULES as STRENGTHS

    return (*STRENGTHS, *RULES)


def scorings() -> tuple[str, ...]:
    """What judges a strength in cross-validation: two sums over the rows, and the scorers of scikit-learn."""
    from dboost.estimators.scorers import SUMS, scorer_names

    return (*SUMS, *scorer_names())


def corrective() -> tuple[str, ...]:
    """What solves all weights of ShareBoost again."""
    from dboost.boosting.shareboost.trials import CORRECTIVE

    return tuple(CORRECTIVE)


def searches() -> tuple[str, ...]:
    """How JointBoost finds the classes that share a stump."""
    from dboost.boosting.jointboost.sharing import SEARCHES

    return SEARCHES


def norms() -> tuple[str, ...]:
    """The norms of which leveraging takes steps of steepest descent."""
    from dboost.boosting.leveraging.steepest import NORMS

    return NORMS


def learners() -> tuple[str, ...]:
    """What a round of the leveraging regressor takes."""
    from dboost.boosting.rules import RULES

    return tuple(RULES)


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
    return (
        ",".join(map(str, value))
        if isinstance(value, tuple)
        else f"{value:g}"
        if isinstance(value, float)
        else str(value)
    )
