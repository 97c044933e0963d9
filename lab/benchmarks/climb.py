"""A peer's settings from coarse to fine on one problem: which to run, when to stop, what stays unknown.

The times of a peer are read from whole runs with other settings. Where a setting counts iterations, the seconds of the
next run are foreseen from the last two: one that would be cut off is not begun, and as many iterations as fit into the
limit are run in its place; where even progress that stays as fast as its fastest would reach the next target later
only, steps up are larger. A time that is not known is bounded by the longest run that *ended*: in place of one that was
cut off, a shorter one might have been good enough.

Covers: ladders, cut-offs, repeats. Does not cover: processes (``process``), reading curves (``curve``).
"""

from __future__ import annotations

import math
import statistics
import time
from bisect import bisect
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from lab.benchmarks.curve import TARGETS, Time, read, suboptimality
from lab.benchmarks.measure import Case
from lab.benchmarks.peers import Peer, Rung
from lab.benchmarks.process import Failed, Missing, PeerProcess, TimeUp

SMALLEST_LIMIT = 0.2
SPARE = 0.85
"""Share of the seconds allowed for which a longest run is sized."""
WORTH = 1.3
"""A run has at least so many times the iterations of the last one."""
LEAP = 8
"""Times the iterations of the last run, where nothing is expected between: few enough to foresee the seconds."""
APART = 3.0
"""Settings on both sides of a target that are further apart have one between them run too."""
AHEAD = 1.2
"""Times what is foreseen until the next target: a run that just misses it tells little."""
TRENDS = 3
"""So many of the last runs, with the model without features before the first, tell when the next target may come."""


@dataclass
class Run:
    """All runs with one setting.

    Parameters
    ----------
    rung : dict
    objective : float
    seconds, peaks : list of float
        One per run; bytes above the loaded state for the peaks.
    """

    rung: Rung
    objective: float
    seconds: list[float] = field(default_factory=list)
    peaks: list[float] = field(default_factory=list)


@dataclass
class Found:
    """What is known of one solver on one problem.

    Parameters
    ----------
    name : str
    runs : list of Run
        From coarse to fine.
    limit : float
        Seconds after which the first run was cut off; 0 where it ended, as then its own are what is known.
    note : str
        Why there is no more, in words; empty when it reached the last target.
    version : str
    layout : float
        Seconds of each run that went into the layout of the data.
    """

    name: str
    runs: list[Run] = field(default_factory=list)
    limit: float = 0.0
    note: str = ""
    version: str = ""
    layout: float = 0.0

    def curve(self) -> list[tuple[float, float]]:
        """Median seconds and objective of each setting."""
        return [(statistics.median(run.seconds), run.objective) for run in self.runs]

    def time(self, best: float, target: float) -> Time:
        """Seconds to a suboptimality."""
        limit = self.limit if self.runs or self.limit else math.nan
        return read(self.curve(), best, target, limit, whole_runs=True)

    @property
    def peak(self) -> float:
        """Largest memory above the loaded state, bytes."""
        return max((peak for run in self.runs for peak in run.peaks), default=math.nan)


def climb(
    peer: Peer,
    process: PeerProcess,
    problem: Case,
    ladder: list[Rung],
    limit: float,
    deadline: float,
    target: float = TARGETS[-1],
    clock: Callable[[], float] = time.monotonic,
) -> Found:
    """Run a peer's settings from coarse to fine until the target, its limit, or the deadline of the problem."""
    return _Climb(peer, process, problem, limit, deadline, target, clock).along(ladder)


