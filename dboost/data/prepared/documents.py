"""Documents in CSV and JSON lines, brought into Parquet before they are prepared.

Covers: which files are meant, the types of their columns, and their rows as a stream: no more than some blocks of bytes
are in memory. Does not cover: what a name and a value mean (``dboost.data.meaning``), the copies (``copies``), and what
is done with them (``prepare``).

What Parquet says of itself these formats do not, so that types are found by reading every row:

- text and split columns are texts, and a field of a CSV file that is empty is an empty text there, as pandas writes it;
- other columns of a CSV file are numbers where all their values are, and each is written again as it was: else texts,
  so that an identifier stays what it is. A label is a number also as ``12.50``. An empty field is a value that is
  missing;
- JSON has types: all values of a column must have one, and a key that is absent is a value that is missing. Lists of
  texts or of numbers, and objects of numbers, are values too.
"""

from __future__ import annotations

import codecs
import io
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dboost.data.absent_column import DOCUMENTS, absent_column
from dboost.data.manifest import find_manifest
from dboost.data.meaning import (
    ANY,
    CSV,
    HEAD_BYTES,
    JSON_LINES,
    PARQUET,
    Dialect,
    check_readable,
    codec_of,
    encoding_of,
    files_below,
    format_of,
    is_text,
    kinds_of_texts,
    kinds_of_value,
    narrowest,
    no_utf8,
    separator_of,
)
from dboost.data.parquet.input import ParquetData
from dboost.data.parquet.read import as_data_errors
from dboost.data.patterns import delta_files, files_of_each, matches
from dboost.errors import DataError, type_name
from dboost.files.store_folders import current
from dboost.files.stores import StorePath, any_path, open_input

# Bytes read at once. A document must fit into one block; in memory are a few of them.
BLOCK_BYTES = 8 << 20


@dataclass(frozen=True)
class Wanted:
    """The columns to copy."""

    texts: tuple[str, ...]  # Columns of text.
    labels: tuple[str, ...]  # Columns whose values are whole numbers or texts.
    kept: tuple[str, ...]  # Columns of any values.
    optional: tuple[str, ...] = ()  # Those that need not be there.
    dialect: Dialect = Dialect()  # How the files are written, where that was said.
    # Columns of tags in one text: a field of a CSV file that is empty has none, and is not missing.
    tags: tuple[str, ...] = ()
    every: bool = False  # Whether the types of all other columns are wanted too.
    documents: tuple[str, ...] = ()  # Those of the texts whose words are all that becomes features.

    def absent(self, name: str, known: Sequence[str], file: str) -> DataError:
        """The error for one of these columns that a file lacks; `known` are those that it has."""
        return absent_column(name, known, file, DOCUMENTS if name in self.documents else None)

    def names(self) -> list[str]:
        """All columns, once each."""
        return list(dict.fromkeys([*self.texts, *self.labels, *self.kept, *self.tags]))


def document_files(where: Any) -> list[tuple[str, str]]:
    """(path, name) of every file of documents, in the order of rows: of files, or of a folder of one format."""
    if isinstance(where, str | os.PathLike):
        where = current(any_path(where, "source").absolute())
        files = matches(where)
        if files is not None:
            check_readable([path for path, _ in files])
            formats = sorted({format_of(name) or PARQUET for _, name in files})
            if len(formats) > 1:
                raise DataError(
                    f"the pattern fits files of several formats: {', '.join(formats)}",
                    file=str(where),
                    hint="end it with the ending of one, such as *.csv",
                )
            return files
        table = delta_files(where)
        if table is not None:
            return table[0]
    if isinstance(where, Path | StorePath):
        if where.is_dir() and find_manifest(str(where)) is None:
            return files_below(where, [PARQUET, CSV, JSON_LINES])
        where = [where] if is_text(str(where)) else where
    if isinstance(where, str | os.PathLike):
        files = ParquetData(where).files()
    else:
        files = files_of_each([any_path(path, "source") for path in where], [PARQUET, CSV, JSON_LINES])
    check_readable([path for path, _ in files])
    return files


def column_types(item: tuple[str, Sequence[str]], wanted: Wanted) -> dict[str, frozenset[str]]:
    """What wanted columns of a file (its path, and folders' columns) may hold; optional ones may lack. On workers."""
    path, folders = item
    wanted = replace(wanted, optional=(*wanted.optional, *folders))
    if format_of(path) != CSV:
        found, texts = _json_types(path, wanted), wanted.texts
    else:
        found, texts = _csv_types(path, wanted), (*wanted.texts, *wanted.tags)
    return found | {name: frozenset({"str"}) for name in texts if name in found}


