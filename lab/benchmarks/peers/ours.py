"""dboost itself, in a process of its own like every peer; its curve is the trace of one fit.

The core of the fit is called (what ``BoostedClassifier.fit`` calls), because it keeps the trace: the objective after
every step, which the fit has computed anyway. Seconds count from before the plan is made, so that turning CSR into
blocks of CSC and checking are inside; the digest of larger data is made on one of the threads while the fit goes on.
A rung ``{"estimator": True}`` runs the estimator's own ``fit`` as a user would, which waits for the digest at its end,
for the time to a certified gap.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from .base import Answer, Peer, Rung, Task, answered, same

KIND = {"log": "binary", "multinomial": "multiclass", "multitask": "multitask"}
BEST = 1e-9
"""Certified gap of the run that gives the optimum."""
CURVE = 1e-7
"""Certified gap of the runs whose curve is read: below every suboptimality that is asked for."""
CERTIFICATE = 1e-4


def _estimator(task: Task, tol: float, alpha: Any) -> Any:
    import dboost

    kind = dboost.MultiTaskBoostedClassifier if task.loss == "multitask" else dboost.BoostedClassifier
    # the objective of every peer is that of the columns as they are
    return kind(penalty=task.penalty, alpha=alpha, fit_intercept=False, standardize=False, tol=tol)


def solve(prepared: Any, task: Task, rung: Rung) -> Answer:
    """Fit to a certified gap of ``rung["tol"]``.

    The core also ends with the round after which the objective is at most ``rung["until"]``, or ``rung["seconds"]``
    have passed.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if rung.get("estimator"):
            return _by_estimator(prepared, task, rung["tol"])
        return _by_core(prepared, task, rung)


def _by_estimator(X: Any, task: Task, tol: float) -> Answer:
    model = _estimator(task, tol, task.alpha).fit(X, task.y)
    facts = {"gap": float(model.duality_gap_), "stop": model.stop_reason_, "passes": int(model.history_[-1]["passes"])}
    return answered(np.asarray(model.coef_).T, **facts)


def _by_core(X: Any, task: Task, rung: Rung) -> Answer:
    from dboost.boosting.fit import FitSettings, Fitting
    from dboost.data.plan import build_plan
    from dboost.engine.local import LocalEngine

    until, seconds = rung.get("until"), rung.get("seconds")
    settings = FitSettings(task.loss, task.penalty, alpha=task.alpha, fit_intercept=False, tol=rung["tol"])
    began = time.perf_counter()

    def enough(record: dict[str, Any], state: Any) -> bool:
        there = until is not None and record["objective"] <= until
        return there or (seconds is not None and time.perf_counter() - began >= seconds)

    with LocalEngine(task.threads) as engine:
        plan = build_plan(X, task.y, task=KIND[task.loss], engine=engine)
        planning = time.perf_counter() - began
        fitting = Fitting(plan, engine, settings)
        # the fit's own clock starts after this pass, which it would do first
        fitting.null()
        before = time.perf_counter() - began
        found = fitting.fit(task.alpha, callback=enough)
    W = np.zeros((X.shape[1], found.W.shape[1]))
    W[found.active] = found.W
    trace = [[float(passes), before + float(at), float(value)] for passes, at, value in found.trace]
    facts = {
        "trace": trace,
        "planning": planning,
        "gap": float(found.gap),
        "lower": float(found.lower_bound),
        "objective": float(found.objective),
        "passes": int(found.passes),
        "rounds": int(found.n_iter),
        "stop": found.stop_reason,
        "rows": int(found.active.shape[0]),
    }
    return answered(W, **facts)


def path(prepared: Any, task: Task, alphas: Sequence[float], rung: Rung) -> list[Answer]:
    """``dboost.regularization_path`` at one certified gap."""
    import dboost

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        template = _estimator(task, rung["tol"], "auto")
        found = dboost.regularization_path(prepared, task.y, estimator=template, alphas=list(alphas))
    return [answered(coef.T) for coef in found.coefs]


PEER = Peer(
    name="dboost",
    package="dboost",
    module="dboost",
    solves=(
        *((loss, p) for loss in ("log", "multinomial", "multitask") for p in ("l1", "l1/l2", "l1/linf", "l2_squared")),
        ("log", "elastic_net"),
    ),
    layout="CSR or array as loaded; planning and turning it into CSC blocks are timed",
    ladder=lambda task: [{"tol": CURVE}, {"tol": CERTIFICATE, "estimator": True}],
    prepare=same,
    solve=solve,
    path=path,
    environment="own",
)