class _Climb:
    """One peer on its way up."""

    def __init__(
        self,
        peer: Peer,
        process: PeerProcess,
        problem: Case,
        limit: float,
        deadline: float,
        target: float,
        clock: Callable[[], float],
    ) -> None:
        self.count = peer.count
        self.process = process
        self.problem = problem
        self.limit = limit
        self.deadline = deadline
        self.target = target
        self.clock = clock
        self.found = Found(peer.name, layout=float(process.about.get("layout", 0.0)))

    def along(self, ladder: list[Rung]) -> Found:
        """The whole climb."""
        found, waiting = self.found, deque(ladder)
        try:
            while waiting and not self._there() and self._go(waiting.popleft()):
                pass
            if not waiting and not self._there() and not found.note:
                found.note = "did not get nearer with its finest setting"
            while (rung := self._between()) is not None:
                self._run(rung, self._allowed())
        except TimeUp as error:
            found.note = found.note or f"cut off: {error}"
        except Missing as error:
            found.note = str(error)
        except Failed as error:
            found.note = f"failed: {error}"
        found.version = str(self.process.about.get("version", ""))
        return found

    def _allowed(self) -> float:
        return max(SMALLEST_LIMIT, min(self.limit, self.deadline - self.clock()))

    def _there(self) -> bool:
        return bool(self.found.runs) and self._level(self.found.runs[-1]) <= self.target

    def _level(self, run: Run) -> float:
        return suboptimality(run.objective, self.problem.best)

    def _work(self, run: Run) -> float:
        """Seconds that an order for this run takes: without the layout, which is not done again."""
        return max(run.seconds[0] - self.found.layout, 1e-9)

    def _go(self, rung: Rung) -> bool:
        """Run a setting, or the longest that is worth it in its place; whether to go on."""
        allowed = self._allowed()
        alike = self._alike(rung)
        if alike:
            done = alike[-1].rung[self.count]
            if rung[self.count] <= done:
                return True
            wanted = max(rung[self.count], math.ceil(WORTH * done), min(self._needed(alike), LEAP * done))
            rung = {**rung, self.count: min(wanted, self._longest(alike, SPARE * allowed))}
            if rung[self.count] < WORTH * done:
                if len(alike) > 1 or WORTH * self._work(alike[0]) > SPARE * allowed:
                    return self._used_up()
                # much of the only run may be what every run takes: a little more is tried before it is the last
                rung[self.count] = math.ceil(WORTH * done)
        elif self.found.runs and self._work(self.found.runs[-1]) > allowed:
            return self._used_up()
        try:
            self._run(rung, allowed)
        except TimeUp:
            return self._halfway(rung, allowed)
        return True

    def _alike(self, rung: Rung) -> list[Run]:
        """The runs with the same settings but for the number of iterations; none where there is no such number."""
        if not self.count or self.count not in rung:
            return []
        same = {**rung, self.count: 0}
        return [run for run in self.found.runs if {**run.rung, self.count: 0} == same]

    def _longest(self, alike: list[Run], seconds: float) -> int:
        """Iterations that take so many seconds, by the line through the last two runs."""
        last = alike[-1]
        at, taken = last.rung[self.count], self._work(last)
        slope = taken / at
        if len(alike) > 1:
            before = alike[-2]
            between = (taken - self._work(before)) / (at - before.rung[self.count])
            # short runs are mostly noise, and the line through them may fall
            slope = max(between, 0.5 * slope)
        return int(at + (seconds - taken) / slope)

    def _needed(self, alike: list[Run]) -> int:
        """Iterations that reach the next target that is judged if the fastest of the last trends goes on."""
        known = [(0.0, suboptimality(self.problem.at_null, self.problem.best))]
        known += [(self._work(run), self._level(run)) for run in alike]
        points = [(work, math.log(max(level, 1e-300))) for work, level in known[-TRENDS:]]
        if not all(math.isfinite(level) for _, level in points):
            return 0
        fall = max((a[1] - b[1]) / max(b[0] - a[0], 1e-9) for a, b in zip(points, points[1:], strict=False))
        if fall <= 0.0:
            return LEAP * alike[-1].rung[self.count]
        rest = points[-1][1] - math.log(self._open()[0])
        return self._longest(alike, points[-1][0] + AHEAD * rest / fall)

    def _open(self) -> list[float]:
        """The targets that are judged and no run has reached; never none while the last one is open."""
        best = min((self._level(run) for run in self.found.runs), default=math.inf)
        # the first is passed on the way
        return [level for level in TARGETS[1:] if level < best and level >= self.target]

    def _between(self) -> Rung | None:
        """A setting between those on both sides of a judged target, where they are far apart and time is left."""
        runs = self.found.runs
        for target in TARGETS[1:]:
            at = next((i for i, run in enumerate(runs) if self._level(run) <= target), 0)
            if at == 0 or runs[at - 1] not in self._alike(runs[at].rung):
                continue
            low, high = runs[at - 1].rung, runs[at].rung
            far = high[self.count] > APART * low[self.count]
            if far and self._work(runs[at]) <= self.deadline - self.clock():
                return halfway(low, high)
        return None

    def _halfway(self, rung: Rung, allowed: float) -> bool:
        """After a setting that was cut off, one half as far from the last that ended; False: then no other."""
        note = f"cut off at {allowed:.3g} s"
        if not self.found.runs:
            self.found.limit = allowed + self.found.layout
            self.found.note = note
            return False
        self.found.note = note
        middle = halfway(self.found.runs[-1].rung, rung)
        allowed = self._allowed()
        if middle is not None and self._work(self.found.runs[-1]) <= allowed:
            self._run(middle, allowed)
            self.found.note = "" if self._there() else note
        return False

    def _used_up(self) -> bool:
        seconds = self.found.runs[-1].seconds[0]
        self.found.note = f"stopped after {seconds:.3g} s: its time for this problem is used up"
        return False

    def _run(self, rung: Rung, allowed: float) -> None:
        order = {"alpha": self.problem.alpha, "rung": rung, "answer": str(self.problem.answer)}
        reply = self.process.order(allowed, do="run", **order)
        run = Run(rung, self.problem.objective(), [reply["seconds"]], [reply["peak"]])
        counts = [one.rung.get(self.count, 0) if self.count else 0 for one in self.found.runs]
        fits = self._alike(rung) and counts[-1] > rung[self.count]
        self.found.runs.insert(bisect(counts, rung[self.count]) if fits else len(counts), run)


