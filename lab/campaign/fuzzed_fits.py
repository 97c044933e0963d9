"""Random fits of hostile data, judged by an oracle in long double (``lab.fuzz``)."""

from __future__ import annotations

import os
from pathlib import Path

from lab.campaign.tally import Tally
from lab.fuzz.judge import BAD
from lab.fuzz.workers import outcomes

PROCESSES, SECONDS = 2, 10.0
"""Fits at once, and how long one may take; it is no fault of a certificate to need longer."""


def run(count: int, folder: Path, tally: Tally) -> None:
    """Fit so many cases."""
    # Each process fits on one thread: the other core has fits of its own.
    os.environ.setdefault("NUMBA_NUM_THREADS", "1")
    for outcome in outcomes(range(count), PROCESSES, SECONDS):
        bad = outcome.kind in BAD
        tally.check(not bad, outcome.kind, f"seed {outcome.seed}: {outcome.kind}: {outcome.detail}")
