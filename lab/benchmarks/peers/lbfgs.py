"""scikit-learn's L-BFGS: quasi-Newton steps over all weights, the ridge."""

from __future__ import annotations

from typing import Any

import numpy as np

from .base import Answer, Peer, Rung, Task, answered, same, tightening


def solve(prepared: Any, task: Task, rung: Rung) -> Answer:
    """C sum_i loss_i + |W|^2 / 2 with C = 1 / (alpha m), to a gradient of ``rung["tol"]``."""
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(
        solver=rung.get("solver", "lbfgs"),
        C=1.0 / (task.alpha * task.X.shape[0]),
        fit_intercept=task.intercept,
        tol=rung["tol"],
        max_iter=100_000,
    ).fit(prepared, task.y)
    return answered(np.asarray(model.coef_).T, model.intercept_)


PEER = Peer(
    name="lbfgs",
    package="scikit-learn",
    module="sklearn",
    solves=(("log", "l2_squared"), ("multinomial", "l2_squared")),
    layout="CSR or C-contiguous array, float64",
    ladder=lambda task: tightening("tol", -1, -10),
    prepare=same,
    solve=solve,
)
