"""Distinct labels of one block, whatever holds them.

Covers: NumPy, pandas and Arrow columns of labels to (kind, distinct values, codes); missing and mixed labels.
Does not cover: the class set of the whole data, encodings and weights (``labels``).

A kind is one of ``bool``, ``int``, ``float``, ``str``, ``bytes``. Arrow's dictionary, large and view strings are all
``str``. Floats count as labels only when they are whole numbers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dboost.data.meaning import column_kind, plain_type
from dboost.errors import DataError

# Distinct codes up to which comparing all with each takes less time than sorting them into bins.
_COMPARED = 4
KINDS = ("bool", "int", "float", "str", "bytes")
_BY_TYPE = {bool: "bool", np.bool_: "bool", int: "int", str: "str", np.str_: "str", bytes: "bytes", np.bytes_: "bytes"}


def is_arrow(values: Any) -> bool:
    """Whether `values` is a pyarrow Array or ChunkedArray (tested without importing pyarrow)."""
    return type(values).__module__.split(".")[0] == "pyarrow" and hasattr(values, "null_count")


class Factorised(NamedTuple):
    """What ``factorise`` finds."""

    kind: str
    distinct: NDArray[Any]
    codes: NDArray[np.int64]


def factorise(values: Any) -> Factorised:
    """The kind of labels ("none" of none), the different ones in no order, and the number of each row's among them."""
    if is_arrow(values):
        return _factorise_arrow(values)
    array = np.asarray(values)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise DataError(f"labels have shape {array.shape}, expected one label per row, shape (m,)")
    if array.shape[0] == 0:
        return Factorised("none", array[:0], np.zeros(0, dtype=np.int64))
    if array.dtype.kind == "O":
        return _factorise_objects(array)
    kind = {"b": "bool", "i": "int", "u": "int", "f": "float", "U": "str", "S": "bytes"}.get(array.dtype.kind)
    if kind is None and array.dtype.kind == "T":
        kind, array = "str", array.astype(object)
    if kind is None:
        raise DataError(
            f"labels of type {array.dtype} are not supported",
            hint="use strings, integers, booleans or bytes",
        )
    if kind == "float":
        _check_whole(array)
    if array.dtype.kind == "i":
        low, high = int(array.min()), int(array.max())
        if high - low < array.shape[0]:
            # small whole numbers need no sorting
            codes = np.subtract(array, low, dtype=np.int64)
            seen = tallies(codes, high - low + 1) > 0
            return Factorised(kind, (np.flatnonzero(seen) + low).astype(array.dtype), (np.cumsum(seen) - 1)[codes])
    distinct, codes = np.unique(array, return_inverse=True)
    return Factorised(kind, distinct, codes.reshape(-1).astype(np.int64))


def tallies(codes: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    """How many of the codes are 0, 1, ... ``count - 1``."""
    if count <= _COMPARED:
        return np.array([np.count_nonzero(codes == code) for code in range(count)], np.int64)
    return np.bincount(codes, minlength=count)


def finite_labels(array: NDArray[Any]) -> None:
    """Refuse floats as labels of which one is missing or infinite."""
    missing = int(np.count_nonzero(np.isnan(array)))
    if missing:
        raise _missing(missing)
    if not np.all(np.isfinite(array)):
        raise DataError("labels contain infinity", hint="drop these rows")


def _check_whole(array: NDArray[Any]) -> None:
    """Refuse missing and continuous floats as labels (scikit-learn's wording for the second)."""
    finite_labels(array)
    if np.any(array != np.floor(array)):
        raise DataError(
            "Unknown label type: continuous. Labels are fractions, expected classes",
            hint="use a regressor, or turn the labels into classes",
        )


def _missing(count: int) -> DataError:
    return DataError(f"{count} labels are missing (NaN or None)", hint="drop these rows, or give them a class")


def _factorise_objects(array: NDArray[Any]) -> Factorised:
    """Labels in an object array: one Python type, checked over all rows."""
    table: dict[Any, int] = {}
    kinds: dict[str, Any] = {}
    missing = 0
    codes = np.empty(array.shape[0], dtype=np.int64)
    types = set(map(type, array))
    for kind_type in types:
        if kind_type in _BY_TYPE:
            kinds.setdefault(_BY_TYPE[kind_type], kind_type.__name__)
        elif issubclass(kind_type, np.integer):
            kinds.setdefault("int", kind_type.__name__)
        elif issubclass(kind_type, float | np.floating):
            kinds.setdefault("float", kind_type.__name__)
        elif kind_type is type(None) or kind_type.__name__ in ("NAType", "NaTType"):
            missing += 1
        else:
            raise DataError(
                f"labels of type {kind_type.__name__} are not supported",
                hint="lists of tags are learned by MultiTaskBoostedClassifier"
                if kind_type in (list, tuple, set, np.ndarray)
                else "use strings, integers, booleans or bytes",
            )
    if missing:
        raise _missing(sum(1 for value in array if value is None or type(value).__name__ in ("NAType", "NaTType")))
    if "float" in kinds:
        floats = np.array([v for v in array if isinstance(v, float | np.floating)], dtype=np.float64)
        if np.any(np.isnan(floats)):
            raise _missing(int(np.count_nonzero(np.isnan(floats))))
    if len(kinds) > 1:
        raise mixed_kinds(sorted(kinds.values()))
    kind = next(iter(kinds))
    if kind == "float":
        return factorise(array.astype(np.float64))
    for i, value in enumerate(array):
        codes[i] = table.setdefault(value, len(table))
    distinct = list(table)
    if kind == "bool":
        return Factorised(kind, np.array(distinct, dtype=bool), codes)
    if kind == "int":
        return Factorised(kind, np.array([int(v) for v in distinct]), codes)
    found = np.empty(len(distinct), dtype=object)
    found[:] = [str(v) if kind == "str" else bytes(v) for v in distinct]
    return Factorised(kind, found, codes)


def _factorise_arrow(values: Any) -> Factorised:
    """Labels in an Arrow column; the dictionary encoding of Arrow does the work."""
    import pyarrow as pa

    column = values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([values])
    if column.null_count:
        raise _missing(column.null_count)
    kind = "float" if pa.types.is_floating(plain_type(column.type)) else column_kind(column.type)
    if kind not in KINDS:
        raise DataError(
            f"labels of Arrow type {column.type} are not supported",
            hint="lists of tags are learned with --loss multitask (MultiTaskBoostedClassifier)"
            if pa.types.is_nested(column.type)
            else "use strings, integers, booleans, floats or binary: cast the column",
        )
    if len(column) == 0:
        return Factorised("none", np.zeros(0, dtype=object), np.zeros(0, dtype=np.int64))
    if column.type != plain_type(column.type) and kind not in ("str", "bytes"):
        column = column.cast(plain_type(column.type))
    if kind in ("str", "bytes"):
        # View types lack most compute functions.
        column = column.cast(pa.large_string() if kind == "str" else pa.large_binary())
        encoded = column.combine_chunks().dictionary_encode()
        if isinstance(encoded, pa.ChunkedArray):
            encoded = encoded.chunk(0)
        distinct = np.empty(len(encoded.dictionary), dtype=object)
        distinct[:] = encoded.dictionary.to_pylist()
        return Factorised(kind, distinct, encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64))
    return factorise(column.to_numpy())


def mixed_kinds(found: list[str]) -> DataError:
    """The error for labels of several types."""
    return DataError(
        f"labels of mixed types: {' and '.join(found)}, expected one type",
        hint="convert the labels to one type, for example to strings",
    )
