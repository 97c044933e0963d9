"""lightning: block coordinate descent (binary l1, multinomial l1/l2) and FISTA (multinomial l1).

It takes one label a row, so multitask is not declared; l1/linf is not among its penalties.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .base import Answer, Peer, Rung, Task, answered, by_column, doubling, same


def _by_fista(task: Task) -> bool:
    return (task.loss, task.penalty) == ("multinomial", "l1")


def prepare(task: Task) -> Any:
    """Columns for coordinate descent, rows for FISTA."""
    return same(task) if _by_fista(task) else by_column(task)


def solve(prepared: Any, task: Task, rung: Rung) -> Answer:
    """C sum_i loss_i + alpha omega(W) with C = 1 / m; neither of its solvers has an intercept."""
    from lightning.classification import CDClassifier, FistaClassifier

    known: dict[str, Any] = {
        "loss": "log",
        "penalty": task.penalty,
        "multiclass": task.loss == "multinomial",
        "C": 1.0 / task.X.shape[0],
        "alpha": task.alpha,
        "max_iter": rung["max_iter"],
    }
    model: Any
    if _by_fista(task):
        model = FistaClassifier(**known)
    else:
        model = CDClassifier(**known, shrinking=rung["shrinking"], tol=1e-14, random_state=0)
    return answered(np.asarray(model.fit(prepared, task.y).coef_).T)


def ladder(task: Task) -> list[Rung]:
    """With shrinking first, which is faster but stands still about 1e-5 above the optimum; then without."""
    if _by_fista(task):
        return doubling("max_iter", 1, 1 << 13)
    return doubling("max_iter", 1, 16, shrinking=True) + doubling("max_iter", 8, 1 << 13, shrinking=False)


PEER = Peer(
    name="lightning",
    package="sklearn-contrib-lightning",
    module="lightning",
    solves=(("log", "l1"), ("multinomial", "l1"), ("multinomial", "l1/l2")),
    layout="CSC or Fortran-contiguous array for coordinate descent, CSR or C-contiguous array for FISTA",
    ladder=ladder,
    prepare=prepare,
    solve=solve,
    environment="lightning",
    note="one thread: it has no other",
)
