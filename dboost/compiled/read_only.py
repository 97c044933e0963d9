"""Arrays as loops are given them that only read.

numba compiles a loop for arrays that can be written and once more for those that cannot, which data comes as by chance:
what pandas, Arrow or a memory map hands out cannot.

Covers: one form of both. Does not cover: arrays that loops write.
"""

from __future__ import annotations

from typing import Any, TypeVar

from numpy.typing import NDArray

A = TypeVar("A", bound=NDArray[Any])


def read_only(array: A) -> A:
    """The array, without a copy, as one that cannot be written."""
    view = array.view()
    view.flags.writeable = False
    return view
