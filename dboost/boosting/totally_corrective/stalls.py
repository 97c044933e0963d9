"""Whether the rounds of a fit still lead anywhere: rounding alone moves the model, or steps that are far too small.

Covers: ``stalled``. Does not cover: reasons to stop that one round gives (``totally_corrective.loop``).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

# Rounding moves the model without improving its certificate: rounds looked at, and the share of the objective that is
# less than rounding.
_ROUNDED_ROUNDS = 6
_ROUNDED_GAIN = 1e-13
# A matrix of second derivatives that float64 cannot solve leaves steps that lower the objective by as little in every
# round, without end: rounds looked at, which are more than a fit takes to change to another kind of step, and rounds
# that it would take to close the gap at their pace. No limit of rounds is near that number.
_SLOW_ROUNDS = 12
_WITHOUT_END = 1e6
# A certificate that got better by this factor is on its way.
_BETTER = 0.9


def stalled(history: Sequence[Mapping[str, Any]], least: float) -> str:
    """The reason to end a fit whose last rounds led nowhere: "precision" or "stalled"; empty to go on.

    Parameters
    ----------
    history : sequence of mapping
        Records of the rounds.
    least : float
        The resolution of the objective, which is taken to be at least that far from zero.
    """
    recent = _last(history, _ROUNDED_ROUNDS)
    if recent:
        gain = _ROUNDED_GAIN * max(abs(recent[-1]["objective"]), least)
        if _lowered(recent) <= gain and not _certified_better(recent):
            return "precision"
    recent = _last(history, _SLOW_ROUNDS)
    if recent and all(math.isfinite(record["gap"]) for record in recent) and not _certified_better(recent):
        left = recent[-1]["gap"] * max(abs(recent[-1]["objective"]), least)
        if _lowered(recent) * _WITHOUT_END < left * (len(recent) - 1):
            return "stalled"
    return ""


def _last(history: Sequence[Mapping[str, Any]], count: int) -> list[Mapping[str, Any]]:
    """The last `count` records, if there are as many."""
    return list(history[-count:]) if len(history) >= count else []


def _lowered(recent: Sequence[Mapping[str, Any]]) -> float:
    return float(recent[0]["objective"] - recent[-1]["objective"])


def _certified_better(recent: Sequence[Mapping[str, Any]]) -> bool:
    gaps = [record["gap"] for record in recent]
    return bool(min(gaps) < _BETTER * gaps[0])