def halfway(coarse: Rung, fine: Rung) -> Rung | None:
    """The setting in the middle of two that differ in one positive number: the geometric mean."""
    differing = [name for name in fine if fine[name] != coarse.get(name)]
    if set(coarse) != set(fine) or len(differing) != 1:
        return None
    name = differing[0]
    both = coarse[name], fine[name]
    if not all(isinstance(value, int | float) and value > 0 for value in both):
        return None
    middle = math.sqrt(both[0] * both[1])
    middle = round(middle) if isinstance(fine[name], int) else middle
    return None if middle in both else {**fine, name: middle}


def crossings(found: Found, best: float) -> list[int]:
    """The settings on both sides of each target, by number."""
    levels = [suboptimality(run.objective, best) for run in found.runs]
    wanted: set[int] = set()
    for target in TARGETS:
        reached = next((i for i, level in enumerate(levels) if level <= target), None)
        if reached is not None:
            wanted |= {i for i in (reached - 1, reached) if i >= 0}
    return sorted(wanted)


def again(found: Found, process: PeerProcess, problem: Case, deadline: float) -> None:
    """Time once more the settings beside which a target was crossed."""
    for i in crossings(found, problem.best):
        run = found.runs[i]
        allowed = 3.0 * run.seconds[0] + 1.0
        if time.monotonic() + run.seconds[0] > deadline:
            return
        try:
            order = {"alpha": problem.alpha, "rung": run.rung, "answer": str(problem.answer), "repeat": True}
            reply = process.order(allowed, do="run", **order)
        except TimeUp:
            # an upset of the machine, not of the peer: the first time stands
            return
        run.seconds += reply["times"]
        run.peaks.append(reply["peak"])
