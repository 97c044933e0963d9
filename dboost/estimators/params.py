"""The parameters of estimators, written once, and checked together before anything is read.

Covers: the constructor parameters that several estimators share, and their translation to ``FitSettings``.
Does not cover: `classes` and `class_weight`, which only the data can judge (``dboost.data``).

scikit-learn forbids checks in a constructor, so a combination without meaning is refused by ``fit``, as its first act.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, dataclass_transform

import numpy as np

from dboost.boosting.fit import FitSettings
from dboost.boosting.frontier import PREFER
from dboost.columns.given import PENALTY_FACTORS, ColumnGroups, PerColumn, Signs, given_offset
from dboost.errors import UsageError
from dboost.estimators.rounds import split
from dboost.files.paths import PathLike
from dboost.former_names import PARAMETERS, warn_renamed
from dboost.hypotheses import Family
from dboost.hypotheses.base import is_whole
from dboost.hypotheses.columns import Columns
from dboost.losses import Loss, PerTarget, get_loss
from dboost.losses.per_target import SEPARATOR
from dboost.penalties import Penalty, get_penalty


@dataclass_transform(kw_only_default=True, eq_default=False)
def parameters(cls: Any) -> Any:
    """Give a class the constructor of its annotated attributes; an annotation ClassVar takes one of a base out."""
    return dataclass(kw_only=True, eq=False, repr=False)(cls)


@parameters
class FitParameters:
    """What every fit takes."""

    tol: float = 1e-4
    max_rounds: int = 1000
    max_passes: int | None = None
    max_seconds: float | None = None
    checkpoint: PathLike | None = None
    callbacks: Any = None
    client: Any = None


@parameters
class ObjectiveParameters:
    """What a fit takes that minimises one objective over columns or hypotheses."""

    loss: Any = None
    penalty: Any = "l1/linf"
    alpha: float | str = "auto"
    prefer: str | None = None
    max_features: int | None = None
    update: str = "newton"
    hypotheses: Any = None
    select: str = "greedy"
    sweeps: int | None = None
    features_per_round: int | None = None
    fit_intercept: bool = True
    standardize: bool | str = "auto"
    penalty_factors: Any = None
    column_groups: Any = None
    positive: bool = False
    lower: Any = None
    upper: Any = None
    offset: Any = None
    warm_start: bool = False
    random_state: Any = 0
    # Former names, kept for one version.
    rows_per_round: int | None = None
    max_active_rows: int | None = None


FORMER = {now: former for former, now in PARAMETERS.items()}


def limit_of(estimator: Any, name: str) -> Any:
    """A limit of an estimator, which may have been given under the name that it had before (FutureWarning)."""
    value, former = getattr(estimator, name), FORMER[name]
    before = getattr(estimator, former, None)
    if before is None:
        return value
    if value is not None:
        raise UsageError(f"{name}={value!r} beside {former}={before!r}, its former name", hint=f"leave {former} out")
    warn_renamed(former, name)
    return before


def fit_settings(estimator: Any) -> FitSettings:
    """The settings of the core fit, from an estimator with ``ObjectiveParameters``, checked one by one."""
    shared = shared_settings(estimator)
    check_prefer(estimator.prefer, estimator.alpha)
    flag("warm_start", estimator.warm_start)
    groups = estimator.column_groups
    signs = Signs.given(estimator.positive, estimator.lower, estimator.upper)
    return FitSettings(
        **shared,
        penalty=estimator.penalty,
        alpha=given_alpha(estimator.alpha),
        update=estimator.update,
        select=estimator.select,
        sweeps=estimator.sweeps,
        features_per_round=limit_of(estimator, "features_per_round"),
        max_features=limit_of(estimator, "max_features"),
        fit_intercept=flag("fit_intercept", estimator.fit_intercept),
        standardize=_standardize(estimator.standardize) is True,
        offset=None if estimator.offset is None else given_offset(estimator.offset),
        penalty_factors=given_factors(estimator.penalty_factors),
        signs=signs,
        column_groups=None if groups is None else ColumnGroups.given(groups),
        random_state=resolve_seed(estimator.random_state),
    )


def shared_settings(estimator: Any) -> dict[str, Any]:
    """What the settings of every fit hold, checked; a loss of None is the first that the estimator can minimise."""
    known_loss(estimator)
    check_hypotheses(estimator.hypotheses)
    split(estimator.callbacks)
    loss, hypotheses = estimator.loss, estimator.hypotheses
    return {
        "loss": get_loss(loss) if _of_several(loss) else loss or estimator._losses()[0],
        "tol": number("tol", estimator.tol),
        "max_rounds": estimator.max_rounds,
        "max_passes": estimator.max_passes,
        "max_seconds": estimator.max_seconds,
        # the columns alone are what a fit chooses from anyhow, in its fastest way
        "hypotheses": None if hypotheses == Columns() else hypotheses,
    }


def given_factors(factors: Any) -> PerColumn | None:
    """The factors of an estimator, or None."""
    return None if factors is None else PENALTY_FACTORS.read(factors)


def known_loss(estimator: Any) -> None:
    """Refuse a loss that an estimator does not minimise, or whose name no saved model could be read by."""
    losses, given = estimator._losses(), estimator.loss
    if given is None:
        return
    if not (estimator._minimises(get_loss(given)) if _of_several(given) else loss_name(given) in losses):
        known = ", ".join(repr(name) for name in losses)
        raise UsageError(f"loss={given!r}", hint=f"{type(estimator).__name__} takes None or {known}")


def _of_several(loss: Any) -> bool:
    """Whether a loss is one for each of several targets."""
    return isinstance(loss, (list, tuple, PerTarget)) or (isinstance(loss, str) and SEPARATOR in loss)


def check_prefer(prefer: Any, alpha: Any) -> None:
    """Refuse a `prefer` that has no meaning."""
    if prefer is not None and not (isinstance(prefer, str) and prefer in PREFER):
        raise UsageError(f"prefer={prefer!r}", hint='expected None, "few" or "accurate"')
    if prefer is not None and alpha != "auto":
        raise UsageError(
            f"prefer={prefer!r} beside alpha={alpha!r}, which says how many features there are",
            hint='use alpha="auto"',
        )


def check_hypotheses(hypotheses: Any) -> None:
    """Refuse what is neither None nor a family."""
    if hypotheses is not None and (isinstance(hypotheses, type) or not isinstance(hypotheses, Family)):
        raise UsageError(
            f"hypotheses={hypotheses!r}",
            hint="expected None (the raw columns) or a family such as dboost.Products(max_degree=2), "
            "or several joined by |",
        )


def resolve_seed(random_state: Any) -> int:
    """An integer seed from None (a fresh one), an integer or a ``numpy.random.RandomState``."""
    if isinstance(random_state, int | np.integer) and not isinstance(random_state, bool):
        if 0 <= random_state < 2**32:
            return int(random_state)
        raise UsageError(f"random_state={random_state!r}", hint="expected an integer from 0 to 2**32 - 1")
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(np.iinfo(np.int32).max))
    raise UsageError(f"random_state={random_state!r}", hint="expected an integer, a RandomState or None")


def loss_name(loss: Any) -> Any:
    """The name of a loss that is given by name or as an object; None where there is none."""
    if isinstance(loss, (list, tuple)):
        return get_loss(loss).name
    return loss if isinstance(loss, str) else getattr(loss, "name", None)


def loss_spec(loss: Any) -> dict[str, Any]:
    """A loss, by name or as an object, as JSON: its name and its parameters."""
    found = get_loss(loss)
    if isinstance(found, PerTarget):
        return {"name": found.name, "losses": [loss_spec(one) for one in found.losses]}
    return _spec(found)


def loss_from_spec(spec: Any) -> Any:
    """Undo `loss_spec`, as `penalty_from_spec`."""
    if isinstance(spec, Mapping) and "losses" in spec:
        found = [loss_from_spec(one) for one in spec["losses"]]
        return found if get_loss(found) != get_loss(str(spec["name"])) else spec["name"]
    return _from_spec("loss", spec, get_loss)


def penalty_spec(penalty: Any) -> dict[str, Any]:
    """A penalty, by name or as an object, as JSON: its name and its parameters."""
    return _spec(get_penalty(penalty))


def penalty_from_spec(spec: Any) -> Any:
    """Undo `penalty_spec`: a name where the parameters are the default ones, an object otherwise."""
    return _from_spec("penalty", spec, get_penalty)


def _spec(found: Any) -> dict[str, Any]:
    return {"name": found.name} | {name: getattr(found, name) for name in _parameters(found)}


def _from_spec(what: str, spec: Any, named: Callable[[str], Any]) -> Any:
    given = dict(spec)
    name = given.pop("name", None)
    if not isinstance(name, str):
        raise UsageError(f"{what} {spec!r} has no name")
    plain = named(name)
    numeric = all(isinstance(value, int | float) for value in given.values())
    if set(given) != set(_parameters(plain)) or not numeric:
        raise UsageError(f"{what} {name!r} has other parameters than {sorted(given)}")
    found = replace(plain, **given) if given else plain
    return name if found == plain else found


def _parameters(found: Any) -> list[str]:
    """Names of the parameters a user may choose; what every loss or penalty has (its name, constants) is none."""
    names = [item.name for item in fields(found)] if is_dataclass(found) else []
    if not names:
        return names
    common = Loss if isinstance(found, Loss) else Penalty
    return [name for name in names if not hasattr(common, name) and name not in common.__annotations__]


def given_alpha(value: Any) -> float | str:
    """A strength, "auto" or "quick" as the core fit takes it, or UsageError."""
    if isinstance(value, str) and value in ("auto", "quick"):
        # the rule of thumb of the core fit; what "auto" means beyond it is an estimator's (``selecting``)
        return "auto"
    if not _is_real(value) or not math.isfinite(value) or value < 0:
        raise UsageError(f"alpha={value!r}", hint='expected a finite number >= 0, "auto" or "quick"')
    return float(value)


def number(name: str, value: Any) -> float:
    """A finite number >= 0, or UsageError."""
    if not _is_real(value) or not math.isfinite(value) or value < 0:
        raise UsageError(f"{name}={value!r}", hint="expected a finite number >= 0")
    return float(value)


def count(name: str, value: Any, least: int = 1) -> int:
    """An integer >= `least`, or UsageError."""
    if not is_whole(value, least):
        raise UsageError(f"{name}={value!r}", hint=f"expected an integer >= {least}")
    return int(value)


def flag(name: str, value: Any) -> bool:
    """True or False, or UsageError."""
    if not isinstance(value, bool | np.bool_):
        raise UsageError(f"{name}={value!r}", hint="expected True or False")
    return bool(value)


def _standardize(value: Any) -> bool | str:
    """True, False or "auto", which the data decides (``fitting``)."""
    if isinstance(value, str) and value == "auto":
        return value
    if not isinstance(value, bool | np.bool_):
        raise UsageError(f"standardize={value!r}", hint='expected True, False or "auto"')
    return bool(value)


def _is_real(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)
