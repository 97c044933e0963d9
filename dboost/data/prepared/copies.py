"""Copies of documents in Parquet: of files in other formats, of some rows, and of columns that are names of folders.

Covers: one copy, written as a stream: no more than one row group is in memory.
Does not cover: which files are copied (``sources``), what is done with the copy (``prepare``), which treats it like any
Parquet file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dboost.data.absent_column import absent_column
from dboost.data.manifest import write_parquet
from dboost.data.parquet.read import as_data_errors, chunks_in, open_file
from dboost.data.prepared.documents import (
    CSV,
    TYPES,
    Wanted,
    csv_errors,
    csv_header,
    csv_tables,
    format_of,
    json_tables,
)
from dboost.data.prepared.where import parsed
from dboost.errors import DataError
from dboost.files.stores import StorePath, any_path

# A row group of the copy ends at so many rows or bytes, whichever comes first.
GROUP_ROWS, GROUP_BYTES = 40_000, 32 << 20
# The number of a row within its file, while it is on its way; no column of a table of documents begins so.
_ROW = "\0row"


@dataclass(frozen=True)
class Picking:
    """Which rows of files are copied.

    Parameters
    ----------
    where : str, optional
        A filter, as ``dboost.data.prepared.where`` reads it.
    required : tuple of str
        Columns of which no value may be missing in a row that is copied; others are refused.
    refused : str
        Folder of the rows that are refused.
    """

    where: str | None = None
    required: tuple[str, ...] = ()
    refused: str = ""


def copy_documents(item: tuple[str, str], wanted: Wanted, types: Mapping[str, str], picking: Picking) -> dict[str, int]:
    """Copy the wanted columns of one file, (path, path of the copy), into a Parquet file. Runs on workers.

    Returns
    -------
    dict of str to int
        How many rows were refused, by reason.
    """
    path, target = item
    fields = [pa.field(name, TYPES[types[name]]) for name in wanted.names() if name in types]
    with csv_errors(path):
        there = csv_header(path) if format_of(path) == CSV else None
        schema = pa.schema([field for field in fields if there is None or field.name in there])
        tables = csv_tables(path, schema) if there is not None else json_tables(path, schema)
        return _copied(path, target, schema, (table.cast(schema) for table in tables), picking)


def copy_rows(
    item: tuple[str, str, Mapping[str, str | None]], wanted: Wanted, kinds: Mapping[str, str], picking: Picking
) -> dict[str, int]:
    """Copy the wanted columns of some rows of a Parquet file into another. Runs on workers.

    Parameters
    ----------
    item : (path, path of the copy, columns that the file's folders hold)
        A column of the file goes before one of its folders.
    wanted : Wanted
    kinds : dict of str to str
        Of the columns of folders: ``int`` or ``str``.
    picking : Picking

    Returns
    -------
    dict of str to int
        How many rows were refused, by reason.
    """
    path, target, folders = item
    with as_data_errors(path), open_file(path) as file:
        own = file.schema_arrow
        needed = [*wanted.names(), *(parsed(picking.where)[1] if picking.where else ())]
        constants: dict[str, Any] = {}
        for name in dict.fromkeys(needed):
            if name in folders and name not in own.names:
                value = folders[name]
                whole = kinds[name] == "int"
                constants[name] = pa.scalar(int(value) if whole and value else value, TYPES[kinds[name]])
            elif name not in own.names and name not in wanted.optional:
                raise absent_column(name, [*own.names, *folders], path)
        there = [name for name in dict.fromkeys(needed) if name in own.names]
        kept = [name for name in wanted.names() if name in there or name in constants]
        fields = [own.field(name) if name in there else pa.field(name, constants[name].type) for name in kept]

        def tables() -> Iterator[pa.Table]:
            for batch in file.iter_batches(GROUP_ROWS, columns=there, use_threads=False):
                table = pa.Table.from_batches([batch])
                for name, value in constants.items():
                    table = table.append_column(name, pa.repeat(value, table.num_rows))
                yield table

        return _copied(path, target, pa.schema(fields), tables(), picking)


def _copied(path: str, target: str, schema: pa.Schema, tables: Iterator[pa.Table], picking: Picking) -> dict[str, int]:
    """Write the rows that are picked, and those that are refused into another file, with file, row and reason."""
    refused: list[pa.Table] = []

    def picked() -> Iterator[pa.Table]:
        first = 0
        for table in tables:
            rows = pa.array(range(first, first + table.num_rows), pa.int64())
            first += table.num_rows
            table = _fitting(table.append_column(_ROW, rows), picking.where, path)
            for name in picking.required:
                if name in table.column_names and table.column(name).null_count:
                    gone = table.filter(pc.is_null(table.column(name)))
                    refused.append(_told(gone, path, f"{name} is missing", schema.names))
                    table = table.filter(pc.is_valid(table.column(name)))
            yield table.select(schema.names)

    place = any_path(target)
    # an object is there when its stream is closed, after the footer
    sink = place.open_output() if isinstance(place, StorePath) else open(place, "wb")
    with sink, pq.ParquetWriter(sink, schema, compression="zstd", write_page_checksum=True) as writer:
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
        line = str(error).splitlines()[0][:160]
        raise DataError(f"where={where!r} does not fit the columns: {line}", file=path) from error


def lacks_values(item: tuple[str, Sequence[str]]) -> bool:
    """Whether a value of some columns of a Parquet file is missing, or may be. Runs on workers."""
    path, names = item
    chunks_in(path)  # refuses a footer whose chunks PyArrow does not survive
    with as_data_errors(path), open_file(path) as file:
        for group in range(file.metadata.num_row_groups):
            columns = file.metadata.row_group(group)
            for j in range(columns.num_columns):
                column = columns.column(j)
                if column.path_in_schema in names:
                    found = column.statistics
                    if found is None or not found.has_null_count or found.null_count:
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
