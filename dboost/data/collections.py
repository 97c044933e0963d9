"""Collections of Dask as blocks of rows.

Covers: dask arrays (dense or sparse chunks) and dask DataFrames with their labels and weights.
Does not cover: matrices in memory (``memory``), files (``parquet``).

All that belongs to a row comes from one task per partition: the chunks of the collections are arguments of one
``make_block``, whose result is lost and computed again as a whole. Chunks of unknown size are fine, because rows are
counted inside that task. Dask is imported inside functions only.
"""

from __future__ import annotations

import sys
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.data.blocks import rows_per_block, stored_values
from dboost.data.labels.groups import group_numbers
from dboost.data.labels.labels import LabelCoder, LabelStats, check_weight, label_notes, scan
from dboost.data.memory.in_memory import Rows, as_rows, check_names
from dboost.data.named_columns import behind
from dboost.data.planned import (
    Plan,
    class_list,
    count_rows,
    joined_digest,
    known,
    n_outputs,
    partition_digest,
    plan_coder,
    take_rows,
)
from dboost.data.prepared.mapper import Clustered, Mapper
from dboost.data.sparse.csc import to_csc
from dboost.errors import DataError, UsageError, type_name
from dboost.partition import SEVERAL, Partition


@dataclass(frozen=True)
class RawBlock:
    """One partition of the collections, not yet encoded."""

    rows: Rows
    y: Any
    weight: NDArray[np.float64]  # (m,)
    number: int  # Of the partition.
    group: NDArray[np.uint64] | None = None  # (m,)
    first: int = 0  # The number of its first row within the partition.


@dataclass(frozen=True)
class BlockReport:
    """What planning needs to know about one block: labels, and the shape and type of its features."""

    stats: LabelStats
    n_features: int
    names: tuple[str, ...] | None
    dtype: str
    stored: int  # Values of its rows of positive weight, see ``stored_values``.
    nbytes: int


def plan_collection(
    X: Any, y: Any, sample_weight: Any, groups: Any, *, task: str, classes: Any, class_weight: Any, engine: Mapper
) -> Plan:
    """The plan of a fit over collections of Dask; see ``build_plan``."""
    refuse_gone(X=X, y=y, sample_weight=sample_weight, groups=groups)
    delayed, task_names = _delayed_blocks(X, y, sample_weight, groups)
    client = engine.client if isinstance(engine, Clustered) else None
    token = uuid.uuid4().hex[:8]
    raws = _computed(delayed) if client is None else list(client.compute(delayed))
    reports: list[BlockReport] = engine.map(scan_raw, raws, task, name="scan-labels")
    stats = reduce(LabelStats.merge, [report.stats for report in reports], LabelStats())
    column_names = task_names if task in SEVERAL else None
    coder, task_classes = plan_coder(stats, task, classes, class_weight, column_names)
    n_features, names, dtype = _check_alike(reports)
    blocks, rows = _blocks(reports, n_features, n_outputs(coder, stats), raws, engine)
    items: list[Any]
    if client is None:
        items = [encode([part_of(raws[i], a, b) for i, a, b in block], coder, dtype) for block in blocks]
    else:
        items = []
        for block in blocks:
            # a part travels alone, a whole partition is used where it is
            parts = [
                raws[i]
                if b - a == reports[i].stats.n_rows
                else client.submit(part_of, raws[i], a, b, pure=False, key=f"dboost-part-{token}-{i}-{a}")
                for i, a, b in block
            ]
            key = f"dboost-encode-{token}-{len(items)}"
            items.append(client.submit(encode, parts, coder, dtype, pure=False, key=key))
    about = coder.task, n_features, names, class_list(coder)
    fingerprint = joined_digest(about, engine.map(partition_digest, items, name="fingerprint"))
    return Plan.of(
        coder,
        stats,
        items=tuple(items),
        rows=tuple(rows),
        n_features=n_features,
        feature_names=names,
        classes=task_classes,
        digest=known(fingerprint),
        nbytes_estimate=sum(report.nbytes for report in reports if report.stats.n_kept),
        streams=False,
        notes=label_notes(stats.count, {}) if classes is None else (),
    )


Part = tuple[int, int, int]
"""Number of a partition, its first row that is meant, and the end of these."""


