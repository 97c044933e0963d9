"""What a file, a column and a value mean: one answer for CSV, JSON lines, Parquet, in memory and at prediction.

Covers: the format that a name tells, how text is written, the files of a folder, columns that folders hold, columns
that are an index, the kind of a column, the one type of a column that several files hold, and what values without types
may be. Does not cover: patterns of paths and tables of Delta Lake (``patterns``), reading (``parquet.read``,
``prepared.documents``).

Nothing is left out in silence: a file that is not read, and a column that is no feature though it stands in a table,
are refused or said in one line. pyarrow is imported where a type is looked at, since a description of data needs none.
"""

from __future__ import annotations

import codecs
import csv
import itertools
import json
import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote

from dboost.errors import DataError, UsageError
from dboost.files.stores import AnyPath, StorePath, any_path, is_store, open_input
from dboost.notices import warn_user

PARQUET, CSV, JSON_LINES = "Parquet", "CSV", "JSON lines"
MARK = b"PAR1"
FORMATS = {
    **dict.fromkeys((".parquet", ".parq", ".pq"), PARQUET),
    **dict.fromkeys((".csv", ".tsv", ".tab"), CSV),
    **dict.fromkeys((".jsonl", ".ndjson"), JSON_LINES),
}
# Endings of compressed files, and what pyarrow calls the codec; a Parquet file is compressed within.
CODECS = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4", ".br": "brotli"}
# Endings of tables and of packed files that are not read. In a folder of data such a file holds rows, more likely than
# not, and is no note that may be left out.
_UNREAD = frozenset(
    ".json .xml .xls .xlsx .ods .orc .avro .arrow .feather .ipc .h5 .hdf5 .npy .npz .pkl .pickle .sqlite .db .dta .sav "
    ".xz .zip .7z .rar .tar .tgz .z .snappy .zstd .lzo .psv".split()
) | frozenset(CODECS)
_NAMED = 3

# -- files -------------------------------------------------------------------------------------------------------------


def format_of(path: str) -> str | None:
    """The format that the name of a file tells; None where it tells none that is read."""
    endings = _endings(path)
    if not endings:
        return None
    if endings[-1] not in CODECS:
        return FORMATS.get(endings[-1])
    inner = FORMATS.get(endings[-2]) if len(endings) > 1 else None
    return None if inner == PARQUET else inner


def codec_of(path: str) -> str | None:
    """What a file of text is compressed with, as pyarrow calls it; None where it is not."""
    endings = _endings(path)
    return CODECS.get(endings[-1]) if endings else None


@dataclass(frozen=True)
class Dialect:
    """How the files of text are written, where a user says it; what is None is told by the files themselves."""

    separator: str | None = None  # What stands between the fields of CSV.
    encoding: str | None = None  # How characters are bytes, as Python names it.
    decimal: str | None = None  # What stands before the fraction of a number in CSV; a point where it is not said.

    def __post_init__(self) -> None:
        if self.separator is not None and (len(self.separator) != 1 or self.separator in '"\r\n'):
            raise UsageError(f"separator={self.separator!r}; expected one character, such as ;")
        if self.decimal not in (None, ".", ","):
            raise UsageError(f"decimal={self.decimal!r}; expected . or ,")
        if self.encoding is not None:
            try:
                # codecs such as `zip` and `hex` are known too, and are none of text
                "".encode(self.encoding)
            except (LookupError, ValueError):
                what = f"encoding={self.encoding!r} is not known"
                raise UsageError(what, hint="such as utf-8, latin-1, cp1252") from None

    def check_used(self, paths: Iterable[str]) -> None:
        """Refuse what has no effect on any of the files (UsageError)."""
        formats = {format_of(path) for path in paths}
        for name in ("separator", "decimal"):
            if getattr(self, name) is not None and CSV not in formats:
                raise UsageError(f"{name}= is of CSV, and no file is", hint="leave it out")
        if self.encoding is not None and not formats & {CSV, JSON_LINES}:
            raise UsageError("encoding= is of CSV and JSON lines, and no file is either", hint="leave it out")


