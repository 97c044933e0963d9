"""Reading times from curves, with what a cut-off leaves unknown; ratios and means of bounds."""

from __future__ import annotations

import math

import pytest

from lab.benchmarks.curve import (
    Ratio,
    Time,
    fastest,
    geometric_mean,
    median,
    named,
    ratio,
    read,
    short,
    suboptimality,
)

BEST = 2.0


def at(*points: tuple[float, float]) -> list[tuple[float, float]]:
    """A curve from (seconds, suboptimality)."""
    return [(seconds, BEST * (1.0 + level)) for seconds, level in points]


STEPS = at((1.0, 1e-1), (2.0, 5e-3), (3.0, 1e-5))
READ = {
    "the first step that is good enough": (STEPS, 1e-2, False, 2.0),
    "a later one for a finer target": (STEPS, 1e-4, False, 3.0),
    "between two whole runs the logarithm is linear": (at((1.0, 1e-1), (3.0, 1e-3)), 1e-2, True, 2.0),
    "a longer run that is worse is not a way there": (at((1.0, 1e-3), (2.0, 1e-1), (3.0, 1e-5)), 1e-4, True, 2.0),
    "a first run that is good enough is not shortened": (at((1.5, 1e-7)), 1e-2, True, 1.5),
    "an exact optimum after no number": ([(1.0, math.inf), (2.0, BEST)], 1e-4, False, 2.0),
}


def test_the_time_to_a_target_is_read_from_a_curve() -> None:
    for name, (curve, target, whole_runs, seconds) in READ.items():
        assert read(curve, BEST, target, 3.0, whole_runs) == Time(pytest.approx(seconds, rel=1e-12)), name
    assert 1.0 <= read([(1.0, math.inf), (2.0, BEST)], BEST, 1e-4, 2.0, whole_runs=True).seconds <= 2.0
    assert suboptimality(BEST * (1.0 - 1e-12), BEST) == 0.0


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


def test_a_mean_with_a_bound_is_a_bound() -> None:
    assert geometric_mean([Ratio(2.0), Ratio(8.0)]) == Ratio(pytest.approx(4.0))
    found = geometric_mean([Ratio(2.0), Ratio(8.0, bound=True)])
    assert found is not None and found.bound
    assert geometric_mean([]) is None


def test_numbers_in_words() -> None:
    assert [named(target) for target in (1e-2, 1e-4, 1e-6)] == ["1e-2", "1e-4", "1e-6"]
    assert [short(value) for value in (0.0123, 0.5, 12.34, 456.7, math.nan)] == ["0.012", "0.50", "12.3", "457", "-"]
    assert str(Time(1.0, bound=True)) == "> 1.00"
    # a peer that never ran has no bound either
    assert str(Time(float("nan"), bound=True)) == "-"
