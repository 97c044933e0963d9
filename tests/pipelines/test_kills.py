"""SIGKILL at any instant of a run: it goes on to the same model and predictions, and does no stage twice.

Covers: a few trials of each part of ``lab.run_kills``, which `python -m lab campaign` runs by
the dozen.
Does not cover: signals that are heard (test_signals.py), the fits alone (tests/estimators/test_path_checkpoints.py).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.campaign.command import Tally
from lab.run_kills import trials


@pytest.mark.full
@pytest.mark.parametrize("part", ["fit", "cv", "retrain"])
def test_killed_work_goes_on_to_the_same_end(part: str, tmp_path: Path) -> None:
    tally = Tally()
    trials(part, 1, tmp_path, tally)
    assert (tally.tried, tally.failed) == (1, 0)
