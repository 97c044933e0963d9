"""The unit a fit reads from Parquet: consecutive row groups, or a part of one, that decode to one partition.

Covers: ``ParquetBlock`` (picklable, read anywhere), its raw rows, its labels, weights and groups.
Does not cover: which row groups form a block (``parquet_plan``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy import sparse

from dboost.data.labels.groups import group_numbers
from dboost.data.labels.labels import LabelCoder, LabelStats, check_weight, scan
from dboost.data.labels.tags import are_tags
from dboost.data.manifest import load_manifest
from dboost.data.memory.in_memory import numeric_column
from dboost.data.parquet.read import (
    FileRef,
    Layout,
    as_data_errors,
    check_unchanged,
    decode_features,
    dense_columns,
    list_matrix,
    open_file,
    read_group,
)
from dboost.data.sparse.csc import to_csc
from dboost.data.sparse.csr import CsrPiece, as_rows_of
from dboost.data.streamed import StreamedPartition
from dboost.errors import DataError
from dboost.partition import Partition


@dataclass(frozen=True)
class RawRows:
    """Rows as they are in the files."""

    pieces: tuple[CsrPiece, ...]
    labels: tuple[Any, ...]  # One Arrow column or array per row group, empty without a label.
    weights: tuple[NDArray[np.float64], ...]
    groups: tuple[NDArray[np.uint64], ...] = ()
    dense: tuple[NDArray[Any], ...] = ()  # Instead of pieces, arrays by column, checked; one for each row group.

    def batch(self, n_features: int, names: Sequence[str] | None = None) -> Any:
        """The features of rows to be predicted: an array where they were read as one, else as `csr`."""
        if not self.dense:
            return self.csr(n_features, names)
        return self.dense[0] if len(self.dense) == 1 else np.asfortranarray(np.concatenate(self.dense))

    def csr(self, n_features: int, names: Sequence[str] | None = None) -> Any:
        """The features as a ``scipy.sparse.csr_array`` (rows, n_features), checked; `names` for errors."""
        return self.csc(n_features, names).tocsr()

    def csc(self, n_features: int, names: Sequence[str] | None = None) -> Any:
        """As `csr`, by column."""
        pieces = [replace(piece, values=piece.values.astype(np.float64, copy=False)) for piece in self.pieces]
        indptr, rows, values = to_csc(pieces, n_features, dtype=np.dtype(np.float64), names=names)
        return sparse.csc_array((values, rows, indptr), shape=(sum(piece.n_rows for piece in pieces), n_features))

    def label_array(self) -> NDArray[Any]:
        """The labels of all rows as one NumPy array (strings as Python objects), as they are in the files."""
        return np.concatenate([part.to_numpy() if hasattr(part, "null_count") else part for part in self.labels])

    def group_array(self) -> NDArray[np.uint64] | None:
        """The groups of all rows, None without a column of groups."""
        return np.concatenate(self.groups) if self.groups else None

    def weight_array(self) -> NDArray[np.float64]:
        """The sample weights of all rows, 1 without a weight column."""
        return np.concatenate(self.weights)


@dataclass(frozen=True)
class ParquetBlock:
    """Row groups, or a part of one, that decode to one partition."""

    spans: tuple[tuple[FileRef, tuple[int, ...]], ...]  # Files and their row groups, in order.
    layout: Layout
    label: tuple[str, ...]  # Label columns, possibly none.
    weight: str | None
    key: str  # Unique within the data set.
    n_rows: int  # Rows in the footers.
    rows: int  # Rows of positive weight; equals `n_rows` before the labels were scanned.
    nbytes_estimate: int  # Bytes of the decoded partition.
    stored: int  # Values of features that the footers name, zeros of tables among them.
    coder: LabelCoder | None = None  # None before the labels were scanned.
    manifest: str | None = None  # Folder of the manifest, for feature names in messages.
    group: str | None = None  # The column whose values tell which rows belong together.
    part: tuple[int, int] | None = None  # Of the rows of its only row group, the first and the end; None for all.

    @property
    def shared(self) -> str | None:
        """The key of what `read_shared` gives, the same for all parts of a row group; None for whole ones."""
        return None if self.part is None else self.key.rpartition("[")[0]

    def read_shared(self) -> pa.Table:
        """The row group that this is a part of."""
        [(_, _, table)] = self._tables(self._wanted())
        return table

    def load(self, shared: pa.Table | None = None) -> Partition:
        """Decode, check and encode, what parts share too unless it is given; an error names file, column, row group."""
        return self._partition(self.read(label=True, shared=shared))

    def load_rows(self, shared: pa.Table | None = None) -> Partition | StreamedPartition:
        """As `load`, by row where the files allow it: for one pass, that is cheaper than turning rows into columns."""
        raw = self.read(label=True, shared=shared)
        if self.layout.kind != "lists" or min((float(w.min()) for w in raw.weights if w.size), default=1.0) <= 0.0:
            return self._partition(raw)
        by_row = as_rows_of(raw.pieces, self.layout.n_features)
        if by_row is None:
            return self._partition(raw)
        return StreamedPartition(*by_row, self.layout.n_features, *self._encoded(raw), self.key, raw.group_array())

    def _encoded(self, raw: RawRows) -> tuple[NDArray[Any], NDArray[np.float64]]:
        """Codes of the labels, and the final weights; of rows of weight zero too."""
        assert self.coder is not None
        codes, factors = [], []
        for (path, group), labels, weight in zip(self._groups(), raw.labels, raw.weights, strict=True):
            with at(path, group, ", ".join(self.label)):
                code, factor = self.coder.encode(labels, weight)
            codes.append(code)
            factors.append(factor)
        return np.concatenate(codes), np.concatenate(factors)

    def _partition(self, raw: RawRows) -> Partition:
        y, weight = self._encoded(raw)
        group = raw.group_array()
        keep = np.concatenate(raw.weights) > 0
        everything = bool(np.all(keep))
        indptr, rows, values = self._columns(raw.pieces, None if everything else keep)
        if not everything:
            y, weight = y[keep], weight[keep]
            group = None if group is None else group[keep]
        return Partition(indptr, rows, values, y, weight, self.key, group)

    def _columns(self, pieces: tuple[CsrPiece, ...], keep: NDArray[np.bool_] | None) -> tuple[Any, Any, Any]:
        """The block by column; feature names are looked up only for an error."""
        n, dtype = self.layout.n_features, self.layout.dtype
        try:
            return to_csc(pieces, n, dtype=dtype, keep=keep, names=self.layout.names)
        except DataError:
            if self.manifest is None:
                raise
            known = load_manifest(self.manifest).feature_names()
            return to_csc(pieces, n, dtype=dtype, keep=keep, names=known)

    def _wanted(self, features: bool = True, label: bool = True) -> list[str]:
        """The columns to read, each once."""
        named = [*self.label, self.weight, self.group] if label else []
        return list(dict.fromkeys([*(self.layout.columns if features else ()), *filter(None, named)]))

    def _tables(self, wanted: Sequence[str]) -> Iterator[tuple[str, int, pa.Table]]:
        """Path, number and columns of each row group."""
        for ref, groups in self.spans:
            check_unchanged(ref)
            with as_data_errors(ref.path), open_file(ref.path) as file:
                for group in groups:
                    yield ref.path, group, read_group(file, ref, group, wanted)
            # Again, so that rows of a file replaced while it was read are not used.
            check_unchanged(ref)

    def read(
        self, *, features: bool = True, label: bool = False, dense: bool = False, shared: pa.Table | None = None
    ) -> RawRows:
        """Read the row groups: the features, and with `label` the columns of labels, weights and groups.

        With `dense`, features that are numeric columns stay columns of an array. `shared`: what `read_shared` gave.
        """
        pieces: list[CsrPiece] = []
        arrays: list[NDArray[Any]] = []
        dense = dense and self.layout.kind == "columns"
        labels: list[Any] = []
        weights: list[NDArray[np.float64]] = []
        numbers: list[NDArray[np.uint64]] = []
        first, stop = self.part or (0, None)
        tables = self._tables(self._wanted(features, label))
        for path, group, table in tables if shared is None else ((*self._groups()[0], shared),):
            with as_data_errors(path):
                if stop is not None:
                    table = table.slice(first, stop - first)
                if features and dense:
                    arrays.append(self._array(table, path, group))
                elif features:
                    pieces.extend(decode_features(table, self.layout, path, group, first))
                if label:
                    weights.append(self._weights(table, table.num_rows, path, group))
                    labels.append(self._labels(table, path, group))
                    if self.group is not None:
                        where = {"file": path, "row_group": group, "column": self.group}
                        numbers.append(group_numbers(table.column(self.group), table.num_rows, **where))
        return RawRows(tuple(pieces), tuple(labels), tuple(weights), tuple(numbers), tuple(arrays))

    def _array(self, table: Any, path: str, group: int) -> NDArray[Any]:
        """The numeric columns of a row group by column; NaN and infinity are refused as where rows become sparse."""
        found = dense_columns(table, self.layout, path, group, order="F")
        if not np.isfinite(found).all():
            self._columns(tuple(decode_features(table, self.layout, path, group)), None)
        return found

    def scan_labels(self, task: str) -> LabelStats:
        """Report on labels and weights, reading their columns only."""
        stats = LabelStats()
        raw = self.read(features=False, label=True)
        names = {ref.path: ref.name for ref, _ in self.spans}
        for (path, group), labels, weight in zip(self._groups(), raw.labels, raw.weights, strict=True):
            with at(path, group, ", ".join(self.label)):
                found = scan(task, labels, weight)
                found.where = dict.fromkeys(found.count, names[path])
                stats.merge(found)
        return stats

    def kept_rows(self) -> int:
        """Rows of positive weight, of which there may be none."""
        weights = self.read(features=False, label=True).weights
        return sum(int(np.count_nonzero(weight)) for weight in weights)

    def largest_index(self) -> int:
        """The largest feature index of sparse rows, -1 without any."""
        raw = self.read()
        return max((int(piece.indices.max()) for piece in raw.pieces if piece.indices.size), default=-1)

    def _groups(self) -> list[tuple[str, int]]:
        return [(ref.path, group) for ref, groups in self.spans for group in groups]

    def _weights(self, table: pa.Table, n_rows: int, path: str, group: int) -> NDArray[np.float64]:
        where: dict[str, Any] = {"file": path, "row_group": group}
        if self.weight is None:
            return check_weight(None, n_rows)
        column = numeric_column(table.column(self.weight), name=self.weight, **where)
        return check_weight(column, n_rows, column=self.weight, **where)

    def _labels(self, table: pa.Table, path: str, group: int) -> Any:
        if not self.label:
            return None
        first = table.column(self.label[0])
        if len(self.label) == 1 and (not pa.types.is_nested(first.type) or are_tags(first)):
            return first
        where: dict[str, Any] = {"file": path, "row_group": group}
        if pa.types.is_nested(first.type):
            width = first.type.list_size if pa.types.is_fixed_size_list(first.type) else -1
            if width < 0:
                width = len(first[0].as_py() or ()) if len(first) else 0
            return list_matrix(first, self.label[0], width, where)
        return np.column_stack([_task_column(table.column(name), name, where) for name in self.label])


def _task_column(column: pa.ChunkedArray, name: str, where: dict[str, Any]) -> NDArray[np.float64]:
    """The labels of a task, or a target, with NaN for null."""
    if not (pa.types.is_boolean(column.type) or pa.types.is_integer(column.type) or pa.types.is_floating(column.type)):
        raise DataError(
            f"one of several labels has Arrow type {column.type}", column=name, hint="use numbers or booleans", **where
        )
    found: NDArray[np.float64] = column.cast(pa.float64()).to_numpy()
    return found


@contextmanager
def at(path: str, group: int | None, column: str) -> Iterator[None]:
    """Add file, column and row group, where there is one, to a DataError that does not know them."""
    try:
        yield
    except DataError as fault:
        if fault.file is not None:
            raise
        raise DataError(
            fault.what, file=path, column=fault.column or column or None, row_group=group, hint=fault.hint
        ) from fault
