"""Reading Parquet files one row group at a time, trusting nothing.

Covers: opening and fingerprinting files, what a footer says (``inspect_file``), the kinds of columns, and the decoding
of the three feature layouts of one row group into CSR.
Does not cover: comparing files and cutting blocks (``parquet_plan``), labels (``labels``).

Files are never memory-mapped: one that is truncated underneath would kill the process. Page checksums are verified
where the writer wrote them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from dboost.data.meaning import (
    FILE,
    MARK,
    arrow_of,
    column_kind,
    ending_of,
    folder_values,
    index_columns,
    is_text,
    say_own,
)
from dboost.data.memory.in_memory import dense_piece, numeric_column
from dboost.data.parquet.footer import Chunk, FooterError, chunks_of, has_checksum
from dboost.data.sparse.csr import CsrPiece
from dboost.errors import DataError, StorageError, without_values
from dboost.files.stores import is_store, open_input, state_of

NUMBERS = ("int", "float32", "float64", "bool")
CHANGED = "the file changed since it was first read"


@dataclass(frozen=True)
class FileRef:
    """A file and the marks by which a change is noticed."""

    path: str  # path, name: Where it is, and its name within the data set.
    name: str
    size: int
    mtime_ns: int
    footer: str  # sha256 of the footer.
    # The columns that its folders hold, where it has none of that name.
    folders: tuple[tuple[str, str, Any], ...] = field(default=(), compare=False)

    def with_folders(self, table: pa.Table, columns: Sequence[str]) -> pa.Table:
        """Some columns of rows of the file, those of its folders among them."""
        for name, kind, value in self.folders:
            if name in columns:
                table = table.append_column(name, pa.repeat(pa.scalar(value, arrow_of(kind)), table.num_rows))
        return table.select(columns)

    def stored(self, columns: Sequence[str]) -> list[str]:
        """Those of some columns that are in the file itself."""
        constant = {name for name, _, _ in self.folders}
        return [name for name in columns if name not in constant]


@dataclass(frozen=True)
class FileInfo:
    """What the footer of a file says."""

    ref: FileRef
    kinds: dict[str, str]  # Column name to kind, see ``column_kind``.
    types: dict[str, pa.DataType]
    index: tuple[str, ...]  # Columns that hold the index of a table, see ``index_columns``.
    rows: tuple[int, ...]  # Rows per row group.
    # Per row group: list column to the number of its elements (an empty or missing list counts as one).
    leaves: tuple[dict[str, int], ...]
    checksums: bool  # Whether the first page carries a checksum.
    sizes: tuple[dict[str, int], ...]  # Per row group: column of text to its bytes in memory.


@dataclass(frozen=True)
class Layout:
    """Where the features are: numeric columns, one fixed-size list column, or two of lists (indices, values)."""

    kind: str  # ``columns``, ``fixed`` or ``lists``.
    columns: tuple[str, ...]
    n_features: int  # -1 while unknown (lists only).
    dtype: np.dtype[Any]

    @property
    def names(self) -> tuple[str, ...] | None:
        """The names of the features, where columns of their own hold them."""
        return self.columns if self.kind == "columns" else None


@contextmanager
def as_data_errors(path: str, row_group: int | None = None) -> Iterator[None]:
    """Turn what pyarrow and the operating system raise into a DataError that names the file."""
    try:
        yield
    except (DataError, StorageError, MemoryError):
        raise
    except FileNotFoundError as fault:
        raise DataError("the file is gone", file=path, row_group=row_group) from fault
    except UnicodeDecodeError as fault:
        what = f"the name of a column, or a text in one, is not UTF-8: {fault.reason} at its byte {fault.start}"
        raise DataError(what, file=path, row_group=row_group, hint="write it again in UTF-8") from fault
    except (OSError, pa.ArrowException, ValueError, OverflowError) as fault:
        line = _first_line(fault)
        if not isinstance(fault, OSError):
            # A traceback shows it too, and what pyarrow quotes of a row is a document.
            fault.args = (without_values(fault),)
        raise DataError(
            f"the file cannot be read: {line}",
            file=path,
            row_group=row_group,
            hint="restore it or write it again",
        ) from fault


def _first_line(fault: Exception) -> str:
    """What an error says, cut; what the system quotes is a path, and what pyarrow quotes a value."""
    said = str(fault) if isinstance(fault, OSError) else without_values(fault)
    return (said.strip() or type(fault).__name__).splitlines()[0][:160]


def file_ref(path: str, name: str) -> FileRef:
    """Size, time and footer hash of a Parquet file."""
    return _ref_and_footer(path, name)[0]


def chunks_in(path: str) -> list[list[Chunk]]:
    """What the footer of a file says of its column chunks; a footer that makes no sense is refused (DataError)."""
    with as_data_errors(path):
        return chunks_of(_ref_and_footer(path, "")[1])


def column_chunks(path: str) -> Iterator[tuple[int, Any]]:
    """The rows of a row group and what PyArrow says of a column chunk, for each."""
    chunks_in(path)  # refuses a footer whose chunks PyArrow does not survive
    with open_file(path) as file:
        for number in range(file.metadata.num_row_groups):
            group = file.metadata.row_group(number)
            for column in range(group.num_columns):
                yield group.num_rows, group.column(column)


def _ref_and_footer(path: str, name: str) -> tuple[FileRef, bytes]:
    with as_data_errors(path), open_input(path) as stream:
        state = state_of(path, stream)
        size = state.st_size
        if size < 12:
            raise DataError(f"{size} bytes are no Parquet file", file=path, hint="restore it or leave it out")
        stream.seek(size - 8)
        tail = stream.read(8)
        length = int.from_bytes(tail[:4], "little")
        if tail[4:] != MARK and is_text(path):
            raise DataError(
                f"ParquetData reads Parquet, and not {ending_of(path)}",
                file=path,
                hint="the commands of `dboost` read it; in Python: pandas.read_csv(path), or prepare_text of documents",
            )
        if tail[4:] != MARK or length + 12 > size:
            raise DataError(
                f"no Parquet file, or a truncated one: its {size} bytes do not end with a footer",
                file=path,
                hint="restore it or leave it out",
            )
        stream.seek(size - 8 - length)
        footer = stream.read(length)
        return FileRef(path, name, size, state.st_mtime_ns, hashlib.sha256(footer).hexdigest()), footer


def check_unchanged(ref: FileRef) -> None:
    """Refuse a file that is not the one first read (size, time of change, footer)."""
    found = file_ref(ref.path, ref.name)
    if found == ref:
        return
    what = f"{ref.size} bytes then, {found.size} now" if found.size != ref.size else "same size, other content or time"
    raise DataError(f"{CHANGED} ({what})", file=ref.path, hint="start again with data that stays still")


def open_file(path: str) -> pq.ParquetFile:
    """Open without memory-mapping, with page checksums verified."""
    source = open_input(path) if is_store(path) else path
    return pq.ParquetFile(source, memory_map=False, page_checksum_verification=True)


def inspect_file(item: tuple[str, str]) -> FileInfo:
    """Read one footer: (path, name) -> FileInfo. Runs on workers."""
    path, name = item
    ref, footer = _ref_and_footer(path, name)
    with as_data_errors(path), open_file(path) as file:
        schema, metadata = file.schema_arrow, file.metadata
        seen: set[str] = set()
        owners: list[str] = []
        for field in schema:
            if field.name in seen:
                raise DataError("two columns have the same name", file=path, column=field.name, hint="rename one")
            seen.add(field.name)
            owners.extend([field.name] * _leaf_count(field.type))
        nested = {field.name for field in schema if pa.types.is_nested(field.type)}
        types = {field.name: field.type for field in schema}
        kinds = {name: column_kind(kind) for name, kind in types.items()}
        index = index_columns(schema)
        # Numbers need no look at their chunks, and a wide table has very many.
        looked_at = [c for c, owner in enumerate(owners) if owner in nested or kinds[owner] == "str"]
        groups = chunks_of(footer) if looked_at else [[] for _ in range(metadata.num_row_groups)]
        if any(len(chunks) != len(owners) for chunks in groups if looked_at):
            raise FooterError(f"the columns are stored in {len(groups[0])} parts, expected {len(owners)}")
        leaves = tuple({owners[c]: chunks[c].num_values for c in looked_at if owners[c] in nested} for chunks in groups)
        sizes = tuple(
            {owners[c]: chunks[c].uncompressed for c in looked_at if kinds[owners[c]] == "str"} for chunks in groups
        )
        rows = tuple(metadata.row_group(g).num_rows for g in range(metadata.num_row_groups))
        return FileInfo(ref, kinds, types, index, rows, leaves, not any(rows) or _has_checksums(path), sizes)


def with_folders(infos: Sequence[FileInfo], named: bool = False) -> list[FileInfo]:
    """What footers of all files say, and the columns that folders hold; `named`: the name of the file is one too."""
    columns, kinds = folder_values([info.ref.name for info in infos])
    if named and not any(FILE in info.kinds for info in infos):
        kinds = {FILE: "str"} | kinds
        columns = [{FILE: info.ref.name} | more for info, more in zip(infos, columns, strict=True)]
    found = []
    for info, values in zip(infos, columns, strict=True):
        more = tuple((name, kinds[name], value) for name, value in values.items() if name not in info.kinds)
        if more:
            info = replace(
                info,
                ref=replace(info.ref, folders=more),
                kinds=info.kinds | {name: kind for name, kind, _ in more},
                types=info.types | {name: arrow_of(kind) for name, kind, _ in more},
            )
        found.append(info)
    return found


def say_folders(infos: Sequence[FileInfo], used: Collection[str]) -> None:
    """Say in one line which of the columns that are used stand in the files and in the names of their folders."""
    columns, _ = folder_values([info.ref.name for info in infos])
    own = ({*values} - {name for name, *_ in info.ref.folders} for info, values in zip(infos, columns, strict=True))
    say_own(set().union(*own).intersection(used))


def first_of(files: Sequence[tuple[str, str]]) -> FileInfo:
    """What is known of the first of some files, of which it alone is opened."""
    info = inspect_file(files[0])
    others = [replace(info, ref=replace(info.ref, name=name)) for _, name in files[1:]]
    # what the folders of all say tells the kinds of their columns
    return with_folders([info, *others])[0]


def _leaf_count(kind: pa.DataType) -> int:
    """Number of Parquet columns that store one Arrow column."""
    if pa.types.is_nested(kind):
        return sum(_leaf_count(kind.field(i).type) for i in range(kind.num_fields))
    return 1


def _has_checksums(path: str) -> bool:
    """Whether the first page has a checksum, which pyarrow does not tell; it comes after the mark of the file."""
    with open_input(path) as stream:
        stream.seek(len(MARK))
        return has_checksum(bytes(stream.read(64)))


def read_group(file: pq.ParquetFile, ref: FileRef, group: int, wanted: Sequence[str]) -> pa.Table:
    """Decode some columns of one row group; an error names the column that cannot be read."""
    path, columns = ref.path, ref.stored(wanted)
    rows = file.metadata.row_group(group).num_rows
    try:
        with as_data_errors(path, group):
            table = file.read_row_group(group, columns=columns, use_threads=False)
    except DataError:
        for column in columns:
            try:
                file.read_row_group(group, columns=[column], use_threads=False)
            except (OSError, pa.ArrowException, ValueError) as fault:
                line = _first_line(fault)
                raise DataError(
                    f"the data cannot be read: {line}",
                    file=path,
                    column=column,
                    row_group=group,
                    hint="restore the file or write it again",
                ) from fault
        raise
    if table.num_rows != rows:
        raise DataError(f"{table.num_rows} rows read, the footer promised {rows}", file=path, row_group=group)
    return ref.with_folders(table, wanted)


def decode_features(table: pa.Table, layout: Layout, path: str, group: int, first: int = 0) -> list[CsrPiece]:
    """The features of rows of a row group, from `first` on, as CSR pieces; lists are not copied.

    What is no clean number is a DataError.
    """
    where: dict[str, Any] = {"file": path, "row_group": group}
    if layout.kind == "lists":
        return _decode_lists(table, layout, where, first)
    if layout.kind == "fixed":
        name = layout.columns[0]
        flat = list_matrix(table.column(name), name, layout.n_features, where)
        piece = dense_piece(flat, layout.dtype)
        column: tuple[str, ...] = (name,)
    else:
        piece, column = dense_piece(dense_columns(table, layout, path, group), layout.dtype), ()
    return [CsrPiece(piece.indptr, piece.indices, piece.values, path, group, column, first)]


def dense_columns(
    table: pa.Table, layout: Layout, path: str, group: int, order: Literal["C", "F"] = "C"
) -> NDArray[Any]:
    """The numeric columns of a decoded row group as an array (rows, n_features); it may hold NaN and infinity."""
    dense = np.empty((table.num_rows, layout.n_features), dtype=layout.dtype, order=order)
    for j, name in enumerate(layout.columns):
        dense[:, j] = numeric_column(_plain(table.column(name)), name=name, file=path, row_group=group)
    return dense


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def list_matrix(column: pa.ChunkedArray, name: str, width: int, where: dict[str, Any]) -> NDArray[Any]:
    """A list column of constant width as a matrix (m, width); without a copy where it is one chunk of numbers."""
    _refuse_nulls(column, name, where)
    blocks = []
    for chunk in column.chunks:
        if pa.types.is_fixed_size_list(chunk.type):
            found = chunk.type.list_size
        else:
            lengths = np.diff(chunk.offsets.to_numpy())
            wrong = lengths[lengths != width]
            found = int(wrong[0]) if wrong.size else width
        if found != width:
            raise DataError(f"a list of {found} values, expected {width}", column=name, **where)
        # flatten() respects the slice of the chunk, values would not.
        values = chunk.flatten()
        blocks.append(numeric_column(values, name=name, **where).reshape(len(chunk), width))
    if not blocks:
        return np.zeros((0, width))
    return blocks[0] if len(blocks) == 1 else np.concatenate(blocks)


def _refuse_nulls(column: Any, name: str, where: dict[str, Any]) -> None:
    if column.null_count:
        raise DataError(f"{column.null_count} nulls", column=name, hint="impute or drop these rows", **where)


def _decode_lists(table: pa.Table, layout: Layout, where: dict[str, Any], first: int) -> list[CsrPiece]:
    """Two list columns: their offsets and children are the CSR arrays."""
    name_i, name_v = layout.columns
    column_i, column_v = table.column(name_i), table.column(name_v)
    _refuse_nulls(column_i, name_i, where)
    _refuse_nulls(column_v, name_v, where)
    if [len(c) for c in column_i.chunks] != [len(c) for c in column_v.chunks]:
        column_i = pa.chunked_array([column_i.combine_chunks()])
        column_v = pa.chunked_array([column_v.combine_chunks()])
    pieces = []
    for chunk_i, chunk_v in zip(column_i.chunks, column_v.chunks, strict=True):
        if len(chunk_i) == 0:
            continue
        offsets_i, offsets_v = chunk_i.offsets.to_numpy(), chunk_v.offsets.to_numpy()
        lengths_i, lengths_v = np.diff(offsets_i), np.diff(offsets_v)
        if not np.array_equal(lengths_i, lengths_v):
            row = int(np.argmax(lengths_i != lengths_v))
            raise DataError(
                f"row {first + row} has {lengths_i[row]} indices and {lengths_v[row]} values",
                column=name_v,
                hint="both lists of a row need the same length",
                **where,
            )
        indices = _child(chunk_i, offsets_i, name_i, where)
        values = _child(chunk_v, offsets_v, name_v, where)
        if indices.dtype not in (np.dtype(np.int32), np.dtype(np.int64)):
            indices = indices.astype(np.int64)
        pieces.append(
            CsrPiece(
                (offsets_i - offsets_i[0]).astype(np.int64),
                indices,
                values.astype(layout.dtype, copy=False),
                where["file"],
                where["row_group"],
                layout.columns,
                first,
            )
        )
        first += len(chunk_i)
    return pieces


def _child(chunk: Any, offsets: NDArray[Any], name: str, where: dict[str, Any]) -> NDArray[Any]:
    """The elements of a list array as a view of Arrow's buffer."""
    child = chunk.values.slice(int(offsets[0]), int(offsets[-1] - offsets[0]))
    return numeric_column(child, name=name, **where)
