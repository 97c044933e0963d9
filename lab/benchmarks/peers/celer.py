"""celer: working sets by dual extrapolation, with a proximal Newton method inside, binary l1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .base import Answer, Peer, Rung, Task, answered, by_column, tightening


def solve(prepared: Any, task: Task, rung: Rung) -> Answer:
    """C sum_i loss_i + |w|_1 with C = 1 / (alpha m); it has no intercept."""
    from celer import LogisticRegression

    model = LogisticRegression(
        C=1.0 / (task.alpha * task.X.shape[0]), tol=rung["tol"], max_iter=500, fit_intercept=False
    )
    return answered(model.fit(prepared, task.y).coef_[0])


def path(prepared: Any, task: Task, alphas: Sequence[float], rung: Rung) -> list[Answer]:
    """``celer_path``, which starts each strength from the last; its alpha is on the sum of the losses."""
    from celer.homotopy import celer_path

    strengths = np.asarray(alphas) * task.X.shape[0]
    y = task.y.astype(np.float64)
    _, coefs, _ = celer_path(prepared, y, "logreg", alphas=strengths, tol=rung["tol"], max_iter=500, use_PN=True)
    return [answered(w) for w in coefs.T]


PEER = Peer(
    name="celer",
    package="celer",
    module="celer",
    solves=(("log", "l1"),),
    layout="CSC",
    ladder=lambda task: tightening("tol", -1, -10),
    prepare=by_column,
    solve=solve,
    path=path,
    note="one thread: it has no other",
)
