"""One process at a time in a run folder.

Covers: the lock, who holds it, and taking over from a process that has ended.
Does not cover: files that are being written (``dboost.files.unfinished``).

The file is locked for as long as its process lives, and says which one that is. The system lifts the lock however the
process ends, so a lock that can be had belongs to nobody on this machine. A shared folder may not tell of the locks of
other machines: what names another host is believed until its holder takes the name out again, at its end.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dboost.errors import StorageError, UsageError
from dboost.files.unfinished import LOCKS

if LOCKS:
    import fcntl

LOCK = "lock"


@contextlib.contextmanager
def held(folder: Path, take_over: bool = False) -> Iterator[None]:
    """Hold the lock of a run folder that is there.

    Parameters
    ----------
    folder : pathlib.Path
    take_over : bool
        Whether what names another host is known to have ended, as where a cluster's manager starts a run anew and
        never has two of them.

    Raises
    ------
    UsageError
        When another process holds it.
    StorageError
        When the file cannot be written.
    """
    path = folder / LOCK
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise StorageError(f"cannot write: {error.strerror or error}", file=str(path)) from error
    try:
        if not _locked(descriptor):
            raise _in_use(folder, _read(descriptor))
        holder = _read(descriptor)
        if holder and holder.get("host") != socket.gethostname() and not take_over:
            raise _in_use(folder, holder)
        _write(descriptor, json.dumps(myself()))
        try:
            yield
        finally:
            _write(descriptor, "")
    finally:
        os.close(descriptor)


def myself() -> dict[str, Any]:
    """Host, process and start time of this process, as a lock names them."""
    return {"host": socket.gethostname(), "pid": os.getpid(), "since": time.strftime("%Y-%m-%dT%H:%M:%S%z")}


def holder_of(folder: Path) -> dict[str, Any] | None:
    """Who holds the lock of a folder; None where nobody does."""
    try:
        descriptor = os.open(folder / LOCK, os.O_RDWR)
    except OSError:
        return None
    try:
        free = _locked(descriptor)
        holder = _read(descriptor)
        elsewhere = bool(holder) and holder.get("host") != socket.gethostname()
        return (holder or {"host": "unknown"}) if not free or elsewhere else None
    finally:
        os.close(descriptor)


def _locked(descriptor: int) -> bool:
    if not LOCKS:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        # a file system without locks: what the file says is all there is to go by
        return True
    return True


def _read(descriptor: int) -> dict[str, Any]:
    text = os.pread(descriptor, 1 << 12, 0)
    with contextlib.suppress(ValueError):
        found = json.loads(text)
        if isinstance(found, dict):
            return found
    return {}


def _write(descriptor: int, text: str) -> None:
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, text.encode(), 0)


def _in_use(folder: Path, holder: dict[str, Any]) -> UsageError:
    host, pid, since = (holder.get(name, "unknown") for name in ("host", "pid", "since"))
    here = host == socket.gethostname()
    hint = "wait for it, or end it" if here else "wait for it, or give take_over if that process has ended"
    return UsageError(f"process {pid} on host {host} works in this folder since {since}", file=str(folder), hint=hint)
