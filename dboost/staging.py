"""Folders that are being filled, beside the name they will have; those of ended processes are cleared.

Covers: making such a folder, telling whether its process still runs, removing it.
Does not cover: what is written, or giving the folder its name (``dboost.storage``, ``dboost.data.prepare``).

A process that is killed leaves its folder behind. The next one that writes the same output removes it, but never that
of a process that still runs: each holds a lock on its folder, which the system takes back when the process ends in
whatever way. A number of a process would not do: it is given again, and means another process in another container.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

SUFFIX = ".partial"
_TOKEN_BYTES = 6
# Another process may take the folder for a dead one's in the moment before its lock; it is then made again.
_ATTEMPTS = 20


@contextlib.contextmanager
def staged(target: Path) -> Iterator[Path]:
    """A new and empty folder beside `target`, to be filled and renamed; it is removed if it is left by an exception.

    Parameters
    ----------
    target : pathlib.Path
        What the folder will be called; its parent exists. What ended processes have left for it is removed first.

    Raises
    ------
    OSError
        When the folder cannot be made.
    """
    clear_abandoned(target)
    folder, lock = _made(target)
    try:
        yield folder
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    finally:
        if lock is not None:
            os.close(lock)


def clear_abandoned(target: Path) -> None:
    """Remove the folders that ended processes have left beside `target`; what cannot be told or removed stays."""
    theirs = re.compile(rf"\.{re.escape(target.name)}\.[0-9a-f]{{{2 * _TOKEN_BYTES}}}{re.escape(SUFFIX)}")
    with contextlib.suppress(OSError), os.scandir(target.parent) as entries:
        found = [entry.path for entry in entries if theirs.fullmatch(entry.name)]
        for path in found:
            with contextlib.suppress(OSError):
                lock = _lock(Path(path))
                if lock is not None:
                    try:
                        shutil.rmtree(path, ignore_errors=True)
                    finally:
                        os.close(lock)


def _made(target: Path) -> tuple[Path, int | None]:
    """A new folder for `target` and its lock; no lock where the system has none, and then nobody clears the folder."""
    for _ in range(_ATTEMPTS):
        folder = target.with_name(f".{target.name}.{secrets.token_hex(_TOKEN_BYTES)}{SUFFIX}")
        folder.mkdir()
        try:
            lock = _lock(folder)
        except (BlockingIOError, FileNotFoundError):
            continue
        except OSError:
            return folder, None
        if lock is None or folder.exists():
            return folder, lock
        os.close(lock)
    raise FileNotFoundError(2, "the folder that was made for the output was removed again and again", str(target))


def _lock(folder: Path) -> int | None:
    """A descriptor with the lock of a folder; None where the system has no such locks.

    Raises
    ------
    BlockingIOError
        Another process, or another thread, has it.
    OSError
        There is no such folder, or its file system has no locks.
    """
    try:
        import fcntl
    except ImportError:  # Windows
        return None
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor
