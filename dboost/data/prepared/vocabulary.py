"""The vocabulary of a corpus whose distinct terms fit into no memory: counted in shards, on the workers.

Covers: which shards are counted together, the terms of theirs that may become features, the choice among all of these.
Does not cover: counting a chunk and the file of its terms (``text``), the passes (``prepare``).

Every chunk leaves its terms in a file, by shard. A task reads some shards of all chunks, adds their counts, applies
``min_df`` and ``max_df``, and writes what stays, of which the driver takes the most frequent. A process holds the terms
of a few shards at once, and the driver those that become features: how many there are in the corpus is a matter of
disk. Counts are whole numbers and ties are broken by name, so that the cut into chunks and shards changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dboost.data.budget import block_budget
from dboost.data.manifest import write_parquet
from dboost.data.prepared.mapper import Mapper
from dboost.data.prepared.text import SHARDS, load_shards, merge_counts, most_frequent, within
from dboost.data.prepared.text_terms import count_limits
from dboost.errors import DataError
from dboost.files.stores import AnyPath, any_path, open_input

# Bytes of terms that a task adds. Their table takes about five times as many.
TASK_BYTES = 16 << 20
# Bytes of a term in the table by which documents are weighed, beside its name.
TERM_BYTES = 120
# Rows beyond twice the features that are wanted, above which the driver drops what cannot be among them.
SLACK = 1 << 16


@dataclass(frozen=True)
class Kept:
    """What stays of the terms of some shards."""

    file: str  # Where it lies, in no order; empty where nothing stays.
    terms: int  # Distinct terms of the shards.
    rows: int  # rows, size: Terms that stay, and bytes of their names.
    size: int


def counted_terms(
    files: Sequence[AnyPath],
    size: int,
    documents: int,
    min_df: int | float,
    max_df: int | float,
    max_features: int | None,
    mapper: Mapper,
) -> tuple[pa.Table, int]:
    """The counts of terms that may become features, and how many distinct terms there are, if a process has room."""
    shards = count_shards(files, size, documents, min_df, max_df, mapper)
    refuse_many(shards, max_features, block_budget(mapper))
    return gather(shards, max_features), sum(shard.terms for shard in shards)


def count_shards(
    files: Sequence[AnyPath], size: int, documents: int, min_df: int | float, max_df: int | float, mapper: Mapper
) -> list[Kept]:
    """Add the counts of all terms in files of so many bytes, and keep those in so many documents."""
    tasks = min(max(-(-size // TASK_BYTES), 1), SHARDS)
    cuts = [SHARDS * i // tasks for i in range(tasks + 1)]
    limits = count_limits(documents, min_df, max_df)
    names = [str(file) for file in files]
    return mapper.map(_count_some, list(pairwise(cuts)), names, limits, name="count-shards")


def _count_some(shards: tuple[int, int], files: Sequence[str], limits: tuple[float, float]) -> Kept:
    counts = merge_counts([load_shards(any_path(file), *shards) for file in files])
    kept = within(counts, *limits)
    if kept.num_rows == 0:
        return Kept("", counts.num_rows, 0, 0)
    first = any_path(files[0])
    path = first.with_name(f"kept-{shards[0]:04d}")
    write_parquet(kept, path, use_dictionary=False)
    size = pc.sum(pc.binary_length(kept.column("term"))).as_py()
    return Kept(str(path), counts.num_rows, kept.num_rows, size)


def refuse_many(shards: Sequence[Kept], max_features: int | None, memory: int) -> None:
    """Refuse (DataError), before a feature is written, a vocabulary that so many bytes of a process do not hold."""
    rows, size = sum(shard.rows for shard in shards), sum(shard.size for shard in shards)
    if max_features is not None and rows > max_features:
        rows, size = max_features, size * max_features // rows
    needed = TERM_BYTES * rows + 3 * size
    if needed > memory:
        raise DataError(
            f"the vocabulary has {rows:,} terms, which take about {needed >> 20:,} MiB in every process, and there is "
            f"room for {memory >> 20:,} MiB",
            hint="raise min_df, set max_features or hashing, or give the workers more memory",
        )


def gather(shards: Sequence[Kept], max_features: int | None) -> pa.Table:
    """The terms that stay, of which the most frequent `max_features`; those of one task at a time beside them."""
    found = pa.table({"term": pa.array([], pa.large_string()), "df": np.zeros(0, int), "tf": np.zeros(0, int)})
    last: Any = None
    for shard in shards:
        if not shard.rows:
            continue
        with open_input(shard.file) as stream:
            more = pq.read_table(stream)
        if last is not None:
            tied = pc.and_(pc.equal(more.column("tf"), last["tf"]), pc.less(more.column("term"), last["term"]))
            more = more.filter(pc.or_(pc.greater(more.column("tf"), last["tf"]), tied))
        found = pa.concat_tables([found, more])
        if max_features is not None and found.num_rows > 2 * max_features + SLACK:
            found = most_frequent(found, max_features).combine_chunks()
            last = found.slice(max_features - 1, 1).to_pylist()[0]
    return found
