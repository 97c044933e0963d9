"""``python -m lab bench path``: 50 strengths from alpha_max down to a hundredth of it, each solver with its own path.

Every model of a path must be within 1e-4 of its optimum. A solver's ladder is climbed until all of its models are; the
seconds are those of that run. Ours is one of certified gaps, and its path with a certified gap of 1e-4, which peers do
not have, is a line of its own.
"""

from __future__ import annotations

import json
import statistics
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from lab import machine, tables
from lab.benchmarks.curve import Ratio, Time, ratio, suboptimality
from lab.benchmarks.peers import OURS, PEERS, Peer, Rung
from lab.benchmarks.peers.base import Task
from lab.benchmarks.problems import SETS
from lab.benchmarks.process import COMPILE, START, Failed, Missing, PeerProcess, TimeUp, store
from lab.oracle import plain
from lab.oracle.problems import Encoded
from pipelines.console import finite

PROBLEMS = (("imdb", "l1"), ("stackoverflow20k", "l1"))
N_STRENGTHS = 50
LAST = 1e-2
TARGET = 1e-4
BEST = 1e-6
"""Certified gap of the optima along a path: a hundredth of the target."""
LOOSER = (1e-2, 1e-3)
"""Certified gaps that may be enough for all models of a path to be within the target; the target itself always is."""
CERTIFIED = "dboost, certified"
OWN_LIMIT = 600.0
FACTOR, CEILING = 20.0, 60.0


@dataclass
class Timed:
    """A solver on a path."""

    name: str
    # Median seconds of the whole path.
    time: Time
    # Largest suboptimality along it.
    worst: float = float("nan")
    # Bytes above the loaded state.
    peak: float = float("nan")
    rung: Rung = field(default_factory=dict)
    note: str = ""


class Along:
    """One data set and penalty, and the optima along its path."""

    def __init__(self, data: Encoded, penalty: str, folder: Path, n_strengths: int, threads: int) -> None:
        self.data = data
        self.penalty = penalty
        self.folder = folder
        self.threads = threads
        self.high = plain.alpha_max(data.X, data.y, penalty, data.loss, False)
        self.alphas = self.high * np.geomspace(1.0, LAST, n_strengths)
        self.best = np.full(n_strengths, np.inf)
        self.answer = folder / "path.npz"

    def process(self, peer: Peer) -> PeerProcess:
        """A process for a peer."""
        opening = {"loss": self.data.loss, "penalty": self.penalty, "alpha_max": self.high, "threads": self.threads}
        return PeerProcess(peer, self.folder, opening, self.folder / f"{peer.name}.log")

    def run(self, process: PeerProcess, rung: Rung, seconds: float) -> dict[str, Any]:
        """One whole path; adds the objectives of its models to the reply."""
        process.ready(COMPILE if process.peer is OURS else START)
        reply = process.order(seconds, do="path", alphas=self.alphas.tolist(), rung=rung, answer=str(self.answer))
        with np.load(self.answer) as found:
            reply["objectives"] = np.array([self._objective(found[f"W{i}"], a) for i, a in enumerate(self.alphas)])
        return reply

    def _objective(self, W: Any, alpha: float) -> float:
        b = np.zeros(W.shape[1])
        return plain.objective(self.data.X, self.data.y, W, b, alpha, self.penalty, self.data.loss)

    def worst(self, objectives: Any) -> float:
        """Largest suboptimality of a path."""
        return max(suboptimality(float(P), float(best)) for P, best in zip(objectives, self.best, strict=True))


