"""Which workers have shown no sign of life, as the driver sees it.

Covers: counting the seconds of each worker's silence over several looks. Does not cover: asking the scheduler.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

LONGEST_STEP = 2.5
"""Seconds of silence that two looks can show at most. The driver itself may have been stopped between them (Ctrl-Z, a
laptop that slept), and must not take its own absence for the silence of every worker."""


@dataclass(frozen=True)
class Signs:
    """What the driver knows of the workers' heartbeats."""

    looked: float = float("-inf")  # When it looked last, by its own clock.
    # Time of the last heartbeat of each worker, by the scheduler's clock. Clocks of machines differ, so this number is
    # only compared with itself.
    last: Mapping[str, float] = field(default_factory=dict)
    # Seconds for which that number has not changed, by worker.
    quiet: Mapping[str, float] = field(default_factory=dict)

    def after(self, seen: Mapping[str, float], now: float) -> Signs:
        """Return what is known after a look: `seen` are the heartbeats by worker, `now` is the driver's clock.

        Only looks that were answered may be counted: a scheduler that answers late has also heard its workers late.
        """
        step = min(now - self.looked, LONGEST_STEP)
        quiet = {a: self.quiet[a] + step if self.last.get(a) == at else 0.0 for a, at in seen.items()}
        return Signs(now, dict(seen), quiet)

    def silent(self, seconds: float) -> frozenset[str]:
        """Return the workers that have been silent for longer than that."""
        return frozenset(address for address, quiet in self.quiet.items() if quiet > seconds)
