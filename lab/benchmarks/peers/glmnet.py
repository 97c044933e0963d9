"""glmnet (its Fortran through python-glmnet): coordinate descent along a path; l1 and elastic net.

Without an intercept its multinomial cycles and never ends, so it is not among those that are timed. The grouped
multinomial (l1/l2) of the R package is not offered by the Python one.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from .base import MIXES, Answer, Peer, Rung, Task, answered, by_column, tightening


def prepare(task: Task) -> Any:
    """Columns; its modules are loaded here, because nothing is compiled and no small problem is solved first."""
    importlib.import_module("glmnet")

    return by_column(task)


def _along(prepared: Any, task: Task, strengths: Sequence[float], rung: Rung) -> list[Answer]:
    from glmnet import LogitNet

    model = LogitNet(
        alpha=MIXES[task.penalty],
        lambda_path=np.asarray(strengths),
        standardize=False,
        fit_intercept=task.intercept,
        n_splits=0,
        tol=rung["tol"],
        max_iter=10_000_000,
    )
    model.fit(prepared, task.y)
    coefficients, intercepts = np.asarray(model.coef_path_), np.asarray(model.intercept_path_)
    if coefficients.shape[-1] != len(strengths):
        raise RuntimeError(f"glmnet solved {coefficients.shape[-1]} of {len(strengths)} strengths")
    return [
        answered(coefficients[..., i].reshape(-1, task.X.shape[1]).T, intercepts[..., i] if task.intercept else 0.0)
        for i in range(len(strengths))
    ]


def solve(prepared: Any, task: Task, rung: Rung) -> Answer:
    """Mean loss + lambda (l1_ratio |W|_1 + (1 - l1_ratio) |W|^2 / 2) along a short path from alpha_max.

    It needs that path to be fast.
    """
    return _along(prepared, task, task.falling(), rung)[-1]


def path(prepared: Any, task: Task, alphas: Sequence[float], rung: Rung) -> list[Answer]:
    """Its own path, in one call."""
    return _along(prepared, task, alphas, rung)


PEER = Peer(
    name="glmnet",
    package="python-glmnet",
    module="glmnet",
    solves=(("log", "l1"), ("log", "elastic_net")),
    layout="CSC or Fortran-contiguous array; the wrapper's checks and its copy of the rows are timed",
    ladder=lambda task: tightening("tol", -2, -14, per_decade=1),
    prepare=prepare,
    solve=solve,
    path=path,
    warm=0,
    note="one thread: it has no other",
)