DIALECT = tuple(one.name for one in fields(Dialect))
# Bytes of a file that tell how it is written.
HEAD_BYTES = 1 << 16
# Marks at the beginning of a file, and the encoding that each is of; that of UTF-8 is passed over by its readers.
_MARKS = ((codecs.BOM_UTF32_LE, "utf-32"), (codecs.BOM_UTF32_BE, "utf-32"), (codecs.BOM_UTF16_LE, "utf-16"),
          (codecs.BOM_UTF16_BE, "utf-16"))  # fmt: skip
# Beginnings of files that are no text.
_OTHERS = ((MARK, "Parquet (.parquet)"), (b"\x1f\x8b", "compressed (.gz)"), (b"BZh", "compressed (.bz2)"),
           (b"\x28\xb5\x2f\xfd", "compressed (.zst)"), (b"\x04\x22\x4d\x18", "compressed (.lz4)"),
           (b"PK\x03\x04", "an archive or a workbook (.zip, .xlsx)"))  # fmt: skip
# Separators that are told, and how many rows tell one.
_SEPARATORS, _ROWS = (",", ";", "\t"), 50


def encoding_of(path: str, head: bytes) -> str:
    """The encoding that the first bytes of a file of text tell: that of its mark, else UTF-8, or a DataError."""
    for mark, name in _MARKS:
        if head.startswith(mark):
            return name
    for mark, name in _OTHERS:
        if head.startswith(mark):
            raise DataError(f"the file is {name}, which its name does not say", file=path, hint="rename it")
    try:
        # a character may be cut at the end
        codecs.getincrementaldecoder("utf-8")().decode(head, final=len(head) < HEAD_BYTES)
    except UnicodeDecodeError as fault:
        raise no_utf8(path, f": {fault.reason} at byte {fault.start}") from fault
    return "utf-8"


def no_utf8(path: str, why: str = "") -> DataError:
    """The error for a file of text in an encoding that cannot be told."""
    hint = "name how it is written: encoding=latin-1, or cp1252"
    return DataError(f"the text is no UTF-8{why}", file=path, hint=hint)


def separator_of(path: str, head: str) -> str:
    """What stands between the fields of a CSV file: a tab in ``.tsv`` and ``.tab``, else what its first rows tell.

    `head`: The beginning of the file. A separator is told by rows that it all cuts into as many fields as the first
    one; a comma goes before others, and is taken where none is told.
    Raises DataError: A semicolon and a tab both are told.
    """
    if {".tsv", ".tab"} & set(_endings(path)[-2:]):
        return "\t"
    told = [one for one in _SEPARATORS if _cuts_alike(head, one)]
    if len(told) > 1 and told[0] != ",":
        what = "both a semicolon and a tab cut all rows alike"
        raise DataError(what, file=path, hint="say which stands between the fields: separator=';'")
    return told[0] if told else ","


