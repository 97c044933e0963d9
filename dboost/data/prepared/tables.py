"""Tables of several kinds of columns as prepared features: the two passes over their chunks. Runs on workers.

Covers: what a transform of a table must offer, counting and writing a chunk. Does not cover: the transform
(``dboost.estimators.table_files``), which chunks there are and the folder (``prepare``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from dboost.data.features.arrow import columns_of
from dboost.data.manifest import write_vocabulary
from dboost.data.parquet.block import at
from dboost.data.parquet.read import check_unchanged
from dboost.data.prepared.chunk import Labels, TextChunk, TextColumns, labels_there, output, read_span, splits_of, write
from dboost.data.prepared.mapper import Mapper
from dboost.errors import DataError
from dboost.files.stores import AnyPath, any_path

_MERGE = 8


class TableTransform(Protocol):
    """Columns of a table to features, learned from its parts."""

    @property
    def reads(self) -> tuple[str, ...]:
        """The columns that it reads and that are no texts."""
        ...

    @property
    def texts(self) -> tuple[str, ...]:
        """Those that are."""
        ...

    def count(self, columns: Mapping[str, Any]) -> Any:
        """What some rows say."""
        ...

    def merge(self, parts: Sequence[Any]) -> Any:
        """What several parts say together."""
        ...

    def settled(self, counted: Any, folder: AnyPath) -> tuple[list[str], dict[str, Any]]:
        """Write the transform that was learned into a folder; the names of its features, and where it is."""
        ...

    @property
    def read(self) -> Callable[[str, str], Any]:
        """The function (folder, SHA-256) that gives a transform again, importable on workers."""
        ...


def count_table(chunk: TextChunk, how: TextColumns, transform: TableTransform) -> tuple[Any, int]:
    """What the rows of the learned split of a chunk say, and how many they are."""
    parts, rows = [], 0
    for span in chunk.spans:
        ref, group = span[0], span[1]
        check_unchanged(ref)
        wanted = [*how.text, *how.features, *([how.split] if how.split else [])]
        table = read_span(span, list(dict.fromkeys(wanted)), how.types)
        names = splits_of(table, how, ref.path, group)
        if names is not None:
            table = table.filter(pa.array([name == how.learned for name in names], pa.bool_()))
        with at(ref.path, group, ""):
            parts.append(transform.count(columns_of(table)[0]))
        rows += table.num_rows
    return transform.merge(parts), rows


def learn_table(
    chunks: Sequence[TextChunk], how: TextColumns, transform: TableTransform, staging: AnyPath, mapper: Mapper
) -> tuple[list[str], dict[str, Any], int]:
    """Learn the transform from the chunks, and write it; the names of its features, where it is, and the rows.

    Raises
    ------
    DataError
        There are no rows, or a value is not of the kind of its column.
    """
    counted = mapper.map(count_table, chunks, how, transform, name="count-terms")
    rows = sum(number for _, number in counted)
    if rows == 0:
        raise DataError(f"no rows in split {how.learned!r}, from which the features are learned")
    parts = [part for part, _ in counted]
    while len(parts) > _MERGE:
        parts = mapper.map(transform.merge, [parts[i : i + _MERGE] for i in range(0, len(parts), _MERGE)], name="merge")
    names, where = transform.settled(transform.merge(parts), staging)
    return names, where, rows


def names_file(staging: AnyPath, names: list[str]) -> dict[str, str]:
    """Write the names of the features as a vocabulary: of a table they have no document frequency and no idf."""
    return write_vocabulary(staging, names, np.zeros(len(names), np.int64), np.ones(len(names)))


@lru_cache(maxsize=2)
def _transform(read: Callable[[str, str], Any], folder: str, sha256: str) -> Any:
    return read(folder, sha256)


def write_table(
    chunk: TextChunk, how: TextColumns, read: Callable[[str, str], Any], folder: str, sha256: str
) -> list[dict[str, Any]]:
    """Write one file per split of the chunk; returns what the manifest says about each."""
    label = how.label if chunk.labelled else None
    transform = _transform(read, folder, sha256)
    others = list(dict.fromkeys([*([label] if label else []), *how.keep]))
    parts: dict[str, list[pa.Table]] = {}
    labels: dict[str, Labels] = {}
    for span in chunk.spans:
        ref, group = span[0], span[1]
        check_unchanged(ref)
        table = read_span(span, how.wanted(labelled=chunk.labelled), how.types)
        names = splits_of(table, how, ref.path, group)
        for split in [chunk.split] if names is None else sorted(set(names)):
            assert split is not None
            mine = table if names is None else table.filter(pa.array([name == split for name in names], pa.bool_()))
            rest = mine.select(others)
            if label is not None:
                with at(ref.path, group, label):
                    column = rest.column(label)
                    known = column if split == how.learned else labels_there(column)
                    labels.setdefault(split, Labels()).add(known)
            with at(ref.path, group, ""):
                rows = transform.transform(mine.select(list(dict.fromkeys([*how.text, *how.features]))))
            parts.setdefault(split, []).append(output(rows, rest))
    return [
        write(pa.concat_tables(tables), any_path(folder) / split, chunk.number, label)
        | {"split": split, "labels": labels.get(split, Labels())}
        for split, tables in sorted(parts.items())
    ]
