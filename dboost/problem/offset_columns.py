"""Which columns of the data are offsets of the scores: as a user names them, and by their places.

Covers: checks, and the column of every output. Does not cover: what a fit makes of them (``passes.offsets``).
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.errors import UsageError

_EXPECTED = "expected the name or the place of a column, or one for each output"

Offset = tuple[str | int, ...]


def given_offset(value: Any) -> Offset:
    """The names or places of the columns, from what a user gave.

    Raises
    ------
    UsageError
        For what is neither a name, a place, nor a sequence of these, and for a column that is given twice.
    """
    if isinstance(value, str) or _is_place(value):
        value = (value,)
    if not isinstance(value, list | tuple | np.ndarray) or not len(value):
        raise UsageError(f"offset={value!r}", hint=_EXPECTED)
    found: list[str | int] = []
    for one in np.asarray(value).tolist() if isinstance(value, np.ndarray) else value:
        if not isinstance(one, str) and not _is_place(one):
            raise UsageError(f"offset names a column {one!r}", hint=_EXPECTED)
        found.append(one if isinstance(one, str) else int(one))
    if len(set(found)) < len(found):
        raise UsageError(f"offset={value!r} names a column twice", hint="give every output a column of its own")
    return tuple(found)


def _is_place(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool | np.bool_)


def offset_columns(offset: Offset, n: int, names: Sequence[str] | None, k: int) -> NDArray[np.int64]:
    """The column of every output, shape (k,).

    Parameters
    ----------
    offset : tuple
        As ``given_offset`` made it.
    n, k : int
        Number of features and of outputs.
    names : sequence of str or None
        Of the features, where they have some.

    Raises
    ------
    UsageError
        Where a name or a place is none of the data, there are not as many as outputs, or no feature is left.
    """
    if len(offset) != k:
        raise UsageError(
            f"offset has {len(offset)} column(s), and the model has {k} output(s)",
            hint="give a column for each output, in the order of classes_",
        )
    found = []
    for one in offset:
        if isinstance(one, int):
            if not -n <= one < n:
                raise UsageError(f"offset is column {one}, and the data has {n} columns", hint=_EXPECTED)
            found.append(one % n)
            continue
        if names is None or one not in names:
            near = difflib.get_close_matches(one, list(names or ()), n=1, cutoff=0.0)
            hint = f"did you mean {near[0]!r}?" if near else "the columns have no names: give a place, from 0 on"
            raise UsageError(f"offset={one!r} names no column of the data", hint=hint)
        found.append(list(names).index(one))
    if len(set(found)) < k:
        raise UsageError("offset names a column twice, by name and by place", hint="give every output its own")
    if n == k:
        raise UsageError("every column is an offset, and no feature is left", hint="give columns of features too")
    return np.array(found, dtype=np.int64)
