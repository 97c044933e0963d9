"""Snap ML: IBM's coordinate descent, whose threads work on partitions of the data; l1, and the ridge in its dual."""

from __future__ import annotations

from typing import Any

from .base import Answer, Peer, Rung, Task, answered, same, tightening


def solve(prepared: Any, task: Task, rung: Rung) -> Answer:
    """sum_i loss_i + regularizer |w|_1, or |w|^2 / 2, with regularizer = alpha m; l1 asks for the primal."""
    from snapml import LogisticRegression

    model = LogisticRegression(
        penalty="l1" if task.penalty == "l1" else "l2",
        dual=task.penalty != "l1",
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
    solves=(("log", "l1"), ("log", "l2_squared")),
    layout="CSR or C-contiguous array, float64; its own copy is timed, as every call makes it",
    ladder=lambda task: tightening("tol", -1, -12),
    prepare=same,
    solve=solve,
)
