"""``dboost run``: what is not done yet of the run that a file describes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import BeforeValidator, Field

from ..config import LogSettings, Says, Switch, Text, key
from ..console import Console
from ..runs.execute import RunResult, read
from ..runs.execute import run as execute
from .train import NOT_CONVERGED

# Of one text the whole is one.
Overrides = Annotated[
    tuple[Annotated[str, Field(pattern="=")], ...],
    BeforeValidator(lambda value: [value] if isinstance(value, str) else value),
    Says("TABLE.KEY=VALUE"),
]


@dataclass(frozen=True, kw_only=True)
class RunFileSettings:
    """Which run, and where it is done."""

    required: ClassVar[tuple[str, ...]] = ("file",)

    file: Text | None = key(None, "run file with the tables data, prepare, model, evaluate, ...", positional=1)
    out: Text | None = key(None, "run folder (default: runs/NAME beside the file)")
    set: Overrides | None = key(
        None, "value over that of the file, as in model.alpha=1e-4; may be given several times", many=True
    )


@dataclass(frozen=True, kw_only=True)
class RunSettings(RunFileSettings, LogSettings):
    """What `dboost run` takes."""

    take_over: Switch = key(
        False, "go on although the lock names a process of another host, which is known to have ended"
    )
    print: Switch = key(False, "show the file with all defaults, and where values come from; do nothing")


SETTINGS = RunSettings


def run(settings: RunSettings, console: Console) -> int:
    """Do the run; 6 when a limit came before ``tol``."""
    file, changed = str(settings.file), settings.set or ()
    if settings.print:
        console.text(read(file, changed).to_toml())
        return 0
    done = execute(file, out=settings.out, overrides=changed, console=console, take_over=settings.take_over,
                   trust=settings.trust)  # fmt: skip
    return told(done, console)


def told(result: RunResult, console: Console) -> int:
    """Say where everything is; the exit code of the run."""
    stages = {name: one.state for name, one in result.stages.items()}
    console.event("run", folder=str(result.folder), stages=stages)
    console.say(f"run: {result.folder}   next: dboost inspect {result.folder / 'model'}")
    return 0 if result.converged else NOT_CONVERGED
