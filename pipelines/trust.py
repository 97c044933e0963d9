"""What a file may not do by itself, since it may come from anybody: reach hosts, start programs, write elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dboost.errors import UsageError
from dboost.files.paths import local_path
from dboost.files.stores import is_store

# Key -> what it does. The kinds of file have no other key of these names.
REACHES = {
    "scheduler": "names a host, whose answers run as code",
    "hosts": "names machines on which programs are started",
    "options": "may name hosts and programs of a cluster",
    "to": "starts programs outside of this process and its own workers",
    "tls": "says which hosts are believed",
}
# Values of them that reach nothing.
HARMLESS = {"to": ("local",), "tls": ("temporary",)}
# Keys of what is written, which stays below the folder of the file, or that of the work.
WRITES = ("out", "write_contract", "home")
# An option of an address that says which host a store is on.
_HOST_OF_STORE = "endpoint_override="


def asked(values: Mapping[str, Any], *folders: Path) -> tuple[str, str]:
    """The first key that needs consent, and what it does; two empty texts where none does.

    `values`: those of a file, without their tables.
    `*folders`: below which it may write; relative paths are relative to the first.
    """
    for name, value in values.items():
        if value is None or value in HARMLESS.get(name, ()):
            continue
        if name in REACHES:
            return name, REACHES[name]
        if name in WRITES and not _below(str(value), folders):
            return name, f"writes outside of {folders[-1]}"
        if isinstance(value, str) and is_store(value) and _HOST_OF_STORE in value:
            return name, "names a host in the address of a store"
    return "", ""


def refuse(values: Mapping[str, Any], *folders: Path, file: str, where: str = "") -> None:
    """Refuse a file that needs a consent which was not given."""
    name, does = asked(values, *folders)
    if name:
        raise UsageError(
            f"the key {where}{name} of a file {does}",
            file=file,
            hint="give trust=True if you know who wrote the file, or give that key yourself",
        )


def _below(path: str, folders: tuple[Path, ...]) -> bool:
    if is_store(path):
        return False
    place = (folders[0] / local_path(path)).resolve()
    return any(place.is_relative_to(folder.resolve()) for folder in folders)
