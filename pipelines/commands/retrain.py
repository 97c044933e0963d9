"""``dboost retrain``: a challenger for the champion where there is new data; promoted, or declined with its reasons."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from ..config import LogSettings, OneOf, Switch, Text, key, needed
from ..console import Console
from ..retraining.config import read_retraining
from ..retraining.home import PROMOTED
from ..retraining.retrain import DECLINED, NOTHING_NEW, retrain
from ..retraining.schedules import SCHEDULES


@dataclass(frozen=True, kw_only=True)
class RetrainSettings(LogSettings):
    """What `dboost retrain` takes."""

    required: ClassVar[tuple[str, ...]] = ("file",)

    file: Text | None = key(None, "file with the tables [retrain] and [gates]", positional=1)
    exit_code: Switch = key(False, "end with 10 where it was declined, and with 11 where nothing is new")
    emit: Annotated[str, OneOf(SCHEDULES.keys)] | None = key(
        None, "print what runs this every night there; do nothing"
    )


SETTINGS: Any = RetrainSettings
EXIT_CODES = {PROMOTED: 0, DECLINED: 10, NOTHING_NEW: 11}


def run(settings: RetrainSettings, console: Console) -> int:
    """Retrain; 0 whatever was decided, as a schedule wants it, unless the exit code is to say it."""
    needed(settings, *settings.required)
    if settings.emit is not None:
        plan = read_retraining(str(settings.file))
        if not settings.trust:
            plan.refuse_reaching()
        console.text(SCHEDULES[settings.emit](str(settings.file), settings.trust))
        return 0
    decision = retrain(str(settings.file), trust=settings.trust, console=console)
    return EXIT_CODES[decision.outcome] if settings.exit_code else 0
