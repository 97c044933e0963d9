"""Arrays side by side: their lengths and types, that none reaches into another, and where they begin."""

from __future__ import annotations

import numpy as np
import pytest

from dboost.compiled.pages import new_arrays


@pytest.mark.parametrize("count", [0, 1, 1001, 400_000])
def test_arrays_are_as_asked_for_and_apart(count):
    wanted = [(count, np.float64), (count, np.int32), (3, np.float32), (count + 5, np.int32)]
    found = new_arrays(*wanted)
    assert [(array.shape, array.dtype) for array in found] == [((n,), np.dtype(kind)) for n, kind in wanted]
    for number, array in enumerate(found):
        array[:] = number
    assert all((array == number).all() for number, array in enumerate(found))
    assert all(array.flags.c_contiguous and array.ctypes.data % array.itemsize == 0 for array in found)


def test_many_bytes_begin_at_a_large_page():
    values, rows = new_arrays((300_000, np.float64), (300_000, np.int32))
    assert values.ctypes.data % (1 << 21) == 0
    assert rows.ctypes.data - values.ctypes.data < 300_000 * 8 + 64
