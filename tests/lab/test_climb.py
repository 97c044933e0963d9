"""A peer on its ladder, without processes: which settings are run, what is bounded by what."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lab.benchmarks.climb import APART, Found, Run, climb, crossings, halfway
from lab.benchmarks.curve import TARGETS
from lab.benchmarks.measure import Case
from lab.benchmarks.peers import PEERS
from lab.benchmarks.peers.base import doubling, tightening
from lab.benchmarks.process import Failed, TimeUp

EPOCHS = doubling("epochs", 1, 1 << 13)
TOLERANCES = tightening("tol", -1, -5)


class Simulated:
    """A process whose runs take what `seconds` says of a setting, and leave the suboptimality that `level` says."""

    def __init__(self, seconds: Callable[[Any], float], level: Callable[[Any], float]) -> None:
        self.seconds, self.level = seconds, level
        self.about = {"version": "1", "layout": 0.0}
        self.now = 0.0
        self.last = 0.0
        self.asked: list[Any] = []

    def order(self, allowed: float, **order: Any) -> dict[str, Any]:
        rung = order["rung"]
        self.asked.append(rung)
        taken = self.seconds(rung)
        if taken > allowed:
            self.now += allowed
            raise TimeUp(f"no answer in {allowed:.1f} s")
        self.now += taken
        self.last = 1.0 + self.level(rung)
        return {"seconds": taken, "times": [taken], "peak": 0.0}


def climbed(process: Simulated, ladder: list[Any], limit: float, deadline: float = math.inf) -> Found:
    case = Case.__new__(Case)
    case.alpha, case.best, case.answer, case.at_null = 1.0, 1.0, Path("nowhere"), 2.0
    case.objective = lambda: process.last  # type: ignore[method-assign]
    peer = replace(PEERS["saga"], count="epochs")
    return climb(peer, process, case, ladder, limit, deadline, clock=lambda: process.now)  # type: ignore[arg-type]


def epochs(each: float, rate: float, fixed: float = 0.0) -> Simulated:
    """A run costs `fixed` and `each` an epoch, and its error falls by exp(-rate) an epoch."""
    return Simulated(lambda r: fixed + each * r["epochs"], lambda r: math.exp(-rate * r["epochs"]))


def test_a_climb_ends_at_the_last_target() -> None:
    found = climbed(epochs(0.01, 1.0), EPOCHS, 10.0)
    # for 1e-4 the first epoch says 11, to which a leap leads, for 1e-6 the ladder goes on
    assert [run.rung["epochs"] for run in found.runs] == [1, 8, 16] and not found.note
    assert not found.time(1.0, 1e-6).bound
    # the error is linear in the logarithm, as it is read
    assert found.time(1.0, 1e-4).seconds == pytest.approx(0.01 * math.log(1e4))


def test_no_run_is_begun_that_would_be_cut_off() -> None:
    process = epochs(0.1, 0.2, fixed=0.05)
    found = climbed(process, EPOCHS, 4.0)
    # for 1e-4 the first says 55 epochs, of which 33 fit into 3.4 s: a leap, and then those
    assert len(process.asked) == len(found.runs), "none was cut off"
    assert [run.rung["epochs"] for run in found.runs] == [1, 8, 33]
    assert found.time(1.0, 1e-4).bound and found.time(1.0, 1e-4).seconds == pytest.approx(3.35)
    assert "used up" in found.note


def test_as_many_iterations_as_fit_are_run_in_place_of_too_many() -> None:
    process = epochs(0.1, 0.2)
    found = climbed(process, EPOCHS, 6.0)
    last = found.runs[-1]
    assert last.rung["epochs"] in (50, 51) and last.seconds[0] <= 6.0
    # with 51 epochs it is within 1e-4, which doubling alone would not have told
    assert not found.time(1.0, 1e-4).bound
    assert found.time(1.0, 1e-6).bound and found.time(1.0, 1e-6).seconds == last.seconds[0]


def test_one_run_does_not_say_what_every_run_takes() -> None:
    # 2.3 s for an epoch, of which 2 are fixed: by it alone a second one would not fit into the 4 s
    found = climbed(epochs(0.3, 0.1, fixed=2.0), EPOCHS, 4.0)
    assert [run.rung["epochs"] for run in found.runs] == [1, 2, 3, 4]
    assert found.time(1.0, 1e-4).bound and found.time(1.0, 1e-4).seconds == pytest.approx(3.2)
    # where little is fixed, the second is cut off, and that was it
    process = epochs(1.9, 0.1, fixed=0.1)
    found = climbed(process, EPOCHS, 3.2)
    assert [rung["epochs"] for rung in process.asked] == [1, 2] and len(found.runs) == 1
    assert found.time(1.0, 1e-4).seconds == pytest.approx(2.0) and "cut off" in found.note


def test_a_bound_is_no_more_than_the_longest_run_that_ended() -> None:
    # a setting between 1e-2 and 1e-3 might end in 5 s and be good enough
    process = Simulated(lambda r: 1.0 if r["tol"] >= 1e-2 else 99.0, lambda r: 0.1)
    found = climbed(process, TOLERANCES, 10.0)
    assert found.time(1.0, 1e-4).bound and found.time(1.0, 1e-4).seconds == 1.0
    assert "cut off at 10 s" in found.note
    first = climbed(Simulated(lambda r: 99.0, lambda r: 0.1), TOLERANCES, 10.0)
    assert first.time(1.0, 1e-2).seconds == 10.0 and first.time(1.0, 1e-2).bound


def test_where_a_tolerance_is_cut_off_the_one_halfway_is_tried() -> None:
    process = Simulated(lambda r: 1.0 if r["tol"] > 1e-2 else 99.0, lambda r: r["tol"])
    found = climbed(process, [{"tol": 1.0}, {"tol": 1e-3}], 10.0)
    assert [run.rung["tol"] for run in found.runs] == pytest.approx([1.0, math.sqrt(1e-3)])
    assert halfway({"tol": 1e-2, "a": 1}, {"tol": 1e-4, "a": 1}) == {"tol": pytest.approx(1e-3), "a": 1}
    assert halfway({"tol": 1e-2, "a": 1}, {"tol": 1e-4, "a": 2}) is None
    assert halfway({"a": 1}, {"a": 2}) is None, "no whole number is between"


def test_hopeless_progress_is_followed_by_leaps_up_to_the_longest_run() -> None:
    process = epochs(0.01, 1e-4)
    found = climbed(process, EPOCHS, 20.0)
    assert [rung["epochs"] for rung in process.asked] == [1, 8, 64, 512, 1699]
    assert found.time(1.0, 1e-2).bound and found.time(1.0, 1e-2).seconds == pytest.approx(16.99)


def test_after_a_run_that_was_not_foreseen_to_take_so_long_a_shorter_one_is_tried() -> None:
    process = Simulated(lambda r: 0.01 * r["epochs"] ** 2, lambda r: 0.5)
    found = climbed(process, EPOCHS, 20.0)
    cut = [rung["epochs"] for rung in process.asked if 0.01 * rung["epochs"] ** 2 > 20.0]
    assert len(cut) == 1 and len(found.runs) == len(process.asked) - 1
    assert found.runs[-1].rung == process.asked[-1] and "cut off" in found.note


def test_a_leap_over_a_target_is_closed_by_settings_between() -> None:
    # nothing for 100 epochs, then fast: what a trend cannot foresee
    late = Simulated(lambda r: 0.01 * r["epochs"], lambda r: math.exp(-0.2 * max(0, r["epochs"] - 100)))
    found = climbed(late, EPOCHS, 20.0)
    counts = [run.rung["epochs"] for run in found.runs]
    assert counts == sorted(counts) and not found.time(1.0, 1e-6).bound
    for i in crossings(found, 1.0):
        reached = any(found.runs[i].objective <= 1.0 + t < found.runs[i - 1].objective for t in TARGETS[1:])
        assert not reached or counts[i] <= APART * counts[i - 1]
    assert found.time(1.0, 1e-6).seconds == pytest.approx(1.69, rel=0.5)


def test_a_target_that_was_just_missed_is_not_the_end() -> None:
    # the first run foresees 1e-4 after 7 epochs; there it is 1.1e-4, and another epoch is no run of its own
    process = Simulated(lambda r: 0.01 * r["epochs"], lambda r: max(math.exp(-1.4 * r["epochs"]), 8e-4 / r["epochs"]))
    found = climbed(process, EPOCHS, 20.0)
    assert [run.rung["epochs"] for run in found.runs][:3] == [1, 7, 10]
    assert not found.time(1.0, 1e-4).bound


def test_a_ladder_that_ends_leaves_its_longest_run_as_a_bound() -> None:
    found = climbed(Simulated(lambda r: 1.0, lambda r: 0.1), TOLERANCES, 10.0)
    assert found.time(1.0, 1e-4).seconds == 1.0 and found.time(1.0, 1e-4).bound
    assert "finest setting" in found.note


def test_a_problem_whose_time_is_used_up_says_so() -> None:
    found = climbed(Simulated(lambda r: 3.0, lambda r: 0.1), TOLERANCES, 10.0, deadline=8.0)
    assert "used up" in found.note and len(found.runs) == 2 and found.time(1.0, 1e-4).bound


def test_an_error_keeps_what_was_measured_before() -> None:
    def level(rung: Any) -> float:
        if rung["tol"] < 0.05:
            raise Failed("ValueError: no")
        return 0.005

    found = climbed(Simulated(lambda r: 1.0, level), TOLERANCES, 10.0)
    assert "ValueError" in found.note
    assert found.time(1.0, 1e-2).seconds == 1.0 and found.time(1.0, 1e-6).bound


def test_a_worse_first_half_does_not_end_the_second() -> None:
    # two ways of running, one after the other, as lightning has
    ladder = [{"epochs": 1, "fast": True}, {"epochs": 2, "fast": True}, *doubling("epochs", 1, 64, fast=False)]
    process = Simulated(lambda r: 0.1 * r["epochs"], lambda r: 0.1 if r["fast"] else math.exp(-0.5 * r["epochs"]))
    found = climbed(process, ladder, 10.0)
    assert found.runs[-1].rung == {"epochs": 32, "fast": False} and not found.note


def test_only_settings_beside_a_crossing_are_repeated() -> None:
    levels = (0.5, 0.1, 5e-3, 2e-3, 5e-5, 5e-7)
    found = Found("saga", [Run({}, 1.0 + level, [1.0], [0.0]) for level in levels])
    assert crossings(found, 1.0) == [1, 2, 3, 4, 5]
    assert crossings(Found("saga", [Run({}, 1.0 + 1e-8, [1.0], [0.0])]), 1.0) == [0]
