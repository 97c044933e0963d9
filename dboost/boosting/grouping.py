"""Groups of columns as a part of a fit: what they combine with, and the penalty that they make of one of rows.

Covers: ``check_groups``, before any data is read; ``penalty_of_columns``. Does not cover: the groups themselves
(``problem.column_groups``), their penalty (``penalties.grouped``), or the solves (``solvers.formed``).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.boosting.planned import Planned
from dboost.errors import UsageError
from dboost.losses import get_loss
from dboost.penalties import Penalty, get_penalty
from dboost.penalties.capabilities import joins_rows
from dboost.penalties.grouped import Grouped
from dboost.penalties.rows import sums_by
from dboost.problem.state import FitSettings

_LEAVE = "or leave column_groups out"


def check_groups(settings: FitSettings, penalty: Penalty) -> None:
    """Refuse what groups of columns are not solved with; both are named.

    Raises
    ------
    UsageError
    """
    joins_rows(penalty)
    if settings.hypotheses is not None:
        raise UsageError(
            f"column_groups are those of the columns of the data, and hypotheses={settings.hypotheses!r} are made in "
            "the fit",
            hint=f"leave hypotheses out, {_LEAVE}",
        )
    if settings.system is not None:
        raise UsageError(
            f"column_groups are for fits to a certified optimum, and {settings.system.name!r} is none",
            hint="leave column_groups out",
        )
    if settings.update != "newton":
        raise UsageError(
            f"update={settings.update!r} moves one row at a time, and the rows of a group of column_groups enter "
            "together",
            hint=f"leave update at 'newton', {_LEAVE}",
        )
    if get_loss(settings.loss).exponential:
        raise UsageError(
            f"column_groups with loss {get_loss(settings.loss).name!r}, which has no curvature that groups are solved "
            "by",
            hint=f"use loss='log', {_LEAVE}",
        )
    if settings.signs is not None:
        raise UsageError(
            "positive, lower and upper are of single features, and those of column_groups are solved for together",
            hint=f"leave these out, {_LEAVE}",
        )
    if settings.penalty_factors is not None and settings.penalty_factors.frees:
        raise UsageError(
            "penalty_factors is 0 for a feature, and column_groups charges every group",
            hint=f"give a small factor such as 1e-3, which leaves it nearly free, {_LEAVE}",
        )
    for name, usual in _OF_ROWS.items():
        if getattr(settings, name) != usual:
            raise UsageError(
                f"{name}={getattr(settings, name)!r} is about single rows, and those of column_groups enter as groups",
                hint=f"leave {name} out, {_LEAVE}",
            )


_OF_ROWS: dict[str, Any] = {"rows_per_round": None, "max_active_rows": None, "sample": "auto"}


def penalty_of_columns(
    settings: FitSettings, plan: Planned, factors: NDArray[np.float64] | None, fixed: NDArray[np.int64]
) -> Penalty:
    """The penalty of a fit: the one that settings name, of groups of columns where some group has several.

    Parameters
    ----------
    settings : FitSettings
    plan : Planned
    factors : float64 array, shape (n,), or None
        ``penalty_factors``; a feature of factor inf is left out, and no part of the size of its group.
    fixed : int64 array
        Columns that are offsets, and no features.
    """
    penalty = get_penalty(settings.penalty)
    if settings.column_groups is None:
        return penalty
    place = settings.column_groups.of_columns(plan.n_features, plan.feature_names)
    if not settings.column_groups.ties:
        # groups of one column each change no bit
        return penalty
    counted = np.ones(plan.n_features) if factors is None else np.isfinite(factors).astype(np.float64)
    counted[fixed] = 0.0
    return Grouped.of(penalty, place, sums_by(counted, place, int(place.max(initial=-1)) + 1))
