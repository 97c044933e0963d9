"""The fold of each row from what scikit-learn splits by: a splitter, or a list of its splits.

Covers: splits whose test sets hold every row once, and that train on all others. Does not cover: folds that are
drawn (``dboost.passes.draws``), or what is made of them (``cross_validated``).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.data.planned import count_rows
from dboost.errors import UsageError

_OTHERS = "give a splitter such as KFold, groups= where it needs them, or folds= with the fold of each row"


def is_splitter(cv: Any) -> bool:
    """Whether it is an object that splits, or a list of pairs."""
    if hasattr(cv, "split") and hasattr(cv, "get_n_splits"):
        return not isinstance(cv, type)
    return isinstance(cv, list | tuple) and bool(cv) and all(isinstance(one, tuple) and len(one) == 2 for one in cv)


def folds_of(cv: Any, y: Any, groups: Any = None) -> NDArray[np.int64]:
    """The fold of each row, int64 (m,), of a splitter or a list of (training rows, test rows).

    Some splitters spread the labels (m,) or (m, k) evenly, others keep the groups (m,) together.

    Raises
    ------
    UsageError
        Where it does not test every row once, trains on others than all the rest, or needs groups that are not given.
    """
    m = count_rows(y)
    if hasattr(cv, "split"):
        try:
            splits = list(cv.split(np.zeros((m, 1)), np.asarray(y), groups=groups))
        except (TypeError, ValueError) as fault:
            raise UsageError(f"cv={cv!r} does not split these rows: {fault}", hint=_OTHERS) from fault
    else:
        splits = list(cv)
    found = np.full(m, -1, dtype=np.int64)
    for number, (train, test) in enumerate(splits):
        tested, trained = _rows(test, m, number), _rows(train, m, number)
        if np.any(tested & trained):
            raise UsageError(f"split {number} of cv= trains on a row that it tests", hint=_OTHERS)
        if not np.all(tested | trained):
            raise UsageError(f"split {number} of cv= leaves rows out, and a fit trains on all others", hint=_OTHERS)
        if np.any(found[tested] >= 0):
            raise UsageError(f"split {number} of cv= tests a row that an earlier one tests", hint=_OTHERS)
        found[tested] = number
    if np.any(found < 0):
        raise UsageError(f"no split of cv= tests row {int(np.argmin(found))}", hint=_OTHERS)
    return found


def _rows(given: Any, m: int, number: int) -> NDArray[np.bool_]:
    """Which rows are among some, by number or as a mask."""
    rows = np.asarray(given)
    if rows.dtype == np.bool_ and rows.shape == (m,):
        return rows
    if rows.ndim != 1 or rows.dtype.kind not in "iu" or np.any((rows < 0) | (rows >= m)):
        hint = f"expected rows from 0 to {m - 1}"
        raise UsageError(f"split {number} of cv= names rows that are not there", hint=hint)
    found = np.zeros(m, dtype=np.bool_)
    found[rows] = True
    return found