def _cuts_alike(head: str, separator: str) -> bool:
    """Whether a separator cuts the first rows into as many fields, more than one, as their header."""
    if separator not in head:
        return False
    rows = csv.reader(head.splitlines(keepends=True), delimiter=separator)
    sizes = []
    try:
        for row in itertools.islice(rows, _ROWS):
            sizes.append(len(row))
    except csv.Error:
        return False
    # the last of many bytes may be cut
    whole = [size for size in (sizes[:-1] if len(head) > HEAD_BYTES // 4 and len(sizes) > 1 else sizes) if size]
    return bool(whole) and whole[0] > 1 and set(whole) == {whole[0]}


def ending_of(path: str) -> str:
    """The ending of a name in words, for a message."""
    return _endings(path)[-1] if _endings(path) else "a file without an ending"


def is_text(path: str) -> bool:
    """Whether the name of a file tells a format of text, whose columns have no types."""
    return format_of(path) in (CSV, JSON_LINES)


def _endings(path: str) -> list[str]:
    """The endings of a name, in small letters; options of a store are no part of it."""
    name = any_path(path).name if is_store(path) else PurePosixPath(path).name
    return [ending.lower() for ending in PurePosixPath(name).suffixes]


def files_below(folder: AnyPath, read: Sequence[str]) -> list[tuple[str, str]]:
    """(path, name) of the files of data below a folder, sorted by their names.

    `read`: The formats that may be there. Files and folders whose names begin with ``_`` or ``.`` are never data; links
    are followed; a file whose name tells nothing is Parquet where it begins as such, and else is said to be left out.
    Raises DataError: No such file, files of several formats, tables of a format that is not read, links to nowhere.
    """
    formats: dict[str, list[str]] = {}
    left_out = []
    for name in visible(folder):
        found = format_of(name)
        if found is None and _begins_as_parquet(str(folder / name)):
            found = PARQUET
        if found is None and ending_of(name) in _UNREAD:
            raise _unread(str(folder / name), beside=True)
        if found is None:
            left_out.append(name)
        else:
            formats.setdefault(found, []).append(name)
    if len(formats) > 1:
        shown = ", ".join(sorted(f"{names[0]} ({kind})" for kind, names in formats.items()))
        raise DataError(
            f"the folder holds files of several formats: {shown}",
            file=str(folder),
            hint="name a folder of one format, a pattern such as 'folder/*.csv', or the files themselves",
        )
    names = [name for kind in read for name in formats.get(kind, [])]
    if not names:
        other = f", but {next(iter(formats))}" if formats else ""
        raise DataError(f"the folder holds no files of {' or '.join(read)}{other}", file=str(folder))
    if left_out:
        warn_user(f"left out of {folder}, as they are no {next(iter(formats))}: {_some(left_out)}")
    return each_once([(str(folder / name), name) for name in sorted(names)])


def each_once(files: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The files without second names of the same one, which are said to be left out; a name that is no link stays."""
    known: dict[tuple[int, int], list[tuple[str, str]]] = {}
    for path, name in files:
        if is_store(path):
            return files
        state = os.stat(path)
        known.setdefault((state.st_dev, state.st_ino), []).append((path, name))
    kept = {min(same, key=lambda one: os.path.realpath(one[0]) != os.path.abspath(one[0])) for same in known.values()}
    left_out = [name for path, name in files if (path, name) not in kept]
    if left_out:
        warn_user(f"left out, each being a file that is read under a second name, such as a link: {_some(left_out)}")
    return [file for file in files if file in kept]


def check_readable(paths: Iterable[str]) -> None:
    """Refuse a file of documents by its name, before its bytes are read, where its format is not read (DataError)."""
    for path in paths:
        if format_of(path) is None and any_path(path).is_file() and not _begins_as_parquet(path):
            raise _unread(path)


def _unread(path: str, *, beside: bool = False) -> DataError:
    packed = _endings(path)
    if len(packed) > 1 and FORMATS.get(packed[-2]) == PARQUET:
        return DataError("a Parquet file that is packed once more is not read", file=path, hint="unpack it")
    hint = "write Parquet, CSV (.csv) or JSON lines (.jsonl), one object a line; .gz, .bz2, .zst, .lz4 and .br are read"
    return DataError(
        f"documents in {ending_of(path)} are not read",
        file=path,
        hint=f"{hint}; or take it out of the folder" if beside else hint,
    )


def _begins_as_parquet(path: str) -> bool:
    try:
        with open_input(path) as stream:
            return bool(stream.read(len(MARK)) == MARK)
    except OSError as fault:
        raise DataError(f"the file cannot be read: {fault.strerror or fault}", file=path) from fault


def visible(folder: AnyPath) -> list[str]:
    """Names of the files below a folder; those in or of a hidden name are never data."""
    if isinstance(folder, StorePath):
        names = (path.relative_to(folder).as_posix() for path in folder.rglob("*"))
        return [name for name in names if not any(map(is_hidden, name.split("/")))]
    return list(_walked(folder, ()))


def _walked(folder: Path, above: tuple[Any, ...]) -> Iterator[str]:
    """Names of the visible files below a folder, through links; `above` are the folders it lies in."""
    try:
        state = folder.stat()
        entries = sorted(os.scandir(folder), key=lambda one: one.name)
    except OSError as fault:
        raise DataError(f"the folder cannot be read: {fault.strerror or fault}", file=str(folder)) from fault
    here = (state.st_dev, state.st_ino)
    if here in above:
        raise DataError("the link leads back to a folder above it", file=str(folder), hint="remove it")
    for entry in entries:
        if is_hidden(entry.name):
            continue
        if not os.path.exists(entry.path):
            raise DataError(
                "a link to a file that is not there", file=entry.path, hint="restore the file, or remove it"
            )
        if entry.is_dir():
            yield from (f"{entry.name}/{name}" for name in _walked(folder / entry.name, (*above, here)))
        else:
            yield entry.name


def is_hidden(part: str) -> bool:
    """Whether a name is never one of data."""
    return part.startswith(("_", "."))


# -- columns -----------------------------------------------------------------------------------------------------------

_COLUMN = re.compile(r"(?P<name>[^=/]+)=(?P<value>[^/]*)")
# Whole numbers of folders are padded to be sorted (month=03); Arrow, pandas and Spark read numbers there.
_WHOLE = re.compile(r"-?[0-9]{1,18}")
# What Hive writes for a value that is missing.
_NULL = "__HIVE_DEFAULT_PARTITION__"
# The column that documents have of themselves where they hold none of that name: the file that a row comes from.
FILE = "file"
# Columns in which pandas and Dask keep an index that has no name: in Parquet, in CSV, and where that was read again.
_INDEX = re.compile(r"__index_level_\d+__|__null_dask_index__|(Unnamed: 0)?")


def folder_columns(name: str) -> dict[str, str | None]:
    """The columns that the folders of a file's name hold: ``year=2020/lang=en/part.parquet`` has two."""
    found: dict[str, str | None] = {}
    for part in name.split("/")[:-1]:
        column = _COLUMN.fullmatch(part)
        if column is not None:
            value = unquote(column["value"])
            found[column["name"]] = None if value == _NULL else value
    return found


def folder_values(names: Sequence[str]) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """The columns that the folders of all files of a data set hold: values by file, and kinds, ``int`` or ``str``."""
    above = 0
    if any(is_store(name) or name.startswith("/") for name in names):
        above = len(os.path.commonprefix([name.split("/")[:-1] for name in names]))
    texts = [folder_columns("/".join(name.split("/")[above:])) for name in names]
    seen: dict[str, set[str]] = {}
    for columns in texts:
        for name, value in columns.items():
            seen.setdefault(name, set()).update(() if value is None else (value,))
    kinds = {name: "int" if _are_whole(values) else "str" for name, values in seen.items()}
    typed = [
        {name: int(value) if value is not None and kinds[name] == "int" else value for name, value in columns.items()}
        for columns in texts
    ]
    return typed, kinds


def _are_whole(values: set[str]) -> bool:
    """Whether texts are whole numbers, and as many of them as there are texts: 7 and 07 are two folders."""
    return all(map(_WHOLE.fullmatch, values)) and len(set(map(int, values))) == len(values)


def say_own(names: Collection[str]) -> None:
    """Say in one line which columns of files are read although their folders name them too."""
    if names:
        warn_user(f"columns of the files are read in place of those that their folders name: {_some(sorted(names))}")


def is_index(name: str) -> bool:
    """Whether a column has the name of an index that has none."""
    return _INDEX.fullmatch(name) is not None


def index_columns(schema: Any) -> tuple[str, ...]:
    """The columns of an Arrow schema, with its metadata, in which pandas or Dask keeps the index of a table."""
    try:
        about = json.loads((schema.metadata or {}).get(b"pandas", b"{}"))
        told = about.get("index_columns", ()) if isinstance(about, dict) else ()
    except ValueError:
        told = ()
    told = [name for name in told if isinstance(name, str)] if isinstance(told, list) else []
    return tuple(name for name in schema.names if name in told or is_index(name))


def say_index(names: Sequence[str], to_use: str = "name it in features=") -> None:
    """Say in one line that the columns of an index are no features."""
    if names:
        rows = "the row numbers or the index of a table of pandas"
        shown = _some([name or "the first, which has no name" for name in names])
        warn_user(
            f"no features, as they hold {rows}: {shown}. To use one, {to_use if all(names) else 'give it a name'}"
        )


def column_kind(kind: Any) -> str:
    """A name for what a column of an Arrow type holds, the same for encodings that mean the same.

    Integers of any width are ``int``, float16 and float32 are ``float32``; dictionary, large and view strings are
    ``str``; large lists and views of lists are lists.
    """
    import pyarrow as pa

    kind, test = plain_type(kind), pa.types
    if test.is_fixed_size_list(kind):
        return f"fixed[{kind.list_size}]<{column_kind(kind.value_type)}>"
    if test.is_list(kind):
        return f"list<{column_kind(kind.value_type)}>"
    if test.is_floating(kind):
        return "float64" if test.is_float64(kind) else "float32"
    if test.is_integer(kind):
        return "int"
    names = {pa.string(): "str", pa.binary(): "bytes", pa.bool_(): "bool"}
    return names.get(kind) or str(kind)


def plain_type(kind: Any) -> Any:
    """The Arrow type of the same values in the most common of their encodings."""
    import pyarrow as pa

    test = pa.types
    if test.is_dictionary(kind):
        return plain_type(kind.value_type)
    if test.is_large_string(kind) or test.is_string_view(kind):
        return pa.string()
    if test.is_large_binary(kind) or test.is_binary_view(kind):
        return pa.binary()
    if test.is_fixed_size_list(kind):
        return pa.list_(plain_type(kind.value_type), kind.list_size)
    if test.is_list(kind) or test.is_large_list(kind) or test.is_list_view(kind) or test.is_large_list_view(kind):
        return pa.list_(plain_type(kind.value_type))
    return kind


def joint_type(one: Any, other: Any) -> Any:
    """The Arrow type that holds the values of two columns, each unchanged; None where there is none.

    Integers take the width, and the sign, that both fit into; floats the greater precision, and integers of at most 32
    bits beside them float64, which holds these exactly; times the finer unit. A column without any value goes with all.
    """
    import pyarrow as pa

    test = pa.types
    one, other = plain_type(one), plain_type(other)
    if one == other or test.is_null(other):
        return one
    if test.is_null(one):
        return other
    if test.is_integer(one) and test.is_integer(other):
        bits = [kind.bit_width for kind in (one, other)]
        signed = [test.is_signed_integer(kind) for kind in (one, other)]
        if signed[0] == signed[1]:
            return one if bits[0] >= bits[1] else other
        width = max(bits[signed.index(True)], 2 * bits[signed.index(False)])
        return {16: pa.int16(), 32: pa.int32(), 64: pa.int64()}.get(width)
    if test.is_floating(one) and test.is_floating(other):
        return one if one.bit_width >= other.bit_width else other
    for whole, point in ((one, other), (other, one)):
        if test.is_integer(whole) and test.is_floating(point):
            return pa.float64() if whole.bit_width <= 32 else None
    if test.is_timestamp(one) and test.is_timestamp(other) and one.tz == other.tz:
        return max(one, other, key=lambda kind: ("s", "ms", "us", "ns").index(kind.unit))
    if test.is_list(one) and test.is_list(other):
        inner = joint_type(one.value_type, other.value_type)
        return None if inner is None else pa.list_(inner)
    if test.is_fixed_size_list(one) and test.is_fixed_size_list(other) and one.list_size == other.list_size:
        inner = joint_type(one.value_type, other.value_type)
        return None if inner is None else pa.list_(inner, one.list_size)
    return None


def fits(kind: Any, wanted: str) -> bool:
    """Whether numbers of an Arrow type, in lists or not, are read as those of another kind without a loss."""
    joint = joint_type(kind, _widest(plain_type(kind)))
    return joint is not None and column_kind(joint) == wanted


def _widest(kind: Any) -> Any:
    """float64, in the lists that a type has."""
    import pyarrow as pa

    if pa.types.is_fixed_size_list(kind):
        return pa.list_(_widest(kind.value_type), kind.list_size)
    return pa.list_(_widest(kind.value_type)) if pa.types.is_list(kind) else pa.float64()


# -- values ------------------------------------------------------------------------------------------------------------

# What a column of values without types may be, the first being taken that holds all of them unchanged.
KINDS = ("int", "uint", "float", "bool", "str", "list<str>", "list<int>", "list<float>", "weights")
ANY = frozenset(KINDS)
_LISTS = frozenset(KINDS[5:8])
_ARROW = {"int": "int64", "uint": "uint64", "float": "float64", "bool": "bool_", "str": "string", "null": "null"}
# Whole numbers as they are written by whoever writes numbers: 7, not 007 or +7, which are identifiers.
_DIGITS = r"^(0|-?[1-9][0-9]{0,19})$"
_NUMBER = r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$"
_POINT = r"^[^eE]*\.[^eE]*$"
# Whole numbers up to this size are float64 without a loss.
_EXACT = 1 << 53


def narrowest(kinds: frozenset[str]) -> str:
    """The kind of a column from what all its values may be; ``null`` where there is no value."""
    return "null" if kinds == ANY else next(kind for kind in KINDS if kind in kinds)


def arrow_of(kind: str) -> Any:
    """The Arrow type of a kind of values without types."""
    import pyarrow as pa

    if kind == "weights":
        return pa.map_(pa.string(), pa.float64())
    if kind in _LISTS:
        return pa.list_(arrow_of(kind[5:-1]))
    return getattr(pa, _ARROW[kind])()


def kinds_of_texts(texts: Any, *, target: bool, decimal: str | None = None) -> frozenset[str]:
    """What some fields of a CSV file may be, each without a loss.

    `target`: Whether the column is to be learned: a number with a point is one then, however it is written. In others
    it is one only where the number is written so again (``0.5``, not ``0.50`` or ``1e3``): what may be an identifier
    stays the text that it is.
    `decimal`: What stands before a fraction, where a user said it; a number is one then, however it is written.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    found = {"str"}
    if len(texts) == 0:
        return ANY
    if decimal == ",":
        # a point is none in a number then; it becomes what no number has
        texts = pc.replace_substring(pc.replace_substring(texts, ".", "?"), ",", ".")
    target = target or decimal is not None
    if pc.all(pc.match_substring_regex(texts, _DIGITS)).as_py():
        for kind, type_ in (("int", pa.int64()), ("uint", pa.uint64())):
            try:
                numbers = pc.cast(texts, type_)
            except pa.ArrowInvalid:
                continue
            found.add(kind)
            ends = pc.min_max(numbers).as_py()
            if -_EXACT <= ends["min"] and ends["max"] <= _EXACT:
                found.add("float")
    elif pc.all(pc.match_substring_regex(texts, _NUMBER)).as_py():
        numbers = pc.cast(texts, pa.float64())
        kept = pc.equal(pc.cast(numbers, pa.string()), texts)
        if target:
            kept = pc.or_(kept, pc.match_substring_regex(texts, _POINT))
        rest = pc.invert(kept)
        pairs = zip(texts.filter(rest).to_pylist(), numbers.filter(rest).to_pylist(), strict=True)
        if pc.all(pc.is_finite(numbers)).as_py() and all(repr(number) == text for text, number in pairs):
            found.add("float")
    return frozenset(found)


def kinds_of_value(value: Any) -> frozenset[str]:
    """What a value of JSON may be without a loss; nothing where it is no value of a column."""
    if isinstance(value, str):
        return frozenset({"str"})
    if value is None:
        return ANY
    if isinstance(value, bool):
        return frozenset({"bool"})
    if isinstance(value, float):
        return frozenset({"float"})
    if isinstance(value, list):
        inner = frozenset.intersection(ANY, *map(kinds_of_value, value))
        return frozenset(kind for kind in _LISTS if kind[5:-1] in inner)
    if isinstance(value, dict):
        numbers = all("float" in kinds_of_value(one) and one is not None for one in value.values())
        return frozenset({"weights"} if numbers else ())
    if not isinstance(value, int):
        return frozenset()
    fits = {"int": -(1 << 63) <= value < 1 << 63, "uint": 0 <= value < 1 << 64, "float": abs(value) <= _EXACT}
    return frozenset(kind for kind, holds in fits.items() if holds)


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_NAMED])
    return shown if len(names) <= _NAMED else f"{shown} and {len(names) - _NAMED} more"
