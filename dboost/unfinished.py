"""Files that are being written: their names, the lock that says that their writer lives, and what is left of others.

Covers: a new file beside the one that it will become, and the files that killed processes left.
Does not cover: the writing itself (``dboost.storage``), or folders.

A process locks what it writes until it is done, and the system lifts the lock when the process ends, however it ends.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
from pathlib import Path
from typing import IO

try:
    import fcntl
except ImportError:  # Windows has no such locks: what killed processes left stays there
    fcntl = None  # type: ignore[assignment]

LOCKS = os.name != "nt"
"""Whether files can be locked for as long as a process lives."""


def beside_of(target: Path) -> Path:
    """A new name in the folder of `target`, which `clear_abandoned` knows."""
    return target.with_name(f".{target.name}.{secrets.token_hex(6)}.tmp")


def own_file(target: Path) -> tuple[Path, IO[bytes]]:
    """A new file beside `target`, and its handle: it is locked until that is closed."""
    while True:
        beside = beside_of(target)
        handle = open(beside, "xb")
        if not LOCKS:
            return beside, handle
        try:
            _lock(handle.fileno(), wait=True)
            # Between the two lines above, another process may have taken the file for an abandoned one.
            if beside.exists():
                return beside, handle
        except BaseException:
            beside.unlink(missing_ok=True)
            handle.close()
            raise
        handle.close()


def _lock(descriptor: int, *, wait: bool) -> bool:
    """Lock an open file until it is closed; False where another process holds it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        # A file system without locks: nobody can tell who lives, and nothing is cleared.
        return wait
    return True


def clear_abandoned(target: Path) -> list[str]:
    """Delete the files that processes which were killed while they wrote `target` left beside it.

    What a living process writes, on any machine that shares the locks of the folder, is left alone.

    Parameters
    ----------
    target : pathlib.Path
        Resolved.

    Returns
    -------
    list of str
        The names that were deleted.
    """
    pattern = re.compile(rf"\.{re.escape(target.name)}\.[0-9a-f]{{12}}\.tmp")
    cleared: list[str] = []
    if not LOCKS or not target.parent.is_dir():
        return cleared
    with contextlib.suppress(OSError), os.scandir(target.parent) as entries:
        for entry in entries:
            if pattern.fullmatch(entry.name) and entry.is_file(follow_symlinks=False) and _delete_unlocked(entry.path):
                cleared.append(entry.name)
    return cleared


def _delete_unlocked(path: str) -> bool:
    try:
        # Shared file systems lock only what is open for writing.
        descriptor = os.open(path, os.O_RDWR)
    except OSError:
        return False
    try:
        if _lock(descriptor, wait=False):
            os.unlink(path)
            return True
        return False
    except OSError:
        return False
    finally:
        os.close(descriptor)
