"""The system that each update stands for: the one place that names them all.

A system of its own, as ShareBoost or leveraging are, comes with the settings (``FitSettings.system``).
"""

from __future__ import annotations

from collections.abc import Callable

from dboost.boosting.forward.rounds import ForwardGreedy
from dboost.boosting.systems import System
from dboost.boosting.totally_corrective.loop import TotallyCorrective
from dboost.problem.state import FitSettings

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
