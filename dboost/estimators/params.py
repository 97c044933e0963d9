"""The parameters of an estimator, checked together before anything is read.

Covers: every constructor parameter that shapes the optimisation, and their translation to ``FitSettings``.
Does not cover: `classes` and `class_weight`, which only the data can judge (``dboost.data``).

scikit-learn forbids checks in a constructor, so a combination without meaning is refused by ``fit``, as its first act.
"""

from __future__ import annotations

import math
import numbers
from typing import TYPE_CHECKING, Any

import numpy as np

from dboost.errors import UsageError

if TYPE_CHECKING:
    from dboost.boosting.fit import FitSettings

UPDATES = ("newton", "gradboost", "adaboost")
SELECTS = ("greedy", "cyclic", "random", "template")


def resolve_loss(loss: Any, allowed: tuple[str, ...]) -> str | None:
    """The loss, or None where the number of classes decides."""
    if loss is None or (isinstance(loss, str) and loss in allowed):
        return loss
    raise UsageError(
        f"loss={loss!r}", hint="expected None or one of " + ", ".join(repr(name) for name in allowed) + " here"
    )


def resolve_penalty(penalty: Any) -> Any:
    """The penalty object of a name; an object passes through."""
    from dboost.penalties import get_penalty

    return get_penalty(penalty)


def penalty_name(penalty: Any) -> str:
    """Name of a penalty given by name or as an object."""
    return penalty if isinstance(penalty, str) else str(penalty.name)


def fit_settings(estimator: Any, loss: str) -> FitSettings:
    """Check the parameters of an estimator and return the settings of the core fit.

    Parameters
    ----------
    estimator : estimator
    loss : str
        The loss, decided.

    Raises
    ------
    UsageError
        Names the parameter, what was found and what is expected.
    """
    from dboost.boosting.fit import FitSettings

    return FitSettings(
        loss=loss,
        penalty=resolve_penalty(estimator.penalty),
        alpha=_alpha(estimator.alpha),
        update=_choice("update", estimator.update, UPDATES),
        select=_choice("select", estimator.select, SELECTS),
        rows_per_round=_count("rows_per_round", estimator.rows_per_round, optional=True),
        tol=_positive("tol", estimator.tol),
        max_rounds=_count("max_rounds", estimator.max_rounds),
        max_active_rows=_count("max_active_rows", estimator.max_active_rows, optional=True),
        fit_intercept=_flag("fit_intercept", estimator.fit_intercept),
        standardize=_flag("standardize", estimator.standardize),
        random_state=resolve_seed(estimator.random_state),
    )


def check_parameters(estimator: Any) -> None:
    """Refuse what can be refused without data."""
    if estimator.hypotheses is not None:
        raise UsageError(
            f"hypotheses={estimator.hypotheses!r}",
            hint="expected None: the raw columns are the only family of hypotheses in this version",
        )
    _flag("warm_start", estimator.warm_start)
    if estimator.callbacks is not None and not isinstance(estimator.callbacks, list | tuple):
        raise UsageError(f"callbacks={estimator.callbacks!r}", hint="expected a list of callbacks, or None")
    resolve_loss(estimator.loss, estimator._losses)
    fit_settings(estimator, estimator.loss or estimator._losses[0])


def resolve_seed(random_state: Any) -> int:
    """An integer seed from None (a fresh one), an integer or a ``numpy.random.RandomState``."""
    if isinstance(random_state, numbers.Integral) and not isinstance(random_state, bool):
        if 0 <= random_state < 2**32:
            return int(random_state)
        raise UsageError(f"random_state={random_state!r}", hint="expected an integer from 0 to 2**32 - 1")
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(np.iinfo(np.int32).max))
    raise UsageError(f"random_state={random_state!r}", hint="expected an integer, a RandomState or None")


def _alpha(value: Any) -> float | str:
    if isinstance(value, str) and value == "auto":
        return value
    if not _is_real(value) or not math.isfinite(value) or value < 0:
        raise UsageError(f"alpha={value!r}", hint='expected a finite number >= 0, or "auto" (0.05 * alpha_max)')
    return float(value)


def _positive(name: str, value: Any) -> float:
    if not _is_real(value) or not math.isfinite(value) or value <= 0:
        raise UsageError(f"{name}={value!r}", hint="expected a finite number > 0")
    return float(value)


def _count(name: str, value: Any, optional: bool = False) -> Any:
    if optional and value is None:
        return None
    if not isinstance(value, numbers.Integral) or isinstance(value, bool | np.bool_) or value < 1:
        raise UsageError(f"{name}={value!r}", hint="expected an integer >= 1" + (" or None" if optional else ""))
    return int(value)


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise UsageError(f"{name}={value!r}", hint="expected True or False")
    return bool(value)


def _choice(name: str, value: Any, known: tuple[str, ...]) -> str:
    if not isinstance(value, str) or value not in known:
        raise UsageError(f"{name}={value!r}", hint="expected one of " + ", ".join(repr(item) for item in known))
    return value


def _is_real(value: Any) -> bool:
    return isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)
