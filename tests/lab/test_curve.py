"""Reading times from curves, with what a cut-off leaves unknown; ratios and means of bounds."""

from __future__ import annotations

import math

import pytest

from lab.benchmarks.curve import (
    Ratio,
    Time,
    fastest,
    median,
    ratio,
    read,
)

BEST = 2.0


def at(*points: tuple[float, float]) -> list[tuple[float, float]]:
    """A curve from (seconds, suboptimality)."""
    return [(seconds, BEST * (1.0 + level)) for seconds, level in points]


def test_the_first_step_that_is_good_enough_counts() -> None:
    curve = at((1.0, 1e-1), (2.0, 5e-3), (3.0, 1e-5))
    assert read(curve, BEST, 1e-2, 3.0, whole_runs=False) == Time(2.0)
    assert read(curve, BEST, 1e-4, 3.0, whole_runs=False) == Time(3.0)


def test_between_two_whole_runs_the_logarithm_is_linear() -> None:
    curve = at((1.0, 1e-1), (3.0, 1e-3))
    found = read(curve, BEST, 1e-2, 3.0, whole_runs=True)
    assert found.seconds == pytest.approx(2.0) and not found.bound


def test_a_longer_run_that_is_worse_is_not_a_way_there() -> None:
    curve = at((1.0, 1e-3), (2.0, 1e-1), (3.0, 1e-5))
    found = read(curve, BEST, 1e-4, 3.0, whole_runs=True)
    assert found.seconds == pytest.approx(2.0)


def test_what_was_not_reached_is_a_lower_bound() -> None:
    for whole_runs in [False, True]:
        assert read(at((1.0, 1e-1), (2.0, 1e-3)), BEST, 1e-6, 7.5, whole_runs) == Time(7.5, bound=True)
        assert read([], BEST, 1e-6, 7.5, whole_runs) == Time(7.5, bound=True)
        # a later round of the same setting was slower than the limit says
        assert read(at((1.0, 1e-1), (8.0, 1e-3)), BEST, 1e-6, 7.5, whole_runs) == Time(8.0, bound=True)


def test_a_median_of_a_cut_off_run_is_a_bound() -> None:
    assert median([Time(3.0), Time(1.0), Time(2.0)]) == Time(2.0)
    assert median([Time(1.0), Time(2.0)]) == Time(1.5)
    assert median([Time(1.0), Time(2.0), Time(9.0, bound=True)]) == Time(2.0)
    assert median([Time(1.0), Time(9.0, bound=True)]).bound
    assert math.isnan(median([]).seconds)


def test_a_ratio_to_a_bound_is_a_bound() -> None:
    assert ratio(Time(6.0), Time(2.0)) == Ratio(3.0)
    assert ratio(Time(6.0, bound=True), Time(2.0)) == Ratio(3.0, bound=True)
    assert ratio(Time(6.0), Time(2.0, bound=True)) is None
    assert ratio(Time(math.nan, bound=True), Time(2.0)) is None


def test_the_fastest_is_the_smallest_bound_or_not() -> None:
    assert fastest([("a", Time(3.0)), ("b", Time(2.0))]) == ("b", Time(2.0))
    # b was cut off before a finished: it might have been the faster
    assert fastest([("a", Time(3.0)), ("b", Time(2.0, bound=True))]) == ("b", Time(2.0, bound=True))
    assert fastest([("a", Time(2.0)), ("b", Time(2.0, bound=True))]) == ("a", Time(2.0))
    assert fastest([("a", Time(math.nan))]) is None
