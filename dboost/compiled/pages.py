"""New arrays that are cheap to fill: side by side on large pages where the system has them."""

from __future__ import annotations

import math
import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Bytes of a large page; fewer bytes are not worth one.
_PAGE = 1 << 21
# Arrays begin at multiples of so many bytes.
_LINE = 64


def new_arrays(*wanted: tuple[int, Any]) -> list[NDArray[Any]]:
    """Arrays of one dimension whose numbers are not set.

    To touch memory for the first time in pages of 4 KB can take longer than what the loops do with it. NumPy asks for
    large pages where an array has 4 MB, and gets whole ones between their boundaries: so the arrays share one piece of
    memory that begins at such a boundary.

    Parameters
    ----------
    wanted : (int, dtype)
        Length and type of each.
    """
    total = sum(_bytes(*one) for one in wanted)
    if total < _PAGE:
        return [np.empty(count, dtype) for count, dtype in wanted]
    room = np.empty((total // _PAGE + 2) * _PAGE, np.uint8)
    return _cut(room, -room.ctypes.data % _PAGE, *wanted)


class Room:
    """Memory for the arrays of many blocks, which several threads make.

    Arrays that stay lie in one stretch: one for each block would end on a large page of its own that it does not fill.
    What a block needs for a moment is used again for the next one of the same thread.

    Parameters
    ----------
    nbytes : int
        Bytes of the arrays that will stay, about; what does not fit has memory of its own.
    arrays : int
        Number of those arrays.
    """

    def __init__(self, nbytes: int, arrays: int) -> None:
        (self._stretch,) = new_arrays((nbytes + arrays * _LINE, np.uint8))
        self._used = 0
        self._lock = threading.Lock()
        self._own = threading.local()

    def staying(self, *wanted: tuple[int, Any]) -> list[NDArray[Any]]:
        """As `new_arrays`."""
        total = sum(_bytes(*one) for one in wanted)
        with self._lock:
            at = self._used
            if at + total > self._stretch.shape[0]:
                return new_arrays(*wanted)
            self._used += total
        return _cut(self._stretch, at, *wanted)

    def passing(self, count: int, dtype: Any) -> NDArray[Any]:
        """An array whose memory the next such call of this thread takes again."""
        own: NDArray[np.uint8] | None = getattr(self._own, "memory", None)
        if own is None or own.shape[0] < count * np.dtype(dtype).itemsize:
            # let go of the old one first
            self._own.memory = None
            (own,) = new_arrays((_bytes(count, dtype), np.uint8))
            self._own.memory = own
        return own[: count * np.dtype(dtype).itemsize].view(dtype)


def _bytes(count: int, dtype: Any) -> int:
    """Bytes from the beginning of an array to that of the next."""
    return math.ceil(count * np.dtype(dtype).itemsize / _LINE) * _LINE


def _cut(room: NDArray[np.uint8], at: int, *wanted: tuple[int, Any]) -> list[NDArray[Any]]:
    found = []
    for count, dtype in wanted:
        found.append(room[at : at + count * np.dtype(dtype).itemsize].view(dtype))
        at += _bytes(count, dtype)
    return found
