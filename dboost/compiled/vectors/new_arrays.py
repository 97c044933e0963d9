"""New arrays that are cheap to fill: side by side on large pages where the system has them."""

from __future__ import annotations

import math
import mmap
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Bytes of a large page; fewer bytes are not worth one.
_PAGE = 1 << 21
# Arrays begin at multiples of so many bytes.
_LINE = 64


def new_arrays(*wanted: tuple[int, Any], passing: bool = False) -> list[NDArray[Any]]:
    """Arrays of one dimension whose numbers are not set.

    To touch memory for the first time in pages of 4 KB can take longer than what the loops do with it. NumPy asks for
    large pages where an array has 4 MB, and gets whole ones between their boundaries: so the arrays share one piece of
    memory that begins at such a boundary.

    `wanted`: length and type of each. `passing`: whether they are let go of soon. The memory then goes back to the
    system: an allocator would keep what lies between arrays that stay.
    """
    sizes = [count * np.dtype(dtype).itemsize for count, dtype in wanted]
    total = sum(math.ceil(size / _LINE) * _LINE for size in sizes)
    if total < _PAGE:
        return [np.empty(count, dtype) for count, dtype in wanted]
    room = _mapped(total + _PAGE) if passing else np.empty(total + _PAGE, np.uint8)
    found, at = [], -room.ctypes.data % _PAGE
    for size, (_, dtype) in zip(sizes, wanted, strict=True):
        found.append(room[at : at + size].view(dtype))
        at += math.ceil(size / _LINE) * _LINE
    return found


def _mapped(size: int) -> NDArray[np.uint8]:
    """Memory straight from the system, on large pages."""
    if not hasattr(mmap, "MAP_PRIVATE"):
        return np.empty(size, np.uint8)
    found = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        found.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(found, np.uint8)
