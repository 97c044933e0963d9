"""Rows of a sparse matrix: a piece of CSR, what is checked of it, and pieces joined by row.

Covers: ``CsrPiece``, plain loops over stored values, blocks that stay by row. Does not cover: columns (``csc``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.compiled.arrays import Int32, Int64, Values
from dboost.compiled.kept import njit
from dboost.compiled.read_only import read_only


@dataclass(frozen=True)
class CsrPiece:
    """Consecutive rows of a sparse matrix, with what an error message needs to know about their origin."""

    # (m + 1,): Absolute offsets into `indices` and `values`; the first need not be 0.
    indptr: NDArray[np.int64]
    indices: NDArray[Any]
    values: NDArray[Any]
    file: str | None = None
    row_group: int | None = None
    # Names of the columns that hold indices and values, for list columns; empty where each feature has its own.
    column: tuple[str, ...] = ()
    first_row: int = 0  # Number of the first row within the file or matrix.

    @property
    def n_rows(self) -> int:
        """Number of rows m."""
        return int(self.indptr.shape[0]) - 1


@njit(nogil=True, cache=True)
def usual(indices: Values, values: Values, n_features: int) -> bool:
    """Whether all indices are in range and all values finite and not zero."""
    end = np.uint64(n_features)
    odd = False
    for p in range(indices.shape[0]):
        size = abs(values[p])
        # of unsigned numbers, a negative index is a large one; NaN is not below anything
        odd |= (np.uint64(indices[p]) >= end) | (not size < np.inf) | (size == 0)
    return not odd


@njit(nogil=True, cache=True)
def ascending(indptr: Values, indices: Values) -> bool:
    """Whether the columns of each row ascend, none twice; `indptr` starts with 0."""
    # a plain loop over all neighbours, less those of two rows
    falls = np.int64(0)
    for p in range(1, indices.shape[0]):
        falls += indices[p] <= indices[p - 1]
    last = np.int64(0)
    for i in range(1, indptr.shape[0] - 1):
        start = indptr[i]
        if start > last and start < indices.shape[0]:
            falls -= indices[start] <= indices[start - 1]
            last = start
    found: bool = falls == 0
    return found


@njit(nogil=True, cache=True)
def any_repeats(indptr: Values, indices: Int32, n_features: int) -> bool:
    """Whether a row of a matrix names a column twice; indices are in range, in any order."""
    if ascending(indptr, indices):
        return False
    last = np.full(n_features, -1, np.int64)
    for i in range(indptr.shape[0] - 1):
        for p in range(indptr[i], indptr[i + 1]):
            if last[indices[p]] == i:
                return True
            last[indices[p]] = i
    return False


@njit(nogil=True, cache=True)
def dense_to_csr(dense: Values, indptr: Int64, indices: Int32, values: Values) -> None:
    """Store the nonzeros (NaN included, so that the check sees them) of `dense` by row; arrays are preallocated."""
    p = 0
    for i in range(dense.shape[0]):
        for j in range(dense.shape[1]):
            value = dense[i, j]
            if value != 0:
                indices[p] = j
                values[p] = value
                p += 1
        indptr[i + 1] = p


def clean_rows(piece: CsrPiece, n_features: int) -> tuple[Any, Any, Any] | None:
    """Offsets from 0 on, columns and values of a piece, read-only; None where it has zeros or faults."""
    first, stop = int(piece.indptr[0]), int(piece.indptr[-1])
    if first < 0 or stop > piece.indices.shape[0] or (piece.n_rows and int(np.diff(piece.indptr).min()) < 0):
        return None
    offsets = read_only((piece.indptr - first).astype(np.int64, copy=False))
    indices, values = read_only(piece.indices[first:stop]), read_only(piece.values[first:stop])
    return (offsets, indices, values) if usual(indices, values, n_features) else None


def as_rows_of(pieces: Sequence[CsrPiece], n_features: int) -> tuple[Any, Any, Any] | None:
    """Pieces joined by row (int64, int32, float32), one alone uncopied; None where ``to_csc`` would change values."""
    pointers, index, data, first_value = [np.zeros(1, np.int64)], [], [], 0
    for piece in pieces:
        if piece.values.dtype != np.float32 or piece.indices.dtype != np.int32:
            return None
        found = clean_rows(piece, n_features)
        if found is None or not ascending(*found[:2]):
            return None
        pointers.append(found[0][1:] + first_value)
        index.append(found[1])
        data.append(found[2])
        first_value += found[1].shape[0]
    if len(index) == 1:
        return np.concatenate(pointers), index[0], data[0]
    return (
        np.concatenate(pointers),
        np.concatenate([*index, np.zeros(0, np.int32)]),
        np.concatenate([*data, np.zeros(0, np.float32)]),
    )
