"""R's glmnet, called through rpy2: coordinate descent along a path; l1, elastic net, and rows of many classes.

Its strengths, its mean loss and its share of the l1 norm are ours. It needs R with its package glmnet beside the
Python packages of ``make peers`` (Debian: r-base-core, r-cran-glmnet).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from .base import MIXES, Answer, Peer, Rung, Task, answered, by_column, tightening

GROUPED = "l1/l2"


@cache
def _packages() -> tuple[Any, Any]:
    """glmnet and methods, loaded once: it takes a tenth of a second."""
    from rpy2.rinterface_lib import callbacks
    from rpy2.robjects.packages import importr

    # what R warns of is no answer, and would fill the log
    callbacks.consolewrite_warnerror = lambda text: None
    return importr("glmnet"), importr("methods")


def prepare(task: Task) -> Any:
    """The data as R has them: a dgCMatrix, or a matrix, and the labels as they are or as classes."""
    from rpy2 import robjects

    glmnet, methods = _packages()
    X = by_column(task)
    if hasattr(X, "indptr"):
        places = {"i": X.indices, "p": X.indptr, "Dim": np.asarray(X.shape)}
        numbers = {name: robjects.IntVector(memoryview(ints.astype(np.int32))) for name, ints in places.items()}
        matrix = methods.new("dgCMatrix", x=robjects.FloatVector(memoryview(X.data)), **numbers)
    else:
        values = robjects.FloatVector(memoryview(X.ravel(order="F")))
        matrix = robjects.r.matrix(values, nrow=X.shape[0], ncol=X.shape[1])
    y = robjects.IntVector(memoryview(task.y.astype(np.int32)))
    return glmnet.glmnet, matrix, y


def _along(prepared: Any, task: Task, strengths: Sequence[float], rung: Rung) -> list[Answer]:
    from rpy2 import robjects

    glmnet, matrix, y = prepared
    several = task.loss == "multinomial"
    settings = {
        "family": "multinomial" if several else "binomial",
        "alpha": 1.0 if task.penalty == GROUPED else MIXES[task.penalty],
        "lambda": robjects.FloatVector(list(strengths)),
        "standardize": False,
        "intercept": task.intercept,
        "thresh": rung["tol"],
        "maxit": 100_000_000,
        "type.multinomial": "grouped" if task.penalty == GROUPED else "ungrouped",
    }
    model = glmnet(matrix, y, **settings)
    betas = [_dense(beta) for beta in (model.rx2("beta") if several else [model.rx2("beta")])]
    if betas[0].shape[1] != len(strengths):
        raise RuntimeError(f"glmnet solved {betas[0].shape[1]} of {len(strengths)} strengths")
    b = np.asarray(model.rx2("a0")).reshape(-1, len(strengths))
    W = np.stack(betas, axis=1)
    return [answered(W[:, :, at], b[:, at] if task.intercept else 0.0) for at in range(len(strengths))]


def _dense(beta: Any) -> Any:
    """The weights of one output at all strengths (n, s), from a dgCMatrix."""
    import scipy.sparse

    parts = [np.asarray(beta.slots[name]) for name in ("x", "i", "p")]
    return scipy.sparse.csc_matrix(tuple(parts), shape=tuple(np.asarray(beta.slots["Dim"]))).toarray()


def solve(prepared: Any, task: Task, rung: Rung) -> Answer:
    """Mean loss + lambda (l1_ratio |W|_1 + (1 - l1_ratio) |W|^2 / 2) along a short path from alpha_max.

    It needs that path to be fast.
    """
    return _along(prepared, task, task.falling(), rung)[-1]


def path(prepared: Any, task: Task, alphas: Sequence[float], rung: Rung) -> list[Answer]:
    """Its own path, in one call."""
    return _along(prepared, task, alphas, rung)


def version() -> str:
    """That of R's package."""
    from rpy2 import robjects

    return str(robjects.r("as.character(packageVersion('glmnet'))")[0])


PEER = Peer(
    name="glmnet",
    package="rpy2",
    module="rpy2.robjects",
    solves=(
        ("log", "l1"),
        ("log", "elastic_net"),
        ("log", "l2_squared"),
        ("multinomial", "l1"),
        ("multinomial", GROUPED),
    ),
    layout="dgCMatrix, or a matrix of R",
    ladder=lambda task: tightening("tol", -2, -14, per_decade=1),
    prepare=prepare,
    solve=solve,
    path=path,
    note="R's, through rpy2; one thread: it has no other",
    version=version,
)
