"""How much work a fit may do, and how much of it one round.

A round of the paper's own updates needs no scoring pass to go on, and on data that the rows separate it never ends by
itself. So it ends after a number of passes that follows from the size of the problem: records, callbacks and
checkpoints come in time, and the number of rounds bounds the work. That number must not depend on how long the passes
take, or two runs of one fit would not have the same bits. Only the end of a fit may depend on time.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dboost.problem.state import FitSettings

# Passes of the paper's updates in one round. At most so many that a round over few examples takes about a second; at
# least so many that the scoring pass and the certificate of a round, of about three passes, cost little beside them.
MOST_PASSES = 1000
LEAST_PASSES = 50
# Products of an example's value and a weight in one round, which one core makes in about ten seconds. Zeros are counted
# too: how many values are stored is not known here, and rounds of sparse data are shorter for it, never longer.
ROUND_WORK = 1e10


def round_passes(n_rows: int, active: int, k: int) -> int:
    """Passes of the paper's updates after which a round ends.

    `n_rows`: number of examples. `active`: rows of W that the round moves. `k`: number of outputs.
    """
    work = float(max(n_rows, 1)) * (active + 1) * k
    return int(min(MOST_PASSES, max(LEAST_PASSES, ROUND_WORK / work)))


@dataclass(frozen=True)
class Limits:
    """When a fit ends whatever it has reached."""

    passes: float = math.inf  # Passes over the data; infinite without a limit.
    deadline: float = math.inf  # ``time.monotonic()`` from which on it has taken too long; infinite without a limit.

    @classmethod
    def of(cls, settings: FitSettings) -> Limits:
        """The limits of a fit that begins now."""
        return cls(
            math.inf if settings.max_passes is None else settings.max_passes,
            math.inf if settings.max_seconds is None else time.monotonic() + settings.max_seconds,
        )

    def counted_from(self, done: int) -> Limits:
        """The same limits for a counter of passes that does not hold the first `done` of this fit."""
        return replace(self, passes=self.passes - done)

    def reason(self, passes: int) -> str:
        """Why to stop after so many passes: "max_passes", "max_seconds", or empty to go on."""
        if passes >= self.passes:
            return "max_passes"
        return "max_seconds" if time.monotonic() >= self.deadline else ""


UNLIMITED = Limits()
