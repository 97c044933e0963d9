"""One problem: our solver and its peers in turn, each run timed on its own, the objective evaluated here in float64.

Covers: the optimum, the climb of a peer's ladder, cut-offs, repeats. Does not cover: processes (``process``), reading
curves (``curve``), which problems (``suite``), pages (``output``).

Round 1: our solver, then every peer from its coarsest setting up until it is within 1e-6 of the optimum or is cut
off. Later rounds: our solver again, then of every peer the settings beside which a target was crossed. Seconds are
medians over the rounds.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..oracle import plain
from ..oracle.problems import Encoded
from .curve import TARGETS, Time, median, read, suboptimality
from .peers import Peer, Rung
from .peers.ours import BEST, CERTIFICATE, CURVE
from .process import Failed, Missing, PeerProcess, TimeUp

OWN_LIMIT = 600.0
BEST_SECONDS = 60.0
"""Of the run that finds the optimum."""
BEYOND = 0.5
"""Share of the last target at which a run whose curve is read may end."""
LONG = 3.0
"""Seconds from which on the first run of a process is as good as a later one."""
SMALLEST_LIMIT = 0.2


@dataclass(frozen=True)
class Limits:
    """When a peer is cut off.

    Parameters
    ----------
    factor : float
        A run may take this many times our own time to 1e-6, which is well beyond every goal ...
    floor, ceiling : float
        ... but at least and at most so many seconds,
    of_best : float
        and no more than so many times what the best peer so far took to 1e-6. It is slower, and that is known.
    """

    factor: float = 24.0
    floor: float = 1.0
    ceiling: float = 300.0
    of_best: float = 1.5

    def of(self, ours: float, best: float | None) -> float:
        """Seconds for one run."""
        limit = min(max(self.factor * ours, self.floor), self.ceiling)
        return limit if best is None else min(limit, max(self.of_best * best, self.floor))


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
        Seconds beyond which nothing is known.
    note : str
        Why there is no more, in words; empty when it reached the last target.
    version : str
    layout : float
        Seconds of each run that went into the layout of the data.
    """

    name: str
    runs: list[Run] = field(default_factory=list)
    limit: float = float("nan")
    note: str = ""
    version: str = ""
    layout: float = 0.0

    def curve(self) -> list[tuple[float, float]]:
        """Median seconds and objective of each setting."""
        return [(statistics.median(run.seconds), run.objective) for run in self.runs]

    def time(self, best: float, target: float) -> Time:
        """Seconds to a suboptimality."""
        return read(self.curve(), best, target, self.limit, whole_runs=True)

    @property
    def peak(self) -> float:
        """Largest memory above the loaded state, bytes."""
        return max((peak for run in self.runs for peak in run.peaks), default=float("nan"))


