"""``python -m lab bench peers``: every problem, our solver against every peer that takes it, in one run.

Covers: the order of the runs, the budget of seconds, one record per problem. Does not cover: one problem (``measure``),
tables, plots and pages (``output``).
"""

from __future__ import annotations

import contextlib
import math
import statistics
import tempfile
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.benchmarks.climb import Found, again, climb
from lab.benchmarks.curve import TARGETS, Time, named
from lab.benchmarks.groups import Group, laid_out
from lab.benchmarks.measure import LONG, Case, Limits
from lab.benchmarks.outrun import left_out
from lab.benchmarks.peers import OURS, PEERS, Peer, in_turn
from lab.benchmarks.peers.base import Task
from lab.benchmarks.peers.ours import CURVE
from lab.benchmarks.problems import Problem
from lab.benchmarks.process import COMPILE, Failed, Missing, PeerProcess, TimeUp
from lab.oracle.problems import Encoded

WITH_INTERCEPT = "dboost, intercept"
_CLIMB = 0.85
"""Share of a problem's time for the first round; the repeats have what is left."""
_TICK = 1e-3
"""What a solver takes without its layout, at least."""
_OF_BIASED = 0.2
"""What a peer that is in no ratio, as it solves another problem, gets of the time of one that is."""


@dataclass(frozen=True)
class Options:
    """How much to measure.

    Parameters
    ----------
    peers : tuple of str
        Keys of ``PEERS``.
    repeats : int
        Rounds of A B A B.
    seconds : float
        For all problems that a peer takes; large data and weak penalties get more of it (``Problem.part``), and each
        peer as much as another.
    least : float
        What the peers of a problem get together in each round, however little is left.
    threads : int
    twins : bool
        The tiny synthetic twin of each data set in its place.
    limits : Limits
    """

    peers: tuple[str, ...]
    repeats: int = 2
    seconds: float = 2400.0
    least: float = 10.0
    threads: int = 2
    twins: bool = False
    limits: Limits = Limits()


