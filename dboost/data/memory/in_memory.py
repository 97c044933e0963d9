"""Matrices and tables in memory, cut into blocks of rows.

Covers: NumPy arrays, SciPy sparse matrices and arrays, pandas and Arrow tables (and what exports an Arrow stream).
Does not cover: labels (``labels``), collections of Dask (``collections``), files (``parquet``).

How many rows a block has depends on the data only (``blocks``), not on the type that holds the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dboost.compiled.read_only import read_only
from dboost.data.blocks import rows_per_block, stored_values
from dboost.data.sparse.csr import CsrPiece, any_repeats, dense_to_csr
from dboost.errors import DataError, UsageError, without_values

_ENCODE = "make features of this column by dboost.Features, or drop it"


@dataclass(frozen=True)
class Rows:
    """A matrix that hands out ranges of its rows as CSR."""

    indptr: NDArray[np.int64]  # (m + 1,): Cumulated number of nonzeros per row.
    n_features: int
    dtype: np.dtype[Any]  # Type of the values handed out.
    names: tuple[str, ...] | None = None  # Column names where the input has them.
    # indices, values: Arrays, shape (nnz,), or None. CSR, clean (without zeros or columns that occur twice in a row)
    # unless asked otherwise; the columns of a row in any order.
    indices: NDArray[Any] | None = None
    values: NDArray[Any] | None = None
    dense: NDArray[Any] | None = None  # Array, shape (m, n), or None. Instead of `indices` and `values`.

    @property
    def n_rows(self) -> int:
        """Number of rows m."""
        return int(self.indptr.shape[0]) - 1

    def between(self, start: int, stop: int) -> Rows:
        """Some of the rows, without what the others store."""
        indptr = self.indptr[start : stop + 1]
        if self.dense is not None:
            return replace(self, indptr=indptr - indptr[0], dense=self.dense[start:stop])
        assert self.indices is not None and self.values is not None
        mine = slice(int(indptr[0]), int(indptr[-1]))
        return replace(self, indptr=indptr - indptr[0], indices=self.indices[mine], values=self.values[mine])

    def piece(self, start: int = 0, stop: int | None = None) -> CsrPiece:
        """Rows [start, stop) as CSR; without a copy where the matrix is sparse."""
        stop = self.n_rows if stop is None else stop
        indptr = self.indptr[start : stop + 1]
        if self.dense is None:
            assert self.indices is not None and self.values is not None
            return CsrPiece(indptr, self.indices, self.values, first_row=start)
        return replace(dense_piece(self.dense[start:stop], self.dtype), first_row=start)


def dense_piece(dense: NDArray[Any], dtype: np.dtype[Any]) -> CsrPiece:
    """A dense block (m, n) as CSR with the values in `dtype`."""
    nnz = int(np.count_nonzero(dense))
    indptr = np.zeros(dense.shape[0] + 1, dtype=np.int64)
    indices = np.empty(nnz, dtype=np.int32)
    values = np.empty(nnz, dtype=dtype)
    dense_to_csr(read_only(dense), indptr, indices, values)
    return CsrPiece(indptr, indices, values)


def value_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """float32 for float16 and float32, float64 for every other number, those of more digits too."""
    return np.dtype(np.float32 if dtype in (np.dtype(np.float32), np.dtype(np.float16)) else np.float64)


def block_bounds(rows: Rows, keep: NDArray[np.bool_], n_outputs: int) -> NDArray[np.int64]:
    """First rows of the blocks, and the end: int64 (number of blocks + 1,); only rows to keep count.

    `keep`: bool array, shape (m,). The other rows leave no trace.
    `n_outputs`: A pass works so often on what is stored.
    """
    every = bool(np.all(keep))
    n_rows = rows.n_rows if every else int(np.count_nonzero(keep))
    stored = stored_values(rows.indptr, None if every else keep)
    size = rows_per_block(n_rows, n_rows + stored, rows.n_features, n_outputs)
    inner = np.arange(size, n_rows, size)
    return np.concatenate([[0], inner if every else np.flatnonzero(keep)[inner], [rows.n_rows]]).astype(np.int64)


def as_rows(X: Any, clean: bool = True) -> Rows:
    """The rows of any supported matrix or table.

    `clean`: Whether faults, zeros and duplicates of a sparse matrix are looked for, and what is no fault removed.
    Otherwise offsets and indices of the rows are what the matrix says, in range or not.
    Raises DataError: Wrong number of dimensions, values that are not real numbers, missing values, duplicate column
    names.
    Raises UsageError: A type that is not supported.
    """
    if sparse.issparse(X):
        return _sparse_rows(X, clean)
    home = type(X).__module__.split(".")[0]
    if home == "pandas":
        return _pandas_rows(X)
    if home == "pyarrow" or (hasattr(X, "__arrow_c_stream__") and not hasattr(X, "__array_interface__")):
        return _arrow_rows(X)
    if isinstance(X, str | bytes):
        raise UsageError("X is a string", hint="read files with dboost.ParquetData(path)")
    return _dense_rows(np.asarray(X))


def _sparse_rows(X: Any, clean: bool = True) -> Rows:
    if X.ndim != 2:
        raise DataError(f"X has shape {X.shape}, expected (rows, features)")
    matrix = X.tocsr()
    _check_real(matrix.dtype)
    # An index out of range would make compiled code write outside its arrays; who asks for rows as they are looks.
    try:
        matrix.check_format(full_check=clean)
    except ValueError as fault:
        raise DataError(f"X is a damaged sparse matrix: {fault}") from fault
    if clean and not _is_clean(matrix):
        if matrix is X or np.shares_memory(matrix.data, getattr(X, "data", matrix.data)):
            matrix = matrix.copy()
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
    dtype = value_dtype(matrix.dtype)
    return Rows(
        matrix.indptr.astype(np.int64),
        int(matrix.shape[1]),
        dtype,
        indices=matrix.indices,
        values=matrix.data.astype(dtype, copy=False),
    )


def _is_clean(matrix: Any) -> bool:
    """Whether a CSR matrix stores no zeros, and no column of a row twice."""
    stored = matrix.data[: matrix.indptr[-1]]
    # the order within a row is lost on the way to columns: it need not be made
    pointer = read_only(matrix.indptr.astype(np.int64, copy=False))
    repeats = any_repeats(pointer, read_only(matrix.indices), matrix.shape[1])
    return not repeats and int(np.count_nonzero(stored)) == stored.shape[0]


def _dense_rows(array: NDArray[Any], names: tuple[str, ...] | None = None) -> Rows:
    if array.ndim != 2:
        hint = "use X.reshape(-1, 1) for one feature, X.reshape(1, -1) for one row" if array.ndim == 1 else None
        raise DataError(f"X has shape {array.shape}, expected (rows, features)", hint=hint)
    if array.dtype.kind == "O":
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError) as fault:
            said = without_values(fault)
            raise DataError(f"X holds values that are not numbers: {said}", hint="encode categories first") from None
    _check_real(array.dtype)
    dtype = value_dtype(array.dtype)
    if array.dtype.kind == "b" or array.dtype == np.float16 or array.dtype.itemsize > 8:
        array = array.astype(dtype)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    m, n = array.shape
    # most tables have no zeros, which is known eight times as fast as their number in each row
    by_row = np.full(m, n) if np.count_nonzero(array) == m * n else np.count_nonzero(array, axis=1)
    indptr = np.zeros(m + 1, dtype=np.int64)
    np.cumsum(by_row, out=indptr[1:])
    return Rows(indptr, int(array.shape[1]), dtype, names=names, dense=array)


def _check_real(dtype: np.dtype[Any]) -> None:
    if dtype.kind == "c":
        raise DataError("Complex data not supported: X holds complex numbers")
    if dtype.kind not in "biuf":
        raise DataError(f"X has type {dtype}, expected real numbers", hint="encode categories as numbers first")


def check_names(names: Sequence[Any]) -> tuple[str, ...] | None:
    """Column names where all are strings, else None; duplicates are refused."""
    seen: set[Any] = set()
    for name in names:
        if name in seen:
            raise DataError("two columns have the same name", column=str(name), hint="rename one of them")
        seen.add(name)
    return tuple(names) if names and all(isinstance(name, str) for name in names) else None


def _pandas_rows(X: Any) -> Rows:
    if X.ndim != 2:
        raise DataError(f"X is a pandas {type(X).__name__}, expected a DataFrame", hint="use X.to_frame()")
    names = check_names(list(X.columns))
    kinds = []
    for position, name in enumerate(X.columns):
        dtype = X.dtypes.iloc[position]
        plain = getattr(dtype, "numpy_dtype", getattr(dtype, "subtype", dtype))
        if plain == np.dtype(object) and holds_numbers(X.iloc[:, position]):
            plain = np.dtype(np.float64)
        if not isinstance(plain, np.dtype) or plain.kind not in "biuf":
            raise DataError(f"type {dtype}, expected numbers", column=str(name), hint=_ENCODE)
        if X.iloc[:, position].isna().any():
            row = int(np.argmax(X.iloc[:, position].isna().to_numpy()))
            raise DataError(f"a missing value (NaN) in row {row}", column=str(name), hint="impute or drop these rows")
        kinds.append(value_dtype(plain))
    dtype = np.result_type(*kinds) if kinds else np.dtype(np.float64)
    if len(X.columns) and all(hasattr(kind, "fill_value") and kind.fill_value == 0 for kind in X.dtypes):
        return replace(_sparse_rows(X.sparse.to_coo().tocsr().astype(dtype)), names=names)
    return _dense_rows(X.to_numpy(dtype=dtype), names)


def holds_numbers(column: Any) -> bool:
    """Whether a pandas column of Python objects holds numbers and booleans only, but for missing values."""
    from pandas.api.types import infer_dtype

    return infer_dtype(column, skipna=True) in ("floating", "integer", "mixed-integer-float", "boolean")


def _arrow_rows(X: Any) -> Rows:
    import pyarrow as pa

    table = X if isinstance(X, pa.Table) else pa.table(X)
    names = check_names(table.column_names)
    columns = [numeric_column(table.column(i), name=name) for i, name in enumerate(table.column_names)]
    dtype = np.result_type(*[value_dtype(c.dtype) for c in columns]) if columns else np.dtype(np.float64)
    dense = np.empty((table.num_rows, len(columns)), dtype=dtype)
    for j, column in enumerate(columns):
        dense[:, j] = column
    return _dense_rows(dense, names)


def numeric_column(column: Any, *, name: str, **where: Any) -> NDArray[Any]:
    """An Arrow column of numbers or booleans as a NumPy array; nulls and other types are refused."""
    import pyarrow as pa

    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type) or pa.types.is_boolean(column.type)):
        raise DataError(
            f"Arrow type {column.type}, expected numbers",
            column=name,
            hint=_ENCODE,
            **where,
        )
    if column.null_count:
        raise DataError(f"{column.null_count} nulls", column=name, hint="impute or drop these rows", **where)
    found: NDArray[Any] = column.to_numpy() if isinstance(column, pa.ChunkedArray) else column.to_numpy(False)
    return found
