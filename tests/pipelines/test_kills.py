"""SIGKILL at any instant of a run: it goes on to the same model and predictions, and does no stage twice.

Covers: a few trials of each part of ``lab.run_kills``, which `python -m lab campaign --part driver-kills` runs by the dozen.
Does not cover: signals that are heard (test_signals.py), the fits alone (tests/estimators/test_path_checkpoints.py).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.run_kills import main


@pytest.mark.full
@pytest.mark.parametrize(("part", "trials"), [("fit", 1), ("cv", 1), ("retrain", 1)])
def test_killed_work_goes_on_to_the_same_end(part: str, trials: int, tmp_path: Path) -> None:
    out = tmp_path / "page.md"
    assert main(["--part", part, "--trials", str(trials), "--out", str(out)]) == 0
    assert f"| {part} " in out.read_text()
