"""Compare this library with its peers on one problem, by ``plain`` alone.

Covers: both objectives evaluated by the same code, a gap recomputed from W, the verdict. A peer goes through its
settings, from coarse to fine, until its objective is ours or its time is over.
Does not cover: the list of problems, the processes of the peers (``lab.benchmarks``).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.benchmarks.measure import Case, climb
from lab.benchmarks.peers import PEERS
from lab.benchmarks.peers.base import Task
from lab.benchmarks.process import Failed, Missing, PeerProcess, TimeUp
from lab.oracle import plain, reference
from lab.oracle.ours import Ours
from lab.oracle.problems import Encoded, Problem

AGREEMENT = 1e-6
COLUMNS = (
    "data", "penalty", "b", "a/amax", "P ours", "peer", "P peer", "(ours-peer)/P", "gap ours", "gap recomputed",
    "gap peer", "rows", "rows peer", "entries", "entries peer", "s ours", "s peer", "verdict",
)  # fmt: skip


@dataclass(frozen=True)
class Answer:
    """What a solver returned; W and b are None when there is no answer, and `note` says why."""

    W: NDArray[np.float64] | None
    b: NDArray[np.float64] | None
    seconds: float
    note: str = ""


def verdict(difference: float, gap: float) -> str:
    """Say what a relative difference of objectives means, given the certificate of ours.

    Ours above the peer by more than 1e-6 is wrong. Ours below by more is right when its own gap, recomputed from W, is
    that small: then the peer stopped short.
    """
    if not np.isfinite(difference):
        return "DISAGREES"
    if difference > AGREEMENT:
        return "DISAGREES"
    if difference >= -AGREEMENT:
        return "agrees"
    return "peer short; ours certified" if gap <= AGREEMENT else "OURS NOT CERTIFIED"


def strength(data: Encoded, problem: Problem) -> float:
    """Return alpha for the problem, from an alpha_max computed by ``plain``."""
    if problem.penalty == "none":
        return 0.0
    return problem.ratio * plain.alpha_max(data.X, data.y, problem.penalty, data.loss, problem.intercept)


def compare(data: Encoded, problem: Problem, alpha: float, ours: Ours, scratch: Path, seconds: float) -> list[Any]:
    """Return one record per peer that was asked, the reference among them where no peer answered.

    `data`: stored below `scratch` already. `ours`: the answer of this library. `seconds`: budget of each peer; the
    reference has three times as much.
    """
    mine = _side(data, problem, alpha, ours.W, ours.b)
    base = {
        "data": data.name,
        "penalty": problem.penalty,
        "b": "yes" if problem.intercept else "no",
        "a/amax": problem.ratio or None,
        "P ours": f"{mine['P']:.10g}",
        "gap ours": "none" if np.isnan(ours.gap) else f"{ours.gap:.1e}",
        "gap recomputed": f"{mine['gap']:.1e}",
        "rows": mine["rows"],
        "entries": mine["entries"],
        "s ours": f"{ours.seconds:.2f}",
    }
    records, answered = [], False
    for peer in (*problem.peers, "reference"):
        if peer == "reference" and answered:
            continue
        if peer == "reference":
            # It is the last to be asked and slow by design.
            answer = _of_reference(data, problem, alpha, 3.0 * seconds)
        else:
            answer = _of_peer(peer, data, problem, alpha, mine["P"], scratch, seconds)
        record = {**base, "peer": peer, **_judge(data, problem, alpha, mine, answer)}
        answered = answered or (answer.W is not None and record["verdict"] == "agrees")
        records.append(record)
    return records


def _of_reference(data: Encoded, problem: Problem, alpha: float, seconds: float) -> Answer:
    began = time.perf_counter()
    how: dict[str, Any] = {"penalty": problem.penalty, "alpha": alpha, "intercept": problem.intercept}
    found = reference.solve(data.X, data.y, loss=data.loss, seconds=seconds, **how)
    return Answer(found.W, found.b, time.perf_counter() - began)


def _of_peer(
    name: str, data: Encoded, problem: Problem, alpha: float, ours: float, folder: Path, seconds: float
) -> Answer:
    """The last answer of a peer that goes through its settings until it has the objective `ours`."""
    peer, largest = PEERS[name], plain.alpha_max(data.X, data.y, problem.penalty, data.loss, problem.intercept)
    task = Task(data.X, data.y, data.loss, problem.penalty, alpha, largest, intercept=problem.intercept)
    opening = {name: getattr(task, name) for name in ("loss", "penalty", "alpha_max", "threads", "intercept")}
    case = Case(data, problem.penalty, alpha, folder / "answer.npz")
    case.best = ours
    try:
        with PeerProcess(peer, folder, opening, folder / f"{name}.log") as process:
            process.ready()
            found = climb(peer, process, case, peer.ladder(task), seconds, target=AGREEMENT)
    except (Missing, Failed, TimeUp) as error:
        return Answer(None, None, 0.0, str(error))
    if not found.runs:
        return Answer(None, None, 0.0, found.note)
    with np.load(case.answer) as answer:
        return Answer(answer["W"], answer["b"], found.runs[-1][1])


def _judge(data: Encoded, problem: Problem, alpha: float, mine: dict[str, Any], answer: Answer) -> dict[str, Any]:
    if answer.W is None or answer.b is None:
        proof = "ours certified" if mine["gap"] <= AGREEMENT else "OURS NOT CERTIFIED"
        return {"s peer": f"{answer.seconds:.2f}", "verdict": f"{answer.note}; {proof}"}
    theirs = _side(data, problem, alpha, answer.W, answer.b)
    difference = (mine["P"] - theirs["P"]) / theirs["P"]
    return {
        "P peer": f"{theirs['P']:.10g}",
        "(ours-peer)/P": f"{difference:+.1e}",
        "gap peer": f"{theirs['gap']:.1e}",
        "rows peer": theirs["rows"],
        "entries peer": theirs["entries"],
        "s peer": f"{answer.seconds:.2f}",
        "verdict": verdict(difference, mine["gap"]),
    }


def _side(data: Encoded, problem: Problem, alpha: float, W: Any, b: Any) -> dict[str, Any]:
    about = (alpha, problem.penalty, data.loss)
    return {
        "P": plain.objective(data.X, data.y, W, b, *about),
        "gap": plain.relative_gap(data.X, data.y, W, b, *about, problem.intercept),
        "rows": int((np.abs(W).max(axis=1) > 0).sum()),
        "entries": int(np.count_nonzero(W)),
    }
