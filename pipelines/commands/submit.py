"""``dboost submit``: put a run on a cluster and leave it there; it is followed, stopped and resumed by its folder."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dboost.errors import UsageError
from dboost.files.paths import local_path
from dboost.files.storage import check_writable, write_file

from ..cluster import check as check_cluster
from ..cluster import cluster_overrides, kind_of, request_of
from ..config import ClusterSettings, LogSettings, Switch, key, tables_to_toml
from ..console import Console
from ..places.registry import PLACES
from ..runs.execute import read
from ..runs.folder import RUN_FILE
from ..runs.lock import holder_of
from ..runs.run_file import TABLES, RunFile
from ..runs.stages import check
from .run import RunFileSettings

STARTED = "submitted.json"


@dataclass(frozen=True, kw_only=True)
class SubmitSettings(RunFileSettings, ClusterSettings, LogSettings):
    """What `dboost submit` takes."""

    dry_run: Switch = key(False, "show what would be run and sent; do nothing")


SETTINGS = SubmitSettings


def run(settings: SubmitSettings, console: Console) -> int:
    """Start the run; the command ends when it has begun."""
    found = read(str(settings.file), [*(settings.set or ()), *cluster_overrides(settings)])
    check(found)
    if not settings.trust:
        found.refuse_reaching()
    cluster = found.cluster()
    check_cluster(cluster)
    place, request = PLACES[kind_of(cluster)], request_of(cluster)
    if settings.dry_run:
        with tempfile.TemporaryDirectory() as beside:
            folder = Path(beside, found.name)
            folder.mkdir()
            _write(found, folder)
            console.text(place.shown(request, folder).replace(str(folder), str(_target(settings, found))))
        return 0
    folder = _target(settings, found)
    if holder_of(folder) is not None:
        raise UsageError("a process works in this folder", file=str(folder), hint="dboost stop it, or wait for it")
    check_writable(folder)
    folder.mkdir(parents=True, exist_ok=True)
    _write(found, folder)
    started = {"kind": kind_of(cluster), **place.start(request, folder)}
    write_file(folder / STARTED, json.dumps(started).encode())
    console.event("submitted", folder=str(folder), **started)
    console.say(f"submitted: {folder}   next: dboost logs {folder} --follow, dboost stop {folder}")
    return 0


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


def _target(settings: SubmitSettings, found: RunFile) -> Path:
    if settings.out is not None:
        return local_path(settings.out, "out").resolve()
    return (found.folder / "runs" / found.name).resolve()


def _write(found: RunFile, folder: Path) -> None:
    """The run file, with paths that hold from anywhere."""
    tables = {table: found.values.get(table, {}) for table in TABLES if table in found.tables}
    write_file(folder / RUN_FILE, tables_to_toml(tables).encode())
