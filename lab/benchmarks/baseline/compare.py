"""``python -m lab bench compare OLD NEW``: two stored measurements side by side; exit code 1 when NEW is too slow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from lab.benchmarks.baseline import ratios, stored
from lab.benchmarks.baseline.words import LimitSettings, wanted
from pipelines.config import key, string
from pipelines.console import Console


@dataclass(frozen=True, kw_only=True)
class CompareSettings(LimitSettings):
    """What `python -m lab bench compare` takes."""

    required: ClassVar[tuple[str, ...]] = ("old", "new")

    old: str | None = key(string, None, "measurement of before: a name in lab/baselines, or a path", positional=1)
    new: str | None = key(string, None, "measurement of after", positional=2)


SETTINGS = CompareSettings


def run(settings: CompareSettings, console: Console) -> int:
    """Print the table; 1 when something is too much."""
    old, new = (stored.read(stored.place(name)) for name in wanted(settings, "old", "new"))
    found = ratios.changes(old, new)
    judged = ratios.verdict(found, settings.by, settings.mean, settings.worst)
    return ratios.show(console, old, new, judged, found)
