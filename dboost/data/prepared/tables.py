"""Tables of several kinds of columns as prepared features: the two passes over their chunks. Runs on workers.

Covers: what a transform of a table must offer, counting and writing a chunk. Does not cover: the transform
(``dboost.estimators.transform_files``), which chunks there are and the folder (``prepare``).

The terms of each column of text lie in files between the passes and are added in shards (``vocabulary``), as those of
documents are; only what is said of the other columns comes to the driver.
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
from dboost.data.parquet.read import FileRef, check_unchanged
from dboost.data.prepared.chunk import COUNTS, TextChunk, TextColumns, read_span, saved, splits_of, write_rows
from dboost.data.prepared.mapper import Mapper
from dboost.data.prepared.text import TermCounts
from dboost.data.prepared.vocabulary import counted_terms
from dboost.errors import DataError
from dboost.files.stores import AnyPath, any_path

_MERGE = 8


class TableTransform(Protocol):
    """Columns of a table to features, learned from its parts."""

    @property
    def columns(self) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
        """The columns that are texts, the others that it reads, and those of them that are tags in one text."""

    def limits(self, text: str) -> tuple[int | float, int | float, int | None] | None:
        """``min_df``, ``max_df`` and ``max_features`` of a column of text; None where its terms are hashed."""

    def count(self, columns: Mapping[str, Any]) -> Any:
        """What some rows say of the columns that are no texts."""

    def documents(self, text: str, values: Any) -> Any:
        """Some values of a column of text as texts, of which none is missing."""

    def count_terms(self, text: str, values: Any) -> Any:
        """The terms of some values of a column of text (``TermCounts``), or their counts where they are hashed."""

    def merge(self, parts: Sequence[Any]) -> Any:
        """What several parts say together."""

    def settled(
        self, counted: Any, rows: int, terms: Mapping[str, tuple[Any, int | None]], folder: AnyPath
    ) -> tuple[list[str], dict[str, Any]]:
        """Write the transform that was learned into a folder; the names of its features, and where it is.

        `terms` are the counts of each column of text that are within its limits, and how many there were.
        """

    @property
    def read(self) -> Callable[[str, str], Any]:
        """The function (folder, SHA-256) that gives a transform again, importable on workers."""


def _file(folder: str, text: int, chunk: int) -> AnyPath:
    return any_path(folder) / COUNTS / f"{text}-{chunk}"


def count_table(
    chunk: TextChunk, how: TextColumns, transform: TableTransform, folder: str
) -> tuple[Any, int, dict[str, Any]]:
    """What the rows of the learned split of a chunk say, how many they are, and of each text its terms.

    Terms are in a file, and their size in bytes here; where they are hashed, their counts are here.
    """
    texts: dict[str, list[Any]] = {name: [] for name in how.text}
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
            columns = columns_of(table)[0]
            parts.append(transform.count(columns))
            for name, values in texts.items():
                values.append(transform.documents(name, columns[name]))
        rows += table.num_rows
    found: dict[str, Any] = {}
    for number, (name, values) in enumerate(texts.items()):
        with at(chunk.spans[0][0].path, chunk.spans[0][1], name):
            terms = transform.count_terms(name, pa.chunked_array(values, pa.large_string()))
        hashed = not isinstance(terms, TermCounts)
        found[name] = terms if hashed else saved(terms, _file(folder, number, chunk.number), documents=False)
    return transform.merge(parts), rows, found


def learn_table(
    chunks: Sequence[TextChunk], how: TextColumns, transform: TableTransform, staging: AnyPath, mapper: Mapper
) -> tuple[list[str], dict[str, Any], int]:
    """Learn the transform from the chunks, and write it; the names of its features, where it is, and the rows.

    Raises DataError: There are no rows, a value is not of the kind of its column, or no term of a text is left.
    """
    counted = mapper.map(count_table, chunks, how, transform, str(staging), name="count-terms")
    rows = sum(number for _, number, _ in counted)
    if rows == 0:
        raise DataError(f"no rows in split {how.learned!r}, from which the features are learned")
    parts = [part for part, _, _ in counted]
    while len(parts) > _MERGE:
        parts = mapper.map(transform.merge, [parts[i : i + _MERGE] for i in range(0, len(parts), _MERGE)], name="merge")
    terms: dict[str, tuple[Any, int | None]] = {}
    for number, name in enumerate(how.text):
        mine, limits = [found[name] for _, _, found in counted], transform.limits(name)
        if limits is None:
            terms[name] = sum(mine), None
        else:
            files = [_file(str(staging), number, chunk.number) for chunk in chunks]
            terms[name] = counted_terms(files, sum(mine), rows, *limits, mapper=mapper)
    names, where = transform.settled(transform.merge(parts), rows, terms, staging)
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
    transform, columns = _transform(read, folder, sha256), list(dict.fromkeys([*how.text, *how.features]))

    def rows_of(ref: FileRef, group: int, table: pa.Table) -> Any:
        with at(ref.path, group, ""):
            return transform.transform(table.select(columns))

    return write_rows(chunk, how, folder, columns, rows_of)
