"""``njit``, with what is compiled kept on disk in a way that processes, clones and machines can share.

Covers: what the file is called in which the code of a loop for one kind of arguments is kept, in which folders it is
looked for, for which processors code is made that is carried to other machines, and who removes it. Does not cover:
what the code of a loop comes from (``content``), the folder of a user (``dboost.kernel_cache``).

Numba numbers the files of a function, keeps in an index which arguments each number stands for, and goes by the source
file of a function. Two processes that save at once can give one number to two kinds of arguments; a clone, whose files
have another path, compiles all anew; and a loop is not compiled again when another file changes from which it takes a
function. Here nothing is written that two processes share: a file is named by what its code comes from, and says the
same in its first lines.
"""

from __future__ import annotations

import functools
import os
import pickle
import platform
import re
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar, cast

import llvmlite.binding
import numba
from numba.core import caching

from dboost.compiled.content import content, digest, root_of

F = TypeVar("F", bound=Callable[..., Any])

CARRIED = Path(__file__).resolve().parents[1] / "loops"
"""Loops that came with the package, of a wheel or an image: looked at first, and never written by a fit."""

# Seconds for which code stays that another state of the source has left: a branch that is left and taken up again finds
# its own, and a folder that several clones share does not grow for ever.
_STAYS = 7 * 86400.0

PORTABLE: dict[str, tuple[str, tuple[str, ...]]] = {
    "x86_64": (
        "x86-64-v3",
        ("avx", "avx2", "bmi", "bmi2", "cx16", "f16c", "fma", "lzcnt", "movbe", "popcnt", "sahf", "sse4.2", "xsave"),
    ),
    "aarch64": ("generic", ("neon",)),
}
"""For each kind of machine the processor that carried code is made for, and what one must have to run it."""


def portable() -> tuple[str, str] | None:
    """The processor that carried code is made for, as numba's variables name it, where this one can run it."""
    name, needed = PORTABLE.get(_machine(), ("", ()))
    own = llvmlite.binding.get_host_cpu_features()
    return (name, "") if name and all(own.get(feature) for feature in needed) else None


def _machine() -> str:
    return {"AMD64": "x86_64", "arm64": "aarch64"}.get(platform.machine(), platform.machine())


def _own_target(codegen: Any) -> tuple[str, ...]:
    """What code depends on beside the source and the types: versions and the processor."""
    _, processor, features = codegen.magic_tuple()
    return *_VERSIONS, processor, features


@functools.cache
def _targets(codegen: Any) -> tuple[tuple[str, ...], ...]:
    """What code may be made for that runs here: this processor, or one that has less."""
    less = portable() if numba.config.CPU_NAME is None else None
    own = _own_target(codegen)
    return (own,) if less is None else (own, (*_VERSIONS, *less))


_PYTHON = f"{sys.implementation.cache_tag}{getattr(sys, 'abiflags', '')}"
_VERSIONS = _PYTHON, numba.__version__, llvmlite.__version__, sys.platform, _machine()


class FilesByKey:
    """The files of one loop in a folder, without an index.

    `name`: begins the name of each file: module and function. `stamp`: what the code comes from; code of another stamp
    is never loaded.
    """

    def __init__(self, folder: str | Path, name: str, stamp: str) -> None:
        self._folder, self._name, self._stamp = Path(folder), name, stamp
        self._begin = f"{name}.{digest(stamp)[:8]}-"

    def save(self, key: Any, data: Any) -> None:
        """Keep the code for one kind of arguments; nobody ever sees a part of the file."""
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._path(key)
        passing = path.with_name(f"{path.name}.{os.getpid()}.tmp")
        try:
            passing.write_bytes(pickle.dumps(self._says(key)) + caching.dumps(data))
            os.replace(passing, path)
        finally:
            passing.unlink(missing_ok=True)
        for old in self._all():
            if not old.name.startswith(self._begin) and _age(old) > _STAYS:
                old.unlink(missing_ok=True)

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

    def any(self) -> bool:
        """Whether code of this stamp is kept, for whatever arguments."""
        return any(path.name.startswith(self._begin) for path in self._all())

    def flush(self) -> None:
        """Numba calls this to have everything compiled anew, which removing the files of this stamp does."""
        for path in self._all():
            if path.name.startswith(self._begin):
                path.unlink(missing_ok=True)

    def _all(self) -> Iterator[Path]:
        return self._folder.glob(f"{self._name}.*-*.nbc")

    def _says(self, key: Any) -> Any:
        return self._stamp, key

    def _path(self, key: Any) -> Path:
        return self._folder / f"{self._begin}{digest(key)[:16]}.nbc"


