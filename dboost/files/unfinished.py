"""Files and folders that are being written: their names, the lock that says that their writer lives, what is left.

Covers: a new file or folder beside the one that it will become, and removing those that killed processes left.
Does not cover: the writing itself, and giving the whole its name (``dboost.files.storage``,
``dboost.data.prepared.prepare``).

A process locks what it writes until it is done, and the system lifts the lock when the process ends, however it ends.
The number of a process would not do: it is given again, and means another process in another container.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import IO

try:
    import fcntl
except ImportError:  # Windows has no such locks: what killed processes left stays there
    fcntl = None  # type: ignore[assignment]

LOCKS = os.name != "nt"
"""Whether files can be locked for as long as a process lives."""

FILE, FOLDER = ".tmp", ".partial"
"""How the names of unfinished files and folders end."""

_TOKEN_BYTES = 6
# Another process may take a folder for a dead one's in the moment before its lock; it is then made again.
_ATTEMPTS = 20


def beside_of(target: Path, suffix: str = FILE) -> Path:
    """A new name in the folder of `target`, which `clear_abandoned` knows."""
    return target.with_name(f".{target.name}.{secrets.token_hex(_TOKEN_BYTES)}{suffix}")


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


@contextlib.contextmanager
def own_folder(target: Path) -> Iterator[Path]:
    """A new, locked folder beside a resolved target, removed after an exception; ended processes' ones are cleared."""
    clear_abandoned(target)
    folder, descriptor = _made(target)
    try:
        yield folder
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _made(target: Path) -> tuple[Path, int | None]:
    """A new folder for `target`, and a descriptor that holds its lock, if there are locks."""
    for _ in range(_ATTEMPTS):
        folder = beside_of(target, FOLDER)
        folder.mkdir()
        if not LOCKS:
            return folder, None
        with contextlib.suppress(FileNotFoundError):
            descriptor = _opened_folder(folder)
            if _lock(descriptor, wait=True) and folder.exists():
                return folder, descriptor
            os.close(descriptor)
    raise FileNotFoundError(2, "the folder that was made for the output was removed again and again", str(target))


def _opened_folder(path: str | Path) -> int:
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)


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


def clear_abandoned(target: Path) -> list[str]:
    """Delete what killed processes left beside a resolved target, but nothing of living ones; the names."""
    token = f"[0-9a-f]{{{2 * _TOKEN_BYTES}}}"
    pattern = re.compile(rf"\.{re.escape(target.name)}\.{token}({re.escape(FILE)}|{re.escape(FOLDER)})")
    cleared: list[str] = []
    if not LOCKS or not target.parent.is_dir():
        return cleared
    with contextlib.suppress(OSError), os.scandir(target.parent) as entries:
        for entry in entries:
            found = pattern.fullmatch(entry.name)
            folder = found is not None and found[1] == FOLDER
            right = entry.is_dir(follow_symlinks=False) if folder else entry.is_file(follow_symlinks=False)
            if found is not None and right and _delete_unlocked(entry.path, folder):
                cleared.append(entry.name)
    return cleared


def _delete_unlocked(path: str, folder: bool) -> bool:
    try:
        # Shared file systems lock files only where they are open for writing.
        descriptor = _opened_folder(path) if folder else os.open(path, os.O_RDWR)
    except OSError:
        return False
    try:
        if not _lock(descriptor, wait=False):
            return False
        if folder:
            shutil.rmtree(path)
        else:
            os.unlink(path)
        return True
    except OSError:
        return False
    finally:
        os.close(descriptor)
