"""Any table as Arrow arrays: the columns of a table of pandas, polars or Arrow, of rows as dicts, or of an array.

Covers: the columns by name, lists and maps taken apart. Does not cover: what a column means (``kinds``, ``look``).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy import sparse

from dboost.data.named_columns import as_named, names_of_rows, refuse_unread
from dboost.errors import DataError, UsageError, without_values

_EXACT = 2.0**53
_PAIRS = pa.map_(pa.large_string(), pa.float64())


def columns_of(X: Any, only: Collection[str] | None = None) -> tuple[dict[str, Any], bool]:
    """Columns by name, each as one Arrow array, and whether the names are the caller's; else a UsageError.

    Of a table whose columns have names those of `only` are read, and the others may hold anything.
    """
    refuse_unread(X)
    X = as_named(X)
    if isinstance(X, Mapping):
        raise UsageError(
            "X is a dict; expected rows of a table", hint="give a list of dicts, one for each row, or a DataFrame"
        )
    if sparse.issparse(X):
        raise UsageError("X is sparse; expected rows of a table", hint="give a sparse matrix to the estimator itself")
    of_dicts = names_of_rows(X)
    if of_dicts is not None:
        names = of_dicts
    elif isinstance(X, pa.Table):
        names = X.schema.names
    elif hasattr(X, "columns"):
        names = list(X.columns)
    else:
        X = np.asarray(X)
        if X.ndim != 2:
            raise UsageError(f"Expected 2D array, got {X.ndim}D array instead", hint="Reshape your data")
        return {f"x{j}": arrow_of(f"x{j}", X[:, j]) for j in range(X.shape[1])}, False
    if not all(isinstance(name, str) for name in names) or len(set(names)) < len(names):
        raise UsageError("the names of the columns are not distinct texts", hint="rename the columns")
    wanted = [name for name in names if only is None or name in only]
    if of_dicts is not None:
        return {name: arrow_of(name, [row.get(name) for row in X]) for name in wanted}, True
    return {name: arrow_of(name, X[name]) for name in wanted}, True


def arrow_of(name: str, values: Any) -> Any:
    """Values of one column as an Arrow array; several types are a DataError."""
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return one_array(values)
    if hasattr(values, "sparse"):
        # one of pandas that holds what differs from a fill value
        values = np.asarray(values)
    try:
        return one_array(values.to_arrow() if hasattr(values, "to_arrow") else pa.array(values, from_pandas=True))
    except UnicodeEncodeError:
        raise no_surrogates("a value", name) from None
    except OverflowError:
        raise DataError(
            "an integer is beyond 64 bits, and 2**53 are the most that float64 holds exactly",
            column=name,
            hint="it may be an identifier: drop the column, or give it as text to make it a category",
        ) from None
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
        pairs = _pairs(values)
        if pairs is not None:
            return pairs
        said = without_values(error)
        raise DataError(
            f"the values are of several types or none that Arrow knows: {said}",
            column=name,
            hint="make all of them texts, or all numbers, or leave the column out",
        ) from None


def no_surrogates(what: str, column: str | None = None) -> DataError:
    """The error of a text with half of a surrogate pair."""
    return DataError(
        f"{what} holds half of a surrogate pair, which no text does",
        column=column,
        hint="clean it with text.encode('utf-8', 'replace').decode()",
    )


def _pairs(values: Any) -> Any:
    """Lists of pairs of a text and a number, which Arrow takes for a map only where it is told; else None."""
    try:
        return pa.array([None if one is None else [*one] for one in values], _PAIRS)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, TypeError, ValueError):
        return None


def one_array(values: Any) -> Any:
    """An array in pieces as one, and views of texts as texts with offsets."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks() if values.num_chunks != 1 else values.chunk(0)
        values = pa.concat_arrays(values.chunks) if isinstance(values, pa.ChunkedArray) else values
    if pa.types.is_string_view(values.type):
        return values.cast(pa.large_string())
    return values


def is_text(form: Any) -> bool:
    """Whether an Arrow type is one of text."""
    types = pa.types
    return bool(types.is_string(form) or types.is_large_string(form) or types.is_string_view(form))


def is_list(form: Any) -> bool:
    """Whether an Arrow type is one of lists of any length."""
    types = pa.types
    return bool(types.is_list(form) or types.is_large_list(form) or types.is_list_view(form))


def missing(values: Any) -> NDArray[np.bool_]:
    """Where values are missing: null, and NaN among numbers."""
    floats = pa.types.is_floating(values.type)
    found: NDArray[np.bool_] = pc.is_null(values, nan_is_null=floats).to_numpy(zero_copy_only=False)
    return found


def row_of(flags: Any) -> int:
    """The first row where a flag holds."""
    return int(np.argmax(np.asarray(flags)))


def texts_of(values: Any) -> Any:
    """Values as text: ``true`` and ``false``, categories as they are written, a whole number without a point."""
    if pa.types.is_dictionary(values.type):
        values = pc.cast(values, values.type.value_type)
    if pa.types.is_binary(values.type) or pa.types.is_large_binary(values.type):
        return pc.cast(pc.cast(values, pa.large_binary()), pa.large_string())
    if pa.types.is_timestamp(values.type):
        # pandas has nanoseconds and polars microseconds of the same times
        values = pc.cast(values, pa.timestamp("us", values.type.tz), safe=False)
    texts = pc.cast(values, pa.large_string())
    if not pa.types.is_floating(values.type):
        return texts
    if pa.types.is_float16(values.type):
        values = pc.cast(values, pa.float32())  # Arrow does no arithmetic with these
    # whole numbers become floats where one is missing, and large floats would be written with an exponent
    whole = pc.and_(pc.equal(values, pc.floor(values)), pc.less_equal(pc.abs(values), _EXACT))
    integers = pc.cast(pc.if_else(whole, values, pa.scalar(0, values.type)), pa.int64())
    return pc.if_else(whole, pc.cast(integers, pa.large_string()), texts)


