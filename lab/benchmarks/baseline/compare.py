"""``python -m lab bench compare OLD NEW``: two stored measurements side by side; exit code 1 when NEW is too slow.

Without names this checkout is measured on the problems of the stored baseline and set beside it (``kept``).
"""

from __future__ import annotations

from dataclasses import dataclass

from lab.benchmarks.baseline import kept, ratios, stored
from lab.benchmarks.baseline.words import LimitSettings, wanted
from pipelines.config import key, string
from pipelines.console import Console


@dataclass(frozen=True, kw_only=True)
class CompareSettings(LimitSettings):
    """What `python -m lab bench compare` takes."""

    old: str | None = key(
        string, None, "measurement of before; without names, this checkout beside the stored baseline", positional=1
    )
    new: str | None = key(string, None, "measurement of after", positional=2)


SETTINGS = CompareSettings


def run(settings: CompareSettings, console: Console) -> int:
    """Print the table; 1 when something is too much."""
    if settings.old is None and settings.new is None:
        return kept.compare(console)
    old, new = (stored.read(stored.place(name)) for name in wanted(settings, "old", "new"))
    found = ratios.changes(old, new)
    judged = ratios.verdict(found, settings.by, settings.mean, settings.worst)
    return ratios.show(console, old, new, judged, found)
