"""One problem: our solver and its peers in turn, each run timed on its own, the objective evaluated here in float64.

Covers: the optimum, our own curves and certificates, how long a peer may take. Does not cover: a peer's settings
(``climb``), processes (``process``), reading curves (``curve``), which problems (``suite``), pages (``output``).

Round 1: our solver, then every peer from its coarsest setting up until it is within 1e-6 of the optimum or is cut
off. Later rounds: our solver again, then of every peer the settings beside which a target was crossed. Seconds are
medians over the rounds.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from lab.benchmarks.curve import TARGETS, Time, median, read, suboptimality
from lab.benchmarks.peers.ours import BEST, CERTIFICATE, CURVE
from lab.benchmarks.process import PeerProcess
from lab.oracle import plain
from lab.oracle.problems import Encoded

OWN_LIMIT = 600.0
BEST_SECONDS = 30.0
"""Of the run that finds the optimum."""
BEYOND = 0.5
"""Share of the last target at which a run whose curve is read may end."""
LONG = 3.0
"""Seconds from which on the first run of a process is as good as a later one."""


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

    factor: float = 32.0
    floor: float = 1.0
    ceiling: float = 300.0
    of_best: float = 1.5

    def of(self, ours: float, best: float | None) -> float:
        """Seconds for one run."""
        limit = min(max(self.factor * ours, self.floor), self.ceiling)
        return limit if best is None else min(limit, max(self.of_best * best, self.floor))


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

    @functools.cached_property
    def at_null(self) -> float:
        """P of the model without features, where every solver begins."""
        X, y, task = self.data.X, self.data.y, self.data.loss
        k = plain.n_outputs(y, task)
        return plain.objective(X, y, np.zeros((X.shape[1], k)), np.zeros(k), self.alpha, self.penalty, task)

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
