"""One chunk of a text corpus: read it, count it, write it as features. Runs on workers.

Covers: ``TextChunk``, ``count_chunk`` and ``write_chunk``.
Does not cover: the cut into chunks and the order of the passes (``prepare``).
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dboost.data.blocks import GROUP_ROWS
from dboost.data.labels.factorise import factorise, finite_labels
from dboost.data.labels.tags import are_tags, count_tags, tags_in_texts
from dboost.data.manifest import vocabulary_table, write_parquet
from dboost.data.parquet.block import at
from dboost.data.parquet.read import FileRef, as_data_errors, check_unchanged, file_ref, open_file
from dboost.data.prepared.text import TermCounts, TextRule, TextTransform, count_texts
from dboost.errors import DataError
from dboost.files.storage import writing
from dboost.files.stores import AnyPath, any_path

# Letters of the name of a split, which is a folder: a file system allows 255 bytes, and a document is longer.
LONGEST_NAME = 60
# The folder, in the one that is being made, where counts are kept between the passes.
COUNTS = "_counts"


@dataclass(frozen=True)
class TextChunk:
    """Consecutive documents."""

    number: int  # Names the output file.
    spans: tuple[tuple[FileRef, int, int, int], ...]
    split: str | None  # The split of all its rows; None where a column says it.
    labelled: bool = True  # Whether there is a label column.


@dataclass(frozen=True)
class TextColumns:
    """The columns of the source that are used, and how documents become tokens."""

    text: tuple[str, ...]  # Joined by a newline.
    label: str | None
    keep: tuple[str, ...]
    split: str | None
    rule: TextRule
    hashing: int | None
    # The split that the vocabulary is learned from; its rows all need a label, those of others need none.
    learned: str = "train"
    types: Mapping[str, Any] = field(default_factory=dict)  # Of the columns that are copied, over all files.
    features: tuple[str, ...] = ()  # Columns of a table that are features, and no text.
    tags: tuple[str, ...] = ()  # Those of them that are tags in one text.
    label_separator: str | None = None  # What stands between the tags of a label in one text.

    def wanted(self, *, labelled: bool = True) -> list[str]:
        """All columns to read, once each; without that of the label where there is none."""
        label = [self.label] if self.label and labelled else []
        names = [*self.text, *self.features, *label, *self.keep, *([self.split] if self.split else [])]
        return list(dict.fromkeys(names))


def read_span(
    span: tuple[FileRef, int, int, int], columns: Sequence[str], types: Mapping[str, Any] | None = None
) -> pa.Table:
    """Some rows of a row group, of which no more is held; columns of `types` get the type that all files share."""
    ref, group, start, stop = span
    with as_data_errors(ref.path, group), open_file(ref.path) as file:
        parts, first = [], 0
        # As many rows at once as are wanted: no more is held, and fewer take longer.
        stored = ref.stored(columns)
        for batch in file.iter_batches(stop - start, row_groups=[group], columns=stored, use_threads=False):
            lo, hi = max(start - first, 0), min(stop - first, batch.num_rows)
            if hi > lo:
                parts.append(batch.slice(lo, hi - lo))
            first += batch.num_rows
            if first >= stop:
                break
        table = pa.Table.from_batches(parts)
    if table.num_rows != stop - start:
        raise DataError(f"{table.num_rows} rows read, {stop - start} expected", file=ref.path, row_group=group)
    table = ref.with_folders(table, columns)
    with as_data_errors(ref.path, group):
        for at, name in enumerate(table.column_names if types else ()):
            if types and name in types and table.column(name).type != types[name]:
                table = table.set_column(at, name, table.column(name).cast(types[name]))
    return table


def texts_of(table: pa.Table, columns: tuple[str, ...], path: str, group: int) -> pa.ChunkedArray:
    """The documents of one span; missing text is refused."""
    parts = []
    for name in columns:
        column = table.column(name)
        if column.null_count:
            raise DataError(
                f"{column.null_count} documents are missing (null)",
                file=path,
                column=name,
                row_group=group,
                hint="drop these rows, or replace them by an empty text",
            )
        parts.append(column if pa.types.is_dictionary(column.type) else column.cast(pa.large_string()))
    return parts[0] if len(parts) == 1 else pc.binary_join_element_wise(*parts, pa.scalar("\n", pa.large_string()))


def is_split_name(name: str) -> bool:
    """Whether a value of the split column can name a folder."""
    return 0 < len(name) <= LONGEST_NAME and not name.startswith(("_", ".")) and not set(name) & set("/\\\0")


def splits_of(table: pa.Table, how: TextColumns, path: str, group: int) -> list[str] | None:
    """The split of each row where a column says it."""
    if how.split is None:
        return None
    column = table.column(how.split)
    if column.null_count:
        raise DataError(f"{column.null_count} rows of no split", file=path, column=how.split, row_group=group)
    found = [str(value) for value in column.to_pylist()]
    for name in set(found):
        if not is_split_name(name):
            raise DataError(
                f"a value of {len(name)} letters cannot name a split, as split names are folders",
                file=path,
                column=how.split,
                row_group=group,
                hint=f"its values have at most {LONGEST_NAME} letters, no / or \\, and begin with neither _ nor .",
            )
    return found


@dataclass(frozen=True)
class CountedChunk:
    """What a chunk tells of its terms, which lie in a file."""

    rows: int  # Documents that were counted.
    size: int  # Bytes of the terms.


def counts_of(folder: str, chunk: TextChunk) -> AnyPath:
    """Where the counts of a chunk are kept from the first pass to the second."""
    return any_path(folder) / COUNTS / str(chunk.number)


def count_chunk(chunk: TextChunk, how: TextColumns, split: str, folder: str) -> CountedChunk:
    """Count the terms of the rows of `split` into a file; of whole chunks the counts of every document too."""
    texts: list[pa.ChunkedArray] = []
    for span in chunk.spans:
        ref, group = span[0], span[1]
        check_unchanged(ref)
        table = read_span(span, [*dict.fromkeys([*how.text, *([how.split] if how.split else [])])])
        found = texts_of(table, how.text, ref.path, group)
        names = splits_of(table, how, ref.path, group)
        if names is not None:
            found = found.filter(pa.array([name == split for name in names], pa.bool_()))
        texts.append(found.cast(pa.large_string()))
    whole = pa.chunked_array([piece for one in texts for piece in one.chunks], pa.large_string())
    try:
        counted = count_texts(whole, how.rule, how.hashing)
    except DataError:
        # Strings are what the file says they are; where one is not, it is looked for.
        for span, one in zip(chunk.spans, texts, strict=True):
            with as_data_errors(span[0].path, span[1]):
                one.validate(full=True)
        raise
    return CountedChunk(len(counted), saved(counted, counts_of(folder, chunk), documents=how.split is None))


def saved(counted: TermCounts, path: AnyPath, *, documents: bool) -> int:
    """Write counts into a file (``TermCounts.save``), and say how many bytes of terms there are."""
    with writing(path):
        path.parent.mkdir(exist_ok=True)
        return counted.save(path, documents=documents)


@lru_cache(maxsize=2)
def _transform(folder: str, file: str, sha256: str, rule: TextRule, hashing: int | None) -> TextTransform:
    table = vocabulary_table(folder, {"file": file, "sha256": sha256})
    return TextTransform(rule, table.column("term").combine_chunks(), table.column("idf").to_numpy(), hashing)


def write_chunk(chunk: TextChunk, how: TextColumns, folder: str, vocabulary: dict[str, str]) -> list[dict[str, Any]]:
    """Write one file per split; what the manifest says of each. A process reads the vocabulary once."""
    transform = _transform(folder, vocabulary["file"], vocabulary["sha256"], how.rule, how.hashing)
    kept_counts = counts_of(folder, chunk)
    if how.split is not None or not kept_counts.exists():

        def weighed(ref: FileRef, group: int, table: pa.Table) -> Any:
            with at(ref.path, group, ", ".join(how.text)):
                return transform.transform(texts_of(table, how.text, ref.path, group), np.float32)

        return write_rows(chunk, how, folder, how.text, weighed)
    whole, first = transform.weigh(TermCounts.load(kept_counts), np.float32), 0

    def kept(ref: FileRef, group: int, table: pa.Table) -> Any:
        nonlocal first
        first += table.num_rows
        return whole[first - table.num_rows : first] if len(chunk.spans) > 1 else whole

    return write_rows(chunk, how, folder, (), kept)


def write_rows(
    chunk: TextChunk,
    how: TextColumns,
    folder: str,
    columns: Sequence[str],
    rows_of: Callable[[FileRef, int, pa.Table], Any],
) -> list[dict[str, Any]]:
    """Write the features that a function gives of each span into a file per split; `columns` are those it needs."""
    label = how.label if chunk.labelled else None
    # the text columns are dropped unless they are kept on purpose
    others = list(dict.fromkeys([*([label] if label else []), *how.keep]))
    read = list(dict.fromkeys([*columns, *others, *([how.split] if how.split else [])]))
    parts: dict[str, list[pa.Table]] = {}
    labels: dict[str, Labels] = {}
    for span in chunk.spans:
        ref, group = span[0], span[1]
        check_unchanged(ref)
        table = read_span(span, read, how.types)
        if label is not None and how.label_separator is not None:
            with at(ref.path, group, label):
                lists = tags_in_texts(table.column(label), how.label_separator)
            table = table.set_column(table.column_names.index(label), label, lists)
        names = splits_of(table, how, ref.path, group)
        for split in [chunk.split] if names is None else sorted(set(names)):
            assert split is not None
            mine = table if names is None else table.filter(pa.array([name == split for name in names], pa.bool_()))
            rest = mine.select(others)
            if label is not None:
                with at(ref.path, group, label):
                    column = rest.column(label)
                    labels.setdefault(split, Labels()).add(column if split == how.learned else labels_there(column))
            parts.setdefault(split, []).append(output(rows_of(ref, group, mine), rest))
    return [
        write(pa.concat_tables(tables), any_path(folder) / split, chunk.number, label)
        | {"split": split, "labels": labels.get(split, Labels())}
        for split, tables in sorted(parts.items())
    ]


@dataclass
class Labels:
    """What the labels of some rows are: classes, or the targets of a regression where one of them is a fraction."""

    count: Counter[Any] = field(default_factory=Counter)  # Rows of each class; empty where there are targets.
    low: float = np.nan  # low, high: The least and the greatest label that is a float; NaN where none is.
    high: float = np.nan
    fractions: bool = False
    tags: bool = False  # Whether they are lists of tags; the counts are then those of tags.

    def add(self, column: Any) -> Labels:
        """Look at some more labels, in place; one that is missing is a DataError."""
        if are_tags(column):
            self.tags = True
            self.count.update(count_tags(column, np.ones(len(column)))[0])
            return self
        if pa.types.is_floating(column.type) and len(column):
            values = column.to_numpy()
            finite_labels(values)
            self.low, self.high = np.fmin(self.low, values.min()).item(), np.fmax(self.high, values.max()).item()
            self.fractions |= bool(np.any(values != np.floor(values)))
        if self.fractions:
            self.count = Counter()
        else:
            _, distinct, codes = factorise(column)
            found = np.bincount(codes, minlength=len(distinct)).tolist()
            self.count.update(dict(zip(distinct.tolist(), found, strict=True)))
        return self

    def merge(self, right: Labels) -> Labels:
        """What these and others are."""
        fractions = self.fractions or right.fractions
        ends = np.fmin(self.low, right.low).item(), np.fmax(self.high, right.high).item()
        count = Counter() if fractions else self.count + right.count
        return Labels(count, *ends, fractions, self.tags or right.tags)


def labels_there(column: Any) -> Any:
    """The labels that are there."""
    return column.filter(pc.invert(pc.is_null(column, nan_is_null=True)))


def output(rows: Any, rest: pa.Table) -> pa.Table:
    """Feature lists beside label and kept columns, which have the types that they have over all files."""
    offsets = pa.array(rows.indptr, pa.int32())
    columns = {
        "indices": pa.ListArray.from_arrays(offsets, pa.array(rows.indices, pa.int32())),
        "values": pa.ListArray.from_arrays(offsets, pa.array(rows.data)),
    }
    return pa.table(columns | {name: rest.column(name) for name in rest.column_names})


def write(table: pa.Table, folder: AnyPath, number: int, label: str | None) -> dict[str, Any]:
    """One file of features, which appears whole."""
    name = f"part-{number:05d}.parquet"
    path = folder / name
    write_parquet(
        table,
        path,
        row_group_size=GROUP_ROWS,
        use_dictionary=[] if label is None or pa.types.is_nested(table.schema.field(label).type) else [label],
        store_schema=True,
    )
    ref = file_ref(str(path), name)
    nnz = len(table.column("indices").combine_chunks().flatten())
    about = {"name": name, "rows": table.num_rows, "nnz": nnz, "size": ref.size, "footer": ref.footer}
    return about | {"columns": {column: _digest(table.select([column])) for column in table.column_names}}


def _digest(table: pa.Table) -> str:
    """SHA-256 of the values of a column: what reads it need not be done again for a change of another one."""
    stream = pa.BufferOutputStream()
    with pa.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    return hashlib.sha256(stream.getvalue()).hexdigest()
