"""Files and folders that are being written: their names, the lock that says that their writer lives, and the rest.

Covers: new files and folders beside the one that they will become, and what killed processes left of such.
Does not cover: the writing itself (``dboost.storage``).

A process locks what it writes until it is done, and the system lifts the lock when the process ends, however it ends.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
from pathlib import Path
from typing import IO

try:
    import fcntl
except ImportError:  # Windows has no such locks: what killed processes left stays there
    fcntl = None  # type: ignore[assignment]

LOCKS = os.name != "nt"
"""Whether files and folders can be locked for as long as a process lives."""


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
    """Lock an open file or folder until it is closed; False where another process holds it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        # A file system without locks: nobody can tell who lives, and nothing is cleared.
        return wait
    return True


def own_folder(target: Path) -> tuple[Path, int | None]:
    """A new folder beside `target`, and the descriptor whose closing lifts this process's lock on it."""
    while True:
        beside = beside_of(target)
        beside.mkdir()
        if not LOCKS:
            return beside, None
        descriptor: int | None = None
        with contextlib.suppress(FileNotFoundError):
            descriptor = os.open(beside, os.O_RDONLY)
            _lock(descriptor, wait=True)
        if descriptor is not None and beside.exists():
            return beside, descriptor
        if descriptor is not None:
            os.close(descriptor)


def clear_abandoned(target: Path) -> list[str]:
    """Delete what processes that were killed while they wrote `target` left beside it.

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
            if pattern.fullmatch(entry.name) and not entry.is_symlink() and _delete_unlocked(entry.path):
                cleared.append(entry.name)
    return cleared


def _delete_unlocked(path: str) -> bool:
    try:
        # Shared file systems lock what is open for writing only, and a folder cannot be.
        how = os.O_RDONLY if os.path.isdir(path) else os.O_RDWR
        descriptor = os.open(path, how | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        if not _lock(descriptor, wait=False):
            return False
        if os.path.isdir(path):
            shutil.rmtree(path, ignore_errors=True)
        else:
            with contextlib.suppress(OSError):
                os.unlink(path)
        return not os.path.exists(path)
    finally:
        os.close(descriptor)
