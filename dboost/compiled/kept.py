"""``njit``, with what is compiled kept on disk in a way that any number of processes can share.

Covers: the name of the file in which the code of a function for one kind of arguments is kept, and who removes it.
Does not cover: the folder (``dboost.kernel_cache``).

Numba numbers the files of a function and keeps in an index which arguments each number stands for. Two processes that
save at once can give one number to two kinds of arguments, and one that reads between the writing of the index and of a
file that an earlier version of the source left behind takes the old code for the new one. Here nothing is written that
two processes share: a file is named by what its code depends on, and says the same in its first lines.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import re
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from numba.core import caching

F = TypeVar("F", bound=Callable[..., Any])


class FilesByKey(caching.IndexDataCacheFile):
    """The files of one function, without an index.

    Parameters
    ----------
    cache_path : str
        The folder.
    filename_base : str
        Begins the name of each file: module, function, line and version of Python.
    source_stamp : tuple
        Time and size of the source file; code of another stamp is never loaded, and removed when code is saved.
    """

    def __init__(self, cache_path: str, filename_base: str, source_stamp: Any) -> None:
        super().__init__(cache_path, filename_base, source_stamp)
        self._base = filename_base
        self._stamped = _digest((numba.__version__, source_stamp))[:8]

    def save(self, key: Any, data: Any) -> None:
        """Keep the code for one kind of arguments; nobody ever sees a part of the file."""
        path = self._path(key)
        with self._open_for_write(path) as file:
            file.write(self._dump(self._says(key)))
            file.write(self._dump(data))
        old = re.compile(re.escape(self._base) + r"\.[0-9a-f]{8}-[0-9a-f]{16}\.nbc")
        for name in os.listdir(self._cache_path):
            if old.fullmatch(name) and not name.startswith(f"{self._base}.{self._stamped}-"):
                _remove(os.path.join(self._cache_path, name))

    def load(self, key: Any) -> Any:
        """The code for one kind of arguments, or None where it is not kept."""
        try:
            with open(self._path(key), "rb") as file:
                # Two keys of the same name would differ in what the file says, which therefore decides.
                return pickle.load(file) if pickle.load(file) == self._says(key) else None
        except FileNotFoundError:
            return None
        except Exception:
            # What is damaged may be read as anything, and is compiled again: a cache decides nothing.
            return None

    def flush(self) -> None:
        """Numba calls this to have everything compiled anew, which removing a file of this stamp does."""
        for name in os.listdir(self._cache_path):
            if name.startswith(f"{self._base}.{self._stamped}-"):
                _remove(os.path.join(self._cache_path, name))

    def _says(self, key: Any) -> Any:
        return numba.__version__, self._source_stamp, key

    def _path(self, key: Any) -> str:
        return os.path.join(self._cache_path, f"{self._base}.{self._stamped}-{_digest(key)[:16]}.nbc")


class KeptByKey(caching.FunctionCache):
    """What numba asks for the compiled code of a function."""

    def __init__(self, py_func: Any) -> None:
        super().__init__(py_func)
        self._cache_file = FilesByKey(self._cache_path, self._impl.filename_base, self._impl.locator.get_source_stamp())


def njit(cache: bool = False, **options: Any) -> Callable[[F], F]:
    """Numba's ``njit``, whose code is kept as this module says.

    Parameters
    ----------
    cache : bool
        Whether to keep the code.
    **options
        The others of ``numba.njit``.

    Returns
    -------
    callable
        The decorator.
    """

    def compiled(function: F) -> F:
        dispatcher: Any = numba.njit(**options)(function)
        if cache:
            dispatcher._cache = KeptByKey(function)
        return cast(F, dispatcher)

    return compiled


def _digest(of: Any) -> str:
    return hashlib.sha256(repr(of).encode()).hexdigest()


def _remove(path: str) -> None:
    try:
        os.remove(path)
    except FileNotFoundError:  # another process was first
        pass
