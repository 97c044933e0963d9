"""Documents as the compiled loops read them: the string buffers of Arrow, without a Python object per document.

Covers: lists, NumPy arrays, pandas and polars Series, Arrow arrays of every kind of string, one column of a table.
Does not cover: files (``dboost.data.prepared.documents``).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dboost.data.absent_column import listed
from dboost.data.features.arrow import no_surrogates
from dboost.data.named_columns import names_of
from dboost.errors import DataError, UsageError, type_name, without_values

# More pieces than this, or pieces of fewer bytes on average, are first joined: each costs a call of a loop.
_MOST_SEGMENTS = 64
_SEGMENT_BYTES = 1 << 20
# Bytes of a document: places in it are numbers of 32 bits, and of a term there may be many words.
_LONGEST = 1 << 30


@dataclass(frozen=True)
class Segment:
    """Documents that lie side by side."""

    data: NDArray[np.uint8]  # UTF-8 text; read-only.
    offsets: NDArray[np.int64]  # (documents + 1,)
    first: int  # Number of the first one among all documents.

    def __len__(self) -> int:
        return self.offsets.shape[0] - 1

    def part(self, begin: int, end: int) -> Segment:
        """Some of the documents, by their place in this segment."""
        return Segment(self.data, self.offsets[begin : end + 1], self.first + begin)

    def text(self, place: int) -> str:
        """One document; bytes that are no UTF-8 are a DataError."""
        content = self.data[self.offsets[place] : self.offsets[place + 1]].tobytes()
        try:
            return content.decode("utf-8")
        except UnicodeDecodeError as fault:
            raise DataError(
                f"document {self.first + place} is not UTF-8: {fault.reason} at its byte {fault.start}",
                hint="decode the text with the encoding that it has",
            ) from None


def documents(values: Any, column: str | None = None) -> list[Segment]:
    """The documents in `values`.

    `values`: List, NumPy array of one dimension, pandas or polars Series, Arrow Array or ChunkedArray; or pandas or
    polars DataFrame or Arrow Table.
    `column`: The column of a table; a table of one column needs none.
    Raises UsageError: A single string, an array of more than one dimension, or a table without a column named.
    Raises DataError: Missing documents, or something that is not text.
    """
    if isinstance(values, str | bytes):
        raise UsageError("the documents are a single string", hint="give a list of documents: [text]")
    named = _column(values, column)
    array = _arrow(named)
    if array.null_count:
        first = int(np.flatnonzero(array.is_null().to_numpy(zero_copy_only=False))[0])
        raise DataError(
            f"{array.null_count} documents are missing (null or NaN), the first is document {first}",
            column=column,
            hint="drop these rows, or replace them by an empty text",
        )
    return segments(array)


def segments(array: pa.ChunkedArray) -> list[Segment]:
    """The pieces of an array of strings without nulls."""
    chunks = [chunk for chunk in array.chunks if len(chunk)]
    if len(chunks) > 1:
        size = sum(chunk.nbytes for chunk in chunks)
        if len(chunks) > _MOST_SEGMENTS or size < len(chunks) * _SEGMENT_BYTES:
            chunks = [pa.concat_arrays([chunk.cast(pa.large_string()) for chunk in chunks])]
    found, first = [], 0
    for chunk in chunks:
        wide = pa.types.is_large_string(chunk.type)
        _, offsets, data = chunk.buffers()
        stored = np.frombuffer(offsets, np.int64 if wide else np.int32)[chunk.offset : chunk.offset + len(chunk) + 1]
        # An array of nothing but empty documents may have no text at all.
        text = np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, np.uint8)
        # Loops are compiled for one kind of array, and most of Arrow's are read-only.
        text.flags.writeable = False
        places: NDArray[np.int64] = stored.astype(np.int64)
        if places[-1] - places[0] > _LONGEST and np.diff(places).max() > _LONGEST:
            longest = int(np.diff(places).argmax())
            raise DataError(f"document {first + longest} has more than {_LONGEST >> 20} MiB", hint="cut it into parts")
        found.append(Segment(text, places, first))
        first += len(chunk)
    return found


def _column(values: Any, column: str | None) -> Any:
    """The column of a table; anything else as it is."""
    names = [] if getattr(values, "ndim", 2) == 1 else names_of(values)
    if not names:
        if column is not None:
            raise UsageError(
                f"column={column!r}, but the documents are no table: {type(values).__name__}",
                hint="give a DataFrame or a Table, or leave column out",
            )
        return values
    if column is None and len(names) > 1:
        raise UsageError(f"a table of {len(names)} columns, and none is named", hint=f"set column; {listed(names)}")
    column = names[0] if column is None else column
    if column not in names:
        raise DataError("no such column", column=str(column), hint=listed(names))
    return values[column]


def _of(values: Any, module: str, name: str) -> bool:
    """Whether `values` is of a class of a package, which is not imported for this."""
    package = sys.modules.get(module)
    return package is not None and isinstance(values, getattr(package, name))


def _arrow(values: Any) -> pa.ChunkedArray:
    """An array of strings, in one of the types that have offsets."""
    if _of(values, "polars", "Series"):
        values = values.to_arrow()
    if not isinstance(values, pa.Array | pa.ChunkedArray):
        if isinstance(values, np.ndarray) and values.ndim != 1:
            raise UsageError(
                f"the documents have {values.ndim} dimensions, expected 1", hint="give one text per row: X[:, 0]"
            )
        if not isinstance(values, np.ndarray | Sequence) and not _of(values, "pandas", "Series"):
            try:
                values = list(values)
            except TypeError:
                raise UsageError(
                    f"the documents are {type_name(values)}", hint="give a list of texts, an array or a column"
                ) from None
        values = _converted(values)
    if isinstance(values, pa.Array):
        values = pa.chunked_array([values])
    kind = values.type
    if pa.types.is_dictionary(kind):
        values = pa.chunked_array([chunk.dictionary_decode() for chunk in values.chunks], kind.value_type)
        kind = kind.value_type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return values
    if pa.types.is_null(kind) or pa.types.is_string_view(kind):
        return values.cast(pa.large_string())
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        try:
            return values.cast(pa.large_binary()).cast(pa.large_string())
        except pa.ArrowInvalid as fault:
            raise DataError(f"documents of bytes are not UTF-8: {fault}", hint="decode them before") from None
    raise DataError(f"documents of type {kind}, expected text", hint="name the text column, or turn it into strings")


def _converted(values: Any) -> pa.Array | pa.ChunkedArray:
    """Python's strings, or what pandas and NumPy hold them in, as Arrow."""
    plain = isinstance(values, Sequence) or values.dtype == object
    try:
        # A list is not looked at for its type first, which would take another pass.
        return pa.array(values, pa.large_string() if plain else None, from_pandas=not isinstance(values, Sequence))
    except UnicodeEncodeError:
        raise no_surrogates("a document") from None
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, TypeError) as fault:
        for number, value in enumerate(values):
            _refuse_other_than_text(number, value)
        raise DataError(f"the documents are no text: {without_values(fault)}") from None


def _refuse_other_than_text(number: int, value: Any) -> None:
    if isinstance(value, bytes):
        try:
            value.decode("utf-8")
        except UnicodeDecodeError:
            raise DataError(f"document {number} is not UTF-8", hint="decode it with the encoding that it has") from None
    elif not isinstance(value, str):
        missing = value is None or value != value
        raise DataError(
            f"document {number} is {type_name(value)}, expected text",
            hint="drop these rows, or replace them by an empty text" if missing else "give one text per document",
        )
