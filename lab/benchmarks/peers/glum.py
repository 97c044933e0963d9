"""glum: iteratively reweighted least squares, by coordinate descent where an l1 norm is in it; binary."""

from __future__ import annotations

from typing import Any

import numpy as np

from .base import MIXES, Answer, Peer, Rung, Task, answered, by_column, tightening

COLUMNS = 3000
"""Columns up to which its matrix of curvature, which has no zeros, is formed in seconds."""


def solve(prepared: Any, task: Task, rung: Rung) -> Answer:
    """Mean loss + alpha (l1_ratio |w|_1 + (1 - l1_ratio) |w|^2 / 2)."""
    from glum import GeneralizedLinearRegressor

    model = GeneralizedLinearRegressor(
        family="binomial",
        alpha=task.alpha,
        l1_ratio=MIXES[task.penalty],
        fit_intercept=task.intercept,
        gradient_tol=rung["tol"],
        max_iter=10_000,
    ).fit(prepared, (task.y > 0).astype(np.float64))
    return answered(model.coef_, model.intercept_)


PEER = Peer(
    name="glum",
    package="glum",
    module="glum",
    solves=tuple(("log", penalty) for penalty in MIXES),
    layout="CSC or Fortran-contiguous array, float64",
    ladder=lambda task: tightening("tol", -2, -11) if task.X.shape[1] <= COLUMNS else [],
    prepare=by_column,
    solve=solve,
)
