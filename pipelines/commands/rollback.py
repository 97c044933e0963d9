"""``dboost rollback``: the champion before this one is the champion again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..config import LogSettings, Text, key
from ..console import Console
from ..retraining.retrain import rollback


@dataclass(frozen=True, kw_only=True)
class RollbackSettings(LogSettings):
    """What `dboost rollback` takes."""

    required: ClassVar[tuple[str, ...]] = ("home",)

    home: Text | None = key(None, "folder of the champions, the home of a retraining", positional=1)
    reason: Text | None = key(None, "why, for the pages of decisions")


SETTINGS = RollbackSettings


def run(settings: RollbackSettings, console: Console) -> int:
    """Go back."""
    left, now = rollback(str(settings.home), reason=settings.reason or "", console=console)
    console.event("rolled_back", left=left, champion=now, reason=settings.reason)
    console.say(f"the champion is {now} again, and no longer {left}")
    return 0
