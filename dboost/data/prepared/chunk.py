"""One chunk of a text corpus: read it, count it, write it as features. Runs on workers.

Covers: ``TextChunk``, ``count_chunk`` and ``write_chunk``.
Does not cover: the cut into chunks and the order of the passes (``prepare``).
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from dboost.data.labels.factorise import factorise
from dboost.data.manifest import publish, read_vocabulary
from dboost.data.parquet.block import at
from dboost.data.parquet.read import FileRef, as_data_errors, check_unchanged, column_kind, file_ref, open_file
from dboost.data.prepared.text import TextTransform, count_terms
from dboost.errors import DataError, StorageError

GROUP_ROWS = 40_000
BATCH_ROWS = 20_000
"""Documents that are decoded at once, so that a row group of any size takes the memory of so many."""


@dataclass(frozen=True)
class TextChunk:
    """Consecutive documents.

    Parameters
    ----------
    number : int
        Names the output file.
    spans : tuple of (FileRef, row group, first row, end row)
    split : str or None
        The split of all its rows; None where a column says it.
    labelled : bool
        Whether there is a label column.
    """

    number: int
    spans: tuple[tuple[FileRef, int, int, int], ...]
    split: str | None
    labelled: bool = True


@dataclass(frozen=True)
class TextColumns:
    """The columns of the source that are used, and how documents become tokens.

    Parameters
    ----------
    text : tuple of str
        Joined by a newline.
    label, split : str or None
    keep : tuple of str
    tokenizer : str
    hashing : int or None
    learned : str
        The split that the vocabulary is learned from; its rows all need a label, those of others need none.
    """

    text: tuple[str, ...]
    label: str | None
    keep: tuple[str, ...]
    split: str | None
    tokenizer: str
    hashing: int | None
    learned: str = "train"

    def wanted(self, *, labelled: bool = True) -> list[str]:
        """All columns to read, once each; without that of the label where there is none."""
        label = [self.label] if self.label and labelled else []
        names = [*self.text, *label, *self.keep, *([self.split] if self.split else [])]
        return list(dict.fromkeys(names))


def read_span(span: tuple[FileRef, int, int, int], columns: list[str]) -> pa.Table:
    """Some rows of one row group; the rest of a large row group is decoded but never held."""
    ref, group, start, stop = span
    with as_data_errors(ref.path, group), open_file(ref.path) as file:
        parts, first = [], 0
        for batch in file.iter_batches(BATCH_ROWS, row_groups=[group], columns=columns, use_threads=False):
            lo, hi = max(start - first, 0), min(stop - first, batch.num_rows)
            if hi > lo:
                parts.append(batch.slice(lo, hi - lo))
            first += batch.num_rows
            if first >= stop:
                break
        table = pa.Table.from_batches(parts)
    if table.num_rows != stop - start:
        raise DataError(f"{table.num_rows} rows read, {stop - start} expected", file=ref.path, row_group=group)
    return table.select(columns)


def _texts(table: pa.Table, columns: tuple[str, ...], path: str, group: int) -> list[str]:
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
        parts.append(column.to_pylist())
    return parts[0] if len(parts) == 1 else ["\n".join(row) for row in zip(*parts, strict=True)]


def _splits(table: pa.Table, how: TextColumns, path: str, group: int) -> list[str] | None:
    """The split of each row where a column says it."""
    if how.split is None:
        return None
    column = table.column(how.split)
    if column.null_count:
        raise DataError(f"{column.null_count} rows of no split", file=path, column=how.split, row_group=group)
    found = [str(value) for value in column.to_pylist()]
    for name in set(found):
        if not name or name.startswith(("_", ".")) or "/" in name or "\\" in name or "\0" in name:
            raise DataError(f"{name!r} cannot name a split", file=path, column=how.split, row_group=group)
    return found


def count_chunk(chunk: TextChunk, how: TextColumns, split: str) -> tuple[pa.Table, int]:
    """Term counts over the rows of `split`, and how many rows that are."""
    texts: list[str] = []
    for span in chunk.spans:
        ref, group = span[0], span[1]
        check_unchanged(ref)
        table = read_span(span, [*dict.fromkeys([*how.text, *([how.split] if how.split else [])])])
        found = _texts(table, how.text, ref.path, group)
        names = _splits(table, how, ref.path, group)
        texts.extend(found if names is None else [t for t, s in zip(found, names, strict=True) if s == split])
    return count_terms(texts, how.tokenizer, how.hashing), len(texts)


@lru_cache(maxsize=2)
def _transform(folder: str, file: str, sha256: str, tokenizer: str, hashing: int | None) -> TextTransform:
    terms, _, idf = read_vocabulary(folder, {"file": file, "sha256": sha256})
    return TextTransform(tokenizer, terms, idf, hashing)


def write_chunk(chunk: TextChunk, how: TextColumns, folder: str, vocabulary: dict[str, str]) -> list[dict[str, Any]]:
    """Write one file per split of the chunk; returns what the manifest says about each.

    The vocabulary is read from `folder` once per process: it would be large to send with every task.
    """
    label = how.label if chunk.labelled else None
    transform = _transform(folder, vocabulary["file"], vocabulary["sha256"], how.tokenizer, how.hashing)
    parts: dict[str, list[pa.Table]] = {}
    counts: dict[str, Counter[Any]] = {}
    for span in chunk.spans:
        ref, group = span[0], span[1]
        check_unchanged(ref)
        table = read_span(span, how.wanted(labelled=chunk.labelled))
        texts = _texts(table, how.text, ref.path, group)
        names = _splits(table, how, ref.path, group)
        # The text columns are dropped here unless they are kept on purpose.
        others = [name for name in table.column_names if name == label or name in how.keep]
        rest = table.select(others)
        for split in [chunk.split] if names is None else sorted(set(names)):
            assert split is not None
            mine = range(len(texts)) if names is None else [i for i, s in enumerate(names) if s == split]
            part = rest if names is None else rest.take(pa.array(mine, pa.int64()))
            if label is not None:
                with at(ref.path, group, label):
                    column = part.column(label)
                    _, distinct, codes = factorise(column if split == how.learned else column.drop_null())
                found = np.bincount(codes, minlength=len(distinct)).tolist()
                counts.setdefault(split, Counter()).update(dict(zip(distinct.tolist(), found, strict=True)))
            rows = transform.transform([texts[i] for i in mine])
            parts.setdefault(split, []).append(_output(rows, part))
    return [
        _write(pa.concat_tables(tables), Path(folder) / split, chunk.number, label)
        | {"split": split, "classes": counts.get(split)}
        for split, tables in sorted(parts.items())
    ]


def _output(rows: Any, rest: pa.Table) -> pa.Table:
    """Feature lists beside label and kept columns, in one schema for all encodings of strings."""
    offsets = pa.array(rows.indptr, pa.int32())
    columns = {
        "indices": pa.ListArray.from_arrays(offsets, pa.array(rows.indices, pa.int32())),
        "values": pa.ListArray.from_arrays(offsets, pa.array(rows.data.astype(np.float32))),
    }
    for name in rest.column_names:
        column = rest.column(name)
        columns[name] = column.cast(pa.string()) if column_kind(column.type) == "str" else column
    return pa.table(columns)


def _write(table: pa.Table, folder: Path, number: int, label: str | None) -> dict[str, Any]:
    """One file: written beside, fsynced, renamed."""
    name = f"part-{number:05d}.parquet"
    path, beside = folder / name, folder / f".{name}.{os.getpid()}.tmp"
    groups = max(-(-table.num_rows // GROUP_ROWS), 1)
    try:
        folder.mkdir(exist_ok=True)
        pq.write_table(
            table,
            beside,
            row_group_size=max(-(-table.num_rows // groups), 1),
            compression="zstd",
            use_dictionary=[] if label is None else [label],
            write_page_checksum=True,
            store_schema=True,
        )
        publish(beside, path)
    except OSError as fault:
        beside.unlink(missing_ok=True)
        raise StorageError(f"cannot write: {fault.strerror or fault}", file=str(path)) from fault
    ref = file_ref(str(path), name)
    nnz = len(table.column("indices").combine_chunks().flatten())
    return {"name": name, "rows": table.num_rows, "nnz": nnz, "size": ref.size, "footer": ref.footer}
