"""Rows that belong together, as numbers: the values of a column, or of an array, of which equal ones make a group.

Covers: the number of each value, which is the same in every block, file and process.
Does not cover: which groups are drawn (``dboost.passes.draws``).
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.data.labels.factorise import factorise
from dboost.errors import DataError


def group_numbers(values: Any, n_rows: int, **where: Any) -> NDArray[np.uint64]:
    """A number for each row, uint64 (m,), that tells its group: 64 bits of a digest of a text or whole number."""
    try:
        kind, distinct, codes = factorise(values)
    except DataError as fault:
        what = fault.what.removeprefix("Unknown label type: continuous. ")
        for word in ("Labels", "labels"):
            what = what.replace(word, "groups")
        raise DataError(what, hint="give each row a text or a whole number, such as its file", **where) from fault
    if len(codes) != n_rows:
        raise DataError(f"groups has {len(codes)} rows, X has {n_rows}", hint="give one group for each row", **where)
    # a whole number is the same group whatever type holds it
    number = kind in ("int", "float")
    found = [_digest(f"n{int(one)}" if number else f"{kind}{one}") for one in distinct.tolist()]
    return np.array(found, dtype=np.uint64)[codes]


def _digest(text: str) -> int:
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")
