"""One policy for every path that is read or written: a local file, named in full or from the home folder.

Covers: ``~``, ``file:`` URLs, and the refusal of every other scheme. Does not cover: whether something is there
(``dboost.files.storage``, ``dboost.data``).

A URL of another scheme is refused, because taken as a path it is a folder called ``s3:`` in the working directory. The
refusal includes the form ``s3:/bucket/x``, which is what a path object makes of a URL.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import unquote

from dboost.errors import UsageError, type_name

PathLike = str | os.PathLike[str]

# The stores that are served (``stores``); every other path is local.
SCHEMES = ("s3", "gs", "gcs", "abfs", "abfss")
# `scheme:/...` and the chained form `scheme::...`; a scheme of one letter is the drive of a Windows path.
_SCHEME = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.\-]+):(?=[/:])", re.ASCII)
# `file:/x`, `file:///x`, `file://localhost/x`
_FILE = re.compile(r"file:(?://(?P<host>[^/]*))?(?P<path>/.*)", re.IGNORECASE | re.DOTALL)


def local_path(path: PathLike, what: str = "path") -> Path:
    """The local path that a user's text or path object means.

    `path`: A path, from the home folder where it begins with ``~``, or a ``file:`` URL (percent-encoded, as
    ``pathlib.Path.as_uri`` writes it).
    `what`: The parameter, for messages.
    Raises UsageError: For a URL of another scheme or of another host, text that no file system takes, or ``~`` where no
    home folder is known.
    """
    if not isinstance(path, str | os.PathLike) or not isinstance(text := os.fspath(path), str):
        raise UsageError(f"{what} is {type_name(path)}", hint="give a text or a path object")
    if not text or "\0" in text or "%00" in text and text.lower().startswith("file:"):
        raise UsageError(f"{what}={text!r} is no path", hint="give the name of a file or a folder")
    found = _SCHEME.match(text)
    if found is None:
        return _from_home(text, what)
    if found["scheme"].lower() != "file":
        served = found["scheme"].lower() in SCHEMES
        stores = ", ".join(f"{scheme}://" for scheme in SCHEMES)
        raise UsageError(
            f"{what} has the scheme {found['scheme']!r}, which is not supported" + (" here" if served else ""),
            file=text,
            hint=("give a local path: this is kept in no store" if served else f"give a local path, or {stores}")
            + f" (a local folder of this name is meant by './{found['scheme']}:')",
        )
    parts = _FILE.fullmatch(text)
    if parts is None or (parts["host"] or "localhost").lower() != "localhost":
        raise UsageError(f"{what} is a file URL of another host", file=text, hint="write file:///folder/name")
    return Path(unquote(parts["path"]))


def _from_home(text: str, what: str) -> Path:
    if not text.startswith("~"):
        return Path(text)
    full = os.path.expanduser(text)
    if full == text and text.split("/")[0] == "~":
        # Unexpanded it would be a folder called `~` in the working directory.
        raise UsageError(
            f"{what} begins with ~, but this user has no home folder",
            file=text,
            hint="set HOME, or write the full path",
        )
    return Path(full)
