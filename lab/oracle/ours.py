"""Solve a problem of the oracle with this library.

Covers: the call and its time, and the certificate the library gives. Does not cover: judging the answer (``compare``).
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

import dboost
from lab.oracle.problems import Encoded


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
