"""Terms of the parts of a Dask frame, added in shards of their hashes on the workers where there are many.

Covers: the parts of a frame counted where they lie, and of their terms those that may become features. Does not cover:
what is counted (``features``, ``text_features``), the terms of files (``dboost.data.prepared.vocabulary``).

What stays of a part between two steps is kept by Dask, which spills it to the disk of the worker. A task has one part,
or the terms of one range of shards from all parts; the driver gets the terms within the limits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from dboost.data.prepared.text import SHARDS, merge_counts, most_frequent, within
from dboost.data.prepared.text_terms import count_limits
from dboost.data.prepared.vocabulary import TASK_BYTES
from dboost.estimators.transformed_rows import computed, counted_lazily, merged_parts

# Bytes of the terms of all parts up to which they are added at once.
AT_ONCE = 64 << 20
Part = tuple[Mapping[str, Any], Mapping[str, tuple[int, Any]], int]
"""What rows say: of columns that are no texts, of texts how many there are and their terms (or buckets), and rows."""


def counted_parts(
    X: Any, count: Callable[[Any], Part], merge: Callable[[Sequence[Part]], Part], limits: Mapping[str, Any]
) -> tuple[Part, dict[str, int | None]]:
    """What all parts say, and how many terms each text has of which some are gone, those beyond its `limits`."""
    import dask

    parts = dask.persist(*counted_lazily(X, count))
    size = dask.delayed(_size, pure=False)
    sizes = computed(dask.delayed(list)([size(part) for part in parts]))
    if sum(one for one, _ in sizes) <= AT_ONCE:
        return merged_parts(parts, merge), dict.fromkeys(limits)
    shards = min(-(-sum(one for one, _ in sizes) // TASK_BYTES), SHARDS)
    cuts = list(pairwise([SHARDS * i // shards for i in range(shards + 1)]))
    cut = dask.delayed(_pieces, pure=False, nout=shards)
    pieces = dask.persist(*[piece for part in parts for piece in cut(part, cuts)])
    del parts
    documents = {name: sum(each[name] for _, each in sizes) for name in limits}
    settled = dask.delayed(partial(_settled, merge, documents, limits), pure=False)
    found = computed(dask.delayed(list)([settled(list(pieces[shard::shards])) for shard in range(shards)]))
    whole, terms = found[0][0], dict(found[0][0][1])
    for name in limits:
        if isinstance(terms[name][1], pa.Table):
            terms[name] = documents[name], pa.concat_tables([part[1][name][1] for part, _ in found])
    return (whole[0], terms, whole[2]), {name: sum(each[name] for _, each in found) for name in limits}


def merged_terms(parts: Sequence[Mapping[str, tuple[int, Any]]]) -> dict[str, tuple[int, Any]]:
    """How many documents of each text there are in several parts, and their terms; or in how many each bucket is."""
    found: dict[str, tuple[int, Any]] = {}
    for name in parts[0]:
        documents, counts = zip(*(part[name] for part in parts), strict=True)
        buckets = isinstance(counts[0], np.ndarray)
        found[name] = sum(documents), sum(counts) if buckets else merge_counts(counts)
    return found


def _size(part: Part) -> tuple[int, dict[str, int]]:
    """Bytes of the terms of a part, and the documents of each text. Runs on workers."""
    terms = part[1]
    size = sum(counts.nbytes for _, counts in terms.values() if isinstance(counts, pa.Table))
    return size, {name: documents for name, (documents, _) in terms.items()}


def _pieces(part: Part, cuts: Sequence[tuple[int, int]]) -> list[Part]:
    """The terms of a part by ranges of shards; what is no term is with the first. Runs on workers."""
    values, terms, rows = part
    made: list[Part] = [(values, {}, rows), *(({}, {}, 0) for _ in cuts[1:])]
    for name, (documents, counts) in terms.items():
        if not isinstance(counts, pa.Table):
            made[0][1][name] = documents, counts  # type: ignore[index]
            continue
        shard = counts.column("shard").to_numpy()
        order = np.argsort(shard, kind="stable")
        ends = np.searchsorted(shard[order], [end for _, end in cuts])
        for (_, mine, _), first, end in zip(made, [0, *ends[:-1]], ends, strict=True):
            # taken, not cut: a slice would be kept and sent with the whole
            mine[name] = documents, counts.take(pa.array(order[first:end]))  # type: ignore[index]
    return made


def _settled(
    merge: Callable[[Sequence[Part]], Part],
    documents: Mapping[str, int],
    limits: Mapping[str, Any],
    pieces: Sequence[Part],
) -> tuple[Part, dict[str, int]]:
    """What the same shards of all parts say, without the terms that can be no features. Runs on workers."""
    values, terms, rows = merge(pieces)
    number, kept = dict.fromkeys(limits, 0), dict(terms)
    for name, (_, counts) in terms.items():
        if isinstance(counts, pa.Table):
            low, high = count_limits(documents[name], limits[name]["min_df"], limits[name]["max_df"])
            number[name], left = counts.num_rows, within(counts, low, high)
            most = limits[name]["max_features"]
            kept[name] = documents[name], left if most is None else most_frequent(left, most)
    return (values, kept, rows), number
