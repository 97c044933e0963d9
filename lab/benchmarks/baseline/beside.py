"""Ratios of our time to that of work beside it, how far they scatter, and whether one is worse than a stored one.

Covers: measuring in turns, the noise of a median, the verdict. Does not cover: the problems (``small``), the file and
the words of the command line (``kept``).

One turn times our work and the work beside it, one directly after the other, and gives one ratio: what slows the
machine down for a while slows both. Every problem is visited several times, with the others in between and its data
made anew: where data lies, and what else the machine does, are the same for all turns of one visit. A problem's figure
is the median of all turns. Its noise is the standard error of a median of as many turns as there are visits, from the
median distance of the turns to it, so that a turn that was interrupted counts for nothing.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from dboost.errors import DataError
from lab.benchmarks.baseline.small import ON_THE_CLOCK, PROBLEMS, Made

VISITS, TURNS = 3, 3
"""Visits of every problem, and turns of each that count: a scatter of 5 % makes a noise of 4 %, in three minutes."""
SIGMA_OF_MAD = 1.4826
"""Standard deviation of normal errors over their median absolute deviation."""
MEDIAN_OF_MEAN = 1.2533
"""Standard error of the median of normal errors over that of their mean: sqrt(pi / 2)."""
ERRORS = 3.0
"""Standard errors that a change must exceed: of a hundred comparisons of seven problems, one errs by chance."""
LEAST_MARGIN = 0.10
"""Least change that counts, as a share. Where the same code lies in memory differs from one process to the next, by up
to some per cent of the time, and no turn of one process sees it."""


@dataclass(frozen=True)
class Ratio:
    """Our time over the time of the work beside it.

    Parameters
    ----------
    ratio : float
        Median of the turns.
    noise : float
        Standard error of the median, as a share of it.
    seconds, beside : float
        Medians of the two times; for a reader, as no verdict looks at them.
    """

    ratio: float
    noise: float
    seconds: float
    beside: float

    @staticmethod
    def of(ours: Sequence[float], beside: Sequence[float], visits: int) -> Ratio:
        """From the times of each turn, in so many visits."""
        turns = [a / b for a, b in zip(ours, beside, strict=True)]
        middle = statistics.median(turns)
        scatter = SIGMA_OF_MAD * statistics.median(abs(turn - middle) for turn in turns)
        noise = MEDIAN_OF_MEAN * scatter / math.sqrt(visits) / middle
        return Ratio(middle, noise, statistics.median(ours), statistics.median(beside))


@dataclass(frozen=True)
class Standing:
    """A problem now, beside what is stored.

    Parameters
    ----------
    problem : str
    stored, now : Ratio
    least : float
        Least margin, as a share.
    """

    problem: str
    stored: Ratio
    now: Ratio
    least: float = LEAST_MARGIN

    @property
    def change(self) -> float:
        """Now over stored; 1 for no change, more for slower."""
        return self.now.ratio / self.stored.ratio

    @property
    def margin(self) -> float:
        """What `change` may exceed 1 by: the noise of both measurements, and never less than the least margin."""
        return max(self.least, ERRORS * math.hypot(self.stored.noise, self.now.noise))

    @property
    def worse(self) -> bool:
        """Whether it is slower by more than noise."""
        return not self.change <= 1.0 + self.margin

    @property
    def better(self) -> bool:
        """Whether it is faster by more than noise, so that a new baseline would hold what was won."""
        return self.change * (1.0 + self.margin) < 1.0


def measured(
    names: Sequence[str] | None = None,
    visits: int = VISITS,
    turns: int = TURNS,
    scale: float = 1.0,
    problems: Mapping[str, Made] = PROBLEMS,
    say: Callable[[str], None] = lambda sentence: None,
) -> dict[str, Ratio]:
    """The ratio of each problem.

    Parameters
    ----------
    names : sequence of str, optional
        Which problems (default: all).
    visits : int
        Times that each problem is made.
    turns : int
        Turns of a visit that count; one before them compiles, and fills caches.
    scale : float
        Size of the problems; 1 for the stored baseline.
    problems : mapping of str to function
        Where the names are looked up.
    say : callable
        Given one line for each problem.
    """
    wanted = list(problems if names is None else names)
    ours: dict[str, list[float]] = {name: [] for name in wanted}
    other: dict[str, list[float]] = {name: [] for name in wanted}
    for visit in range(visits):
        say(f"visit {visit + 1} of {visits}")
        for name in wanted:
            clock = time.perf_counter if name in ON_THE_CLOCK else time.process_time
            with problems[name](scale) as pair:
                for turn in range(turns + 1):
                    for work, times in zip(pair, (ours[name], other[name]), strict=True):
                        began = clock()
                        work()
                        if turn:
                            times.append(clock() - began)
    found = {name: Ratio.of(ours[name], other[name], visits) for name in wanted}
    for name, one in found.items():
        say(f"{name}: {one.ratio:.3f}, to {100 * one.noise:.1f} %")
    return found


def standings(stored: Mapping[str, Ratio], now: Mapping[str, Ratio], least: float = LEAST_MARGIN) -> list[Standing]:
    """What both have, in the order of `now`.

    Raises
    ------
    DataError
        When a problem that was measured is not stored.
    """
    missing = [name for name in now if name not in stored]
    if missing:
        raise DataError(
            f"the stored baseline has no problem {missing[0]!r}; it has {', '.join(stored)}",
            hint="record it again: python -m lab bench record",
        )
    return [Standing(name, stored[name], ratio, least) for name, ratio in now.items()]