def joint_kinds(reports: Sequence[Mapping[str, frozenset[str]]], paths: Sequence[str]) -> dict[str, str]:
    """One kind per column over all files, ``null`` for no value at all; text beside numbers in JSON is a DataError."""
    joint: dict[str, frozenset[str]] = {}
    for report, path in zip(reports, paths, strict=True):
        for name, kinds in report.items():
            before = joint.get(name, ANY)
            joint[name] = before & kinds
            if not joint[name]:
                raise DataError(
                    f"type {narrowest(kinds)}, the files before have {narrowest(before)}",
                    file=path,
                    column=name,
                    hint="write all files with one schema",
                )
    return {name: narrowest(kinds) for name, kinds in joint.items()}


# -- CSV ---------------------------------------------------------------------------------------------------------------


@contextmanager
def csv_errors(path: str) -> Iterator[None]:
    """As ``as_data_errors``, and a document that is larger than a block is told as that."""
    with as_data_errors(path):
        try:
            yield
        except pa.ArrowInvalid as fault:
            if "UTF8" in str(fault):
                raise no_utf8(path) from fault
            if "Empty CSV" in str(fault):
                raise DataError("the file is empty, or has no row below its first one", file=path) from fault
            if "straddl" not in str(fault):
                raise
            raise DataError(
                f"a row is larger than {BLOCK_BYTES >> 20} MiB, or a quote is never closed",
                file=path,
                hint="write such documents as Parquet",
            ) from fault


def _stream(path: str) -> Any:
    """The bytes of a file of text, unpacked where it is compressed."""
    stream, codec = open_input(path), codec_of(path)
    return stream if codec is None else pa.CompressedInputStream(stream, codec)


def _head(path: str, dialect: Dialect) -> tuple[str, str]:
    """The encoding of a file of text, and the beginning of its text."""
    with _stream(path) as stream:
        head = bytes(stream.read(HEAD_BYTES))
    encoding = dialect.encoding or encoding_of(path, head)
    return encoding, codecs.getincrementaldecoder(encoding)(errors="replace").decode(head).removeprefix("\ufeff")


def _opened(path: str, encoding: str) -> Any:
    """A file of text as bytes of UTF-8."""
    stream = _stream(path)
    if codecs.lookup(encoding).name == "utf-8":
        return stream
    stream = stream if isinstance(stream, pa.NativeFile) else pa.PythonFile(stream, mode="r")
    return pa.transcoding_input_stream(stream, encoding, "utf-8")


class _WholeEnds(io.RawIOBase):
    """The bytes of a file in pieces of which none ends within the two bytes of a line's end.

    pyarrow 26 reads CSV in blocks and drops the second of the two where it begins a block, also within quotes
    (apache/arrow#51368). A block that ends one byte earlier has both in the next one.
    """

    def __init__(self, stream: Any) -> None:
        self._stream, self._held = stream, b""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        found = self._held + bytes(self._stream.read(size - len(self._held) if size >= 0 else -1))
        self._held = b"\r" if len(found) > 1 and found.endswith(b"\r") else b""
        return found[: len(found) - len(self._held)]

    def close(self) -> None:
        self._stream.close()
        super().close()


def _csv(path: str, names: list[str] | None, types: Mapping[str, Any], dialect: Dialect) -> Any:
    """A reader of record batches; only an empty field without quotes is no value."""
    from pyarrow import csv

    encoding, head = _head(path, dialect)
    separator = dialect.separator or separator_of(path, head)
    return csv.open_csv(
        _WholeEnds(_opened(path, encoding)),
        read_options=csv.ReadOptions(block_size=BLOCK_BYTES, use_threads=False),
        parse_options=csv.ParseOptions(newlines_in_values=True, delimiter=separator),
        convert_options=csv.ConvertOptions(
            column_types=dict(types),
            include_columns=names,
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            decimal_point=dialect.decimal or ".",
        ),
    )


def csv_header(path: str, dialect: Dialect) -> list[str]:
    """The names of the columns."""
    with csv_errors(path), _csv(path, None, {}, dialect) as reader:
        names: list[str] = reader.schema.names
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise DataError("two columns have the same name", file=path, column=twice[0], hint="rename one")
    return names


def _csv_types(path: str, wanted: Wanted) -> dict[str, frozenset[str]]:
    with csv_errors(path):
        there = csv_header(path, wanted.dialect)
    names = _present(path, wanted, there)
    found = dict.fromkeys(names, ANY)
    with csv_errors(path), _csv(path, names, dict.fromkeys(names, pa.string()), wanted.dialect) as reader:
        for batch in reader:
            for name in names:
                if name not in wanted.texts and found[name] != {"str"}:
                    told, target = batch.column(name).drop_null(), name in wanted.labels
                    found[name] &= kinds_of_texts(told, target=target, decimal=wanted.dialect.decimal)
    return found


def csv_tables(path: str, schema: pa.Schema, texts: Sequence[str], dialect: Dialect) -> Iterator[pa.Table]:
    """The rows, where a text that is empty is none that is missing: nothing else tells the two apart."""
    types = {field.name: field.type for field in schema}
    with _csv(path, schema.names, types, dialect) as reader:
        for batch in reader:
            table = pa.Table.from_batches([batch])
            for at, name in enumerate(table.column_names):
                if name in texts:
                    table = table.set_column(at, name, pc.fill_null(table.column(name), ""))
            yield table


