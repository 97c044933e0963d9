"""One problem: our solver and its peers, each in a process of its own, the objective evaluated here in float64.

Covers: the optimum, our own curves and certificates, a peer's settings from coarse to fine. Does not cover: processes
(``process``), reading curves (``curve``), which problems and who takes turns (``suite``).
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from lab.benchmarks.curve import TARGETS, Time, median, read, suboptimality
from lab.benchmarks.peers import Peer, Rung
from lab.benchmarks.peers.ours import BEST, CERTIFICATE, CURVE
from lab.benchmarks.process import Failed, Missing, PeerProcess, TimeUp
from lab.oracle import plain
from lab.oracle.problems import Encoded

OWN_LIMIT = 600.0
BEST_SECONDS = 30.0
"""Of the run that finds the optimum."""
BEYOND = 0.5
"""Share of the last target at which a run whose curve is read may end."""


class Case:
    """One strength of one data set and penalty.

    `answer`: where processes write their W.
    """

    def __init__(self, data: Encoded, penalty: str, alpha: float, answer: Path) -> None:
        self.data = data
        self.penalty = penalty
        self.alpha = alpha
        self.answer = answer
        self.best = float("inf")
        self.lower = float("-inf")
        self.traces: list[list[tuple[float, float, float]]] = []
        self.certified: list[float] = []

    def objective(self) -> float:
        """P of the answer that was written last, by our code in float64."""
        with np.load(self.answer) as found:
            W, b = found["W"], found["b"]
        if not (np.all(np.isfinite(W)) and np.all(np.isfinite(b))):
            return float("inf")
        return plain.objective(self.data.X, self.data.y, W, b, self.alpha, self.penalty, self.data.loss)

    def order(self, process: PeerProcess, rung: Rung, seconds: float) -> dict[str, Any]:
        """Time one setting, several times where it is short."""
        return process.order(seconds, do="run", alpha=self.alpha, rung=rung, answer=str(self.answer), repeat=True)

    def optimum(self, process: PeerProcess) -> None:
        """Find the optimum, and leave the process as warm as any later run; how far it came is in `best`, `lower`."""
        self._ours(process, {"tol": BEST, "seconds": BEST_SECONDS})

    def curve(self, process: PeerProcess) -> None:
        """One run whose curve is read, until it is beyond the last target."""
        facts = self._ours(process, {"tol": CURVE, "until": self.best * (1.0 + BEYOND * TARGETS[-1])})
        self.traces.append([(float(p), float(s), float(v)) for p, s, v in facts["trace"]])

    def certificate(self, process: PeerProcess) -> None:
        """One run of the estimator to the certified gap that is asked for, timed as a whole."""
        self.certified.append(self.order(process, {"tol": CERTIFICATE, "estimator": True}, OWN_LIMIT)["seconds"])

    def our_time(self, target: float) -> Time:
        """Median over our runs of the first step that is good enough."""
        return median([read([(s, v) for _, s, v in t], self.best, target, t[-1][1], False) for t in self.traces])

    def our_passes(self, target: float) -> float | None:
        """Passes until then, in the last run."""
        return next((p for p, _, v in self.traces[-1] if suboptimality(v, self.best) <= target), None)

    def _ours(self, process: PeerProcess, rung: Rung) -> dict[str, Any]:
        facts: dict[str, Any] = self.order(process, rung, OWN_LIMIT)["facts"]
        self.best = min(self.best, self.objective())
        self.lower = max(self.lower, facts["lower"])
        return facts


@dataclass
class Found:
    """What is known of one peer on one problem."""

    name: str
    # Setting, seconds and objective, from coarse to fine.
    runs: list[tuple[Rung, float, float]] = field(default_factory=list)
    # Seconds after which the first run was cut off; 0 where it ended, as then its own are what is known.
    limit: float = 0.0
    # Why there is no more, in words; empty when it reached the last target.
    note: str = ""
    version: str = ""

    def time(self, best: float, target: float) -> Time:
        """Seconds to a suboptimality.

        One that is not known is bounded by the longest run that ended: in place of one that was cut off, a shorter one
        might have been good enough.
        """
        curve = [(seconds, objective) for _, seconds, objective in self.runs]
        limit = self.limit if self.runs or self.limit else math.nan
        return read(curve, best, target, limit, whole_runs=True)


def climb(
    peer: Peer, process: PeerProcess, case: Case, ladder: Sequence[Rung], seconds: float, *,
    most: float = math.inf, target: float = TARGETS[-1], clock: Callable[[], float] = time.monotonic,
) -> Found:  # fmt: skip
    """Run a peer's settings from coarse to fine until it is at the target or its time is over.

    `seconds`: for all of its runs. `most`: for one run.
    """
    found = Found(peer.name, note="" if ladder else "not made for a problem of this size")
    end = clock() + seconds
    for rung in ladder:
        allowed = min(most, end - clock())
        # Each setting takes about twice as long as the one before: one that cannot end is not begun.
        if found.runs and found.runs[-1][1] > allowed:
            found.note = f"stopped after {found.runs[-1][1]:.3g} s: its time for this problem is used up"
            break
        try:
            reply = case.order(process, rung, max(allowed, 0.2))
        except TimeUp:
            found.note = f"cut off at {allowed:.3g} s"
            found.limit = 0.0 if found.runs else allowed
            break
        except (Missing, Failed) as error:
            found.note = str(error)
            break
        found.version = str(process.about.get("version", ""))
        found.runs.append((dict(rung), statistics.median(reply["times"]), case.objective()))
        if suboptimality(found.runs[-1][2], case.best) <= target:
            break
    else:
        found.note = found.note or "not good enough with its finest setting"
    return found
