"""``dboost retrain``: a challenger for the champion where there is new data; promoted, or declined with its reasons."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from dboost.errors import UsageError

from ..config import LogSettings, OneOf, Switch, Text, key
from ..console import Console
from ..retraining.gates import read_retraining
from ..retraining.home import PROMOTED
from ..retraining.retrain import DECLINED, NOTHING_NEW, retrain, rollback
from ..retraining.schedules import SCHEDULES


@dataclass(frozen=True, kw_only=True)
class RetrainSettings(LogSettings):
    """What `dboost retrain` takes."""

    required: ClassVar[tuple[str, ...]] = ("file",)

    file: Text | None = key(None, "file with the tables [retrain] and [gates]", positional=1)
    exit_code: Switch = key(False, "end with 10 where it was declined, and with 11 where nothing is new")
    fail_declined: Switch = key(False, "end with 10 where it was declined, and with 0 otherwise, as --emit wants it")
    emit: Annotated[str, OneOf(SCHEDULES.keys)] | None = key(None, "print what runs this every night there; do nothing")


EXIT_CODES = {PROMOTED: 0, DECLINED: 10, NOTHING_NEW: 11}


def do_retrain(settings: RetrainSettings, console: Console) -> int:
    """Retrain; 0 whatever was decided, since whoever schedules it may try again what fails, unless it is to be seen."""
    if settings.exit_code and settings.fail_declined:
        raise UsageError("exit_code= beside fail_declined=, which says less", hint="use one of them")
    if settings.emit is not None:
        plan = read_retraining(str(settings.file))
        if not settings.trust:
            plan.refuse_reaching()
        console.text(SCHEDULES[settings.emit](str(settings.file), settings.trust))
        return 0
    decision = retrain(str(settings.file), trust=settings.trust, console=console)
    code = EXIT_CODES[decision.outcome]
    return code if settings.exit_code or (settings.fail_declined and decision.outcome == DECLINED) else 0


@dataclass(frozen=True, kw_only=True)
class RollbackSettings(LogSettings):
    """What `dboost rollback` takes."""

    required: ClassVar[tuple[str, ...]] = ("home",)

    home: Text | None = key(None, "folder of the champions, the home of a retraining", positional=1)
    reason: Text | None = key(None, "why, for the pages of decisions")


def do_rollback(settings: RollbackSettings, console: Console) -> None:
    """Go back."""
    left, now = rollback(str(settings.home), reason=settings.reason or "", console=console)
    console.event("rolled_back", left=left, champion=now, reason=settings.reason)
    console.say(f"the champion is {now} again, and no longer {left}")


COMMANDS = {"retrain": (RetrainSettings, do_retrain), "rollback": (RollbackSettings, do_rollback)}
