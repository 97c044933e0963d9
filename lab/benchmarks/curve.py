"""Time to a suboptimality, read from a curve of (seconds, objective), with what a time limit leaves unknown.

Covers: ``Time``, reading a curve made of steps of one fit or of whole runs, ratios and geometric means of times that
may be lower bounds. Does not cover: measuring.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

TARGETS = (1e-2, 1e-4, 1e-6)
Curve = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Time:
    """Seconds, exact or a lower bound."""

    seconds: float
    # Whether it took longer than that: the run was cut off, or its ladder of settings ended.
    bound: bool = False

    def __str__(self) -> str:
        bound = self.bound and math.isfinite(self.seconds)
        return f"{'> ' if bound else ''}{short(self.seconds)}"


def named(target: float) -> str:
    """A suboptimality in words: 1e-4."""
    return f"1e{round(math.log10(target))}"


def short(value: float) -> str:
    """A number with two or three figures and no exponent."""
    if not math.isfinite(value):
        return "-"
    size = abs(value)
    decimals = 0 if size >= 100.0 else 1 if size >= 10.0 else 2 if size >= 0.1 else 3
    return f"{value:.{decimals}f}"


def suboptimality(objective: float, best: float) -> float:
    """(P - P*) / P*, not below zero."""
    return max(0.0, (objective - best) / best)


def read(curve: Curve, best: float, target: float, limit: float, whole_runs: bool) -> Time:
    """Seconds until the suboptimality is at most `target`.

    `curve`: in any order. A run that was cut off is not in it. `best`: the optimum P*. `limit`: seconds beyond which
    nothing is known; the bound when the target was not reached. `whole_runs`: whether the points are whole runs with
    other settings: settings between two of them exist, and the logarithm of the suboptimality is taken as linear in the
    seconds between them. Else the points are steps of one run, of which the first that is good enough counts.
    """
    before: tuple[float, float] | None = None
    for seconds, objective in sorted(curve):
        reached = suboptimality(objective, best)
        if reached <= target:
            if not whole_runs or before is None:
                return Time(seconds)
            low, high = before
            floor = max(reached, 1e-16)
            share = (math.log(high) - math.log(target)) / (math.log(high) - math.log(floor))
            return Time(low + (seconds - low) * share)
        # a longer run that is worse than a shorter one is not what a user would choose
        if math.isfinite(reached) and (before is None or reached < before[1]):
            before = (seconds, reached)
    # later rounds may have been slower than the one whose time is the limit
    return Time(max([limit, *(seconds for seconds, _ in curve)]), bound=True)


def median(times: Sequence[Time]) -> Time:
    """The median; a bound when the middle one is, or one below the middle."""
    if not times:
        return Time(math.nan)
    ordered = sorted(times, key=lambda time: (time.seconds, time.bound))
    middle = len(ordered) // 2
    lower, upper = ordered[(len(ordered) - 1) // 2], ordered[middle]
    bound = any(time.bound for time in ordered[: middle + 1])
    return Time(0.5 * (lower.seconds + upper.seconds), bound)


@dataclass(frozen=True)
class Ratio:
    """A peer's time over ours."""

    value: float
    # Whether it is a lower bound.
    bound: bool = False

    def __str__(self) -> str:
        return f"{'> ' if self.bound else ''}{short(self.value)}"


def ratio(peer: Time, ours: Time) -> Ratio | None:
    """How many times longer the peer takes; None where ours is not known."""
    if ours.bound or not math.isfinite(ours.seconds) or not math.isfinite(peer.seconds):
        return None
    return Ratio(peer.seconds / ours.seconds, peer.bound)


def fastest(times: Iterable[tuple[str, Time]]) -> tuple[str, Time] | None:
    """The name and the smallest of the times, bound or not; None when none is known.

    A peer that was cut off before another one finished might have been the faster: then the answer is that bound.
    """
    known = [(name, time) for name, time in times if math.isfinite(time.seconds)]
    return min(known, key=lambda item: (item[1].seconds, item[1].bound), default=None)


def geometric_mean(ratios: Sequence[Ratio]) -> Ratio | None:
    """Geometric mean; a lower bound when one of them is."""
    if not ratios:
        return None
    mean = math.exp(sum(math.log(r.value) for r in ratios) / len(ratios))
    return Ratio(mean, any(r.bound for r in ratios))
