"""adelie: block coordinate descent for groups along a path; binary l1, elastic net, rows of classes or tasks (l1/l2).

Its multinomial loss is the mean over examples and classes, so that its strength is alpha / k. Tasks are one binary
problem of all pairs of an example and a task, whose columns are those of X kron I.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .base import MIXES, Answer, Peer, Rung, Task, answered, by_column, tightening


def prepare(task: Task) -> Any:
    """Its own matrix over the columns."""
    import adelie

    columns = by_column(task)
    make = adelie.matrix.sparse if hasattr(columns, "tocsc") else adelie.matrix.dense
    matrix = make(columns, method="naive", n_threads=task.threads)
    if task.loss == "multitask":
        # of an array it has loops of its own for this
        base = matrix if hasattr(columns, "tocsc") else columns
        return adelie.matrix.kronecker_eye(base, task.n_outputs, n_threads=task.threads)
    return matrix


def _along(prepared: Any, task: Task, strengths: Sequence[float], rung: Rung) -> list[Answer]:
    import adelie

    n, k = task.X.shape[1], task.n_outputs
    if task.loss == "multinomial":
        glm: Any = adelie.glm.multinomial(np.eye(k)[task.y])
    else:
        glm = adelie.glm.binomial((task.y > 0).ravel().astype(np.float64))
    state = adelie.grpnet(
        X=prepared,
        glm=glm,
        # one group for each column; of classes it makes them itself
        groups=np.arange(0, n * k, k) if task.loss == "multitask" else None,
        lmda_path=np.asarray(strengths) / k,
        # by default a group of k weights has a strength of sqrt(k)
        penalty=np.ones(n),
        alpha=MIXES.get(task.penalty, 1.0),
        intercept=False,
        tol=rung["tol"],
        irls_tol=rung["tol"],
        adev_tol=1.0,
        early_exit=False,
        n_threads=task.threads,
        progress_bar=False,
    )
    if state.betas.shape[0] != len(strengths):
        raise RuntimeError(f"adelie solved {state.betas.shape[0]} of {len(strengths)} strengths")
    return [answered(state.betas[[place]].toarray().reshape(n, k)) for place in range(len(strengths))]


def solve(prepared: Any, task: Task, rung: Rung) -> Answer:
    """A short path from alpha_max, which it needs to be fast."""
    return _along(prepared, task, task.falling(), rung)[-1]


def path(prepared: Any, task: Task, alphas: Sequence[float], rung: Rung) -> list[Answer]:
    """Its own path, in one call."""
    return _along(prepared, task, alphas, rung)


PEER = Peer(
    name="adelie",
    package="adelie",
    module="adelie",
    solves=(("log", "l1"), ("log", "elastic_net"), ("multinomial", "l1/l2"), ("multitask", "l1/l2")),
    layout="CSC or Fortran-contiguous array, float64, in a matrix of its own",
    ladder=lambda task: tightening("tol", -3, -12, per_decade=1),
    prepare=prepare,
    solve=solve,
    path=path,
)
