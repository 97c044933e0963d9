"""scikit-learn's SAGA: incremental gradients with variance reduction, l1, binary and multinomial."""

from __future__ import annotations

from typing import Any

import numpy as np

from .base import Answer, Peer, Rung, Task, doubling, same, without_intercept


def solve(prepared: Any, task: Task, rung: Rung) -> Answer:
    """C sum_i loss_i + |W|_1 with C = 1 / (alpha m), a given number of epochs."""
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(
        solver="saga",
        l1_ratio=1.0,
        C=1.0 / (task.alpha * task.X.shape[0]),
        fit_intercept=False,
        tol=0.0,
        max_iter=rung["max_iter"],
        random_state=0,
    )
    return without_intercept(np.asarray(model.fit(prepared, task.y).coef_).T)


PEER = Peer(
    name="saga",
    package="scikit-learn",
    module="sklearn",
    solves=(("log", "l1"), ("multinomial", "l1")),
    layout="CSR or C-contiguous array, float64",
    ladder=lambda task: doubling("max_iter", 1, 1 << 13),
    prepare=same,
    solve=solve,
    note="one thread: the incremental steps are serial",
)
