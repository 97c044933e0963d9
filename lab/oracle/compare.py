"""Compare this library with its peers on one problem, by ``plain`` alone.

Covers: both objectives evaluated by the same code, a gap recomputed from W, the verdict.
Does not cover: the list of problems, the processes of the peers.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from lab.oracle import plain
from lab.oracle.ours import Ours
from lab.oracle.peers import Answer, Job, run
from lab.oracle.problems import Encoded, Problem

AGREEMENT = 1e-6
COLUMNS = (
    "data", "penalty", "b", "a/amax", "P ours", "peer", "P peer", "(ours-peer)/P", "gap ours", "gap recomputed",
    "gap peer", "rows", "rows peer", "entries", "entries peer", "s ours", "s peer", "verdict",
)  # fmt: skip


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
        # The reference is the last to be asked and slow by design.
        budget = 3.0 * seconds if peer == "reference" else seconds
        job = Job(peer, str(scratch), data.loss, problem.penalty, alpha, problem.intercept, budget)
        answer = run(job, scratch)
        record = {**base, "peer": peer, **_judge(data, problem, alpha, mine, answer)}
        answered = answered or (answer.W is not None and record["verdict"] == "agrees")
        records.append(record)
    return records


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
