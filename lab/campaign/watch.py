"""What reading a file may not do: run something, write, or connect.

Covers: Python's audit events while a block runs. Does not cover: what C++ does by itself.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

RUNS = ("exec", "compile", "subprocess.Popen", "pickle.find_class", "ctypes.dlopen", "marshal.loads")
"""Events that run what somebody else wrote; with the prefixes below."""
PREFIXES = ("os.system", "os.exec", "os.posix_spawn", "os.fork", "os.spawn", "socket.connect", "shutil.")
CHANGES = ("os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.link", "os.symlink", "os.chmod", "os.truncate")
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

_seen: list[str] | None = None
_hooked = False


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    if _seen is None:
        return
    bad = event in RUNS or event in CHANGES or event.startswith(PREFIXES)
    if event == "open":
        # A file that is opened by its number was judged when it got that number.
        bad = isinstance(arguments[0], str | bytes) and bool((arguments[2] or 0) & WRITING)
    if bad:
        _seen.append(f"{event} {arguments!r}"[:200])


@contextmanager
def watched() -> Iterator[list[str]]:
    """Yield the list of what was run or written in the block; modules must have been imported before."""
    global _seen, _hooked
    if not _hooked:
        # An audit hook stays for the life of the process.
        sys.addaudithook(_hook)
        _hooked = True
    found: list[str] = []
    _seen = found
    try:
        yield found
    finally:
        _seen = None
