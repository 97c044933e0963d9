"""Arrays side by side: their lengths and types, that none reaches into another, and where they begin."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from dboost.compiled.pages import Room, new_arrays


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


def test_a_room_holds_arrays_of_several_threads_apart():
    counts = [0, 1, 17, 1000, 3, 100_000, 64, 250_000]
    room = Room(sum(12 * count for count in counts), 2 * len(counts))

    def fill(number):
        rows, values = room.staying((counts[number], np.int32), (counts[number], np.float64))
        rows[:], values[:] = number, number
        return rows, values

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(fill, range(len(counts))))
    for number, (rows, values) in enumerate(found):
        assert rows.shape == values.shape == (counts[number],) and rows.dtype == np.int32 and values.dtype == np.float64
        assert (rows == number).all() and (values == number).all()
    memory = {id(array.base) for pair in found for array in pair if array.size}
    assert len(memory) == 1


def test_what_does_not_fit_a_room_has_memory_of_its_own():
    room = Room(800, 1)
    (first,), (second,) = room.staying((100, np.float64)), room.staying((100, np.float64))
    first[:], second[:] = 1.0, 2.0
    assert (first == 1.0).all() and (second == 2.0).all() and not np.shares_memory(first, second)


def test_passing_memory_is_used_again_by_the_same_thread_only():
    room = Room(0, 0)
    first = room.passing(1000, np.int64)
    assert np.shares_memory(first, room.passing(500, np.int64))
    assert not np.shares_memory(first, room.passing(2000, np.int64))
    with ThreadPoolExecutor(1) as pool:
        assert not np.shares_memory(room.passing(10, np.int64), pool.submit(room.passing, 10, np.int64).result())
