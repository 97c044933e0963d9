"""The scenarios of the campaign: which cluster, which fault, how often, and what may come of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.chaos import strikes


@dataclass(frozen=True)
class Scenario:
    """One kind of fault.

    Parameters
    ----------
    trials : int
    workers : int
        Of the cluster at first; 0 for one that adapts to its load, up to two.
    strike : callable
        ``strike(client, folder)`` does the fault.
    ends : {"bits", "error", "either"}
        What the fit must come to: the bits of the undisturbed one, one clear error, or one of the two.
    outside : bool
        Whether the scheduler is a process of its own, and nobody brings workers back.
    """

    trials: int
    workers: int
    strike: Callable[[Any, Path], None]
    ends: str = "bits"
    outside: bool = False


UNDISTURBED = "undisturbed, 2 workers"

SCENARIOS: dict[str, Scenario] = {
    UNDISTURBED: Scenario(1, 2, strikes.nothing),
    "the only worker killed": Scenario(10, 1, strikes.kill_one),
    "three workers killed at once": Scenario(5, 3, strikes.kill_all),
    "one of two workers stopped": Scenario(3, 2, strikes.stop_one),
    "the only worker stopped": Scenario(1, 1, strikes.stop_one, ends="error"),
    "memory taken by another task": Scenario(2, 1, strikes.exhaust),
    "memory taken again and again": Scenario(1, 1, strikes.exhaust_again, ends="either"),
    "adaptive from no worker": Scenario(2, 0, strikes.nothing),
    "the scheduler killed": Scenario(1, 2, strikes.kill_scheduler, ends="error", outside=True),
    "the scheduler stopped": Scenario(1, 2, strikes.stop_scheduler, ends="error", outside=True),
    "all workers gone for good": Scenario(1, 2, strikes.kill_all, ends="error", outside=True),
    "one of two workers gone for good": Scenario(1, 2, strikes.kill_one, outside=True),
    "workers restarted by another program": Scenario(1, 2, strikes.restart, ends="either"),
    "the client closed": Scenario(1, 2, strikes.close, ends="error"),
}
"""Name and scenario. A fault comes once in each trial, at a random moment of the fit."""
