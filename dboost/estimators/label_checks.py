"""Checks of labels in memory: what scikit-learn refuses, in its words, without sorting what need not be sorted.

Covers: labels of classes, of tasks, and the one target of a regression. Does not cover: encoding (``dboost.data``).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dboost.errors import DataError
from dboost.losses import Loss, refuse_invalid


def few_integers(y: Any) -> bool:
    """Whether labels are integers of so small a range that scikit-learn neither refuses them nor warns of many.

    It sorts them to know, which on small data takes a tenth of a fit.
    """
    return bool(y.dtype.kind in "iu") and y.size > 0 and 2 * (int(y.max()) - int(y.min()) + 1) <= y.size


def check_one_target(y: Any) -> None:
    """Refuse several columns as the target of a regression."""
    shape = tuple(y.shape)
    if len(shape) > 1 and shape[1] != 1:
        raise DataError(
            f"y should be a 1d array, got an array of shape {shape} instead: a regression has one target",
            hint="fit one BoostedRegressor for each column of y",
        )


def check_labels(loss: Loss, y: Any) -> None:
    """Refuse numbers that a loss is not defined for, with the row of the first; other kinds of labels pass."""
    if y.dtype.kind in "biuf":
        refuse_invalid(loss, np.asarray(y, np.float64).reshape(-1))


def check_tasks(y: Any) -> None:
    """Refuse, in scikit-learn's words, numbers that are clearly no labels of binary tasks."""
    from sklearn.utils.multiclass import type_of_target

    if y.dtype.kind not in "iuf" or not np.all(np.isfinite(y)) or two_labels(y):
        return
    found = type_of_target(y, input_name="y")
    rule = "labels of tasks are 0/1, -1/+1 or booleans, NaN where missing"
    if "continuous" in found:
        raise DataError(f"Unknown label type: {found}", hint=rule)
    if "multiclass" in found:
        raise DataError(
            f"Only binary classification is supported. The type of the target is {found}.",
            hint=f"{rule}; BoostedClassifier takes many classes",
        )


def two_labels(y: Any) -> bool:
    """Whether finite numbers are all 0 or 1, or all -1 or +1.

    scikit-learn sorts them, which takes as long as several rounds of a fit where tasks are many.
    """
    if not y.size or y.min() < -1 or y.max() > 1 or (y.dtype.kind == "f" and not np.array_equal(y, np.rint(y))):
        return False
    return bool(y.min() >= 0 or np.all(y))
