"""Drivers killed at random instants and called again: runs, cross-validations, trainings, paths, retrainings.

Covers: the trials of ``lab.run_kills``, two parts at a time. Does not cover: workers (``worker_kills``).
"""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from lab import run_kills
from lab.campaign.tally import Tally

BESIDE = 2
"""Parts at once: half of a trial is starting processes."""


def run(count: int, folder: Path, tally: Tally) -> None:
    """Share the kills among the parts."""
    each = max(1, count // len(run_kills.PARTS))

    def tried(part: str) -> tuple[int, int, Counter[str]]:
        return run_kills.trials(part, each, folder, lambda line: print(f"  {line}", flush=True))

    with ThreadPoolExecutor(BESIDE) as pool:
        for part, (kills, passed, where) in zip(run_kills.PARTS, pool.map(tried, run_kills.PARTS)):
            for place, number in where.items():
                tally.passed(f"{part}, killed in {place}", number)
            for _ in range(kills - passed):
                tally.broke(f"{part}: see above")
