"""scikit-learn's liblinear: coordinate descent inside Newton steps (newGLMNET) for l1, a trust region for the ridge."""

from __future__ import annotations

from typing import Any

import numpy as np

from .base import MIXES, Answer, Peer, Rung, Task, answered, same


def solve(prepared: Any, task: Task, rung: Rung) -> Answer:
    """C sum_i loss_i + |w|_1, or + |w|^2 / 2, with C = 1 / (alpha m), task by task.

    It penalises its intercept, so none is used.
    """
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(
        solver="liblinear",
        l1_ratio=MIXES[task.penalty],
        C=1.0 / (task.alpha * task.X.shape[0]),
        fit_intercept=False,
        tol=rung["tol"],
        max_iter=100_000,
        random_state=0,
    )
    return answered(np.stack([model.fit(prepared, y).coef_[0] for y in task.y.reshape(len(task.y), -1).T], axis=1))


PEER = Peer(
    name="liblinear",
    package="scikit-learn",
    module="sklearn",
    solves=(("log", "l1"), ("log", "l2_squared")),
    layout="CSR; its own copy into its linked rows is timed, as every call makes it",
    ladder=lambda task: [{"tol": 10.0**e} for e in (0, -0.5, -1, -1.5, -2, -3, -4, -5, -6, -7, -8)],
    prepare=same,
    solve=solve,
    note="one thread: it has no other",
)
