"""What the records of ``python -m lab bench peers`` say: ratios to the fastest peer, means, the certificate's lag.

Covers: numbers only, computed from the records. Does not cover: measuring, or how they are shown (``output``).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lab.benchmarks.against import time_of
from lab.benchmarks.curve import Ratio, Time, fastest, geometric_mean, ratio
from lab.benchmarks.peers import OURS, PEERS
from lab.benchmarks.problems import KINDS

Record = dict[str, Any]
JUDGED = (1e-4, 1e-6)
LAG = 1.3
"""Largest share of time to a certified gap of 1e-4 over the time to a true 1e-6 (Show 7)."""


@dataclass(frozen=True)
class Versus:
    """Our solver against the fastest peer on one problem, to one suboptimality.

    Parameters
    ----------
    problem : str
    target : float
    ours : Time
    peer : str or None
        The fastest; None where no peer takes the problem or none was measured.
    theirs : Time or None
    ratio : Ratio or None
    """

    problem: str
    target: float
    ours: Time
    peer: str | None
    theirs: Time | None
    ratio: Ratio | None


def times(record: Record, target: float, layout: bool = True) -> dict[str, Time]:
    """Seconds of every peer that was measured on a problem."""
    found = {name: time_of(solver, target, layout) for name, solver in record["solvers"].items() if name in PEERS}
    return {name: time for name, time in found.items() if math.isfinite(time.seconds)}


def versus(record: Record, target: float, layout: bool = True) -> Versus:
    """Our solver against the fastest of the peers that solve the same problem, without an intercept.

    From the data as loaded, or with everyone's `layout` of them taken off.
    """
    ours = time_of(record["solvers"][OURS.name], target, layout)
    same = {n: time for n, time in times(record, target, layout).items() if not record["solvers"][n]["intercept"]}
    best = fastest(same.items())
    if best is None:
        return Versus(record["problem"], target, ours, None, None, None)
    return Versus(record["problem"], target, ours, best[0], best[1], ratio(best[1], ours))


@dataclass(frozen=True)
class Mean:
    """The mean of one kind at one suboptimality.

    Parameters
    ----------
    kind : str
    target : float
    mean : Ratio or None
        None where no problem of the kind has a peer.
    alone : Ratio or None
        The same of the solvers alone: what everyone took to lay out the data is taken off.
    goal : float
    problems, compared, slower : int
        Measured; of those with a ratio that says something; of those with a ratio below 1.
    unknown : int
        Where a peer was stopped before our own time: this says nothing, and is in no mean.
    """

    kind: str
    target: float
    mean: Ratio | None
    alone: Ratio | None
    goal: float
    problems: int
    compared: int
    slower: int
    unknown: int

    @property
    def met(self) -> str:
        """Whether the mean reaches its goal: a lower bound above it suffices, one below it does not judge.

        "yes" (with how many problems are left out), "NO" or "cannot be judged".
        """
        if self.mean is None:
            return "cannot be judged"
        if self.unknown and self.mean.value >= self.goal:
            return f"yes, {self.unknown} left out"
        if self.mean.value >= self.goal:
            return "yes"
        return "cannot be judged" if self.mean.bound else "NO"


def means(records: Sequence[Record]) -> list[Mean]:
    """The means of each kind that was measured."""
    found = []
    for kind in KINDS.values():
        mine = [record for record in records if record["kind"] == kind.name]
        for target in JUDGED if mine else ():
            compared = [record for record in mine if tells(versus(record, target).ratio)]
            ratios = _ratios(compared, target, True)
            alone = [one for one in _ratios(compared, target, False) if tells(one)]
            slower = sum(r.value < 1.0 for r in ratios)
            unknown = len(_ratios(mine, target, True)) - len(ratios)
            both = geometric_mean(ratios), geometric_mean(alone)
            found.append(Mean(kind.name, target, *both, kind.goal, len(mine), len(ratios), slower, unknown))
    return found


def tells(found: Ratio | None) -> bool:
    """Whether a ratio says who is faster: not where the peer was stopped before our own time."""
    return found is not None and not (found.bound and found.value < 1.0)


def _ratios(records: Sequence[Record], target: float, layout: bool) -> list[Ratio]:
    return [r for r in (versus(record, target, layout).ratio for record in records) if r is not None]


@dataclass(frozen=True)
class Lag:
    """The certificate of one problem.

    Parameters
    ----------
    problem : str
    certified : float
        Median seconds of the whole ``fit`` to a certified gap of 1e-4.
    true : Time
        Seconds to a true suboptimality of 1e-6.
    share : float
        The first over the second.
    gap, suboptimality : float
        Certified and true, of the model that came back.
    """

    problem: str
    certified: float
    true: Time
    share: float
    gap: float
    suboptimality: float


def lags(records: Sequence[Record]) -> list[Lag]:
    """How far the certificate lags on each problem."""
    found = []
    for record in records:
        runs = record["certificate"]
        true = time_of(record["solvers"][OURS.name], 1e-6)
        if runs and not true.bound:
            certified = statistics.median(run["seconds"] for run in runs)
            last = runs[-1]
            share = certified / true.seconds
            found.append(Lag(record["problem"], certified, true, share, last["gap"], last["suboptimality"]))
    return found
