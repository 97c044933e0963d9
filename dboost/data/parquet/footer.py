"""What a Parquet footer says of its column chunks, read from its bytes.

Covers: sizes and counts of column chunks, the refusal of a footer in which they make no sense, and whether a page has a
checksum.
Does not cover: schemas and values (``read``).

PyArrow 26 gives the same facts as ``metadata.row_group(g).column(c)``, but of a damaged chunk that call ends the whole
process: its C++ throws where Python cannot catch it (docs/upstream/column-chunk-abort.md). Reading values does raise.
Whoever asks PyArrow for a column chunk therefore lets ``chunks_of`` look at the footer before.

A footer is a struct in Thrift's compact protocol, with the fields of ``parquet.thrift``:
https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md and
https://github.com/apache/parquet-format.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

# Types of the compact protocol.
_STOP, _TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(13)
_INTEGERS = (_I16, _I32, _I64)
# Structs within structs: the format has 8, and a damaged footer must not use up Python's stack.
_DEEPEST = 32
# Numbers in parquet.thrift: ``Type.BYTE_ARRAY``, and ``FieldRepetitionType`` OPTIONAL and REPEATED.
_BYTE_ARRAY, _OPTIONAL, _REPEATED = 6, 1, 2


class FooterError(ValueError):
    """Bytes that are no footer, or one that contradicts itself."""


@dataclass(frozen=True)
class Chunk:
    """What a footer says of one column of a row group."""

    num_values: int  # Values, missing ones and empty lists included.
    uncompressed: int  # Bytes of its pages before they were compressed.


@dataclass(frozen=True)
class _Leaf:
    """A stored column: its physical type, and the greatest definition and repetition levels of its path."""

    kind: int
    definition: int
    repetition: int


def chunks_of(footer: bytes) -> list[list[Chunk]]:
    """The column chunks of each row group, of a bare footer; what PyArrow would not survive is a FooterError."""
    whole = _Reader(footer).struct()
    leaves = list(_leaves(_list(whole, 2, "schema")))
    found = []
    for group in _list(whole, 4, "row groups"):
        chunks = _list(group, 1, "columns")
        if len(chunks) != len(leaves):
            raise FooterError(f"a row group has {len(chunks)} columns, the schema {len(leaves)}")
        found.append([_chunk(chunk, leaf) for chunk, leaf in zip(chunks, leaves, strict=True)])
    return found


def has_checksum(header: bytes) -> bool:
    """Whether a page carries a checksum, by the beginning of its header: the field 4, after three 32-bit integers."""
    reader, number = _Reader(header), 0
    with suppress(FooterError):
        while number < 4:
            head = reader.byte()
            if head & 0x0F != _I32 or head >> 4 == 0:
                return False
            number += head >> 4
            reader.signed()
        return number == 4
    return False


def _chunk(chunk: Any, leaf: _Leaf) -> Chunk:
    about = chunk.get(3) if isinstance(chunk, dict) else None
    if not isinstance(about, dict) or 8 in chunk or 9 in chunk:
        raise FooterError("a column has no description, or an encrypted one")
    _check_sizes(about.get(16), leaf)
    return Chunk(_integer(about, 5, "number of values"), _integer(about, 6, "size"))


def _check_sizes(sizes: Any, leaf: _Leaf) -> None:
    """``SizeStatistics``: bytes of text, and how often each repetition and definition level comes."""
    if sizes is None:
        return
    if not isinstance(sizes, dict):
        raise FooterError("the statistics of sizes are no struct")
    if 1 in sizes and leaf.kind != _BYTE_ARRAY:
        raise FooterError("the statistics of sizes tell the bytes of text of a column that is none")
    for field, level in ((2, leaf.repetition), (3, leaf.definition)):
        histogram = sizes.get(field, [])
        if not isinstance(histogram, list) or len(histogram) not in (0, level + 1):
            raise FooterError(f"a histogram of levels is not one of {level + 1} entries")


def _leaves(schema: list[Any]) -> Iterator[_Leaf]:
    """The stored columns of a schema, which lists its tree depth first."""
    # Of each open group: children that are still to come, and its levels.
    open_groups: list[list[int]] = []
    for place, element in enumerate(schema):
        if not isinstance(element, dict):
            raise FooterError("an element of the schema is no struct")
        if place and not open_groups:
            raise FooterError("the schema goes on after its last column")
        definition, repetition = open_groups[-1][1:] if open_groups else (0, 0)
        if open_groups:
            open_groups[-1][0] -= 1
            how = element.get(3, 0)
            definition += how in (_OPTIONAL, _REPEATED)
            repetition += how == _REPEATED
        children = element.get(5, 0)
        if not isinstance(children, int) or children < 0:
            raise FooterError("an element of the schema has no sound number of children")
        if children:
            open_groups.append([children, definition, repetition])
        elif place:
            yield _Leaf(element.get(1, -1), definition, repetition)
        while open_groups and not open_groups[-1][0]:
            open_groups.pop()
    if open_groups:
        raise FooterError("the schema ends before its last column")


def _list(struct: Any, field: int, what: str) -> list[Any]:
    found = struct.get(field) if isinstance(struct, dict) else None
    if not isinstance(found, list):
        raise FooterError(f"the footer has no {what}")
    return found


def _integer(struct: dict[int, Any], field: int, what: str) -> int:
    found = struct.get(field)
    if not isinstance(found, int) or found < 0:
        raise FooterError(f"a column has no sound {what}")
    return found


class _Reader:
    """Reads values of the compact protocol: structs as dicts by number of field, and what they hold."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def byte(self) -> int:
        if self.at >= len(self.data):
            raise FooterError("the footer ends in the middle of a field")
        self.at += 1
        return self.data[self.at - 1]

    def unsigned(self) -> int:
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
            if shift > 63:
                raise FooterError("a number of the footer has more than 64 bits")

    def signed(self) -> int:
        value = self.unsigned()
        return (value >> 1) ^ -(value & 1)

    def binary(self, length: int) -> bytes:
        if length > len(self.data) - self.at:
            raise FooterError("the footer ends in the middle of a value")
        self.at += length
        return self.data[self.at - length : self.at]

    def struct(self, depth: int = 0) -> dict[int, Any]:
        if depth > _DEEPEST:
            raise FooterError("the footer has structs within structs without end")
        found: dict[int, Any] = {}
        number = 0
        while True:
            head = self.byte()
            kind = head & 0x0F
            if kind == _STOP:
                return found
            number = number + (head >> 4) if head >> 4 else self.signed()
            found[number] = kind == _TRUE if kind in (_TRUE, _FALSE) else self.value(kind, depth)

    def value(self, kind: int, depth: int) -> Any:
        if kind in _INTEGERS:
            return self.signed()
        if kind == _BINARY:
            return self.binary(self.unsigned())
        if kind in (_LIST, _SET):
            head = self.byte()
            count = head >> 4 if head >> 4 < 15 else self.unsigned()
            return self._several(head & 0x0F, count, depth)
        if kind == _STRUCT:
            return self.struct(depth + 1)
        # A truth value within a list is a byte, unlike one in a struct.
        if kind in (_TRUE, _FALSE, _BYTE):
            return self.byte()
        if kind == _DOUBLE:
            return self.binary(8)
        raise FooterError(f"the footer has a value of type {kind}")

    def _several(self, kind: int, count: int, depth: int) -> list[Any]:
        if count > len(self.data) - self.at:
            raise FooterError(f"a list of the footer promises {count} elements, more than there are bytes")
        if depth > _DEEPEST:
            raise FooterError("the footer has lists within lists without end")
        return [self.value(kind, depth + 1) for _ in range(count)]
