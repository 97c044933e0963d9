"""Which files a path means when it is a pattern or a table of Delta Lake.

Covers: ``*``, ``?``, ``[...]`` and ``**`` in a path, here and in a store; the files of one version of a Delta table.
Does not cover: the files of a plain folder, and what is in them (``meaning``).
"""

from __future__ import annotations

import glob
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from dboost.data.meaning import each_once, files_below, is_hidden
from dboost.errors import DataError, UsageError
from dboost.files.stores import AnyPath, StorePath, any_path

_MAGIC = re.compile(r"[*?\[]")
# The parts of a pattern, and what those that are no text mean.
_SIGNS = re.compile(r"\*\*/|\*\*|\*|\?|\[!?[^]/]+\]|[^*?\[]+|\[")
_MEANINGS = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
DELTA_LOG = "_delta_log"


def matches(path: AnyPath) -> list[tuple[str, str]] | None:
    """(path, name) of every file that a pattern means, sorted; None where the path is no pattern.

    The name of a file is what follows the last folder before the first sign of the pattern. Files and folders whose
    names begin with ``_`` or ``.`` are never data.

    Raises DataError: No file fits.
    """
    if isinstance(path, StorePath):
        if not _MAGIC.search(path.key):
            return None
        root = _root(path.key)
        pattern = re.compile(regex_of(path.key))
        folder = StorePath(path.base, root, path.query)
        found = [one for one in folder.rglob("*") if pattern.fullmatch(one.key)]
        files = [(str(one), one.relative_to(folder).as_posix()) for one in found]
    else:
        text = str(path)
        if not _MAGIC.search(text) or path.exists():
            return None
        root = _root(text)
        here = [one for one in glob.glob(text, recursive=True, include_hidden=False) if not Path(one).is_dir()]
        files = [(one, Path(one).relative_to(root).as_posix() if root else one) for one in sorted(here)]
    files = [file for file in files if not any(map(is_hidden, file[1].split("/")))]
    if not files:
        raise DataError("no file fits the pattern", file=str(path), hint="quote it, so that no shell reads it first")
    return each_once(files)


def files_of_each(paths: Sequence[AnyPath], read: Sequence[str]) -> list[tuple[str, str]]:
    """(path, name) of the files that the paths of a list mean: files, folders, patterns, of the formats in `read`."""
    several: list[list[tuple[str, str]] | None] = []
    for path in paths:
        here = matches(path.absolute())
        if here is None:
            refuse_absent(path)
            here = files_below(path.absolute(), read) if path.is_dir() else None
        several.append(here)
    if not any(several):
        return [(str(path.absolute()), str(path)) for path in paths]
    # Names within several folders are one only as whole paths.
    found = []
    for path, here in zip(paths, several, strict=True):
        found += [str(path.absolute())] if here is None else [file for file, _ in here]
    return [(file, file) for file in found]


def refuse_absent(path: AnyPath) -> None:
    """Refuse a path at which nothing is."""
    if not path.exists():
        raise DataError("no such file or folder", file=str(path))


def _root(text: str) -> str:
    """The folder before the first sign of a pattern."""
    before = text[: _MAGIC.search(text).start()]  # type: ignore[union-attr]  # the callers looked
    return before.rpartition("/")[0]


def regex_of(pattern: str) -> str:
    """A pattern of paths as a regular expression: one star stays within a folder, two do not."""
    parts = []
    for sign in _SIGNS.findall(pattern):
        if sign in _MEANINGS:
            parts.append(_MEANINGS[sign])
        elif sign.startswith("[") and len(sign) > 2:
            inside = sign[1:-1].replace("\\", r"\\")
            parts.append(f"[^{inside[1:]}/]" if inside.startswith("!") else f"[{inside}]")
        else:
            parts.append(re.escape(sign))
    return "".join(parts)


def delta_files(folder: AnyPath, version: int | None = None) -> tuple[list[tuple[str, str]], int] | None:
    """(path, name) of the files of a Delta table (by default the newest), and its version; None where it is none."""
    if not (folder / DELTA_LOG).is_dir():
        return None
    try:
        from deltalake import DeltaTable
        from deltalake.exceptions import DeltaError
    except ImportError:
        raise UsageError(
            "the folder is a table of Delta Lake, which needs the package deltalake",
            file=str(folder),
            hint="pip install 'dboost[delta]'",
        ) from None
    try:
        table = DeltaTable(str(folder), version=version)
        found: list[Any] = sorted(table.file_uris())
    except (DeltaError, OSError, ValueError) as error:
        raise DataError(f"the table of Delta Lake cannot be read: {error}", file=str(folder)) from error
    root = str(folder).rstrip("/") + "/"
    names = [unquote(one.removeprefix("file://").removeprefix(root)) for one in found]
    if not names:
        raise DataError("the table of Delta Lake has no rows", file=str(folder))
    return [(str(any_path(folder) / name), name) for name in names], int(table.version())