class Budget:
    """Seconds for what is left to do."""

    def __init__(self, seconds: float, parts: Iterable[float], clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._end = clock() + seconds
        self._parts = deque(parts)

    def next(self) -> float:
        """The deadline of the next item, whose part of what is left is its part of those that are still to come."""
        now = self._clock()
        share = self._parts[0] / sum(self._parts)
        self._parts.popleft()
        return now + share * max(0.0, self._end - now)

    def shrink(self, count: int, share: float) -> None:
        """Give so many of the next items this share of their parts only; what they leave is for all."""
        for i in range(min(count, len(self._parts))):
            self._parts[i] *= share


Measure = Callable[[Group, Options, Budget, Sequence[dict[str, Any]]], Iterator[dict[str, Any]]]
"""What yields the records of one group, problem by problem: ``measure_group``, or what a test has in its place."""


def measure_all(
    problems: Sequence[Problem],
    options: Options,
    say: Callable[[str], None],
    failed: dict[str, str],
    measure: Measure | None = None,
) -> Iterator[dict[str, Any]]:
    """Measure the problems in their order; yields a record as soon as a problem is done.

    Where our own solver fails, the other problems are measured all the same; `failed` gets the problem and why.
    `measure` takes the place of ``measure_group``.
    """
    measure = measure or measure_group
    contested = [p for p in problems if in_turn(options.peers, p.loss, p.penalty)]
    shares = [sum(_share(peer, p.loss) for peer in in_turn(options.peers, p.loss, p.penalty)) for p in contested]
    budget = Budget(options.seconds, [p.part * share for p, share in zip(contested, shares, strict=True)])
    done: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    with tempfile.TemporaryDirectory(prefix="dboost-bench-") as scratch:
        for group in laid_out(problems, Path(scratch), options.twins):
            waiting = list(group.problems)
            before = done[group.data.loss, group.penalty]
            try:
                for record in measure(group, options, budget, tuple(before)):
                    waiting.pop(0)
                    before.append(record)
                    say(line_of(record))
                    yield record
            except (Missing, Failed, TimeUp) as error:
                failed |= {problem.name: str(error) for problem in waiting}
                say(f"{group.data.name} {group.penalty}: dboost failed: {error}")


def _share(peer: Peer, loss: str) -> float:
    """What a peer gets of the time of a problem, beside the others."""
    return _OF_BIASED if loss in peer.intercept else 1.0


def measure_group(
    group: Group, options: Options, budget: Budget, before: Sequence[dict[str, Any]]
) -> Iterator[dict[str, Any]]:
    """All strengths of one data set and penalty, in processes that stay open between them.

    `before` are the records of other data sets with its loss and penalty.
    """
    data, penalty, folder = group.data, group.penalty, group.folder
    opening = group.opening(options.threads)
    high = float(opening["alpha_max"])
    taking = in_turn(options.peers, data.loss, penalty)
    absent = left_out(before, [peer.name for peer in taking])
    running = [peer for peer in taking if peer.name not in absent]
    if absent:
        kept = sum(_share(peer, data.loss) for peer in running)
        budget.shrink(len(group.problems), kept / sum(_share(peer, data.loss) for peer in taking))
    with contextlib.ExitStack() as stack:

        def opened(peer: Peer) -> PeerProcess:
            return stack.enter_context(PeerProcess(peer, folder, opening, folder / f"{peer.name}.log"))

        own = opened(OURS)
        processes = {peer.name: (peer, opened(peer)) for peer in running}
        for problem in group.problems:
            own.launch()
            absent |= _started({name: both for name, both in processes.items() if name not in absent})
            own.ready(COMPILE)
            alpha = problem.ratio * high
            task = Task(data.X, data.y, data.loss, penalty, alpha, high, options.threads)
            measured = _Problem(problem, data, task, folder / "answer.npz", options)
            measured.found |= {name: Found(name, note=why) for name, why in absent.items()}
            there = {name: both for name, both in processes.items() if name not in absent}
            yield measured.run(own, there, budget.next if taking else time.monotonic)


def _started(processes: dict[str, tuple[Peer, PeerProcess]]) -> dict[str, str]:
    """Start those that do not run, before the clock of a problem does; why the others cannot be started."""
    absent = {}
    for _, process in processes.values():
        process.launch()
    for name, (_, process) in processes.items():
        try:
            process.ready()
        except (Missing, Failed, TimeUp) as error:
            absent[name] = str(error)
    return absent


class _Problem:
    """One problem while it is measured."""

    def __init__(self, problem: Problem, data: Encoded, task: Task, answer: Path, options: Options) -> None:
        self.problem = problem
        self.data = data
        self.task = task
        self.options = options
        self.case = Case(data, task.penalty, task.alpha, False, answer)
        self.biased = Case(data, task.penalty, task.alpha, True, answer)
        self.found: dict[str, Found] = {}

    def run(
        self, own: PeerProcess, peers: dict[str, tuple[Peer, PeerProcess]], deadline_of: Callable[[], float]
    ) -> dict[str, Any]:
        """All rounds; returns the record. The deadline is asked for when our own first runs are done."""
        biased = any(self._is_biased(peer) for peer, _ in peers.values())
        cases = [self.case, self.biased] if biased else [self.case]
        self.case.optimum(own)
        deadline = math.nan
        for turn in range(self.options.repeats):
            for case in cases:
                # the line with an intercept serves two peers only: one run
                if len(case.traces) <= turn and (case is self.case or turn == 0):
                    case.curve(own)
            if turn == 0 or self.case.certified[0]["seconds"] < LONG:
                self.case.certificate(own)
            # what our own runs took is not the peers' loss
            deadline = max(deadline_of() if turn == 0 else deadline, time.monotonic() + self.options.least)
            waiting = [_share(peer, self.data.loss) for peer, _ in peers.values()]
            for peer, process in peers.values():
                case = self.biased if self._is_biased(peer) else self.case
                if turn == 0:
                    # who is fast leaves its time to those after it
                    share = _CLIMB * waiting[0] / sum(waiting)
                    now = time.monotonic()
                    self.found[peer.name] = self._climb(peer, process, case, now + share * (deadline - now))
                    waiting.pop(0)
                elif self.found[peer.name].runs:
                    with contextlib.suppress(Failed, Missing):
                        again(self.found[peer.name], process, case, deadline)
        return self._record(own, biased)

    def _is_biased(self, peer: Peer) -> bool:
        """Whether a peer solves the problem that has an intercept."""
        return self.data.loss in peer.intercept

    def _climb(self, peer: Peer, process: PeerProcess, case: Case, deadline: float) -> Found:
        ours = case.our_time(TARGETS[-1]).seconds
        best = [f.time(case.best, TARGETS[-1]) for f in self.found.values()]
        known = [time.seconds for time in best if not time.bound and math.isfinite(time.seconds)]
        limit = self.options.limits.of(ours, min(known, default=None))
        ladder = [dict(rung) for rung in peer.ladder(self.task)]
        try:
            return climb(peer, process, case, ladder, limit, deadline)
        except (Missing, Failed, TimeUp) as error:
            return Found(peer.name, note=str(error))

    def _record(self, own: PeerProcess, biased: bool) -> dict[str, Any]:
        case = self.case
        solvers: dict[str, Any] = {OURS.name: _ours(case, str(own.about.get("version", "")))}
        if biased:
            solvers[WITH_INTERCEPT] = _ours(self.biased, "")
        for name, found in self.found.items():
            other = self._is_biased(PEERS[name])
            solvers[name] = _theirs(found, (self.biased if other else case).best, other)
        m, n = self.data.X.shape
        return {
            "problem": self.problem.name,
            "kind": self.problem.kind,
            "data": self.data.name,
            "rows": int(m),
            "columns": int(n),
            "nonzeros": int(getattr(self.data.X, "nnz", m * n)),
            "outputs": self.task.n_outputs,
            "alpha": self.task.alpha,
            "alpha_max": self.task.alpha_max,
            "best": case.best,
            "certified": max(0.0, (case.best - case.lower) / case.best),
            "rows of W": case.rows,
            "certificate": case.certified,
            "solvers": solvers,
        }


def _ours(case: Case, version: str) -> dict[str, Any]:
    times = {named(target): case.our_time(target) for target in TARGETS}
    return {
        "times": {target: _plain(found) for target, found in times.items()},
        "passes": {named(target): case.our_passes(target) for target in TARGETS},
        "curves": [[[s, v, p] for p, s, v in trace] for trace in case.traces],
        "best": case.best,
        "layout": statistics.median(case.planning) if case.planning else math.nan,
        "peak": max(case.peaks, default=math.nan),
        "certified": max(0.0, (case.best - case.lower) / case.best),
        "tol": CURVE,
        "version": version,
        "note": "",
    }


def _theirs(found: Found, best: float, intercept: bool) -> dict[str, Any]:
    return {
        "times": {named(target): _plain(found.time(best, target)) for target in TARGETS},
        "runs": [{"rung": run.rung, "seconds": run.seconds, "objective": run.objective} for run in found.runs],
        "best": best,
        "layout": found.layout,
        "peak": found.peak,
        "limit": found.limit,
        "intercept": intercept,
        "version": found.version,
        "note": found.note,
    }


def _plain(found: Time) -> dict[str, Any]:
    return {"seconds": found.seconds, "bound": found.bound}


def time_of(solver: dict[str, Any], target: float, layout: bool = True) -> Time:
    """The time of a record's solver from the data as loaded, or without its `layout` of them."""
    found = solver["times"][named(target)]
    seconds = float(found["seconds"])
    if not layout:
        # it is measured by itself, and may have taken longer than in the run
        seconds = max(seconds - float(solver["layout"]), _TICK) if math.isfinite(seconds) else seconds
    return Time(seconds, bool(found["bound"]))


def line_of(record: dict[str, Any]) -> str:
    """One line of progress: everyone's seconds to 1e-4 and 1e-6."""
    parts = [
        f"{name} {time_of(solver, TARGETS[1])} / {time_of(solver, TARGETS[2])}"
        for name, solver in record["solvers"].items()
    ]
    return f"{record['problem']}: " + ", ".join(parts)