# -- JSON lines --------------------------------------------------------------------------------------------------------


def _blocks(path: str, dialect: Dialect) -> Iterator[bytes]:
    """The bytes of a file in blocks of whole lines."""
    with _opened(path, _head(path, dialect)[0]) as stream:
        rest = b""
        while piece := bytes(stream.read(BLOCK_BYTES)):
            rest += piece
            end = rest.rfind(b"\n") + 1
            if end:
                yield rest[:end]
                rest = rest[end:]
            elif len(rest) > BLOCK_BYTES:
                raise DataError(
                    f"no line ends within {BLOCK_BYTES >> 20} MiB, so it is not JSON lines",
                    file=path,
                    hint="write one object a line",
                )
        if rest.strip():
            yield rest


def json_header(path: str, dialect: Dialect) -> list[str]:
    """The keys of the first object of a file of JSON lines."""
    with as_data_errors(path):
        for block in _blocks(path, dialect):
            for number, line in enumerate(block.split(b"\n"), 1):
                if line.strip():
                    return list(_json_row(line, number, path))
    return []


def header_of(path: str, dialect: Dialect) -> list[str]:
    """The columns of a file of text; of JSON lines the keys of its first object."""
    return csv_header(path, dialect) if format_of(path) == CSV else json_header(path, dialect)


def _json_types(path: str, wanted: Wanted) -> dict[str, frozenset[str]]:
    names = wanted.names()
    found: dict[str, frozenset[str]] = {}
    others: dict[str, None] = {}
    number = 0
    with as_data_errors(path):
        for block in _blocks(path, wanted.dialect):
            for line in block.split(b"\n"):
                number += 1
                if line.strip():
                    row = _json_row(line, number, path)
                    others |= dict.fromkeys(row)
                    for name in row if wanted.every else names:
                        if name in row:
                            found[name] = _json_kinds(found.get(name, ANY), row[name], name, number, path)
    _present(path, wanted, list(others))
    for name in wanted.texts:
        if "str" not in found.get(name, ANY):
            raise DataError(f"type {narrowest(found[name])}, expected text", file=path, column=name)
    return found


def _json_row(line: bytes, number: int, path: str) -> dict[str, Any]:
    try:
        row = json.loads(line.decode("utf-8-sig" if number == 1 else "utf-8"))
    except (ValueError, RecursionError) as fault:
        raise DataError(f"line {number} is not JSON: {fault}", file=path, hint="write one object a line") from fault
    if not isinstance(row, dict):
        what = f"line {number} is {type_name(row)}, expected an object"
        raise DataError(what, file=path, hint="write one object a line, with the columns as its keys")
    return row


def _json_kinds(before: frozenset[str], value: Any, name: str, number: int, path: str) -> frozenset[str]:
    """What a column may hold after one more value."""
    kinds = kinds_of_value(value)
    if kinds & before:
        return kinds & before
    what = f"holds {type_name(value)}"
    if isinstance(value, int) and not kinds:
        raise DataError(
            f"line {number} {what} of {len(str(value))} digits, more than 64 bits hold",
            file=path,
            column=name,
            hint="write such numbers as texts",
        )
    if "float" in before and "int" in kinds_of_value(value):
        what = f"holds the int {value}, which a float, as before, does not hold exactly"
        raise DataError(f"line {number} {what}", file=path, column=name, hint="write such numbers as texts")
    expected = "a text, a number or a list of these" if before == ANY else f"{narrowest(before)} as before"
    raise DataError(f"line {number} {what}, expected {expected}", file=path, column=name)


def json_tables(path: str, schema: pa.Schema, dialect: Dialect) -> Iterator[pa.Table]:
    from pyarrow import json as arrow_json

    first = True
    for block in _blocks(path, dialect):
        content = block.removeprefix(b"\xef\xbb\xbf") if first else block
        first = False
        if any(pa.types.is_map(field.type) for field in schema):
            # Arrow takes objects for structs, of which each key would be a column
            rows = [json.loads(line) for line in content.split(b"\n") if line.strip()]
            yield pa.table([pa.array([_pairs(row.get(one.name)) for row in rows], one.type) for one in schema], schema)
        elif content.strip():
            yield arrow_json.read_json(
                pa.BufferReader(content),
                read_options=arrow_json.ReadOptions(use_threads=False, block_size=len(content) + 1),
                parse_options=arrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
            )


def _pairs(value: Any) -> Any:
    return list(value.items()) if isinstance(value, dict) else value


def _present(path: str, wanted: Wanted, there: Sequence[str]) -> list[str]:
    """The wanted columns that are there; one that is not and must be is an error."""
    for name in wanted.names():
        if name not in there and name not in wanted.optional:
            raise wanted.absent(name, there, path)
    others = [name for name in there if name not in wanted.names()] if wanted.every else []
    return [*(name for name in wanted.names() if name in there), *others]
