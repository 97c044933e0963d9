"""Labels that are numbers: the targets of a regression, one or several, and the columns of several binary tasks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.data.labels.factorise import is_arrow
from dboost.errors import DataError


def task_labels(labels: Any) -> NDArray[np.int8]:
    """Labels of k binary tasks as int8 (m, k): -1, +1, and 0 where the label is missing."""
    values = task_values(labels)
    signs = 2 * (values > 0).view(np.int8) - np.int8(1)
    if values.dtype.kind == "f":
        signs[np.isnan(values)] = 0
    return signs


def regression_targets(labels: Any) -> NDArray[np.float64]:
    """Targets as float64 (m,), finite; text that looks like numbers is none."""
    if is_arrow(labels) and labels.null_count:
        raise DataError(f"{labels.null_count} targets are missing", hint="drop these rows")
    found = np.asarray(labels)
    _refuse_text(found)
    try:
        target = found.astype(np.float64)
    except (TypeError, ValueError) as fault:
        raise DataError("targets of a regression are not numbers") from fault
    if target.ndim == 2 and target.shape[1] == 1:
        target = target[:, 0]
    if target.ndim != 1:
        raise DataError(f"targets have shape {target.shape}, expected (m,)")
    if not np.all(np.isfinite(target)):
        raise DataError(f"target in row {int(np.argmin(np.isfinite(target)))} is not finite", hint="drop these rows")
    return target


def many_targets(labels: Any) -> NDArray[np.float64]:
    """Several targets as float64 (m, k), NaN where one is missing; text that looks like numbers is none."""
    found = np.asarray(labels.toarray() if hasattr(labels, "toarray") else labels)
    if found.ndim != 2 or not found.shape[1]:
        raise DataError(
            f"several targets have shape {found.shape}, expected (m, k): one column per target",
            hint="use BoostedRegressor for one target",
        )
    _refuse_text(found)
    try:
        if found.dtype.kind == "O":
            found = np.where(np.equal(found, None), np.nan, found)  # type: ignore[call-overload]
        targets = np.ascontiguousarray(found, dtype=np.float64)
    except (TypeError, ValueError) as fault:
        raise DataError("targets of a regression are not numbers") from fault
    endless = np.isinf(targets)
    if np.any(endless):
        row, target = (int(v) for v in np.argwhere(endless)[0])
        raise DataError(f"target {target} in row {row} is not finite", hint="use NaN where a target is missing")
    return targets


def _refuse_text(found: NDArray[Any]) -> None:
    text = found.dtype.kind == "O" and any(isinstance(item, str | bytes) for item in found.ravel().tolist())
    if text or found.dtype.kind not in "biufO":
        kind = "text" if text else str(found.dtype)
        raise DataError(f"targets of a regression are not numbers but of type {kind}")


def task_values(labels: Any) -> NDArray[Any]:
    """Task labels as (m, k) of -1, 0 and 1: int8, or float64 with NaN where they may be missing; others are refused."""
    if hasattr(labels, "toarray"):
        labels = labels.toarray()
    array = np.asarray(labels)
    if array.ndim != 2 or not array.shape[1]:
        raise DataError(
            f"labels of several tasks have shape {array.shape}, expected (m, k): one column per task",
            hint="use BoostedClassifier for one label in each row, and give lists of texts for tags",
        )
    if array.dtype.kind == "O":
        try:
            array = np.where(np.equal(array, None), np.nan, array).astype(np.float64)  # type: ignore[call-overload]
        except (TypeError, ValueError) as fault:
            raise DataError("labels of several tasks are not numbers", hint="use 0/1, -1/+1 or booleans") from fault
    if array.dtype.kind not in "biuf":
        raise DataError(f"labels of several tasks have type {array.dtype}", hint="use 0/1, -1/+1 or booleans")
    if array.dtype.kind != "f" and array.max(initial=0) <= 1 and array.min(initial=0) >= -1:
        # whole numbers are none missing, and may be many: an eighth of the memory
        return array.astype(np.int8)
    values = array.astype(np.float64)
    bad = ~(np.isnan(values) | (values == 0) | (np.abs(values) == 1))
    if np.any(bad):
        row, task = (int(v) for v in np.argwhere(bad)[0])
        raise DataError(
            f"label {array[row, task]} in row {row}, task {task}, expected 0/1, -1/+1 or booleans; NaN where missing"
        )
    return values
