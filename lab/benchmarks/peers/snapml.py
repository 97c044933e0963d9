"""Snap ML: IBM's coordinate descent, whose threads work on partitions of the data, binary l1."""

from __future__ import annotations

from typing import Any

from .base import Answer, Peer, Rung, Task, answered, same, tightening


def solve(prepared: Any, task: Task, rung: Rung) -> Answer:
    """sum_i loss_i + regularizer |w|_1 with regularizer = alpha m, in the primal, as l1 asks."""
    from snapml import LogisticRegression

    model = LogisticRegression(
        penalty="l1",
        dual=False,
        regularizer=task.alpha * task.X.shape[0],
        fit_intercept=False,
        tol=rung["tol"],
        max_iter=1_000_000,
        n_jobs=task.threads,
        random_state=0,
    )
    return answered(model.fit(prepared, task.y).coef_.reshape(-1))


PEER = Peer(
    name="snapml",
    package="snapml",
    module="snapml",
    solves=(("log", "l1"),),
    layout="CSR or C-contiguous array, float64; its own copy is timed, as every call makes it",
    ladder=lambda task: tightening("tol", -1, -12),
    prepare=same,
    solve=solve,
)
