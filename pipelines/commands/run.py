"""Runs: ``dboost run`` does one, ``resume`` goes on, ``submit``, ``logs`` and ``stop`` leave it alone, ``runs`` lists.

Each command is its settings and a function that hands them to ``runs`` or ``places`` and prints what came of it.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field

from dboost import interruption
from dboost.errors import DataError, UsageError
from dboost.files.paths import local_path
from dboost.files.storage import check_writable, write_file
from dboost.former_names import renamed

from .. import trust
from ..cluster import check as check_cluster
from ..cluster import cluster_overrides, kind_of
from ..config import ClusterSettings, LogSettings, Says, Switch, Text, key, load, tables_to_toml
from ..console import Console
from ..places.registry import PLACES
from ..runs.execute import RunResult, resume
from ..runs.execute import run as execute
from ..runs.folder import EVENTS, RUN_FILE, read_events
from ..runs.listing import list_runs, table
from ..runs.lock import holder_of
from ..runs.run_file import TABLES, RunFile, read_run_file
from ..runs.stages import check
from ..unfinished import UNFINISHED
from . import predict, train
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


def do_run(settings: RunSettings, console: Console) -> int:
    """Do the run; 6 when a limit came before ``tol``."""
    file, changed = str(settings.file), settings.set or ()
    if settings.print:
        console.text(read_run_file(file, changed).to_toml())
        return 0
    done = execute(file, out=settings.out, overrides=changed, console=console, take_over=settings.take_over,
                   trust=settings.trust)  # fmt: skip
    return say_where(done, console)


def say_where(result: RunResult, console: Console) -> int:
    """Say where everything is; the exit code of the run."""
    stages = {name: one.state for name, one in result.stages.items()}
    console.event("run", folder=str(result.folder), stages=stages)
    console.say(f"run: {result.folder}   next: dboost inspect {result.folder / 'model'}")
    return 0 if result.converged else NOT_CONVERGED


@dataclass(frozen=True, kw_only=True)
class ResumeSettings(ClusterSettings, LogSettings):
    """What `dboost resume` takes."""

    required: ClassVar[tuple[str, ...]] = ("run",)

    run: Text | None = key(None, "run folder, or the output of a `dboost train` or `path`", positional=1)
    take_over: Switch = key(
        False, "go on although the lock names a process of another host, which is known to have ended"
    )


# Settings of a cluster that name none.
_PATIENCE = ("connect_timeout", "rejoin_seconds")


def do_resume(settings: ResumeSettings, console: Console) -> Any:
    """Go on, on the cluster that is named or else on that of before; gives what that gives which goes on."""
    folder = local_path(str(settings.run), "run").resolve()
    cluster = {item.name: getattr(settings, item.name) for item in fields(ClusterSettings)}
    named = any(value is not None for name, value in cluster.items() if name not in _PATIENCE)
    patience = [name for name in _PATIENCE if cluster[name] is not None]
    if patience and not named:
        raise UsageError(f"{patience[0]}= without the cluster it is of", hint="give scheduler= too, or leave it out")
    if (folder / RUN_FILE).is_file():
        chosen = ClusterSettings(**cluster) if named else None
        done = resume(folder, cluster=chosen, console=console, take_over=settings.take_over, trust=settings.trust)
        return say_where(done, console)
    for work in (folder, folder.with_name(folder.name + UNFINISHED)):
        for name, (kind, work_on) in (train.COMMANDS | predict.COMMANDS).items():
            if (work / f"{name}.toml").is_file():
                file = str(work / f"{name}.toml")
                kept = load(kind, file, {}, kept=True)
                if named:
                    kept = replace(kept, **cluster)
                if not settings.trust:
                    found = {key: value for key, value in vars(kept).items() if not (named and key in cluster)}
                    trust.refuse(found, work.parent, file=file)
                return work_on(kept, console)
    raise DataError(
        f"there is nothing to go on with: no {RUN_FILE} in it and no {UNFINISHED} beside it", file=str(settings.run)
    )


@dataclass(frozen=True, kw_only=True)
class RunsSettings(LogSettings):
    """What `dboost runs` takes."""

    folder: Text = key("runs", "folder with run folders, at any depth", positional=1)


def do_list(settings: RunsSettings, console: Console) -> None:
    """Print the list."""
    found = list_runs(settings.folder)
    if not found:
        console.say(f"no runs in {settings.folder}")
    console.page("runs", [table(found)] if found else [], {"runs": [dict(vars(one)) for one in found]})


STARTED = "submitted.json"


@dataclass(frozen=True, kw_only=True)
class SubmitSettings(RunFileSettings, ClusterSettings, LogSettings):
    """What `dboost submit` takes."""

    dry_run: Switch = key(False, "show what would be run and sent; do nothing")


def do_submit(settings: SubmitSettings, console: Console) -> None:
    """Start the run; the command ends when it has begun."""
    found = read_run_file(str(settings.file), [*(settings.set or ()), *cluster_overrides(settings)])
    check(found)
    if not settings.trust:
        found.refuse_reaching()
    cluster = found.cluster()
    check_cluster(cluster)
    place = PLACES[kind_of(cluster)]
    if settings.dry_run:
        with tempfile.TemporaryDirectory() as beside:
            folder = Path(beside, found.name)
            folder.mkdir()
            _write(found, folder)
            console.text(place.shown(cluster, folder).replace(str(folder), str(found.target(settings.out))))
        return
    folder = found.target(settings.out)
    if holder_of(folder) is not None:
        raise UsageError("a process works in this folder", file=str(folder), hint="dboost stop it, or wait for it")
    check_writable(folder)
    folder.mkdir(parents=True, exist_ok=True)
    _write(found, folder)
    started = {"kind": kind_of(cluster), **place.start(cluster, folder)}
    write_file(folder / STARTED, json.dumps(started).encode())
    console.event("submitted", folder=str(folder), **started)
    console.say(f"submitted: {folder}   next: dboost logs {folder} --follow, dboost stop {folder}")


def started_of(folder: str) -> tuple[Path, dict[str, Any]]:
    """The folder of a run that was submitted, and how."""
    path = local_path(folder, "run").resolve()
    try:
        found = json.loads((path / STARTED).read_bytes())
        if found["kind"] in PLACES:
            return path, found
    except (OSError, ValueError, KeyError, TypeError):
        pass
    raise UsageError("was not submitted from here", file=folder, hint="give the folder of a `dboost submit`")


def _write(found: RunFile, folder: Path) -> None:
    """The run file, with paths that hold from anywhere."""
    tables = {table: found.values.get(table, {}) for table in TABLES if table in found.tables}
    write_file(folder / RUN_FILE, tables_to_toml(tables).encode())


# Seconds between looks at a run.
_PAUSE = 0.5


@dataclass(frozen=True, kw_only=True)
class LogsSettings(LogSettings):
    """What `dboost logs` takes."""

    required: ClassVar[tuple[str, ...]] = ("run",)

    run: Text | None = key(None, "run folder", positional=1)
    follow: Switch = key(False, "go on until the run ends")


def do_logs(settings: LogsSettings, console: Console) -> None:
    """Print the events."""
    folder = local_path(str(settings.run), "run").resolve()
    if not (folder / RUN_FILE).is_file():
        raise DataError(f"is no run folder: it holds no {RUN_FILE}", file=str(settings.run))
    for event in events(folder, settings.follow):
        fields = {name: value for name, value in event.items() if name not in ("event", "time")}
        console.event(str(event.get("event")), at=event.get("time"), **fields)
        if console.mode != "json":
            console.say(line(event))


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


@dataclass(frozen=True, kw_only=True)
class StopSettings(LogSettings):
    """What `dboost stop` takes."""

    required: ClassVar[tuple[str, ...]] = ("run",)

    run: Text | None = key(None, "run folder of a `dboost submit`", positional=1)


def do_stop(settings: StopSettings, console: Console) -> None:
    """Ask it to end."""
    folder, started = started_of(str(settings.run))
    said = PLACES[started["kind"]].stop(started)
    console.event("stopped", folder=str(folder), text=said)
    console.say(f"{said}; dboost resume {folder} goes on with the run")


COMMANDS = {
    "run": (RunSettings, do_run),
    "resume": (ResumeSettings, do_resume),
    "runs": (RunsSettings, do_list),
    "submit": (SubmitSettings, do_submit),
    "logs": (LogsSettings, do_logs),
    "stop": (StopSettings, do_stop),
}