def are_flags(values: Any) -> bool:
    """Whether values are true and false, or categories of both."""
    return bool(pa.types.is_boolean(values.type.value_type if pa.types.is_dictionary(values.type) else values.type))


def flat_lists(values: Any) -> tuple[NDArray[np.int64], Any]:
    """The row of every element of some lists, and the elements; those of a list that is missing are none."""
    lengths = pc.fill_null(pc.list_value_length(values), 0).to_numpy(zero_copy_only=False)
    return np.repeat(np.arange(len(values)), lengths), one_array(pc.list_flatten(values))


def tags_of(values: Any, column: str | None = None) -> tuple[NDArray[np.int64], Any]:
    """Row and value of every tag of some lists, of which none may be missing (DataError)."""
    rows, inner = flat_lists(values)
    gone = missing(inner)
    if gone.any():
        raise DataError(
            f"the tags of row {int(rows[row_of(gone)])} hold a missing one (null)",
            column=column,
            hint="take it out of the list",
        )
    return rows, inner


def split_tags(texts: Any, separator: str) -> Any:
    """Texts as lists of the tags in them, without blanks around them; an empty tag is none."""
    rows, tags = flat_lists(pc.split_pattern(pc.cast(texts, pa.large_string()), separator))
    tags = pc.utf8_trim_whitespace(tags)
    kept = pc.not_equal(tags, "").to_numpy(zero_copy_only=False)
    ends = np.concatenate([[0], np.cumsum(np.bincount(rows[kept], minlength=len(texts)))])
    lists = pa.LargeListArray.from_arrays(pa.array(ends, pa.int64()), tags.filter(pa.array(kept)))
    return pc.if_else(pc.is_valid(texts), lists, pa.scalar(None, lists.type)) if texts.null_count else lists


def flat_pairs(values: Any) -> tuple[NDArray[np.int64], Any, Any]:
    """Row, name and number of every pair of a map, a list of pairs or a struct, of which a null field is none."""
    here = np.flatnonzero(values.is_valid().to_numpy(zero_copy_only=False))
    held = values.drop_null()
    if pa.types.is_struct(values.type):
        names = [field.name for field in values.type]
        rows, keys, numbers = [], [], []
        for name in names:
            column = pc.struct_field(held, name)
            there = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
            rows.append(here[there])
            keys += [name] * there.size
            numbers.append(pc.cast(column.drop_null(), pa.float64()))
        at = np.concatenate([*rows, np.zeros(0, np.int64)]).astype(np.int64)
        return at, pa.array(keys, pa.large_string()), pa.concat_arrays([*numbers, pa.array([], pa.float64())])
    if not pa.types.is_map(values.type):
        held = held.cast(pa.list_(held.type.value_type))
        pairs = held.flatten()
        offsets = held.offsets.to_numpy()
        keys, numbers = (pc.struct_field(pairs, at) for at in (0, 1))
    else:
        offsets = held.offsets.to_numpy()
        begin, size = int(offsets[0]) if offsets.size else 0, int(offsets[-1] - offsets[0]) if offsets.size else 0
        keys, numbers = held.keys.slice(begin, size), held.items.slice(begin, size)
    return np.repeat(here, np.diff(offsets)), texts_of(keys), pc.cast(numbers, pa.float64())


def is_pairs(form: Any) -> bool:
    """Whether an Arrow type is one of maps, of lists of pairs, or of structs of numbers, also of none."""
    types = pa.types
    if types.is_map(form):
        return True
    if is_list(form):
        inner = form.value_type
        return bool(types.is_struct(inner) and inner.num_fields == 2)
    # a field that is missing in all rows has no type
    return bool(types.is_struct(form) and all(is_number(field.type) or types.is_null(field.type) for field in form))


def is_empty(form: Any) -> bool:
    """Whether an Arrow type is that of lists or dicts of which none has an element."""
    types = pa.types
    return bool(types.is_struct(form) and not form.num_fields) or (is_list(form) and types.is_null(form.value_type))


def is_number(form: Any) -> bool:
    """Whether an Arrow type is one of numbers."""
    types = pa.types
    return bool(types.is_integer(form) or types.is_floating(form) or types.is_decimal(form))


def documents_of(name: str, values: Any, missing: str) -> Any:
    """A column of text as an Arrow array; other values, and missing ones that are refused, are a DataError."""
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if pa.types.is_null(values.type):
        values = values.cast(pa.large_string())
    if not is_text(values.type):
        raise DataError(f"the values are {values.type}; expected text", column=name, hint="give it another kind")
    if values.null_count and missing == "refuse":
        first = int(np.flatnonzero(values.is_null().to_numpy(zero_copy_only=False))[0])
        raise DataError(
            f"{values.null_count} of {len(values)} texts are missing, the first in row {first}",
            column=name,
            hint='fill them, or give missing="zero", which takes them for empty ones',
        )
    return pc.fill_null(values.cast(pa.large_string()), "")
