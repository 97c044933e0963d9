"""What the first passes over data tell: counts of labels, sums of columns, and which columns are far from zero."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dboost import passes
from dboost.columns.statistics import FAR_LABELS, Far, suspects
from dboost.errors import DataError
from dboost.hypotheses.held_by_model import Held
from dboost.losses import Loss
from dboost.partition import Sums
from dboost.problem.pass_runner import PassRunner

Array = NDArray[np.float64]


def label_sums(runner: PassRunner, loss: Loss, k: int, fit_intercept: bool, offsets: bool = False) -> Sums:
    """Sums of ``passes.label_counts`` over k outputs; it reads no column and is not counted as a pass.

    `offsets` tells whether scores begin at offsets.

    Raises DataError where the best intercept of the labels is infinite.
    """
    labels: Sums = runner.engine.map_reduce(passes.label_counts, loss, k, name="labels")
    mass, total = labels.add["mass"], labels.add["total"]
    why = loss.unbounded(mass, total) if fit_intercept else ""
    if fit_intercept and offsets and loss.counted and np.any((mass <= 0.0) | (mass >= total)):
        # the search for the best intercept, which is at infinity, would have no end
        why = "an output with an offset has one label only, and a free intercept"
    if why:
        raise DataError(why, hint="check the label column, or set fit_intercept=False")
    return labels


def far_columns(runner: PassRunner, held: Held | None, sums: Sums, weight: float, far: float) -> Far | None:
    """Those of some columns that are far from zero; one pass where there seem to be any.

    `held`: hypotheses; None for all stored columns. `sums`: what ``passes.feature_statistics`` found of them. `weight`:
    sum of the example weights. `far`: a mean of so many deviations is far from zero.
    """
    total = sums.add["total"]
    chosen = suspects(total, sums.add["square"], weight, far)
    if not chosen.size:
        return None
    some = Held(chosen, runner.token()) if held is None else held.some(chosen, runner.token())
    about = total[chosen] / weight
    return Far.of(chosen, about, runner.run(passes.moments_about, some, about, name="moments"), weight)


def far_labels(loss: Loss, labels: Sums, k: int) -> Array:
    """What is to be taken off the labels of each output, whose mean is far from zero beside their deviation; (k,)."""
    found = np.zeros(k)
    if "square" not in labels.add:
        return found
    mass, total = labels.add["mass"], np.maximum(labels.add["total"], np.finfo(float).tiny)
    far = suspects(mass, labels.add["square"], total, FAR_LABELS)
    found[far] = (mass / total)[far]
    return np.where(loss.by_difference(k) & np.isfinite(found), found, 0.0)
