"""Rows to columns: pieces of CSR become one CSC block, checked on the way.

Covers: the two counting-sort kernels, duplicates, explicit zeros, non-finite values and indices out of range.
Does not cover: pieces of rows and their checks (``csr``), where they come from, or labels and weights.

One read of the input counts and checks, a second places the values. Rows are visited in order, so the rows of a
column come out sorted without a sort, and a duplicate entry lands beside its twin.

Blocks without explicit zeros or rows to leave out, which is what ``dboost prepare`` writes, take a faster way to the
same arrays: plain loops check, count and place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dboost.compiled.arrays import Int32, Int64, Values
from dboost.compiled.kept import njit
from dboost.compiled.read_only import read_only
from dboost.compiled.sparse.transpose import turn
from dboost.compiled.vectors.new_arrays import new_arrays
from dboost.compiled.vectors.room import lesser
from dboost.data.prepared.mapper import InProcess
from dboost.data.sparse.csr import CsrPiece, ascending, clean_rows
from dboost.errors import DataError


class Unclean(Exception):
    """Rows hold zeros, duplicates or faults; they are cleaned, or refused, before they are put by column."""


# Rows of a dense block that are put by column at a time: they stay in the processor's cache.
_ROWS = 256

# Calls a function of one argument for every item.
Each = Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]

_OK, _RANGE, _FINITE, _OFFSETS = 0, 1, 2, 3

PART_VALUES = 250_000
"""Stored values of a block that are worth a turn of a thread of their own: about 1 ms on one core."""
PART_COLUMNS = 4
"""A part holds so many values for every column, or more: each part counts the values of all columns anew."""
MOST_PARTS = 8
"""Parts of a block at most: so many keep the threads of most machines busy."""


@njit(nogil=True, cache=True)
def _count(
    indptr: Int64, indices: Values, values: Values, target: Int32, n_features: int, counts: Int64
) -> tuple[int, int, int]:
    """Count the nonzeros of each column in counts[column + 1]; return (code, row, position) of the first fault."""
    stored = indices.shape[0]
    for i in range(indptr.shape[0] - 1):
        start, stop = indptr[i], indptr[i + 1]
        if start < 0 or stop < start or stop > stored:
            return _OFFSETS, i, start
        if target[i] < 0:
            continue
        for p in range(start, stop):
            column = indices[p]
            if column < 0 or column >= n_features:
                return _RANGE, i, p
            value = values[p]
            if not np.isfinite(value):
                return _FINITE, i, p
            if value != 0:
                counts[column + 1] += 1
    return _OK, 0, 0


@njit(nogil=True, cache=True)
def _place(
    indptr: Int64,
    indices: Values,
    values: Values,
    target: Int32,
    start_of: Int64,
    cursor: Int64,
    rows: Int32,
    out: Values,
) -> int:
    """Write rows and values of one piece at the cursors of their columns; return the number of duplicates."""
    duplicates = 0
    for i in range(indptr.shape[0] - 1):
        row = target[i]
        if row < 0:
            continue
        for p in range(indptr[i], indptr[i + 1]):
            value = values[p]
            if value == 0:
                continue
            column = indices[p]
            q = cursor[column]
            if q > start_of[column] and rows[q - 1] == row:
                duplicates += 1
            rows[q] = row
            out[q] = value
            cursor[column] = q + 1
    return duplicates


@njit(nogil=True, cache=True)
def _sum_duplicates(indptr: Int64, rows: Int32, values: Values) -> Int64:
    """Add neighbours of equal row within a column, drop what became zero, in place; return the new indptr."""
    compact = np.zeros_like(indptr)
    write = 0
    for j in range(indptr.shape[0] - 1):
        p, stop = indptr[j], indptr[j + 1]
        while p < stop:
            row, total = rows[p], values[p]
            p += 1
            while p < stop and rows[p] == row:
                total += values[p]
                p += 1
            if total != 0:
                rows[write] = row
                values[write] = total
                write += 1
        compact[j + 1] = write
    return compact


@njit(nogil=True, cache=True)
def _count_usual(indices: Values, counts: Int64) -> None:
    """Count the values of each column in counts[column + 1]."""
    for p in range(indices.shape[0]):
        counts[np.uint64(indices[p]) + np.uint64(1)] += 1


@njit(nogil=True, cache=True)
def _count_duplicates(indptr: Int64, rows: Int32) -> int:
    duplicates = 0
    for j in range(indptr.shape[0] - 1):
        for q in range(np.uint64(indptr[j] + 1), np.uint64(indptr[j + 1])):
            duplicates += rows[q] == rows[q - np.uint64(1)]
    return duplicates


@njit(nogil=True, cache=True)
def _count_dense(dense: Values, counts: Int64) -> bool:
    """Count the nonzeros of each column of a dense block in counts[column + 1]; tell whether all are finite."""
    odd = False
    for i in range(dense.shape[0]):
        for j in range(dense.shape[1]):
            value = dense[i, j]
            odd |= not abs(value) < np.inf
            counts[j + 1] += value != 0
    return not odd


@njit(nogil=True, cache=True)
def _place_dense(dense: Values, cursor: Int64, rows: Int32, out: Values) -> None:
    """Write rows and values of a dense block at the cursors of their columns."""
    for first in range(0, dense.shape[0], _ROWS):
        last = lesser(first + _ROWS, dense.shape[0])
        for j in range(dense.shape[1]):
            q = np.uint64(cursor[j])
            for i in range(first, last):
                value = dense[i, j]
                if value != 0:
                    rows[q] = i
                    out[q] = value
                    q += np.uint64(1)
            cursor[j] = q


def dense_to_csc(
    dense: NDArray[Any], dtype: np.dtype[Any]
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[Any]]:
    """As ``to_csc`` of a dense block (m, n) that is not put by row first; ``Unclean`` where a value is not finite."""
    indptr = np.zeros(dense.shape[1] + 1, dtype=np.int64)
    dense = read_only(dense)
    if not _count_dense(dense, indptr):
        raise Unclean
    np.cumsum(indptr, out=indptr)
    rows, values = new_arrays((int(indptr[-1]), np.int32), (int(indptr[-1]), dtype))
    _place_dense(dense, indptr[:-1].copy(), rows, values)
    return indptr, rows, values


def to_csc(
    pieces: Sequence[CsrPiece],
    n_features: int,
    *,
    dtype: np.dtype[Any],
    keep: NDArray[np.bool_] | None = None,
    names: Sequence[str] | None = None,
    strict: bool = False,
    each: Each | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[Any]]:
    """Join pieces of rows into one block stored by column.

    `n_features`: Number of columns n.
    `dtype`: Type of the stored values.
    `keep`: Rows to keep; the others leave no trace and are not checked.
    `names`: Feature names, for messages.
    `strict`: Refuse pieces with zeros, duplicates or faults, whose rows the caller will clean first.
    `each`: Calls ``fn(item)`` for every item, on threads if it likes: a block that holds enough is then cut into parts.
    The arrays are the same.
    Returns indptr, int64 array, shape (n + 1,).
    Returns rows, int32 array, shape (nnz,): Ascending and unique within a column.
    Returns values, array of `dtype`, shape (nnz,): Nonzero and finite. Duplicates of the input are summed.
    Raises DataError: A value is not finite, an index is out of range, or the offsets of the rows are damaged.
    Raises Unclean: As `strict` says.
    """
    n_rows = sum(piece.n_rows for piece in pieces)
    if n_rows >= np.iinfo(np.int32).max:
        raise DataError(f"a block of {n_rows} rows is too large; cut the data into row groups of fewer than 2^31 rows")
    if keep is None:
        found = _from_usual(pieces, n_features, dtype, each)
        if found is not None and found[3] == 0:
            return found[:3]
        if found is not None and not strict:
            return _without_duplicates(*found[:3])
    if strict:
        raise Unclean
    target = np.arange(n_rows, dtype=np.int32)
    if keep is not None:
        target = np.where(keep, np.cumsum(keep, dtype=np.int32) - np.int32(1), np.int32(-1)).astype(np.int32)
    bounds = np.concatenate([[0], np.cumsum([piece.n_rows for piece in pieces])]).astype(np.int64)
    stored = [
        (read_only(piece.indptr), read_only(piece.indices), read_only(piece.values), target[a:b])
        for piece, (a, b) in zip(pieces, pairwise(bounds), strict=True)
    ]
    indptr = np.zeros(n_features + 1, dtype=np.int64)
    for piece, rows_of_piece in zip(pieces, stored, strict=True):
        code, row, position = _count(*rows_of_piece, n_features, indptr)
        if code != _OK:
            raise _refusal(piece, code, row, position, n_features, names)
    np.cumsum(indptr, out=indptr)
    rows, values = new_arrays((int(indptr[-1]), np.int32), (int(indptr[-1]), dtype))
    cursor = indptr[:-1].copy()
    duplicates = sum(_place(*rows_of_piece, indptr, cursor, rows, values) for rows_of_piece in stored)
    return _without_duplicates(indptr, rows, values) if duplicates else (indptr, rows, values)


def _without_duplicates(indptr: Any, rows: Any, values: Any) -> tuple[Any, Any, Any]:
    indptr = _sum_duplicates(indptr, rows, values)
    return indptr, rows[: indptr[-1]].copy(), values[: indptr[-1]].copy()


def _from_usual(
    pieces: Sequence[CsrPiece], n_features: int, dtype: np.dtype[Any], each: Each | None
) -> tuple[Any, Any, Any, int] | None:
    """The block by the faster way, and its duplicates; None where a piece has zeros, faults, or another type."""
    parts, run = ([pieces], InProcess().on_driver) if each is None else (_parts(pieces, n_features), each)
    counted = run(lambda part: _counted(part, n_features, dtype), parts)
    if any(one is None for one in counted):
        return None
    indptr = counted[0].counts if len(parts) == 1 else np.sum([one.counts for one in counted], axis=0)
    np.cumsum(indptr, out=indptr)
    rows, out = new_arrays((int(indptr[-1]), np.int32), (int(indptr[-1]), dtype))
    # half the numbers' size where it suffices: one for each column is at hand all the time
    cursor, row, work = indptr[:-1].astype(np.uint32 if indptr[-1] < 2**32 else np.uint64), 0, []
    for one in counted:
        work.append((one.inside, row, cursor))
        if len(parts) > 1:
            # the next part goes on where this one ends
            cursor = (cursor + one.counts[1:]).astype(cursor.dtype)
        row += one.n_rows

    def placed(given: tuple[Any, int, Any]) -> None:
        inside, line, at = given
        for offsets, indices, values in inside:
            turn(offsets[:-1], offsets[1:], indices, values, line, at, rows, out)
            line += offsets.shape[0] - 1

    run(placed, work)
    ascend = all(one.ascend for one in counted)
    return indptr, rows, out, 0 if ascend else int(_count_duplicates(indptr, rows))


class _Counted(NamedTuple):
    """A part that may be put by column the faster way."""

    inside: list[tuple[Any, Any, Any]]  # Of each piece; the offsets start with 0.
    counts: NDArray[np.int64]  # int64 array, shape (n + 1,). counts[j + 1]: values of column j.
    ascend: bool  # Whether the columns of every row ascend.

    @property
    def n_rows(self) -> int:
        return sum(offsets.shape[0] - 1 for offsets, _, _ in self.inside)


def _counted(pieces: Sequence[CsrPiece], n_features: int, dtype: np.dtype[Any]) -> _Counted | None:
    """Check and count a part; None where it has zeros, faults, or values of another type."""
    counts, inside, ascend = np.zeros(n_features + 1, dtype=np.int64), [], True
    for piece in pieces:
        found = clean_rows(piece, n_features) if piece.values.dtype == dtype else None
        if found is None:
            return None
        _count_usual(found[1], counts)
        ascend = ascend and ascending(*found[:2])
        inside.append(found)
    return _Counted(inside, counts, ascend)


def _parts(pieces: Sequence[CsrPiece], n_features: int) -> list[list[CsrPiece]]:
    """Consecutive rows in parts of about as many values each, as many as are worth a turn of their own."""
    sizes = [max(0, int(piece.indptr[-1]) - int(piece.indptr[0])) for piece in pieces]
    worth = min(sum(sizes) // max(PART_VALUES, PART_COLUMNS * n_features), MOST_PARTS)
    if worth < 2:
        return [list(pieces)]
    # a power of two: as many for one thread as for another
    count = 1 << (worth.bit_length() - 1)
    parts = []
    for piece, size in zip(pieces, sizes, strict=True):
        goals = piece.indptr[0] + np.arange(1, count) * size // count
        # sorted: offsets may be damaged, which is found part by part
        inner = np.sort(np.searchsorted(piece.indptr[:-1], goals)).tolist()
        for start, stop in pairwise([0, *inner, piece.n_rows]):
            parts.append([replace(piece, indptr=piece.indptr[start : stop + 1], first_row=piece.first_row + start)])
    return parts


def _refusal(
    piece: CsrPiece, code: int, row: int, position: int, n_features: int, names: Sequence[str] | None
) -> DataError:
    """The error for one fault found by ``_count``."""
    where = f"row {piece.first_row + row}"
    at_values = piece.column[-1] if piece.column else None
    at_indices = piece.column[0] if piece.column else None
    common: dict[str, Any] = {"file": piece.file, "row_group": piece.row_group}
    if code == _OFFSETS:
        return DataError(f"the row offsets are damaged at {where}", column=at_indices, **common)
    column = int(piece.indices[position])
    if code == _RANGE:
        return DataError(
            f"feature index {column} in {where}, expected 0 to {n_features - 1}",
            column=at_indices,
            hint="give the right n_features, or prepare all files with one vocabulary",
            **common,
        )
    label, value = str(column) if names is None else names[column], float(piece.values[position])
    shown = "NaN" if np.isnan(value) else ("infinity" if value > 0 else "-infinity")
    what = f"{shown} in {where}" if at_values is None else f"{shown} for feature {label!r} in {where}"
    return DataError(
        f"{what}, expected finite values",
        column=label if at_values is None else at_values,
        hint="impute or drop these rows",
        **common,
    )
