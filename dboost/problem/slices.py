"""How the driver's own work is cut into parts for threads: by the data alone, so that the bits are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["equal_loads", "equal_slices", "parts_of"]

# Operations of a part, and the most parts that work is cut into.
PART = 200_000
_MOST_PARTS = 8


def parts_of(cost: float) -> int:
    """Into how many parts work of so many operations is cut."""
    return min(max(int(cost // PART), 1), _MOST_PARTS)


def equal_slices(size: int, count: int) -> list[slice]:
    """0 to `size` in `count` slices of about equal length."""
    return [slice(size * i // count, size * (i + 1) // count) for i in range(count)]


def equal_loads(pointer: NDArray[np.int64], count: int) -> list[slice]:
    """The columns of a block in at most `count` slices that hold about as many values each."""
    inner = np.searchsorted(pointer, np.linspace(pointer[0], pointer[-1], count + 1)[1:-1])
    edges = np.unique(np.concatenate([[0], inner, [pointer.shape[0] - 1]])).tolist()
    return [slice(a, b) for a, b in zip(edges[:-1], edges[1:], strict=True)]
