"""A file that is replaced again and again, with the content before the last one kept, both under a checksum.

Covers: the frame around the content, the two generations, and which of them is read. Does not cover: what is in them
(``dboost.estimators.checkpoint``).

``name`` is the newest generation and ``name.previous`` the one before it. A file begins with one line of text: its
form, the size and the SHA-256 of what follows.
"""

from __future__ import annotations

import io
import os
import re
from dataclasses import dataclass

from dboost.errors import ModelFormatError, StorageError
from dboost.files.paths import PathLike
from dboost.files.storage import sha256_bytes, write_file, writing
from dboost.files.stores import AnyPath, StorePath, any_path
from dboost.files.unfinished import clear_abandoned

# The first line has a form, a size of at most 20 digits and 64 digits of the checksum.
_MAX_LINE = 160
_LINE = re.compile(rb"(?P<form>[a-z-]+ \d+) (?P<size>\d{1,20}) (?P<sha256>[0-9a-f]{64})\n")


@dataclass(frozen=True)
class Generation:
    """A sound generation."""

    data: bytes  # The content.
    file: AnyPath  # Where it was read.
    damage: str = ""  # Why it is not the newest one; empty for the newest.


def previous_of(path: PathLike) -> AnyPath:
    """Where the generation before the newest is."""
    newest = any_path(path).resolve()
    return newest.with_name(newest.name + ".previous")


def write_generation(path: PathLike, form: str, data: bytes) -> None:
    """Make `data` the newest generation of a form and version, or leave all untouched (StorageError)."""
    line = f"{form} {len(data)} {sha256_bytes(data)}\n".encode()
    write_file(path, line, data, keep=previous_of(path))


def read_generation(path: PathLike, form: str, hint: str) -> Generation | None:
    """The newest sound generation; None where there is none yet, a ModelFormatError where none is sound."""
    newest, previous = any_path(path).resolve(), previous_of(path)
    if not isinstance(newest, StorePath):
        clear_abandoned(newest)
    if not newest.exists():
        # A writer never takes the name away: whoever deleted the file wants to start again.
        return None
    found = _read(newest, form)
    if isinstance(found, bytes):
        return Generation(found, newest)
    if previous.exists():
        older = _read(previous, form)
        if isinstance(older, bytes):
            return Generation(older, previous, found)
        found += f"; the one before it, {previous.name}, {older}"
    raise ModelFormatError(found, file=os.fspath(newest), hint=hint)


def restore(found: Generation, path: PathLike) -> None:
    """Give the generation that was read the name of the newest, so that a damaged one is never kept in its place."""
    if found.damage:
        target = any_path(path).resolve()
        if isinstance(target, StorePath) and isinstance(found.file, StorePath):
            found.file.copy_to(target)
            return
        with writing(target):
            os.replace(found.file, target)


def _read(file: AnyPath, form: str) -> bytes | str:
    """The content, or what is wrong with the file; no more is read than its first line claims."""
    try:
        with io.BytesIO(file.read_bytes()) if isinstance(file, StorePath) else open(file, "rb") as handle:
            line = handle.readline(_MAX_LINE)
            found = _LINE.fullmatch(line)
            if found is None:
                return _foreign(line, form)
            if found["form"].decode() != form:
                return f"is {found['form'].decode()!r}, this version reads {form!r}"
            size, there = int(found["size"]), handle.seek(0, os.SEEK_END) - len(line)
            handle.seek(len(line))
            if there != size:
                return f"is damaged: it holds {there} bytes of {size}"
            data = handle.read(size)
    except IsADirectoryError as error:
        raise StorageError("is a folder, expected a file", file=os.fspath(file)) from error
    except OSError as error:
        raise StorageError(f"cannot read: {error.strerror or error}", file=os.fspath(file)) from error
    if sha256_bytes(data) != found["sha256"].decode():
        return "is damaged: its content does not match its checksum"
    return data


def _foreign(line: bytes, form: str) -> str:
    name = form.split()[0]
    # Versions 1 and 2 were a safetensors file: eight bytes of length, and a JSON object.
    if name.encode() in line or line[8:9] == b"{":
        return f"is damaged, or a {name} of an earlier version of dboost"
    return f"is no {name}, or damaged in its first line"
