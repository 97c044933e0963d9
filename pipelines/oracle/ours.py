"""Solve a problem of the oracle with this library.

Covers: the call and its time, and the certificate the library gives. Does not cover: judging the answer (``compare``).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.boosting.fit import FitSettings, fit
from dboost.data.plan import build_plan
from dboost.engine.local import LocalEngine

from .problems import Encoded

TASK = {"log": "binary", "multinomial": "multiclass", "multitask": "multitask"}


@dataclass(frozen=True)
class Ours:
    """What the library returned.

    Parameters
    ----------
    W : float64 array, shape (n, k)
    b : float64 array, shape (k,)
    gap : float
        Its own certified relative gap; nan where it has none (no penalty).
    stop_reason : str
    passes : int
    seconds : float
    """

    W: NDArray[np.float64]
    b: NDArray[np.float64]
    gap: float
    stop_reason: str
    passes: int
    seconds: float


def solve(data: Encoded, penalty: str, alpha: float, intercept: bool, tol: float = 1e-7, **settings: Any) -> Ours:
    """Fit to a certified relative gap `tol`."""
    return solve_with_trace(data, penalty, alpha, intercept, tol, **settings)[0]


def solve_with_trace(
    data: Encoded, penalty: str, alpha: float, intercept: bool, tol: float = 1e-7, **settings: Any
) -> tuple[Ours, NDArray[np.float64]]:
    """Fit, and return the passes, seconds and objective after every step as well, shape (r, 3)."""
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
