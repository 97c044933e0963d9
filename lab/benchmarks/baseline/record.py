"""``python -m lab bench record NAME``: measure this checkout beside a yardstick, and store the figures.

Without a name the stored baseline is measured and written (``kept``). The file is ``lab/baselines/NAME.json`` unless
NAME is a path. A yardstick, a fixed piece of work of other libraries, runs in each turn, and files of different days
are compared in its units.
"""

from __future__ import annotations

import datetime
import platform
from dataclasses import dataclass
from importlib.metadata import version

import dboost
from dboost.engine.machine import available_cores
from dboost.errors import UsageError
from lab.benchmarks.baseline import kept, stored, trees
from lab.benchmarks.baseline.turns import Turns, measured
from lab.benchmarks.baseline.words import TurnSettings
from lab.benchmarks.process import ROOT
from lab.benchmarks.suite import problems_of
from lab.machine import processor
from pipelines.config import boolean, key, string
from pipelines.console import Console

PACKAGES = ("numba", "numpy", "scikit-learn", "scipy")


@dataclass(frozen=True, kw_only=True)
class RecordSettings(TurnSettings):
    """What `python -m lab bench record` takes."""

    name: str | None = key(
        string,
        None,
        "name in lab/baselines, or a path that ends in .json; without one, the stored baseline",
        positional=1,
    )
    force: bool = key(boolean, False, "write over an earlier measurement of this name")


SETTINGS = RecordSettings


def run(settings: RecordSettings, console: Console) -> int:
    """Measure, and write the file."""
    if settings.name is None:
        return kept.record(console)
    path = stored.place(settings.name)
    if path.exists() and not settings.force:
        raise UsageError("the measurement exists", file=str(path), hint="choose another name, or give --force")
    problems = problems_of(settings)
    turns = Turns(settings.accuracies, settings.repeats, settings.threads, settings.quick, yardstick=True)
    commit = trees.current()
    costs = measured({"dboost": ROOT}, problems, turns, console.say)["dboost"]
    found = stored.Measurement(
        commit=commit,
        costs=costs,
        settings={
            "accuracies": [stored.accuracy_key(accuracy) for accuracy in settings.accuracies],
            "repeats": settings.repeats,
            "threads": settings.threads,
            "twins": settings.quick,
        },
        machine={"processor": processor(), "cores": str(available_cores())},
        versions={
            "dboost": dboost.__version__,
            "python": platform.python_version(),
            **{package: version(package) for package in PACKAGES},
        },
        written=datetime.datetime.now(datetime.UTC).date().isoformat(),
    )
    stored.write(found, path)
    console.say(f"{len(costs)} problems of {commit}: {path}")
    return 0
