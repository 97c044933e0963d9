"""Settings that have no meaning, alone or together, refused before any data is read with the alternatives named.

Covers also: the system that each update stands for. One of its own, as ShareBoost or leveraging are, comes with the
settings (``FitSettings.system``).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dboost.boosting.forward import ForwardGreedy
from dboost.boosting.systems import System, refuse_sweeps
from dboost.boosting.totally_corrective import TotallyCorrective
from dboost.errors import UsageError
from dboost.losses import get_loss
from dboost.penalties import Penalty, get_penalty
from dboost.penalties.capabilities import ChargesRows, CompiledProx, ExponentialSolves, Faced, joins_rows, lacks
from dboost.problem.accelerators import allowed, check_accelerators
from dboost.problem.state import FitSettings
from dboost.solvers.row_updates import SELECTIONS, TEMPLATES

FORWARD = "forward"
UPDATES = ("newton", "gradboost", "adaboost")
"""Those that reach the optimum; "forward" does not."""

SYSTEMS: dict[str, Callable[[FitSettings], System]] = {
    **dict.fromkeys(UPDATES, TotallyCorrective.of),
    FORWARD: ForwardGreedy.of,
}


def system_of(settings: FitSettings) -> System:
    """The system that settings ask for."""
    return SYSTEMS[settings.update](settings) if settings.system is None else settings.system


def check_settings(settings: FitSettings) -> None:
    """Refuse settings that have no meaning, before any data is read (UsageError: the parameter, found and expected)."""
    loss = get_loss(settings.loss)
    penalty = get_penalty(settings.penalty)
    alpha = settings.alpha
    if alpha != "auto":
        if isinstance(alpha, (str, bool)) or not isinstance(alpha, (int, float, np.number)):
            raise UsageError(f"alpha must be a number >= 0 or 'auto', got {alpha!r}")
        if not math.isfinite(float(alpha)) or float(alpha) < 0.0:
            raise UsageError(f"alpha must be finite and >= 0, got {alpha!r}")
        if penalty.weightless and float(alpha) > 0.0:
            raise UsageError(
                f"penalty {penalty.name!r} has no strength, but alpha is {alpha!r}", hint="leave alpha at 'auto'"
            )
        if not penalty.weightless and float(alpha) == 0.0:
            raise UsageError(f"alpha is 0, which switches penalty {penalty.name!r} off", hint="use penalty='none'")
    known = (*UPDATES, FORWARD)
    if settings.update not in known:
        raise UsageError(f"unknown update {settings.update!r}", hint=f"known updates: {', '.join(known)}")
    if settings.select not in SELECTIONS:
        raise UsageError(f"unknown select {settings.select!r}", hint=f"known selections: {', '.join(SELECTIONS)}")
    if settings.update == "newton" and settings.select != "greedy":
        raise UsageError(
            f"select={settings.select!r} chooses rows for the one-row updates; update 'newton' takes the best by score",
            hint="use update='gradboost' or 'adaboost', or leave select at 'greedy'",
        )
    if settings.update == "gradboost" and not math.isfinite(loss.kappa):
        raise UsageError(
            f"update='gradboost' needs a bounded curvature, which loss {loss.name!r} does not have",
            hint="use update='newton' or 'adaboost'",
        )
    _check_integer("features_per_round", settings.features_per_round, 1, optional=True)
    _check_integer("max_rounds", settings.max_rounds, 1)
    _check_integer("max_passes", settings.max_passes, 1, optional=True)
    seconds = settings.max_seconds
    if seconds is not None and not (_is_number(seconds) and 0.0 < seconds < math.inf):
        raise UsageError(f"max_seconds must be a finite number > 0 or None, got {seconds!r}")
    _check_integer("max_features", settings.max_features, 0, optional=True)
    _check_integer("random_state", settings.random_state, 0)
    _check_integer("sweeps", settings.sweeps, 1, optional=True)
    if not (_is_number(settings.tol) and 0.0 <= settings.tol < math.inf):
        raise UsageError(f"tol must be a finite number >= 0, got {settings.tol!r}")
    sample = settings.sample
    if sample != "auto" and not (_is_number(sample) and 0.0 < float(sample) <= 1.0):
        raise UsageError(f"sample must be 'auto' or a share in (0, 1], got {sample!r}")
    check_accelerators(allowed(settings))
    _check_pairs(settings, penalty)
    if getattr(settings.hypotheses, "learns", False) and not (settings.system is not None and settings.system.learns):
        raise UsageError(
            "hypotheses=Learned(...) learns one hypothesis in every round, and this estimator scores all there are",
            hint="use dboost.LeveragingClassifier or LeveragingRegressor, or another family",
        )
    if settings.system is not None:
        settings.system.check(settings, penalty)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def _check_integer(name: str, value: Any, least: int, optional: bool = False) -> None:
    if value is None and optional:
        return
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise UsageError(f"{name} must be an integer >= {least}{' or None' if optional else ''}, got {value!r}")


def _check_pairs(settings: FitSettings, penalty: Penalty) -> None:
    """Refuse what the loss, the penalty or the update cannot be combined with; names both, and what works instead."""
    if settings.system is None:
        system_of(settings).check(settings, penalty)
    else:
        refuse_sweeps(settings, settings.system.name)
    if settings.update in (FORWARD, "adaboost") and get_loss(settings.loss).template_constant == 0.0:
        raise UsageError(
            f"update={settings.update!r} needs an exponential bound, which loss {get_loss(settings.loss).name!r} does "
            "not have",
            hint="use update='newton' or 'gradboost'",
        )
    if settings.system is None:
        _check_capabilities(settings, penalty)
    if not penalty.separable:
        _check_joint(settings, penalty)
    _check_columns(settings, penalty)
    if settings.standardize and penalty.degree == 0:
        raise UsageError(
            f"standardize=True multiplies the strength of a feature by a power of its scale, which penalty "
            f"{penalty.name!r} does not follow",
            hint="scale the columns before the fit, or use penalty='l1' or 'l2_squared'",
        )


def _check_capabilities(settings: FitSettings, penalty: Penalty) -> None:
    """Refuse a solver that needs what the penalty does not have; both are named."""
    exponential, compiled, face = (isinstance(penalty, kind) for kind in (ExponentialSolves, CompiledProx, Faced))
    instead = " or ".join(
        f"update={name!r}" for name, can in (("newton", face), ("gradboost", True)) if can and name != settings.update
    )
    if settings.update in ("adaboost", FORWARD) and not exponential:
        what = "a solve of a row under the exponential bound"
        raise lacks(penalty, f"update={settings.update!r}", what, f"use {instead}")
    if not math.isfinite(get_loss(settings.loss).kappa) and not exponential:
        what = "a solve of a row under the exponential bound"
        raise lacks(penalty, f"loss {get_loss(settings.loss).name!r}", what, "use a penalty that has one, such as 'l1'")
    if settings.update == "newton" and not face:
        raise lacks(penalty, "update='newton'", "derivatives on a face", f"use {instead}")
    if settings.update == "newton" and penalty.threshold and penalty.separable and not compiled:
        raise lacks(penalty, "update='newton'", "a compiled prox", "use update='gradboost'")
    if not penalty.certified and not face:
        raise lacks(penalty, f"update={settings.update!r} without a certificate", "derivatives", "use another penalty")
    if settings.hypotheses is not None and isinstance(penalty, ChargesRows):
        raise UsageError(
            f"penalty {penalty.name!r} is certified by the rows that are held, and hypotheses={settings.hypotheses!r} "
            "are sized together",
            hint="use 'l1' or 'l1/l2', or leave hypotheses out",
        )


# What is said of single columns, and what a message calls it.
_OF_COLUMNS = {
    "offset": "offset=",
    "penalty_factors": "penalty_factors",
    "signs": "positive, lower and upper",
    "column_groups": "column_groups",
}


def _check_columns(settings: FitSettings, penalty: Penalty) -> None:
    """What is said of single columns is for stored ones, and for fits to a certified optimum (but for factors)."""
    for field, name in _OF_COLUMNS.items():
        if getattr(settings, field) is None:
            continue
        if settings.hypotheses is not None:
            raise UsageError(
                f"{name} with hypotheses={settings.hypotheses!r}, which are made in the fit, not columns of the data",
                hint="leave one of them out",
            )
        takes_factors = field == "penalty_factors" and system_of(settings).takes_factors
        if (settings.system is not None or settings.update == FORWARD) and not takes_factors:
            what = "update='forward'" if settings.system is None else repr(settings.system.name)
            bounds = ", or use bounds= of the leveraging estimators" if field == "signs" else ""
            raise UsageError(
                f"{name} with {what}, which ends at no certified optimum that they could be part of",
                hint=f"leave it out{bounds}",
            )
    if settings.penalty_factors is not None and penalty.weightless:
        raise UsageError(
            f"penalty_factors multiply the strength of the penalty, and penalty {penalty.name!r} has none",
            hint="use another penalty, or leave penalty_factors out",
        )
    if settings.penalty_factors is not None and settings.system is not None and settings.penalty_factors.has(0.0):
        raise UsageError(
            "penalty_factors is 0 for a feature, which is solved for in every round, and "
            f"{settings.system.name!r} solves for the rows it chooses",
            hint="give a small factor such as 1e-3, which leaves it nearly free",
        )
    if settings.signs is not None:
        # without a penalty, this one takes its place and charges nothing (``Fitting``)
        _check_signs(settings, get_penalty("l1") if penalty.weightless else penalty)
    if settings.column_groups is not None:
        _check_groups(settings, penalty)


def _check_signs(settings: FitSettings, penalty: Penalty) -> None:
    """Signs need a penalty of the sizes of weights that has a certificate."""
    name = _OF_COLUMNS["signs"]
    if not penalty.certified:
        raise UsageError(
            f"{name} need a certificate, as the gradient is not zero where a weight is held at zero, and penalty "
            f"{penalty.name!r} has none",
            hint="use 'l1', 'l1/l2', 'l1/linf', 'elastic_net', 'l2_squared' or 'none'",
        )
    if not getattr(penalty, "sizes_only", False):
        raise UsageError(
            f"{name} need a penalty of the sizes of weights, and penalty {penalty.name!r} is not said to be one",
            hint="set sizes_only = True in its class where omega grows with the size of every entry, whatever its sign",
        )
    exponential = settings.update == "adaboost" or not math.isfinite(get_loss(settings.loss).kappa)
    several = get_loss(settings.loss).task not in ("binary", "regression")
    if exponential and several and penalty.entries is None:
        raise UsageError(
            f"{name} under an exponential bound are solved entry by entry, and penalty {penalty.name!r} ties them",
            hint="use penalty='l1', or update='newton' with a loss of bounded curvature",
        )


def _check_joint(settings: FitSettings, penalty: Penalty) -> None:
    """The rows enter, and move, all together or not at all (docs/math.md 3)."""
    if settings.update in ("gradboost", "adaboost") and settings.select not in TEMPLATES:
        raise UsageError(
            f"select={settings.select!r} moves one row at a time, and penalty {penalty.name!r} ties all rows: "
            "at W = 0 no single row can leave",
            hint="use select='template' or 'template_uniform', update='newton', or the row penalty 'l1/l2'",
        )
    for name in ("features_per_round", "max_features"):
        if getattr(settings, name) is not None:
            raise UsageError(
                f"{name} is {getattr(settings, name)!r}, but under penalty {penalty.name!r} all rows enter at once",
                hint=f"leave {name} out, or use a penalty of rows such as 'l1/l2'",
            )


_LEAVE = "or leave column_groups out"


def _check_groups(settings: FitSettings, penalty: Penalty) -> None:
    """Refuse what groups of columns are not solved with; both are named."""
    why = (
        "is a sum over single weights, which groups change nothing of"
        if penalty.entries is not None
        else "ties all features into one group already"
        if not penalty.separable
        else "leaves no feature out, so that none enters with others"
        if not penalty.threshold
        else ""
    )
    if why:
        raise UsageError(f"column_groups: penalty {penalty.name!r} {why}", hint=f"use 'l1/l2' or 'l1/linf', {_LEAVE}")
    joins_rows(penalty)
    if settings.update != "newton":
        raise UsageError(
            f"update={settings.update!r} moves one row at a time, and the rows of a group of column_groups enter "
            "together",
            hint=f"leave update at 'newton', {_LEAVE}",
        )
    for name, usual in _OF_ROWS.items():
        if getattr(settings, name) != usual:
            raise UsageError(
                f"{name}={getattr(settings, name)!r} is about single rows, and those of column_groups enter as groups",
                hint=f"leave {name} out, {_LEAVE}",
            )


_OF_ROWS: dict[str, Any] = {"features_per_round": None, "max_features": None, "sample": "auto"}
