"""Combinations of loss, update, penalty and selection that have no meaning, refused with the alternatives named."""

from __future__ import annotations

import math

from dboost.boosting.rowwise import TEMPLATES
from dboost.boosting.state import FitSettings
from dboost.errors import UsageError
from dboost.losses import get_loss
from dboost.penalties import NEWTON_ONLY, Penalty

FORWARD = "forward"


def check_pairs(settings: FitSettings, penalty: Penalty) -> None:
    """Refuse what the loss, the penalty or the update cannot be combined with.

    Raises
    ------
    UsageError
        Names both parties and what works instead.
    """
    if settings.update == FORWARD:
        _check_forward(settings, penalty)
    if settings.sweeps is not None and (settings.update in ("newton", FORWARD) or settings.system is not None):
        what = f"update {settings.update!r}" if settings.system is None else settings.system.name
        raise UsageError(
            f"sweeps={settings.sweeps!r} bounds the one-row updates of a round, which {what} does not make",
            hint="use update='gradboost' or 'adaboost', or leave sweeps out",
        )
    if settings.update in (FORWARD, "adaboost") and get_loss(settings.loss).template_constant == 0.0:
        raise UsageError(
            f"update={settings.update!r} needs an exponential bound, which loss {get_loss(settings.loss).name!r} does "
            "not have",
            hint="use update='newton' or 'gradboost'",
        )
    if penalty.name in NEWTON_ONLY and settings.system is None:
        _check_newton_only(settings, penalty)
    if not penalty.separable:
        _check_joint(settings, penalty)
    if settings.standardize and penalty.degree == 0:
        raise UsageError(
            f"standardize=True multiplies the strength of a feature by a power of its scale, which penalty "
            f"{penalty.name!r} does not follow",
            hint="scale the columns before the fit, or use penalty='l1' or 'l2_squared'",
        )


def _check_forward(settings: FitSettings, penalty: Penalty) -> None:
    if penalty.name != "none":
        raise UsageError(
            f"update 'forward' moves one hypothesis per round and has no penalty, but penalty is {penalty.name!r}",
            hint="set penalty='none', or use update='adaboost' with this penalty",
        )
    if settings.select != "greedy":
        raise UsageError(
            f"update 'forward' moves the best hypothesis of all, but select is {settings.select!r}",
            hint="leave select at 'greedy', or use update='adaboost'",
        )
    if settings.rows_per_round not in (None, 1):
        raise UsageError(
            f"update 'forward' adds one hypothesis per round, but rows_per_round is {settings.rows_per_round!r}",
            hint="leave rows_per_round out, or use update='adaboost', which re-optimises all it holds",
        )


def _check_newton_only(settings: FitSettings, penalty: Penalty) -> None:
    """There is no solve of a row under the exponential bound, and no compiled one."""
    if settings.update != "newton" or settings.curvature != "newton":
        which = f"update={settings.update!r}" if settings.update != "newton" else f"curvature={settings.curvature!r}"
        raise UsageError(
            f"{which} solves single rows, which penalty {penalty.name!r} has no formula for",
            hint="use update='newton', or penalty='smooth_l1'",
        )
    if not math.isfinite(get_loss(settings.loss).kappa):
        loss = get_loss(settings.loss).name
        raise UsageError(
            f"loss {loss!r} needs the exponential bound, for which penalty {penalty.name!r} has no formula",
            hint="use penalty='smooth_l1'",
        )


def _check_joint(settings: FitSettings, penalty: Penalty) -> None:
    """The rows enter, and move, all together or not at all (docs/math.md 3)."""
    if settings.update in ("gradboost", "adaboost") and settings.select not in TEMPLATES:
        raise UsageError(
            f"select={settings.select!r} moves one row at a time, and penalty {penalty.name!r} ties all rows: "
            "at W = 0 no single row can leave",
            hint="use select='template' or 'template_uniform', update='newton', or the row penalty 'l1/l2'",
        )
    for name in ("rows_per_round", "max_active_rows"):
        if getattr(settings, name) is not None:
            raise UsageError(
                f"{name} is {getattr(settings, name)!r}, but under penalty {penalty.name!r} all rows enter at once",
                hint=f"leave {name} out, or use a penalty of rows such as 'l1/l2'",
            )
    if settings.curvature != "newton":
        raise UsageError(
            f"curvature={settings.curvature!r} moves one row at a time, and penalty {penalty.name!r} ties all rows",
            hint="leave curvature at 'newton'",
        )
