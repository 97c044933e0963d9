"""XGBoost's linear booster: coordinate descent on l1, binary and multinomial.

Its bias cannot be switched off, so it solves the problem with a free intercept and is compared with that optimum and
with our own fit that has one.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from .base import Answer, Peer, Rung, Task, doubling


def prepare(task: Task) -> Any:
    """Its own matrix, with labels from 0."""
    import xgboost

    y = (task.y > 0).astype(np.float64) if task.loss == "log" else task.y
    return xgboost.DMatrix(task.X, label=y, nthread=task.threads)


def solve(prepared: Any, task: Task, rung: Rung) -> Answer:
    """Mean loss + alpha |W|_1 (it multiplies alpha by the weight of the rows), intercept free."""
    import xgboost

    settings: dict[str, Any] = {
        "booster": "gblinear",
        "updater": "coord_descent",
        "feature_selector": "cyclic",
        "eta": 1.0,
        "alpha": task.alpha,
        "lambda": 0.0,
        "tolerance": 0.0,
        "nthread": task.threads,
        "base_score": 0.5,
        "verbosity": 0,
        "objective": "binary:logistic" if task.loss == "log" else "multi:softprob",
    }
    if task.loss == "multinomial":
        settings["num_class"] = task.n_outputs
    model = xgboost.train(settings, prepared, num_boost_round=rung["rounds"])
    saved = json.loads(model.get_dump(dump_format="json")[0])
    k = task.n_outputs
    # the weights of a feature lie together, a column an output
    return Answer(np.asarray(saved["weight"]).reshape(-1, k), np.asarray(saved["bias"]).reshape(k))


PEER = Peer(
    name="gblinear",
    package="xgboost-cpu",
    module="xgboost",
    solves=(("log", "l1"), ("multinomial", "l1")),
    layout="its own matrix (DMatrix)",
    ladder=lambda task: doubling("rounds", 1, 1 << 12),
    count="rounds",
    prepare=prepare,
    solve=solve,
    intercept=("log", "multinomial"),
    # nothing is compiled, and a round over thousands of columns takes as long on a few rows as on all
    warm=0,
    note="its bias cannot be switched off: compared with the problem that has a free intercept; single precision",
)