class Case:
    """One strength of one data set and penalty.

    Parameters
    ----------
    data : Encoded
    penalty : str
    alpha : float
    intercept : bool
        For peers that cannot do without; our own runs then have one too.
    """

    def __init__(self, data: Encoded, penalty: str, alpha: float, intercept: bool, answer: Path) -> None:
        self.data = data
        self.penalty = penalty
        self.alpha = alpha
        self.intercept = intercept
        self.answer = answer
        self.best = float("inf")
        self.lower = float("-inf")
        self.rows = 0
        self.traces: list[list[tuple[float, float, float]]] = []
        self.certified: list[dict[str, float]] = []
        self.peaks: list[float] = []
        self.planning: list[float] = []

    def objective(self) -> float:
        """P of the answer that was written last, by our code in float64."""
        with np.load(self.answer) as found:
            W, b = found["W"], found["b"]
        if not (np.all(np.isfinite(W)) and np.all(np.isfinite(b))):
            return float("inf")
        return plain.objective(self.data.X, self.data.y, W, b, self.alpha, self.penalty, self.data.loss)

    def optimum(self, process: PeerProcess) -> None:
        """Find the optimum, and leave the process as warm as any later run; a certificate that takes long stays open.

        How far it came is in `best` and `lower`. The run counts as a curve if it took so long that warmth is nothing.
        """
        self.ours(process, BEST, keep=False, limits={"seconds": BEST_SECONDS})

    def curve(self, process: PeerProcess) -> None:
        """One run whose curve is read, until it is beyond the last target; the first of all says where that is."""
        enough = {"until": self.best * (1.0 + BEYOND * TARGETS[-1])} if np.isfinite(self.best) else {}
        self.ours(process, CURVE, limits=enough)

    def ours(
        self, process: PeerProcess, tol: float, *, keep: bool = True, limits: Mapping[str, float] | None = None
    ) -> dict[str, Any]:
        """One run of our core; its trace is a curve when `keep`, or when it took so long that warmth is nothing."""
        rung = {"tol": tol, "intercept": self.intercept, **(limits or {})}
        order = {"alpha": self.alpha, "rung": rung, "answer": str(self.answer), "repeat": keep}
        reply = process.order(OWN_LIMIT, do="run", **order)
        facts = reply["facts"]
        self.best = min(self.best, self.objective())
        self.lower = max(self.lower, facts["lower"])
        self.rows = int(facts["rows"])
        if keep or reply["seconds"] >= LONG:
            self.traces.append([(float(p), float(s), float(v)) for p, s, v in facts["trace"]])
            self.peaks.append(float(reply["peak"]))
            self.planning.append(float(facts["planning"]))
        return reply

    def certificate(self, process: PeerProcess) -> None:
        """One run of the estimator to the certified gap that is asked for, timed as a whole."""
        rung = {"tol": CERTIFICATE, "intercept": self.intercept, "estimator": True}
        order = {"alpha": self.alpha, "rung": rung, "answer": str(self.answer), "repeat": True}
        reply = process.order(OWN_LIMIT, do="run", **order)
        self.certified.append(
            {
                "seconds": reply["seconds"],
                "cpu": reply["cpu"],
                "gap": reply["facts"]["gap"],
                "passes": reply["facts"]["passes"],
                "suboptimality": suboptimality(self.objective(), self.best),
            }
        )

    def our_time(self, target: float) -> Time:
        """Median over our runs of the first step that is good enough."""
        return median([read([(s, v) for _, s, v in t], self.best, target, t[-1][1], False) for t in self.traces])

    def our_passes(self, target: float) -> float | None:
        """Passes until then, in the last run."""
        reached = [p for p, _, v in self.traces[-1] if suboptimality(v, self.best) <= target]
        return reached[0] if reached else None


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
    found = Found(peer.name, layout=float(process.about.get("layout", 0.0)))
    for rung in ladder:
        left = deadline - clock()
        allowed = min(limit, left)
        if found.runs and allowed < max(SMALLEST_LIMIT, found.runs[-1].seconds[0]):
            found.limit = found.runs[-1].seconds[0]
            found.note = f"stopped after {found.limit:.3g} s: the time for this problem is used up"
            break
        allowed = max(allowed, SMALLEST_LIMIT)
        try:
            reply = process.order(allowed, do="run", alpha=problem.alpha, rung=rung, answer=str(problem.answer))
        except TimeUp:
            # the clock of an order does not see the layout, which the times of runs have
            found.limit, found.note = allowed + found.layout, f"cut off at {allowed:.3g} s"
            break
        except Missing as error:
            found.note = str(error)
            break
        except Failed as error:
            found.note = f"failed: {error}"
            found.limit = found.runs[-1].seconds[0] if found.runs else float("nan")
            break
        value = problem.objective()
        found.runs.append(Run(rung, value, [reply["seconds"]], [reply["peak"]]))
        if suboptimality(value, problem.best) <= target:
            found.limit = reply["seconds"]
            break
    else:
        found.limit = found.runs[-1].seconds[0] if found.runs else float("nan")
        found.note = "did not get nearer with its finest setting"
    found.version = str(process.about.get("version", ""))
    return found


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
