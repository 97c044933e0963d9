"""``dboost stop``: end a run that was submitted; it keeps the model so far, and ``dboost resume`` goes on with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..config import LogSettings, Text, key
from ..console import Console
from ..places.registry import PLACES
from .submit import started_of


@dataclass(frozen=True, kw_only=True)
class StopSettings(LogSettings):
    """What `dboost stop` takes."""

    required: ClassVar[tuple[str, ...]] = ("run",)

    run: Text | None = key(None, "run folder of a `dboost submit`", positional=1)


SETTINGS = StopSettings


def run(settings: StopSettings, console: Console) -> int:
    """Ask it to end."""
    folder, started = started_of(str(settings.run))
    said = PLACES[started["kind"]].stop(started)
    console.event("stopped", folder=str(folder), text=said)
    console.say(f"{said}; dboost resume {folder} goes on with the run")
    return 0
