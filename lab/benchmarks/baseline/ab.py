"""``python -m lab bench ab OLD NEW``: two commits, A B A B in one session; exit code 1 when NEW is too slow."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from dboost.errors import UsageError
from lab.benchmarks.baseline import ratios, trees
from lab.benchmarks.baseline.stored import Measurement
from lab.benchmarks.baseline.turns import Turns, measured
from lab.benchmarks.baseline.words import LimitSettings, TurnSettings, wanted
from lab.benchmarks.suite import problems_of
from pipelines.config import key, string
from pipelines.console import Console


@dataclass(frozen=True, kw_only=True)
class ABSettings(TurnSettings, LimitSettings):
    """What `python -m lab bench ab` takes."""

    required: ClassVar[tuple[str, ...]] = ("old", "new")

    old: str | None = key(string, None, "commit of before: a hash, branch or tag", positional=1)
    new: str | None = key(string, None, "commit of after", positional=2)


SETTINGS = ABSettings


def run(settings: ABSettings, console: Console) -> int:
    """Check both out, compile both, measure in turn, print the table; 1 when something is too much."""
    commits = [trees.commit_of(name) for name in wanted(settings, "old", "new")]
    if commits[0] == commits[1]:
        raise UsageError(f"both names stand for {commits[0]}", hint="name two commits")
    problems = problems_of(settings)
    turns = Turns(settings.accuracies, settings.repeats, settings.threads, settings.quick)
    with tempfile.TemporaryDirectory(prefix="dboost-commits-") as scratch:
        folders = {commit: trees.check_out(commit, Path(scratch, commit)) for commit in commits}
        with console.stage("compiling both"):
            trees.compile_all(folders)
        costs = measured(folders, problems, turns, console.say)
    old, new = (Measurement(commit, costs[commit]) for commit in commits)
    found = ratios.changes(old, new)
    judged = ratios.verdict(found, settings.by, settings.mean, settings.worst)
    return ratios.show(console, old, new, judged, found)
