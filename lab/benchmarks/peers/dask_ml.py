"""dask-ml's logistic regression (dask-glm): ADMM, its default, and proximal gradients; binary l1.

The data is a Dask array of one dense block a thread, in memory, on the threaded scheduler: neither SciPy's sparse
blocks nor those of the package ``sparse`` pass through dask-glm's solvers at this release. Its scaling of columns is
off: it would change the penalty, and refuses data with two constant columns.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .base import Answer, Peer, Rung, Task, without_intercept


def prepare(task: Task) -> Any:
    """Dask arrays of X and y."""
    import dask
    import dask.array as da

    dask.config.set(scheduler="threads", num_workers=task.threads)
    rows = -(-task.X.shape[0] // task.threads)
    X = da.from_array(task.X.toarray() if hasattr(task.X, "toarray") else task.X, chunks=(rows, task.X.shape[1]))
    return X, da.from_array((task.y > 0).astype(np.float64), chunks=rows)


def solve(prepared: Any, task: Task, rung: Rung) -> Answer:
    """Sum of the losses + |w|_1 / C with C = 1 / (alpha m)."""
    from dask_ml.linear_model import LogisticRegression

    X, y = prepared
    model = LogisticRegression(
        penalty="l1",
        C=1.0 / (task.alpha * task.X.shape[0]),
        fit_intercept=False,
        solver=rung["solver"],
        max_iter=rung["max_iter"],
        tol=0.0,
        solver_kwargs={"normalize": False} | ({"abstol": 1e-12, "reltol": 1e-12} if rung["solver"] == "admm" else {}),
    )
    return without_intercept(np.asarray(model.fit(X, y).coef_))


def ladder(task: Task) -> list[Rung]:
    """Proximal gradients first, which are cheap an iteration, then ADMM."""
    steps = [{"solver": "proximal_grad", "max_iter": 1 << i} for i in (2, 4, 6)]
    return steps + [{"solver": "admm", "max_iter": 1 << i} for i in range(11)]


PEER = Peer(
    name="dask-ml",
    package="dask-ml",
    module="dask_ml",
    solves=(("log", "l1"),),
    layout="a Dask array of one dense block a thread, in memory",
    ladder=ladder,
    prepare=prepare,
    solve=solve,
    warm=1,
    loads=True,
)
