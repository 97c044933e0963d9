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
from lab.benchmarks.small import ON_THE_CLOCK, PROBLEMS, Made

VISITS, TURNS = 3, 3
"""Visits of every problem, and turns of each that count: a scatter of 5 % makes a noise of 4 %, in three minutes."""
MOST = 12
"""Visits of a problem that seems slower: a scatter of 5 % makes a noise of 2 %. As many make the stored baseline."""
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
    """Our time over the time of the work beside it."""

    # Median of the turns.
    ratio: float
    # Standard error of the median, as a share of it.
    noise: float
    # Medians of the two times; for a reader, as no verdict looks at them.
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
    """A problem now, beside what is stored."""

    problem: str
    stored: Ratio
    now: Ratio
    # Least margin, as a share.
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
    def undecided(self) -> bool:
        """Whether it is slower by what counts, and not by more than noise."""
        return self.change > 1.0 + self.least and not self.worse

    @property
    def better(self) -> bool:
        """Whether it is faster by more than noise, so that a new baseline would hold what was won."""
        return self.change * (1.0 + self.margin) < 1.0


class Measuring:
    """Turns of problems so far; more visits narrow the noise.

    `problems`: where names are looked up. `turns`: turns of a visit that count; one before them compiles, and fills
    caches. `scale`: size of the problems; 1 for the stored baseline. `say`: given one line for each visit.
    """

    def __init__(
        self,
        problems: Mapping[str, Made] = PROBLEMS,
        turns: int = TURNS,
        scale: float = 1.0,
        say: Callable[[str], None] = lambda sentence: None,
    ) -> None:
        self._problems = problems
        self._turns = turns
        self._scale = scale
        self._say = say
        self._visits: dict[str, int] = {}
        self._times: dict[str, tuple[list[float], list[float]]] = {}

    def visit(self, names: Sequence[str], visits: int) -> None:
        """So many visits of some problems, with the others in between."""
        for visit in range(visits):
            self._say(f"visit {visit + 1} of {visits}: {', '.join(names)}")
            for name in names:
                clock = time.perf_counter if name in ON_THE_CLOCK else time.process_time
                both: tuple[list[float], list[float]] = [], []
                with self._problems[name](self._scale) as pair:
                    for turn in range(self._turns + 1):
                        for work, times in zip(pair, both, strict=True):
                            began = clock()
                            work()
                            if turn:
                                times.append(clock() - began)
                self.add(name, *both)

    def add(self, name: str, ours: Sequence[float], other: Sequence[float]) -> None:
        """The times of the turns of one visit."""
        both = self._times.setdefault(name, ([], []))
        both[0].extend(ours)
        both[1].extend(other)
        self._visits[name] = self._visits.get(name, 0) + 1

    def ratios(self) -> dict[str, Ratio]:
        """The ratio of each problem that was visited."""
        return {name: Ratio.of(*both, self._visits[name]) for name, both in self._times.items()}


def measured(
    names: Sequence[str] | None = None,
    visits: int = VISITS,
    turns: int = TURNS,
    scale: float = 1.0,
    problems: Mapping[str, Made] = PROBLEMS,
    say: Callable[[str], None] = lambda sentence: None,
) -> dict[str, Ratio]:
    """The ratio of each problem.

    `names`: which problems (default: all). `visits`: times that each problem is made. `turns`, `scale`, `problems`,
    `say`: as for ``Measuring``.
    """
    measuring = Measuring(problems, turns, scale, say)
    measuring.visit(list(problems if names is None else names), visits)
    return told(measuring.ratios(), say)


def compared(
    stored: Mapping[str, Ratio],
    measuring: Measuring,
    names: Sequence[str] = tuple(PROBLEMS),
    say: Callable[[str], None] = lambda sentence: None,
) -> dict[str, Ratio]:
    """The ratio of each problem, with more visits where it seems slower than stored and may still be noise.

    A problem is visited until it is no slower by the least change that counts, or slower by more than noise, or has had
    `MOST` visits: what a machine does beside it would otherwise hide a loss of a fifth.
    """
    measuring.visit(names, VISITS)
    visits = VISITS
    while visits < MOST:
        open_ = [one.problem for one in standings(stored, measuring.ratios()) if one.undecided]
        if not open_:
            break
        measuring.visit(open_, VISITS)
        visits += VISITS
    return told(measuring.ratios(), say)


def told(found: dict[str, Ratio], say: Callable[[str], None]) -> dict[str, Ratio]:
    """The same, each said in a line."""
    for name, one in found.items():
        say(f"{name}: {one.ratio:.3f}, to {100 * one.noise:.1f} %")
    return found


def standings(stored: Mapping[str, Ratio], now: Mapping[str, Ratio], least: float = LEAST_MARGIN) -> list[Standing]:
    """What both have, in the order of `now`."""
    missing = [name for name in now if name not in stored]
    if missing:
        raise DataError(
            f"the stored baseline has no problem {missing[0]!r}; it has {', '.join(stored)}",
            hint="record it again: python -m lab bench record",
        )
    return [Standing(name, stored[name], ratio, least) for name, ratio in now.items()]
