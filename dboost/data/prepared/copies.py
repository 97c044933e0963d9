"""Copies of documents in Parquet: of files in other formats, of some rows, and of columns that are names of folders.

Covers: one copy, written as a stream: no more than one row group is in memory.
Does not cover: which files are copied (``sources``), what is done with the copy (``prepare``), which treats it like any
Parquet file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dboost.data.blocks import GROUP_ROWS
from dboost.data.features.arrow import arrow_of as arrow_array
from dboost.data.features.look import Seen, look
from dboost.data.manifest import write_parquet
from dboost.data.meaning import CSV, arrow_of, format_of, is_text
from dboost.data.parquet.block import at
from dboost.data.parquet.read import as_data_errors, column_chunks, open_file
from dboost.data.prepared.documents import Wanted, csv_errors, csv_header, csv_tables, json_tables
from dboost.data.prepared.where import parsed
from dboost.errors import DataError, without_values
from dboost.files.storage import writing
from dboost.files.stores import StorePath, any_path

# A row group of the copy ends at so many bytes, if it does not end before.
GROUP_BYTES = 32 << 20
# The number of a row within its file, while it is on its way; no column of a table of documents begins so.
_ROW = "\0row"


@dataclass(frozen=True)
class Picking:
    """Which rows of files are copied."""

    where: str | None = None  # A filter, as ``dboost.data.prepared.where`` reads it.
    # Columns of which no value may be missing in a row that is copied; others are refused.
    required: tuple[str, ...] = ()
    refused: str = ""  # Folder of the rows that are refused.


@dataclass(frozen=True)
class Copy:
    """A copy that is to be made."""

    path: str  # path, target: The file, and where its copy goes.
    target: str
    # The columns that the file's folders hold; a column of the file goes before one of these.
    folders: Mapping[str, tuple[str, Any]] = field(default_factory=dict)

    def constants(self, needed: Iterable[str], own: Sequence[str]) -> dict[str, Any]:
        """The needed columns that its folders hold, each as the value of every row."""
        names = [name for name in dict.fromkeys(needed) if name in self.folders and name not in own]
        return {name: pa.scalar(self.folders[name][1], arrow_of(self.folders[name][0])) for name in names}


def copy_documents(item: Copy, wanted: Wanted, kinds: Mapping[str, str], picking: Picking) -> dict[str, int]:
    """Copy some rows of a file, of kinds over all files, into Parquet; how many were refused, by reason. On workers."""
    with opened(item, wanted, kinds, picking.where) as (schema, tables):
        return _copied(item, schema, tables, picking)


@contextmanager
def opened(
    item: Copy, wanted: Wanted, kinds: Mapping[str, str], where: str | None
) -> Iterator[tuple[pa.Schema, Iterator[pa.Table]]]:
    """The schema of the wanted columns of a file, and its rows as a stream, in which those of a filter are too."""
    path, needed = item.path, list(dict.fromkeys([*wanted.names(), *(parsed(where)[1] if where else ())]))
    with csv_errors(path), ExitStack() as stack:
        if is_text(path):
            there = csv_header(path, wanted.dialect) if format_of(path) == CSV else list(kinds)
            own = [name for name in needed if name in kinds and name in there]
            schema = pa.schema([pa.field(name, arrow_of(kinds[name])) for name in own])
            if format_of(path) == CSV:
                read = csv_tables(path, schema, (*wanted.texts, *wanted.tags), wanted.dialect)
            else:
                read = json_tables(path, schema, wanted.dialect)
            tables = (table.cast(schema) for table in read)
        else:
            file = stack.enter_context(open_file(path))
            there = file.schema_arrow.names
            for name in needed:
                if name not in there and name not in item.folders and name not in wanted.optional:
                    raise wanted.absent(name, [*there, *item.folders], path)
            own = [name for name in needed if name in there]
            schema = pa.schema([file.schema_arrow.field(name) for name in own])
            batches = file.iter_batches(GROUP_ROWS, columns=own, use_threads=False)
            tables = (pa.Table.from_batches([batch]) for batch in batches)
        more = item.constants(needed, own)
        fields = {name: schema.field(name) for name in own} | {name: pa.field(name, more[name].type) for name in more}
        found = pa.schema([fields[name] for name in wanted.names() if name in fields])
        yield found, (_with(table, more) for table in _read(tables, path))


def look_at(
    item: Copy, wanted: Wanted, kinds: Mapping[str, str], where: str | None, split: tuple[str, str] | None
) -> tuple[int, dict[str, Seen]]:
    """How many rows a file (or its split) has, and what they say of the kind of each wanted column. On workers."""
    found: dict[str, Seen] = {}
    rows = 0
    with opened(item, wanted, kinds, where) as (schema, tables):
        for table in tables:
            table = _fitting(table, where, item.path)
            if split is not None:
                table = table.filter(pc.equal(pc.cast(table.column(split[0]), pa.string()), split[1]))
            rows += table.num_rows
            for name in schema.names:
                with at(item.path, None, name):
                    seen = look(name, arrow_array(name, table.column(name)), wanted.dialect.decimal != ",")
                    found[name] = found[name].merge(seen, name) if name in found else seen
    return rows, found


def _with(table: pa.Table, constants: Mapping[str, Any]) -> pa.Table:
    """Rows with columns of one value each."""
    for name, value in constants.items():
        table = table.append_column(name, pa.repeat(value, table.num_rows))
    return table


def _read(tables: Iterator[pa.Table], path: str) -> Iterator[pa.Table]:
    """The same tables; what goes wrong while they are read is told of the file, and not of the copy."""
    while True:
        with csv_errors(path):
            table = next(tables, None)
        if table is None:
            return
        yield table


def _copied(item: Copy, schema: pa.Schema, tables: Iterator[pa.Table], picking: Picking) -> dict[str, int]:
    """Write the rows that are picked, and those that are refused into another file, with file, row and reason."""
    path, target = item.path, item.target
    refused: list[pa.Table] = []

    def picked() -> Iterator[pa.Table]:
        first = 0
        for table in tables:
            rows = pa.array(range(first, first + table.num_rows), pa.int64())
            first += table.num_rows
            table = _fitting(table.append_column(_ROW, rows), picking.where, path)
            for name in picking.required:
                if name in table.column_names:
                    gone = pc.is_null(table.column(name), nan_is_null=True)
                    if pc.any(gone).as_py():
                        refused.append(_told(table.filter(gone), path, f"{name} is missing", schema.names))
                        table = table.filter(pc.invert(gone))
            yield table.select(schema.names)

    place = any_path(target)
    # an object is there when its stream is closed, after the footer
    sink = place.open_output() if isinstance(place, StorePath) else open(place, "wb")
    with writing(target), sink, pq.ParquetWriter(sink, schema, compression="zstd", write_page_checksum=True) as writer:
        for table in _grouped(picked()):
            writer.write_table(table.cast(schema), row_group_size=max(table.num_rows, 1))
    if not refused:
        return {}
    whole = pa.concat_tables(refused).sort_by("row")
    write_parquet(whole, any_path(picking.refused) / any_path(target).name)
    counts = whole.column("reason").value_counts().to_pylist()
    return {str(one["values"]): int(one["counts"]) for one in counts}


def _told(table: pa.Table, path: str, reason: str, names: list[str]) -> pa.Table:
    """Rows that are refused, after where they were and why they are."""
    about = {
        "file": pa.repeat(path, table.num_rows),
        "row": table.column(_ROW),
        "reason": pa.repeat(reason, table.num_rows),
    }
    return pa.table(about | {name: table.column(name) for name in names if name not in about})


def _fitting(table: pa.Table, where: str | None, path: str) -> pa.Table:
    """The rows that fit a filter; one of which that is not known, because a value is missing, does not."""
    if where is None:
        return table
    try:
        return table.filter(parsed(where)[0])
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        line = without_values(error).splitlines()[0][:160]
        raise DataError(f"where={where!r} does not fit the columns: {line}", file=path) from error


def lacks_values(item: tuple[str, Sequence[str]]) -> bool:
    """Whether a value of some columns of a Parquet file is missing, or may be. Runs on workers."""
    path, names = item
    with as_data_errors(path):
        for _, column in column_chunks(path):
            if column.path_in_schema in names:
                found = column.statistics
                # statistics count no NaN, which is a label that is missing too
                floats = column.physical_type in ("FLOAT", "DOUBLE")
                if floats or found is None or not found.has_null_count or found.null_count:
                    return True
    return False


def _grouped(tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """The same rows in tables of ``GROUP_ROWS`` rows, or fewer where they are large."""
    held: list[pa.Table] = []
    rows = size = 0
    for table in tables:
        while rows + table.num_rows >= GROUP_ROWS:
            head = table.slice(0, GROUP_ROWS - rows)
            yield pa.concat_tables([*held, head])
            held, rows, size = [], 0, 0
            table = table.slice(head.num_rows)
        if table.num_rows:
            held, rows, size = [*held, table], rows + table.num_rows, size + table.nbytes
        if size >= GROUP_BYTES:
            yield pa.concat_tables(held)
            held, rows, size = [], 0, 0
    if held:
        yield pa.concat_tables(held)
