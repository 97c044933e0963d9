"""``dboost resume``: go on with a run that was broken off, or with a training."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar

from dboost.errors import DataError, UsageError
from dboost.files.paths import local_path

from .. import config, trust
from ..config import ClusterSettings, LogSettings, Switch, Text, key
from ..console import Console
from ..runs.execute import resume
from ..runs.folder import RUN_FILE
from ..unfinished import UNFINISHED
from . import path, predict, train
from . import run as run_command


@dataclass(frozen=True, kw_only=True)
class ResumeSettings(ClusterSettings, LogSettings):
    """What `dboost resume` takes."""

    required: ClassVar[tuple[str, ...]] = ("run",)

    run: Text | None = key(None, "run folder, or the output of a `dboost train` or `path`", positional=1)
    take_over: Switch = key(
        False, "go on although the lock names a process of another host, which is known to have ended"
    )


SETTINGS = ResumeSettings
# Settings of a cluster that name none.
_PATIENCE = ("connect_timeout", "rejoin_seconds")
_COMMANDS: dict[str, Any] = {"train": train, "path": path, "predict": predict}


def run(settings: ResumeSettings, console: Console) -> int:
    """Go on, on the cluster that is named or else on that of before; the exit code is that of what goes on."""
    folder = local_path(str(settings.run), "run").resolve()
    cluster = {item.name: getattr(settings, item.name) for item in dataclasses.fields(ClusterSettings)}
    named = any(value is not None for name, value in cluster.items() if name not in _PATIENCE)
    patience = [name for name in _PATIENCE if cluster[name] is not None]
    if patience and not named:
        raise UsageError(f"{patience[0]}= without the cluster it is of", hint="give scheduler= too, or leave it out")
    if (folder / RUN_FILE).is_file():
        chosen = ClusterSettings(**cluster) if named else None
        done = resume(folder, cluster=chosen, console=console, take_over=settings.take_over, trust=settings.trust)
        return run_command.told(done, console)
    for work in (folder, folder.with_name(folder.name + UNFINISHED)):
        for name, module in _COMMANDS.items():
            if (work / f"{name}.toml").is_file():
                file = str(work / f"{name}.toml")
                kept = config.load(module.SETTINGS, file, {}, kept=True)
                if named:
                    kept = dataclasses.replace(kept, **cluster)
                if not settings.trust:
                    found = {key: value for key, value in vars(kept).items() if not (named and key in cluster)}
                    trust.refuse(found, work.parent, file=file)
                return int(module.run(kept, console))
    raise DataError(
        f"there is nothing to go on with: no {RUN_FILE} in it and no {UNFINISHED} beside it", file=str(settings.run)
    )
