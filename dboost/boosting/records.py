"""One record per round of a fit: the rows of ``history_``."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dboost.problem.iterate import Iterate
from dboost.problem.problem import Problem
from dboost.problem.state import FitState


def recorded(
    problem: Problem,
    state: FitState,
    *,
    gap: float,
    lower_bound: float,
    alpha: float,
    rows_in: int,
    rows_out: int,
    held: Iterate | FitState,
    candidates: float,
    step: str,
    length: float,
    started: float,
    passes: int,
    subtrees: int = 0,
    more: Mapping[str, float] | None = None,
) -> FitState:
    """The state after a round, with the round's record.

    Parameters
    ----------
    problem : Problem
        Its counters of passes and bytes are read.
    state : FitState
        Before the round is counted; its objective is in the sum form.
    held : Iterate or FitState
        The model after the round.
    started : float
        ``time.perf_counter()`` when the round began.
    passes : int
        ``problem.passes`` when the round began.
    subtrees : int
        Subtrees opened in the round; recorded where the class is searched.
    more : mapping of str to number, optional
        What a system of its own says of its rounds, in columns beside those of every fit.
    """
    done = problem.passes - passes
    seconds = time.perf_counter() - started
    scheduler, network, kernels = problem.runner.seconds()
    record: dict[str, Any] = {
        "round": state.round + 1,
        "objective": state.objective / problem.statistics.weight,
        "gap": gap,
        "lower_bound": lower_bound,
        "alpha": alpha,
        "rows_in": rows_in,
        "rows_out": rows_out,
        "active_rows": int(held.active.shape[0]),
        "entries": int(np.count_nonzero(held.W)),
        "candidates": candidates,
        "step": step,
        "length": length,
        "passes": state.passes + done,
        "seconds": seconds,
        "seconds_driver": max(0.0, seconds - scheduler - network - kernels),
        "seconds_scheduler": scheduler,
        "seconds_network": network,
        "seconds_kernels": kernels,
        "bytes_moved": problem.engine.bytes_moved,
    }
    if problem.searched:
        record["subtrees"] = subtrees
    record |= dict(more or {})
    return replace(
        state,
        round=state.round + 1,
        passes=state.passes + done,
        history=(*state.history, record),
        keys=tuple(problem.keys),
    )


def last_of_size(history: Sequence[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    """The last record of a model of each number of rows."""
    return {record["active_rows"]: record for record in history}