def _blocks(
    reports: Sequence[BlockReport], n_features: int, outputs: int, raws: Sequence[Any], engine: Mapper
) -> tuple[list[list[Part]], list[int]]:
    """The parts of each block, and how many of its rows have a positive weight.

    Blocks are those of the same rows in memory, wherever partitions end. Where partitions are smaller than blocks, each
    is a block: they stay on their workers.
    """
    used = [i for i, report in enumerate(reports) if report.stats.n_kept]
    kept = [report.stats.n_kept for report in reports]
    before = np.cumsum([0, *kept]).tolist()
    n_rows = before[-1]
    size = rows_per_block(n_rows, n_rows + sum(report.stored for report in reports), n_features, outputs)
    if len(used) > -(-n_rows // size):
        return [[(i, 0, reports[i].stats.n_rows)] for i in used], [kept[i] for i in used]
    if all(kept[i] == reports[i].stats.n_rows for i in used):
        firsts = [list(range(-before[i] % size, kept[i], size)) for i in used]
    else:
        firsts = engine.map(first_rows, [raws[i] for i in used], before, size, name="cut")
    blocks: list[list[Part]] = []
    for i, first in zip(used, firsts, strict=True):
        for a, b in pairwise([*([] if first[:1] == [0] else [0]), *first, reports[i].stats.n_rows]):
            if a in first:
                blocks.append([])
            blocks[-1].append((i, a, b))
    return blocks, [min(size, n_rows - start) for start in range(0, n_rows, size)]


def refuse_gone(**collections: Any) -> None:
    """Refuse (UsageError) collections of a client that is closed, by argument: nothing can compute them again."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return
    for name, collection in collections.items():
        if not hasattr(collection, "__dask_graph__"):
            continue
        graph = collection.__dask_graph__()
        held = (task for task in dict(graph or {}).values() if isinstance(task, distributed.Future))
        if any(future.cancelled() for future in held):
            raise UsageError(
                f"{name} was persisted on a cluster whose client is closed, or was cancelled there: its data is gone",
                hint="make the collection anew, and keep the client open while it is used",
            )


def _computed(delayed: list[Any]) -> list[Any]:
    """The blocks, in one graph."""
    import dask

    return list(dask.compute(*delayed, scheduler="threads"))


def _delayed_blocks(X: Any, y: Any, sample_weight: Any, groups: Any) -> tuple[list[Any], list[str] | None]:
    """One delayed ``make_block`` per partition, and the names of several label columns."""
    import dask

    frame = hasattr(X, "npartitions") and hasattr(X, "columns")
    if not frame and not (hasattr(X, "chunks") and hasattr(X, "to_delayed")):
        raise UsageError(f"X is {type_name(X)}", hint="use a dask array or a dask DataFrame")
    if y is None:
        raise UsageError("requires y to be passed, but the target y is None")
    chunks_x = _chunks(X, "X", frame)
    beside = []
    for name, value in (("y", y), ("sample_weight", sample_weight), ("groups", groups)):
        if isinstance(value, str) and (not frame or value not in X.columns):
            raise UsageError(f"{name}={value!r} names no column of X")
        inside = value is None or isinstance(value, str)
        beside.append([value] * len(chunks_x) if inside else _aligned(value, name, X, frame))
    task_names = [str(name) for name in y.columns] if hasattr(y, "columns") else None
    block = dask.delayed(make_block, pure=False)
    return [block(number, *parts) for number, parts in enumerate(zip(chunks_x, *beside, strict=True))], task_names


def delayed_parts(frame: Any) -> list[Any]:
    """Delayed partitions of a dask DataFrame or Series, as many as it has.

    Dask's last stages of optimisation read several files as one partition where few of their columns are used, so that
    features and labels of the same frame would be cut at different rows.
    """
    simple = frame.simplify() if hasattr(frame, "simplify") else frame
    return list(simple.to_delayed(optimize_graph=False))


def _chunks(collection: Any, name: str, frame: bool) -> list[Any]:
    """Delayed chunks of rows."""
    if frame or not hasattr(collection, "chunks"):
        return delayed_parts(collection)
    if name == "X" and collection.ndim != 2:
        raise DataError(f"X has {collection.ndim} dimensions, expected (rows, features)")
    if collection.ndim == 2 and len(collection.chunks[1]) > 1:
        raise UsageError(
            f"{name} is cut into {len(collection.chunks[1])} chunks along its columns, expected 1",
            hint=f"use {name} = {name}.rechunk({{1: -1}})",
        )
    return list(collection.to_delayed().ravel())


def _aligned(values: Any, name: str, X: Any, frame: bool) -> list[Any]:
    """Chunks of labels or weights, one per chunk of X; anything that does not match is refused with the repair."""
    sizes = None if frame else tuple(X.chunks[0])
    known = sizes is not None and not any(np.isnan(size) for size in sizes)
    if not hasattr(values, "__dask_graph__"):
        if not known:
            raise UsageError(
                f"{name} is in memory, the sizes of the partitions of X are unknown",
                hint="use X.compute_chunk_sizes()"
                if not frame and behind(X) is None
                else f"make {name} a column of X and give its name: fit(X, 'topic')",
            )
        assert sizes is not None
        bounds = np.concatenate([[0], np.cumsum(sizes)]).astype(int)
        if count_rows(values) != bounds[-1]:
            raise DataError(
                "Found input variables with inconsistent numbers of samples: "
                f"X has {bounds[-1]} rows, {name} has {count_rows(values)}"
            )
        values = values if hasattr(values, "iloc") else np.asarray(values)
        return [
            (values.iloc[a:b] if hasattr(values, "iloc") else values[a:b])
            for a, b in zip(bounds[:-1], bounds[1:], strict=True)
        ]
    made_of = behind(X)
    if made_of is not None and hasattr(values, "divisions"):
        ours, theirs = made_of.table.divisions, values.divisions
        if None not in (*ours, *theirs) and ours != theirs:
            raise UsageError(f"{name} is cut at other rows than X", hint=_repair(name, made_of.table, values, True))
    chunks = _chunks(values, name, False)
    count = X.npartitions if frame else len(X.chunks[0])
    if len(chunks) != count:
        raise UsageError(f"{name} has {len(chunks)} partitions, X has {count}", hint=_repair(name, X, values, frame))
    if known and hasattr(values, "chunks"):
        theirs = tuple(values.chunks[0])
        if not any(np.isnan(size) for size in theirs) and theirs != sizes:
            raise UsageError(f"{name} is cut at other rows than X", hint=_repair(name, X, values, frame))
    return chunks


def _repair(name: str, X: Any, values: Any, frame: bool) -> str:
    """The call that makes the partitions match."""
    if not frame and hasattr(values, "rechunk"):
        if any(np.isnan(size) for size in X.chunks[0]):
            return f"use X.compute_chunk_sizes(), then {name} = {name}.rechunk(X.chunks[0])"
        return f"use {name} = {name}.rechunk({{0: X.chunks[0]}})"
    if frame and hasattr(values, "divisions") and getattr(X, "known_divisions", False):
        return f"use {name} = {name}.repartition(divisions=X.divisions)"
    return (
        f"make {name} a column of the frame and give its name" if frame else f"derive {name} from the same source as X"
    )


def make_block(number: int, chunk: Any, y: Any, weight: Any, groups: Any = None) -> RawBlock:
    """Features, labels, weights and groups of one partition; a string names a column of the chunk. Runs on workers."""
    with _in_partition(number):
        gone = [name for name in (y, weight, groups) if isinstance(name, str)]
        y, weight, groups = (chunk[one] if isinstance(one, str) else one for one in (y, weight, groups))
        chunk = chunk.drop(columns=gone) if gone else chunk
        for name, other in (("y", y), ("sample_weight", weight), ("groups", groups)):
            if hasattr(chunk, "index") and hasattr(other, "index") and not chunk.index.equals(other.index):
                raise DataError(
                    f"the rows of X and {name} differ in their index",
                    hint=f"make {name} a column of X and give its name",
                )
        # An empty frame carries no reliable types.
        empty = hasattr(chunk, "columns") and len(chunk) == 0
        rows = _no_rows(chunk) if empty else as_rows(chunk)
        if count_rows(y) != rows.n_rows:
            raise DataError(f"X has {rows.n_rows} rows, y has {count_rows(y)}")
        group = None if groups is None else group_numbers(groups, rows.n_rows)
        return RawBlock(rows, y, check_weight(weight, rows.n_rows), number, group)


@contextmanager
def _in_partition(number: int) -> Iterator[None]:
    """Errors name the partition."""
    try:
        yield
    except DataError as fault:
        raise DataError(f"{fault.what} (partition {number})", column=fault.column, hint=fault.hint) from fault


def _no_rows(frame: Any) -> Rows:
    names = check_names(list(frame.columns))
    return replace(as_rows(np.zeros((0, len(frame.columns)), dtype=np.float32)), names=names)


def scan_raw(raw: RawBlock, task: str) -> BlockReport:
    """Report on one block. Runs on workers."""
    rows = raw.rows
    with _in_partition(raw.number):
        stats = scan(task, raw.y, raw.weight) if rows.n_rows else LabelStats()
    nbytes = 8 * (rows.n_features + 1) + int(rows.indptr[-1]) * (4 + rows.dtype.itemsize) + 12 * rows.n_rows
    stored = stored_values(rows.indptr, raw.weight > 0)
    return BlockReport(stats, rows.n_features, rows.names, rows.dtype.str, stored, nbytes)


def first_rows(raw: RawBlock, before: Sequence[int], size: int) -> list[int]:
    """The rows of a partition with which blocks begin, if those of weight zero do not count. Runs on workers.

    `before`: rows that count in the partitions before each. What does not count before a first row goes with it.
    """
    skipped = -before[raw.number] % size
    first: list[int] = np.flatnonzero(raw.weight > 0)[skipped::size].tolist()
    return first if skipped else [0, *first[1:]]


def part_of(raw: RawBlock, start: int, stop: int) -> RawBlock:
    """Some rows of a partition. Runs on workers."""
    if stop - start == raw.rows.n_rows:
        return raw
    there = np.zeros(raw.rows.n_rows, dtype=bool)
    there[start:stop] = True
    group = None if raw.group is None else raw.group[start:stop]
    return RawBlock(
        raw.rows.between(start, stop), take_rows(raw.y, there), raw.weight[start:stop], raw.number, group, start
    )


def _check_alike(reports: Sequence[BlockReport]) -> tuple[int, tuple[str, ...] | None, np.dtype[Any]]:
    """Number, names and type of the features, the same in every partition that has rows."""
    filled = [(number, report) for number, report in enumerate(reports) if report.stats.n_rows]
    first_number, first = filled[0]
    for number, report in filled[1:]:
        if report.n_features != first.n_features:
            raise DataError(
                f"partition {number} has {report.n_features} features, partition {first_number} has {first.n_features}"
            )
        if report.names != first.names:
            raise DataError(
                f"the columns of partition {number} are not those of partition {first_number}",
                hint="give every partition the same columns in the same order",
            )
    return first.n_features, first.names, np.result_type(*[np.dtype(report.dtype) for _, report in filled])


def encode(parts: Sequence[RawBlock], coder: LabelCoder, dtype: np.dtype[Any]) -> Partition:
    """Consecutive rows, of one partition or several, as a partition of a fit. Runs on workers."""
    first, last = parts[0], parts[-1]
    name = f"block-{first.number:05d}" + (f"[{first.first}:]" if first.first else "")
    if len(parts) > 1:
        name += f"..{last.number:05d}[:{last.first + last.rows.n_rows}]"

    def columns(some: Sequence[RawBlock]) -> Any:
        pieces = [replace(raw.rows.piece(), first_row=raw.first) for raw in some]
        pieces = [replace(piece, values=piece.values.astype(dtype, copy=False)) for piece in pieces]
        keep = np.concatenate([raw.weight for raw in some]) > 0
        return to_csc(
            pieces, first.rows.n_features, dtype=dtype, keep=None if np.all(keep) else keep, names=first.rows.names
        )

    try:
        indptr, index, values = columns(parts)
    except DataError:
        for raw in parts:
            with _in_partition(raw.number):
                columns([raw])
        raise
    codes, weights = [], []
    for raw in parts:
        keep = raw.weight > 0
        with _in_partition(raw.number):
            labels = raw.y if np.all(keep) else take_rows(raw.y, keep)
            code, weight = coder.encode(labels, raw.weight[keep])
        codes.append(code)
        weights.append(weight)
    groups = [raw.group[raw.weight > 0] for raw in parts if raw.group is not None]
    group = np.concatenate(groups) if groups else None
    return Partition(indptr, index, values, np.concatenate(codes), np.concatenate(weights), name, group)
