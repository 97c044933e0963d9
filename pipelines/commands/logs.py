"""``dboost logs``: what a run has said, from its folder, and with ``--follow`` what it says until it ends."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from dboost import interruption
from dboost.errors import DataError
from dboost.files.paths import local_path
from dboost.former_names import renamed

from ..config import LogSettings, Switch, Text, key
from ..console import Console
from ..runs.folder import EVENTS, RUN_FILE, read_events
from ..runs.lock import holder_of

_ENDS = ("run_done", "run_stopped", "run_failed")
# Seconds between looks at a run.
_PAUSE = 0.5


@dataclass(frozen=True, kw_only=True)
class LogsSettings(LogSettings):
    """What `dboost logs` takes."""

    required: ClassVar[tuple[str, ...]] = ("run",)

    run: Text | None = key(None, "run folder", positional=1)
    follow: Switch = key(False, "go on until the run ends")


SETTINGS = LogsSettings


def run(settings: LogsSettings, console: Console) -> int:
    """Print the events."""
    folder = local_path(str(settings.run), "run").resolve()
    if not (folder / RUN_FILE).is_file():
        raise DataError(f"is no run folder: it holds no {RUN_FILE}", file=str(settings.run))
    for event in events(folder, settings.follow):
        fields = {name: value for name, value in event.items() if name not in ("event", "time")}
        console.event(str(event.get("event")), at=event.get("time"), **fields)
        if console.mode != "json":
            console.say(line(event))
    return 0


def events(folder: Path, follow: bool) -> Iterator[dict[str, Any]]:
    """The events of a run, and those that come while a process works in its folder."""
    seen = 0
    while True:
        working = holder_of(folder) is not None
        size = (folder / EVENTS).stat().st_size if (folder / EVENTS).is_file() else 0
        found = read_events(folder)
        yield from found[seen:]
        seen = max(seen, len(found))
        if not follow or not working:
            return
        while holder_of(folder) is not None and (
            not (folder / EVENTS).is_file() or (folder / EVENTS).stat().st_size == size
        ):
            interruption.check()
            time.sleep(_PAUSE)


def line(event: dict[str, Any]) -> str:
    """An event in words."""
    event = renamed(event)
    at = time.strftime("%H:%M:%S", time.localtime(float(event.get("time", 0.0))))
    name = str(event.get("event", ""))
    if name == "round":
        gap = event.get("gap")
        reached = "" if gap is None else f", gap {gap:.2e}"
        return f"{at} round {event.get('round')}: objective {event.get('objective'):.7f}{reached}, " \
               f"{event.get('features')} features"  # fmt: skip
    rest = ", ".join(f"{key} {value}" for key, value in event.items() if key not in ("event", "time") and value != "")
    return f"{at} {name.replace('_', ' ')}{': ' if rest else ''}{rest}"