def measure(along: Along, peers: list[Peer]) -> list[Timed]:
    """Our path before and after the path of every peer that has one; the median of ours counts."""
    timed: list[Timed] = []
    with along.process(OURS) as own:
        along.best = along.run(own, {"tol": BEST}, OWN_LIMIT)["objectives"]
        certified = [along.run(own, {"tol": TARGET}, OWN_LIMIT)]
        tol, ours = TARGET, certified
        for looser in LOOSER:
            reply = along.run(own, {"tol": looser}, OWN_LIMIT)
            if along.worst(reply["objectives"]) <= TARGET:
                tol, ours = looser, [reply]
                break
        limit = min(FACTOR * ours[0]["seconds"] + 5.0, CEILING)
        for peer in peers:
            with along.process(peer) as process:
                timed.append(climb(along, peer, process, limit))
            ours.append(along.run(own, {"tol": tol}, OWN_LIMIT))
    first, proven = (
        Timed(
            name,
            Time(statistics.median(reply["seconds"] for reply in replies)),
            max(along.worst(reply["objectives"]) for reply in replies),
            max(reply["peak"] for reply in replies),
            {"tol": gap},
        )
        for name, replies, gap in ((OURS.name, ours, tol), (CERTIFIED, certified, TARGET))
    )
    return [first, proven, *timed]


def climb(along: Along, peer: Peer, process: PeerProcess, limit: float) -> Timed:
    """The coarsest setting of a peer with which the whole path is good enough."""
    X, y = along.data.X, along.data.y
    task = Task(X, y, along.data.loss, along.penalty, float(along.alphas[-1]), along.high, along.threads)
    last = Timed(peer.name, Time(float("nan")))
    # every second setting: each of them is a whole path
    for rung in list(peer.ladder(task))[::2]:
        try:
            reply = along.run(process, rung, limit)
        except TimeUp:
            note = f"cut off at {limit:.3g} s"
            return Timed(peer.name, Time(limit, bound=True), last.worst, last.peak, rung, note)
        except (Missing, Failed) as error:
            return Timed(peer.name, last.time, last.worst, last.peak, rung, str(error))
        last = Timed(
            peer.name, Time(reply["seconds"], bound=True), along.worst(reply["objectives"]), reply["peak"], rung
        )
        if last.worst <= TARGET:
            last.time = Time(reply["seconds"])
            return last
    last.note = "not good enough with its finest setting"
    return last


def run(out: Path, quick: bool, settings: Any) -> int:
    """Measure the paths; `quick` takes the twins and ten strengths."""
    records = []
    asked = [PEERS[name] for name in settings.peers or PEERS if name in PEERS]
    for name, penalty in PROBLEMS:
        if settings.problems and not any(word in f"{name} {penalty}" for word in settings.problems):
            continue
        data = SETS[name].twin() if quick else SETS[name].load()
        with tempfile.TemporaryDirectory(prefix="dboost-path-") as scratch:
            store(Path(scratch), data.X, data.y)
            along = Along(data, penalty, Path(scratch), 10 if quick else N_STRENGTHS, settings.threads)
            peers = [peer for peer in asked if peer.path is not None and (data.loss, penalty) in peer.solves]
            found = measure(along, peers)
        for timed in found:
            records.append(_record(f"{name} {penalty}", timed, found[0]))
        print(tables.markdown([r for r in records if r["path"] == f"{name} {penalty}"], COLUMNS), flush=True)
    strengths = 10 if quick else N_STRENGTHS
    about = (
        f"{strengths} strengths, geometric from alpha_max to {LAST:g} alpha_max, no intercept. Seconds of the whole "
        f'path, every model of which is within {TARGET:g} of its optimum; ">" where a peer was cut off or not so good.'
    )
    tables.write(out / "path.md", "Whole paths", [about, tables.markdown(records, COLUMNS), _machine()])
    (out / "path.json").write_text(json.dumps(finite({"records": records, "machine": machine.describe()}), indent=1))
    return 0


COLUMNS = ("path", "solver", "seconds", "ratio", "worst (P - P*)/P*", "peak MiB", "setting", "note")


def _record(path: str, timed: Timed, ours: Timed) -> dict[str, Any]:
    against: Ratio | None = ratio(timed.time, ours.time)
    return {
        "path": path,
        "solver": timed.name,
        "seconds": str(timed.time),
        "ratio": "-" if against is None else str(against),
        "worst (P - P*)/P*": f"{timed.worst:.1e}",
        "peak MiB": f"{timed.peak / 2**20:.0f}" if np.isfinite(timed.peak) else "-",
        "setting": json.dumps(timed.rung),
        "note": timed.note,
    }


def _machine() -> str:
    return "; ".join(f"{what} {value}" for what, value in machine.describe().items())
