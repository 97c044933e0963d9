"""What a command has done so far, kept beside its output until that is finished, so that `dboost resume` goes on."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dboost.errors import UsageError
from dboost.files import store_folders
from dboost.files.documents import to_toml
from dboost.files.storage import check_writable, sha256_bytes, write_file, write_folder
from dboost.files.stores import AnyPath, any_path
from dboost.files.unfinished import FOLDER, beside_of, clear_abandoned

from .config import ClusterSettings, LogSettings, read_toml
from .console import Console
from .inputs import naming_sources
from .runs.folder import TABLES, remove
from .runs.lock import LOCK, hold_lock, holder_of

# Beside the output while it is not finished: its progress, the model so far, and the command.
UNFINISHED = ".unfinished"
# In it, the parts of a prediction that stand; the file of a fit, and the folder of several.
PARTS, FIT, SEVERAL = "parts", "fit", "several"
# What is to become the output, and the digest of its marker, written before it takes its name.
_MADE, _SAVED = "made", "saved"


@contextlib.contextmanager
def finished_folder(out: str, marker: str, force: bool, work: Path) -> Iterator[Path]:
    """A name in the work folder for a folder to be made there; as a whole it then becomes the output."""
    made = work / _MADE
    remove(made)
    yield made
    with write_folder(out, marker=marker, force=force) as folder:
        for part in made.iterdir():
            shutil.move(part, folder / part.name)
        note_saved(work, (folder / marker).read_bytes())


def note_saved(work: Path, marker: bytes) -> None:
    """Keep with the work that its output is complete, and about to take its name; `marker` is what its marker holds."""
    write_file(work / _SAVED, sha256_bytes(marker).encode())


def is_saved(settings: Any, command: str, marker: str) -> bool:
    """Whether an output that is there was made by this command, whose work is still beside it.

    Its process was killed after it had given the output its name. The work may then put it there once more.
    """
    out = any_path(str(settings.out), "out").resolve()
    work = work_folder(out)
    try:
        saved = (work / _SAVED).read_text()
        found = sha256_bytes((store_folders.current(out) / marker).read_bytes())
    except OSError:
        return False
    return saved == found and _same_work(work / f"{command}.toml", _values(settings))


def work_folder(out: AnyPath) -> Path:
    """Where the work for an output is kept until that is finished: beside it, or for a store in the user's folder."""
    if isinstance(out, Path):
        return out.with_name(out.name + UNFINISHED)
    home = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    return home / "dboost" / f"{out.name}-{sha256_bytes(str(out).encode())[:12]}{UNFINISHED}"


@contextlib.contextmanager
def resumable_work_folder(settings: Any, command: str, console: Console) -> Iterator[Path]:
    """A folder beside the output, for what is to survive a break; it goes when the work is done."""
    out = any_path(str(settings.out), "out").resolve()
    work = work_folder(out)
    check_writable(work)
    clear_abandoned(work)
    values = _values(settings)
    work.mkdir(parents=True, exist_ok=True)
    try:
        with hold_lock(work, say=console.say):
            if settings.force and not _same_work(work / f"{command}.toml", values):
                for left in work.iterdir():
                    if left.name != LOCK:
                        remove(left)
            lines = [
                f"{name} = {to_toml(value)}" for name, value in values.items() if value is not None and name != "trust"
            ]
            write_file(work / f"{command}.toml", ("\n".join(lines) + "\n").encode())
            goes_on = f"the same command, or `dboost resume {out}`," if isinstance(out, Path) else "the same command"
            console.left = f"what was done is kept in {work}: {goes_on} goes on"
            with naming_sources(settings, work / TABLES):
                yield work
    except BaseException:
        # what has done no round yet leaves nothing
        begun = any((work / name).exists() for name in (FIT, SEVERAL)) or any((work / PARTS).glob("part-*"))
        if not begun and holder_of(work) is None:
            shutil.rmtree(work, ignore_errors=True)
            console.left = ""
        raise
    discard(work)


def discard(work: Path) -> None:
    """Delete a work folder; one that is killed meanwhile leaves none that looks like work to go on with."""
    aside = beside_of(work, FOLDER)
    try:
        os.rename(work, aside)
    except OSError:
        aside = work
    shutil.rmtree(aside, ignore_errors=True)


def _values(settings: Any) -> dict[str, Any]:
    """The settings of a command that may go on from another working folder."""
    values = {item.name: getattr(settings, item.name) for item in dataclasses.fields(settings)}
    places = {name: any_path(str(values[name]), name) for name in ("out", "data")}
    return values | {"out": str(places["out"].resolve()), "data": str(places["data"].absolute())}


def _same_work(file: Path, values: dict[str, Any]) -> bool:
    """Whether the saved command equals this one, but for the settings of cluster and log."""
    other = {item.name for kind in (ClusterSettings, LogSettings) for item in dataclasses.fields(kind)}
    mine = {name: to_toml(value) for name, value in values.items() if value is not None and name not in other}
    try:
        kept = read_toml(str(file), "settings file")
    except UsageError:
        return False
    return mine == {name: to_toml(value) for name, value in kept.items() if name not in other}
