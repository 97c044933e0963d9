"""``dboost runs``: the runs in a folder, and how each stands."""

from __future__ import annotations

from dataclasses import dataclass

from ..config import LogSettings, Text, key
from ..console import Console
from ..runs.listing import list_runs, table, values


@dataclass(frozen=True, kw_only=True)
class RunsSettings(LogSettings):
    """What `dboost runs` takes."""

    folder: Text = key("runs", "folder with run folders, at any depth", positional=1)


SETTINGS = RunsSettings


def run(settings: RunsSettings, console: Console) -> int:
    """Print the list."""
    found = list_runs(settings.folder)
    if not found:
        console.say(f"no runs in {settings.folder}")
    console.page("runs", [table(found)] if found else [], values(found))
    return 0
