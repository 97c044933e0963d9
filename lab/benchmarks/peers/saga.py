"""scikit-learn's SAGA: incremental gradients with variance reduction; l1, elastic net and ridge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .base import MIXES, Answer, Peer, Rung, Task, answered, doubling, same


def _model(task: Task, rung: Rung, warm_start: bool = False) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(
        solver="saga",
        l1_ratio=MIXES[task.penalty],
        C=1.0 / (task.alpha * task.X.shape[0]),
        fit_intercept=task.intercept,
        tol=0.0,
        max_iter=rung["max_iter"],
        random_state=0,
        warm_start=warm_start,
    )


def solve(prepared: Any, task: Task, rung: Rung) -> Answer:
    """C sum_i loss_i + l1_ratio |W|_1 + (1 - l1_ratio) |W|^2 / 2, C = 1 / (alpha m), a given number of epochs."""
    model = _model(task, rung).fit(prepared, task.y)
    return answered(np.asarray(model.coef_).T, model.intercept_)


def path(prepared: Any, task: Task, alphas: Sequence[float], rung: Rung) -> list[Answer]:
    """One estimator with ``warm_start``, strength after strength, so many epochs each."""
    model = _model(task, rung, warm_start=True)
    found = []
    for alpha in alphas:
        model.C = 1.0 / (alpha * task.X.shape[0])
        found.append(answered(np.array(model.fit(prepared, task.y).coef_).T))
    return found


PEER = Peer(
    name="saga",
    package="scikit-learn",
    module="sklearn",
    solves=tuple((loss, penalty) for loss in ("log", "multinomial") for penalty in MIXES),
    layout="CSR or C-contiguous array, float64",
    ladder=lambda task: doubling("max_iter", 1, 1 << 13),
    prepare=same,
    solve=solve,
    path=path,
    note="one thread: the incremental steps are serial",
)
