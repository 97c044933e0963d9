"""Documents in CSV and JSON lines, brought into Parquet before they are prepared.

Covers: which files are meant, the types of their columns, and their rows as a stream: no more than some blocks of bytes
are in memory. Does not cover: the copies (``copies``), and what is done with them (``prepare``).

What Parquet says of itself these formats do not, so that types are found by reading every row:

- text and split columns are texts, and a field of a CSV file that is empty is an empty text there;
- labels of a CSV file are whole numbers where all of them are (``7``, not ``007``), else texts; an empty field is a
  label that is missing. Kept columns may be numbers with a point too;
- JSON has types: all values of a column must have one, and a key that is absent is a value that is missing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dboost.data.absent_column import absent_column
from dboost.data.parquet.input import ParquetData
from dboost.data.parquet.read import as_data_errors
from dboost.data.patterns import delta_files, matches
from dboost.errors import DataError
from dboost.files.store_folders import current
from dboost.files.stores import AnyPath, StorePath, any_path, is_store, open_input

CSV, JSON_LINES = "csv", "jsonl"
FORMATS = {".csv": CSV, ".jsonl": JSON_LINES, ".ndjson": JSON_LINES}
# Bytes read at once. A document must fit into one block; in memory are a few of them.
BLOCK_BYTES = 8 << 20

_WHOLE = r"^(0|-?[1-9][0-9]{0,17})$"
_NUMBER = r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$"
TYPES = {"int": pa.int64(), "float": pa.float64(), "bool": pa.bool_(), "str": pa.string(), "null": pa.null()}


@dataclass(frozen=True)
class Wanted:
    """The columns to copy.

    Parameters
    ----------
    texts : tuple of str
        Columns of text.
    labels : tuple of str
        Columns whose values are whole numbers or texts.
    kept : tuple of str
        Columns whose values may be any number or text.
    optional : tuple of str
        Those that need not be there.
    """

    texts: tuple[str, ...]
    labels: tuple[str, ...]
    kept: tuple[str, ...]
    optional: tuple[str, ...] = ()

    def names(self) -> list[str]:
        """All columns, once each."""
        return list(dict.fromkeys([*self.texts, *self.labels, *self.kept]))


def format_of(path: str) -> str | None:
    """The format that the name of a file tells; None for Parquet and anything else."""
    return FORMATS.get(_suffix(path))


def _suffix(path: str) -> str:
    """The ending of a name, in small letters; options of a store are no part of it."""
    return any_path(path).suffix.lower() if is_store(path) else Path(path).suffix.lower()


def document_files(where: Any) -> list[tuple[str, str]]:
    """(path, name) of every file of documents, in the order of the rows.

    Parameters
    ----------
    where : path or sequence of paths
        Files, or one folder, in which all files have one format.

    Raises
    ------
    DataError
        Nothing there, or files of several formats.
    """
    if isinstance(where, str | os.PathLike):
        where = current(any_path(where, "source").absolute())
        files = matches(where)
        if files is not None:
            _refuse_foreign([path for path, _ in files])
            _refuse_mixture([name for _, name in files], where)
            return files
        table = delta_files(where)
        if table is not None:
            return table[0]
    if not isinstance(where, Path | StorePath) or not where.is_dir():
        one = isinstance(where, Path | StorePath) and format_of(str(where)) is not None
        files = ParquetData([where] if one else where).files()
        _refuse_foreign([path for path, _ in files])
        return files
    there = _visible(where)
    found = [name for name in there if format_of(name) is not None]
    if not found:
        return ParquetData(where).files()
    _refuse_mixture([name for name in there if name in found or name.endswith(".parquet")], where)
    return [(str(where / name), name) for name in found]


def _refuse_mixture(names: Sequence[str], where: AnyPath) -> None:
    """Refuse files of several formats in one folder or pattern."""
    formats = sorted({Path(name).suffix for name in names})
    if len({FORMATS.get(suffix.lower()) for suffix in formats}) > 1:
        raise DataError(
            f"the folder holds files of several formats: {', '.join(formats)}",
            file=str(where),
            hint="name a folder of one format, or the files themselves",
        )


def _refuse_foreign(paths: Sequence[str]) -> None:
    """Refuse a file of a format that is not read by what it is called, before anything is said of its bytes."""
    for path in paths:
        suffix = _suffix(path)
        if suffix not in (*FORMATS, ".parquet") and any_path(path).is_file():
            with as_data_errors(path), open_input(path) as stream:
                if stream.read(4) != b"PAR1":
                    raise DataError(
                        f"documents in {suffix or 'a file without an ending'} are not read",
                        file=path,
                        hint="write Parquet, CSV (.csv) or JSON lines (.jsonl), one object a line",
                    )


def _visible(folder: AnyPath) -> list[str]:
    """Names of the files below a folder, sorted; those that start with ``_`` or ``.`` are never data."""
    files = (path for path in folder.rglob("*") if isinstance(path, StorePath) or path.is_file())
    names = [path.relative_to(folder) for path in files]  # type: ignore[arg-type]  # both are of one kind
    return sorted("/".join(name.parts) for name in names if not any(p.startswith(("_", ".")) for p in name.parts))


def column_types(path: str, wanted: Wanted) -> dict[str, str]:
    """What each wanted column of a file holds: ``str``, ``int``, ``float``, ``bool``, or ``null`` for no value at all.

    An optional column that is not there is left out. Runs on workers.

    Raises
    ------
    DataError
        The file cannot be read, lacks a column, or has values of several types in one.
    """
    found = _csv_types(path, wanted) if format_of(path) == CSV else _json_types(path, wanted)
    return found | {name: "str" for name in wanted.texts if name in found}


def joint_types(reports: Sequence[Mapping[str, str]], paths: Sequence[str]) -> dict[str, str]:
    """One type per column over all files.

    Raises
    ------
    DataError
        Text in one JSON file and numbers in another.
    """
    joint: dict[str, str] = {}
    for report, path in zip(reports, paths, strict=True):
        for name, kind in report.items():
            try:
                joint[name] = _joined(joint.get(name, "null"), kind, widens=format_of(path) == CSV)
            except TypeError:
                raise DataError(
                    f"type {kind}, the files before have {joint[name]}",
                    file=path,
                    column=name,
                    hint="write all files with one schema",
                ) from None
    return joint


def _joined(one: str, other: str, *, widens: bool) -> str:
    """The type that holds both; a CSV file has nothing but texts, so that these hold everything there."""
    if one == other or other == "null":
        return one
    if one == "null":
        return other
    if {one, other} == {"int", "float"}:
        return "float"
    if widens:
        return "str"
    raise TypeError


# -- CSV ---------------------------------------------------------------------------------------------------------------


@contextmanager
def csv_errors(path: str) -> Iterator[None]:
    """As ``as_data_errors``, and a document that is larger than a block is told as that."""
    with as_data_errors(path):
        try:
            yield
        except pa.ArrowInvalid as fault:
            if "straddl" not in str(fault):
                raise
            raise DataError(
                f"a row is larger than {BLOCK_BYTES >> 20} MiB, or a quote is never closed",
                file=path,
                hint="write such documents as Parquet",
            ) from fault


def _csv(path: str, names: list[str] | None, types: Mapping[str, Any]) -> Any:
    """A reader of record batches; only an empty field without quotes is no value."""
    from pyarrow import csv

    return csv.open_csv(
        open_input(path) if is_store(path) else path,
        read_options=csv.ReadOptions(block_size=BLOCK_BYTES, use_threads=False),
        parse_options=csv.ParseOptions(newlines_in_values=True),
        convert_options=csv.ConvertOptions(
            column_types=dict(types),
            include_columns=names,
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )


def csv_header(path: str) -> list[str]:
    """The names of the columns."""
    with _csv(path, None, {}) as reader:
        names: list[str] = reader.schema.names
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise DataError("two columns have the same name", file=path, column=twice[0], hint="rename one")
    return names


def _csv_types(path: str, wanted: Wanted) -> dict[str, str]:
    with csv_errors(path):
        there = csv_header(path)
    names = _present(path, wanted, there)
    found = dict.fromkeys(names, "null")
    with csv_errors(path), _csv(path, names, dict.fromkeys(names, pa.string())) as reader:
        for batch in reader:
            for name in names:
                kind = _csv_kind(batch.column(name).drop_null(), name in wanted.kept)
                found[name] = _joined(found[name], kind, widens=True)
    return found


def _csv_kind(values: Any, any_number: bool) -> str:
    """The narrowest type of some texts."""
    if len(values) == 0:
        return "null"
    if pc.all(pc.match_substring_regex(values, _WHOLE)).as_py():
        return "int"
    if any_number and pc.all(pc.match_substring_regex(values, _NUMBER)).as_py():
        return "float"
    return "str"


def csv_tables(path: str, schema: pa.Schema) -> Iterator[pa.Table]:
    texts = {field.name: field.type for field in schema}
    with _csv(path, schema.names, texts) as reader:
        for batch in reader:
            yield pa.Table.from_batches([batch])


# -- JSON lines --------------------------------------------------------------------------------------------------------


def _blocks(path: str) -> Iterator[bytes]:
    """The bytes of a file in blocks of whole lines."""
    with open_input(path) as stream:
        rest = b""
        while piece := stream.read(BLOCK_BYTES):
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


def _json_types(path: str, wanted: Wanted) -> dict[str, str]:
    names = wanted.names()
    found: dict[str, str] = {}
    others: dict[str, None] = {}
    number = 0
    with as_data_errors(path):
        for block in _blocks(path):
            for line in block.split(b"\n"):
                number += 1
                if line.strip():
                    row = _json_row(line, number, path)
                    others |= dict.fromkeys(row)
                    for name in names:
                        if name in row:
                            found[name] = _json_kind(found.get(name, "null"), row[name], name, number, path)
    _present(path, wanted, list(others))
    for name in wanted.texts:
        if found.get(name, "str") not in ("str", "null"):
            raise DataError(f"type {found[name]}, expected text", file=path, column=name)
    return found


def _json_row(line: bytes, number: int, path: str) -> dict[str, Any]:
    try:
        row = json.loads(line.decode("utf-8-sig" if number == 1 else "utf-8"))
    except (ValueError, RecursionError) as fault:
        raise DataError(f"line {number} is not JSON: {fault}", file=path, hint="write one object a line") from fault
    if not isinstance(row, dict):
        what = f"line {number} is a {type(row).__name__}, expected an object"
        raise DataError(what, file=path, hint="write one object a line, with the columns as its keys")
    return row


def _json_kind(before: str, value: Any, name: str, number: int, path: str) -> str:
    """The type of a column after one more value."""
    kind = "null" if value is None else type(value).__name__
    try:
        if kind not in TYPES:
            raise TypeError
        return _joined(before, kind, widens=False)
    except TypeError:
        expected = "a text or a number" if before == "null" else f"{before} as before"
        raise DataError(f"line {number} holds a {kind}, expected {expected}", file=path, column=name) from None


def json_tables(path: str, schema: pa.Schema) -> Iterator[pa.Table]:
    from pyarrow import json as arrow_json

    first = True
    for block in _blocks(path):
        content = block.removeprefix(b"\xef\xbb\xbf") if first else block
        first = False
        if content.strip():
            yield arrow_json.read_json(
                pa.BufferReader(content),
                read_options=arrow_json.ReadOptions(use_threads=False, block_size=len(content) + 1),
                parse_options=arrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
            )


def _present(path: str, wanted: Wanted, there: Sequence[str]) -> list[str]:
    """The wanted columns that are there; one that is not and must be is an error."""
    for name in wanted.names():
        if name not in there and name not in wanted.optional:
            raise absent_column(name, there, path)
    return [name for name in wanted.names() if name in there]