class _Code(caching.CompileResultCacheImpl):
    """How compiled code becomes bytes and comes back, which needs none of numba's places for it."""

    def __init__(self, loop: Any) -> None:
        self._lineno = loop.__code__.co_firstlineno
        # the one thing that a warning about code that cannot be kept asks of its place
        self._locator = type("Locator", (), {"_py_file": loop.__code__.co_filename})()


class _Types:
    """The types that a loop is compiled for: in words, and who beside us they are from."""

    def __init__(self, signature: Any) -> None:
        classes = [one for one in self._classes(signature) if root_of(one.__module__) != "numba"]
        self.others = frozenset(root_of(one.__module__) for one in classes)
        # the names of two types of numba can be the same where their classes are not
        self.said = f"{signature}{[f'{one.__module__}.{one.__qualname__}' for one in classes]}"

    def _classes(self, types: Any) -> Iterator[type]:
        for one in types:
            yield getattr(one, "instance_class", type(one))
            yield from self._classes(getattr(one, "types", ()))


class KeptByKey(caching.FunctionCache):
    """What numba asks for the compiled code of a function; nothing is looked at before the first time it asks."""

    def __init__(self, loop: Any) -> None:
        self._loop = loop
        self._name = re.sub(r"[^\w.]", "", f"{loop.__module__}.{loop.__qualname__}")
        self._impl = _Code(loop)
        self._stamps: dict[frozenset[str], str] = {}
        self.enable()

    @functools.cached_property
    def _written(self) -> str:
        """The folder that the user names, else the one beside the source file, else that of all code of the user."""
        return str(numba.config.CACHE_DIR or caching.CompileResultCacheImpl(self._loop).locator.get_cache_path())

    @property
    def cache_path(self) -> str:
        """The folder that is written."""
        return self._written

    def kept(self) -> bool:
        """Whether code of this loop is on disk, for whatever arguments."""
        return any(self._files(folder).any() for folder in self._folders())

    def _folders(self) -> tuple[str | Path, ...]:
        """Where code is looked for; who names a processor gets what was compiled for that one, here."""
        return (self._written,) if numba.config.CPU_NAME is not None else (CARRIED, self._written)

    def flush(self) -> None:
        """Remove what is kept of this loop, so that it is compiled anew."""
        self._files(self._written).flush()

    def _files(self, folder: str | Path, others: frozenset[str] = frozenset()) -> FilesByKey:
        if others not in self._stamps:
            self._stamps[others] = content(self._loop, others)
        return FilesByKey(folder, self._name, self._stamps[others])

    def _load_overload(self, sig: Any, target_context: Any) -> Any:
        if not self._enabled:
            return None
        types = _Types(sig)
        for folder in self._folders():
            for target in _targets(target_context.codegen()):
                data = self._files(folder, types.others).load((types.said, target))
                if data is not None:
                    return self._impl.rebuild(target_context, data)
        return None

    def _save_overload(self, sig: Any, data: Any) -> None:
        if self._enabled and self._impl.check_cachable(data):
            types = _Types(sig)
            key = types.said, _own_target(data.codegen)
            self._files(self._written, types.others).save(key, self._impl.reduce(data))


def njit(cache: bool = False, **options: Any) -> Callable[[F], F]:
    """Numba's ``njit``, whose code is kept as this module says.

    `cache`: whether to keep the code. `**options`: the others of ``numba.njit``. Returns the decorator.
    """

    def compiled(function: F) -> F:
        # nobody calls a loop by its address, which a wrapper of its own would be compiled for
        dispatcher: Any = numba.njit(no_cfunc_wrapper=True, **options)(function)
        if cache:
            dispatcher._cache = KeptByKey(function)
        return cast(F, dispatcher)

    return compiled


def kept(dispatcher: Any) -> bool:
    """Whether code of a loop is on disk, for whatever arguments."""
    return bool(dispatcher._cache.kept())


def _age(path: Path) -> float:
    try:
        return time.time() - path.stat().st_mtime
    except FileNotFoundError:  # another process was first
        return 0.0
