"""Where compiled loops are kept between processes, settled before numba looks for a place.

Covers: ``~`` in the variables that name the folder, a user without a home folder, and a place where nothing can be
written. Does not cover: what is compiled (``dboost.compiled``, ``dboost.warm``).

Left to itself, numba takes ``~`` as it stands where it cannot be resolved, which makes a folder of this name in the
working directory, and refuses to compile where it can write nowhere. It reads ``NUMBA_CACHE_DIR`` when it is imported,
so this is settled when dboost is.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

VARIABLE = "NUMBA_CACHE_DIR"
_USER_WIDE = "XDG_CACHE_HOME"
# Begins the name of a folder that is removed when its process ends.
_PASSING = "dboost-kernels-"


def settle(package: Path) -> None:
    """Give numba a folder for the compiled loops of `package` where it would find none, or the wrong one."""
    wanted = choice(package, os.environ)
    if wanted is None:
        return
    if wanted == "":
        import atexit
        import tempfile
        import warnings

        from dboost.errors import DboostWarning

        wanted = tempfile.mkdtemp(prefix=_PASSING)
        # A child of this process inherits the folder, and leaves it to its parent.
        atexit.register(_remove, wanted, os.getpid())
        warnings.warn(
            f"no folder can be written for compiled loops, so every start compiles them again; set {VARIABLE} to one",
            DboostWarning,
            stacklevel=3,
        )
    os.environ[VARIABLE] = wanted
    if "numba" in sys.modules:  # which has read the variable before
        sys.modules["numba"].config.CACHE_DIR = wanted


def lasting() -> bool:
    """Whether compiled loops outlive this process."""
    return not Path(os.environ.get(VARIABLE, "")).name.startswith(_PASSING)


def choice(package: Path, environment: Mapping[str, str]) -> str | None:
    """The folder that numba is to be given.

    Parameters
    ----------
    package : path
        Beside its source files numba keeps compiled loops, where it can.
    environment : mapping of str to str

    Returns
    -------
    str or None
        None where numba finds the place by itself; empty where there is none.

    Raises
    ------
    UsageError
        When the variable names a URL that is not served.
    """
    given = environment.get(VARIABLE, "")
    if given:
        full = os.path.expanduser(given)
        if not _unresolved(full):
            if ":" in given:
                from dboost.files.paths import local_path

                # numba would make a local folder called `s3:`.
                full = str(local_path(given, VARIABLE))
            return None if full == given else full
    elif _writable(package / "__pycache__"):
        return None
    full = os.path.expanduser(environment.get(_USER_WIDE) or "~/.cache")
    wide = Path(full, "numba")
    return "" if _unresolved(full) or not _writable(wide) else str(wide)


def _unresolved(path: str) -> bool:
    """Whether `~` is left because this user has no home folder."""
    return path == "~" or path.startswith("~/")


def _writable(folder: Path) -> bool:
    """Whether a file can be written in a folder, or in the nearest one above it that is there."""
    nearest = next(one for one in (folder.absolute(), *folder.absolute().parents) if one.exists())
    if not os.access(nearest, os.W_OK):
        return False
    import tempfile

    # What the system says of the rights is not all: file servers have rules of their own, and disks are full.
    try:
        with tempfile.TemporaryFile(dir=nearest):
            return True
    except OSError:
        return False


def _remove(folder: str, owner: int) -> None:
    if os.getpid() == owner:
        import shutil

        shutil.rmtree(folder, ignore_errors=True)
