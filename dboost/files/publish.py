"""A finished folder takes the name of an older one, in one moment where the system can do that.

Covers: ``publish`` for local folders. Does not cover: filling the folder (``unfinished``), stores (``store_folders``).

A rename cannot replace a folder that holds something. Linux can exchange two names instead: whoever looks sees the old
folder or the new one, and a process that is killed leaves one of them under the name. Elsewhere the old folder is set
aside first, and a kill between the two renames leaves it there.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import shutil
from pathlib import Path

# From linux/fs.h and fcntl.h.
_RENAME_EXCHANGE, _AT_FDCWD = 2, -100
# What a kernel or a file system says that knows no exchange; NFS and old kernels are among them.
_UNKNOWN = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP)


def publish(folder: Path, target: Path) -> None:
    """Give a finished folder beside `target` its name, and delete what had it; after an OSError that still has it."""
    if not target.exists():
        os.rename(folder, target)
        return
    if exchanged(folder, target):
        shutil.rmtree(folder, ignore_errors=True)
        return
    aside = folder.with_suffix(".old")
    os.rename(target, aside)
    try:
        os.rename(folder, target)
    except OSError:
        with contextlib.suppress(OSError):
            os.rename(aside, target)
        raise
    shutil.rmtree(aside, ignore_errors=True)


def exchanged(one: Path, other: Path) -> bool:
    """Exchange two names in one moment; False where the system cannot."""
    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None) if os.name == "posix" else None
    if call is None:
        return False
    if call(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) == 0:
        return True
    code = ctypes.get_errno()
    if code in _UNKNOWN:
        return False
    raise OSError(code, os.strerror(code), str(other))
