"""cyanure: incremental gradients with variance reduction, accelerated by quasi-Newton or Catalyst; also row groups.

With a matrix of labels its group penalties do not reach the optimum of the multitask objective (with l1 they do), so
multitask is not declared.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .base import L1_RATIO, Answer, Peer, Rung, Task, answered, doubling, same

PENALTY = {
    "l1": "l1", "l1/l2": "l1l2", "l1/linf": "l1linf", "l1/l2+l1": "l1l2+l1", "elastic_net": "elasticnet",
    "l2_squared": "l2",
}  # fmt: skip


def solve(prepared: Any, task: Task, rung: Rung) -> Answer:
    """Mean loss + lambda_1 psi(W), a given number of epochs; the solver is the one it chooses itself ("auto").

    The sparse group is lambda_1 |W_j|_2 + lambda_2 |W_j|_1, the elastic net lambda_1 |W|_1 + lambda_2 |W|^2 / 2.
    """
    from cyanure.estimators import Classifier

    epochs, mixed = rung["max_iter"], task.penalty in ("l1/l2+l1", "elastic_net")
    model = Classifier(
        loss="logistic",
        penalty=PENALTY[task.penalty],
        lambda_1=task.alpha * (L1_RATIO if mixed else 1.0),
        lambda_2=task.alpha * (1.0 - L1_RATIO) if mixed else 0.0,
        fit_intercept=task.intercept,
        tol=1e-14,
        max_iter=epochs,
        # its own gap costs a pass: as seldom as its progress allows
        duality_gap_interval=min(10, epochs),
        n_threads=task.threads,
        verbose=False,
        multi_class="multinomial" if task.loss == "multinomial" else "auto",
    )
    model.fit(prepared, task.y)
    W = np.asarray(model.coef_, dtype=np.float64)
    k = task.n_outputs
    b = np.asarray(model.intercept_) if task.intercept else 0.0
    return answered(W.reshape(-1, k) if W.shape[0] == task.X.shape[1] else W.reshape(k, -1).T, b)


PEER = Peer(
    name="cyanure",
    package="cyanure",
    module="cyanure",
    solves=(
        *(("log", penalty) for penalty in ("l1", "elastic_net", "l2_squared")),
        *(("multinomial", penalty) for penalty in ("l1", "l1/l2", "l1/linf", "l2_squared")),
    ),
    layout="CSR or C-contiguous array, float64",
    ladder=lambda task: doubling("max_iter", 1, 1 << 13),
    prepare=same,
    solve=solve,
)
