"""Arrays side by side: their lengths and types, that none reaches into another, and where they begin."""

from __future__ import annotations

import os

import numpy as np
import pytest

from dboost.compiled.vectors.new_arrays import new_arrays


@pytest.mark.parametrize("passing", [False, True])
@pytest.mark.parametrize("count", [0, 1, 1001, 400_000])
def test_arrays_are_as_asked_for_and_apart(count, passing):
    wanted = [(count, np.float64), (count, np.int32), (3, np.float32), (count + 5, np.int32)]
    found = new_arrays(*wanted, passing=passing)
    assert [(array.shape, array.dtype) for array in found] == [((n,), np.dtype(kind)) for n, kind in wanted]
    for number, array in enumerate(found):
        array[:] = number
    assert all((array == number).all() for number, array in enumerate(found))
    assert all(array.flags.c_contiguous and array.ctypes.data % array.itemsize == 0 for array in found)


@pytest.mark.parametrize("passing", [False, True])
def test_many_bytes_begin_at_a_large_page(passing):
    values, rows = new_arrays((300_000, np.float64), (300_000, np.int32), passing=passing)
    assert values.ctypes.data % (1 << 21) == 0
    assert rows.ctypes.data - values.ctypes.data < 300_000 * 8 + 64


def resident():
    """Bytes of this process in memory."""
    with open("/proc/self/statm", encoding="ascii") as told:
        return int(told.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="the system does not tell what is in memory")
def test_memory_of_passing_arrays_goes_back_to_the_system():
    """Also where arrays that stay were made after them, on top of which an allocator would keep the gap."""
    before, mib = resident(), 1 << 20
    kept = []
    for _ in range(12):
        (passing,) = new_arrays((5 * mib, np.uint8), passing=True)
        passing[:] = 1
        kept.append(np.ones(mib, np.uint8))
        del passing
    assert resident() - before < (12 + 10) * mib
