"""Where the next optimum of a path is likely to be: a straight line through the last two."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dboost.problem.accelerators import EVERY
from dboost.problem.state import FitResult


def predicted(
    results: Sequence[FitResult], alpha: float, accelerators: Sequence[str] = EVERY
) -> FitResult | None:
    """The start of the fit at `alpha`, from those before it on a path; None at its beginning.

    Along a path of falling strengths the weights move almost linearly in log(alpha). The line through the last two
    optima leaves an error of second order in the step, where the last optimum alone leaves one of first order; on the
    arXiv abstracts a path of 50 strengths then takes half the time. A row that the line carries through zero starts at
    zero, one that has just entered goes on from its last value as if it had entered with the step.

    Parameters
    ----------
    results : sequence of FitResult
        Fits of one ``Fitting``, strongest penalty first.
    alpha : float
        The next strength, below those of `results`.
    accelerators : sequence of str
        Without ``path_start`` there is no start, without ``path_predictor`` it is the last optimum.
    """
    if not results or "path_start" not in accelerators:
        return None
    last = results[-1]
    line = len(results) > 1 and "path_predictor" in accelerators
    if not line or not 0.0 < alpha < last.alpha < results[-2].alpha:
        return last
    before = results[-2]
    t = min(1.0, math.log(last.alpha / alpha) / math.log(before.alpha / last.alpha))
    earlier = np.zeros_like(last.W)
    _, here, there = np.intersect1d(last.active, before.active, assume_unique=True, return_indices=True)
    earlier[here] = before.W[there]
    W = last.W + t * (last.W - earlier)
    W[np.einsum("ij,ij->i", W, last.W) <= 0.0] = 0.0
    held = np.any(W != 0.0, axis=1)
    intercept = last.intercept + t * (last.intercept - before.intercept)
    return replace(last, active=last.active[held], W=W[held], intercept=intercept)
