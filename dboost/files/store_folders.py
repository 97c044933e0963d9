"""Folders in a store that appear whole or not at all, and their copies here.

Covers: the publication of a folder, where its content is, copies in both directions.
Does not cover: single objects (``dboost.files.stores``), what is in a folder.

A store has no rename. A folder that is written there is a prefix with one subfolder of a new name, its *generation*,
and one object beside it, ``_current.json``, that names the generation and comes last: a reader sees the old folder or
the new one. Objects that somebody else put under a prefix, without such an object, are read as they lie.
"""

from __future__ import annotations

import atexit
import json
import re
import secrets
import shutil
import tempfile
from functools import cache
from pathlib import Path

from dboost.errors import DataError
from dboost.files.paths import PathLike
from dboost.files.stores import AnyPath, StorePath, any_path, is_store

POINTER = "_current.json"
_FORM = "dboost pointer 1"


def current(path: AnyPath) -> AnyPath:
    """Where the content of a folder is: its newest generation, or itself; a DataError where its name is damaged."""
    if isinstance(path, Path):
        return path
    pointer = path / POINTER
    try:
        content = pointer.read_bytes()
    except FileNotFoundError:
        return path
    try:
        document = json.loads(content)
        name = document["folder"] if document["format"] == _FORM else None
    except (ValueError, KeyError, TypeError):
        name = None
    if not isinstance(name, str) or not _is_generation(name):
        raise DataError("the object that names the newest content is damaged", file=str(pointer), hint="write it again")
    return path / name


def generation(name: str | None = None) -> str:
    """The name of a new generation, or of the one that belongs to a digest."""
    return f"g-{name[:12] if name else secrets.token_hex(6)}"


def is_free(target: StorePath) -> bool:
    """Whether nothing lies under a prefix but generations that nothing names, which are what killed writers left."""
    return all(_is_generation(one.name) for one in target.iterdir())


def _is_generation(name: str) -> bool:
    return re.fullmatch(r"g-[0-9a-f]{12}", name) is not None


def publish(target: StorePath, name: str) -> None:
    """Make a generation that is complete the content of a folder; the one before it is deleted."""
    before = current(target)
    document = {"format": _FORM, "folder": name}
    (target / POINTER).write_bytes(json.dumps(document).encode())
    if isinstance(before, StorePath) and before.key not in (target.key, (target / name).key):
        before.remove_below()


def upload(folder: Path, target: StorePath) -> None:
    """Put all files of a local folder under a prefix."""
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            (target / file.relative_to(folder).as_posix()).write_bytes(file.read_bytes())


def download(source: StorePath, folder: Path) -> None:
    """Put all objects below a prefix into a local folder; none, or a key that leads outside, is a DataError."""
    found = list(source.rglob("*"))
    if not found:
        raise DataError("there is no such folder in the store", file=str(source))
    for one in found:
        name = one.relative_to(source)
        if ".." in name.parts or name.is_absolute():
            raise DataError("the key leads outside its folder", file=str(one))
        target = folder.joinpath(*name.parts)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(one.read_bytes())


def local_copy(path: PathLike) -> PathLike:
    """A folder that can be read as local files: itself, or what a store has there, copied once in a process."""
    if not is_store(path):
        return path
    found = any_path(path)
    assert isinstance(found, StorePath)
    source = current(found)
    assert isinstance(source, StorePath)
    if source.key == found.key:  # no generations: it may have changed since
        return _copy(source, secrets.token_hex(6))
    return _copy(source, source.name)


@cache
def _copy(source: StorePath, version: str) -> str:
    folder = Path(tempfile.mkdtemp(prefix="dboost-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    target = folder / (source.parent.name if _is_generation(source.name) else source.name or "bucket")
    download(source, target)
    return str(target)
