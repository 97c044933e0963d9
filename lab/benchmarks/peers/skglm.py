"""skglm: working sets and a proximal Newton method, binary l1 and elastic net.

Its logistic loss over groups has no sparse form and its multiclass is one against the rest, another objective.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .base import MIXES, Answer, Peer, Rung, Task, answered, by_column, tightening


def _model(task: Task, rung: Rung, warm_start: bool = False) -> Any:
    from skglm import SparseLogisticRegression

    return SparseLogisticRegression(
        alpha=task.alpha,
        l1_ratio=MIXES[task.penalty],
        fit_intercept=task.intercept,
        tol=rung["tol"],
        max_iter=500,
        max_epochs=50_000,
        warm_start=warm_start,
    )


def solve(prepared: Any, task: Task, rung: Rung) -> Answer:
    """Mean loss + alpha (l1_ratio |w|_1 + (1 - l1_ratio) |w|^2 / 2)."""
    model = _model(task, rung).fit(prepared, task.y)
    return answered(model.coef_[0], np.atleast_1d(model.intercept_)[:1])


def path(prepared: Any, task: Task, alphas: Sequence[float], rung: Rung) -> list[Answer]:
    """One estimator with ``warm_start``, strength after strength."""
    model = _model(task, rung, warm_start=True)
    found = []
    for alpha in alphas:
        model.alpha = alpha
        found.append(answered(np.array(model.fit(prepared, task.y).coef_[0])))
    return found


PEER = Peer(
    name="skglm",
    package="skglm",
    module="skglm",
    solves=(("log", "l1"), ("log", "elastic_net")),
    layout="CSC; compiled on a small problem first",
    ladder=lambda task: tightening("tol", -2, -11),
    prepare=by_column,
    solve=solve,
    path=path,
    note="one thread: it has no other",
)
