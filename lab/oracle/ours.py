"""Solve a problem of the oracle with this library.

Covers: the call and its time, and the certificate the library gives. Does not cover: judging the answer (``compare``).
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dboost
from dboost.boosting.fit import FitSettings, fit
from dboost.data.plan import build_plan
from dboost.engine.local import LocalEngine
from lab.oracle.problems import Encoded

TASK = {"log": "binary", "multinomial": "multiclass", "multitask": "multitask"}


@dataclass(frozen=True)
class Ours:
    """What the library returned."""

    W: NDArray[np.float64]
    b: NDArray[np.float64]
    # Its own certified relative gap; nan where it has none (no penalty).
    gap: float
    stop_reason: str
    passes: int
    seconds: float


def solve(data: Encoded, penalty: str, alpha: float, intercept: bool, tol: float = 1e-7) -> Ours:
    """Fit an estimator to a certified relative gap `tol`; one that ends above it says so in `stop_reason`."""
    began = time.perf_counter()
    kind = dboost.MultiTaskBoostedClassifier if data.loss == "multitask" else dboost.BoostedClassifier
    model = kind(penalty=penalty, alpha="auto" if penalty == "none" else alpha, fit_intercept=intercept, tol=tol)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dboost.ConvergenceWarning)
        model.fit(data.X, data.y)
    seconds = time.perf_counter() - began
    b = np.atleast_1d(model.intercept_)
    return Ours(model.coef_.T, b, model.duality_gap_, model.stop_reason_, model.history_[-1]["passes"], seconds)


def solve_with_trace(
    data: Encoded, penalty: str, alpha: float, intercept: bool, tol: float = 1e-7, **settings: Any
) -> tuple[Ours, NDArray[np.float64]]:
    """Fit with settings of the core; also returns the passes, seconds and objective after every step, shape (r, 3)."""
    began = time.perf_counter()
    asked = FitSettings(
        loss=data.loss,
        penalty=penalty,
        alpha="auto" if penalty == "none" else alpha,
        fit_intercept=intercept,
        tol=tol,
        **settings,
    )
    with LocalEngine() as engine:
        plan = build_plan(data.X, data.y, task=TASK[data.loss], engine=engine)
        found = fit(plan, engine, asked)
    W = np.zeros((data.X.shape[1], found.W.shape[1]))
    W[found.active] = found.W
    seconds = time.perf_counter() - began
    return Ours(W, found.intercept, found.gap, found.stop_reason, found.passes, seconds), found.trace
