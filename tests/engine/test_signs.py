"""Silence of workers as the driver counts it."""

from __future__ import annotations

from dboost.engine.dask.watchdog import LONGEST_STEP, Signs


def test_a_worker_is_silent_once_its_heartbeat_has_stood_still_for_long_enough():
    signs = Signs()
    for now in range(6):
        signs = signs.after({"a": 100.0 + now, "b": 50.0}, float(now))
    assert signs.silent(4.5) == {"b"}
    assert signs.silent(5.0) == set()
    assert signs.after({"a": 106.0, "b": 51.0}, 6.0).silent(0.5) == set()


def test_a_driver_that_was_stopped_itself_takes_nobody_for_silent():
    signs = Signs().after({"a": 1.0}, 0.0).after({"a": 1.0}, 3600.0)
    assert signs.silent(LONGEST_STEP) == set()


def test_a_worker_that_left_or_came_is_not_silent():
    signs = Signs().after({"a": 1.0}, 0.0).after({"b": 1.0}, 2.0)
    assert signs.silent(0.0) == set()
    assert signs.after({"a": 1.0, "b": 1.0}, 3.0).silent(0.5) == {"b"}
