"""From the input of a fit to its plan: blocks, classes, and every check that can be made before training.

Covers: ``build_plan`` for each kind of input, and the plan of rows in memory.
Does not cover: the plan itself (``planned``), decoding (``memory``, ``parquet``, ``collections``) or summing
(``dboost.passes``).
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.data.labels.factorise import factorise
from dboost.data.labels.groups import group_numbers
from dboost.data.labels.labels import check_weight, label_notes, scan
from dboost.data.memory.in_memory import Rows, as_rows, block_bounds
from dboost.data.named_columns import split_named
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
from dboost.data.prepared.mapper import Mapper
from dboost.data.sparse.csc import Unclean, dense_to_csc, to_csc
from dboost.errors import DataError, UsageError
from dboost.partition import SEVERAL, TASKS, Partition

ASIDE_BYTES = 8_000_000
"""Data from which on a thread of its own for their digest pays."""


def build_plan(
    X: Any,
    y: Any = None,
    sample_weight: Any = None,
    *,
    task: str,
    classes: Sequence[Any] | NDArray[Any] | None = None,
    class_weight: str | Mapping[Any, float] | None = None,
    engine: Mapper,
    groups: Any = None,
) -> Plan:
    """Check any input, find the classes and cut the data into blocks; what can be known to be wrong is refused here."""
    if task != "classification" and task not in TASKS:
        raise UsageError(f"task={task!r}", hint=f"use one of classification, {', '.join(TASKS)}")
    # By name: a fit on arrays must not import pyarrow.
    if type(X).__module__ == "dboost.data.parquet.input":
        from dboost.data.parquet.plan import plan_parquet

        if y is not None or sample_weight is not None or groups is not None:
            raise UsageError(
                "y, sample_weight or groups was given beside ParquetData",
                hint="name the columns: ParquetData(path, label=..., weight=..., groups=...)",
            )
        return plan_parquet(X, task=task, classes=classes, class_weight=class_weight, engine=engine)
    if hasattr(X, "__dask_graph__"):
        from dboost.data.collections import plan_collection

        return plan_collection(
            X, y, sample_weight, groups, task=task, classes=classes, class_weight=class_weight, engine=engine
        )
    return plan_memory(
        X, y, sample_weight, groups, task=task, classes=classes, class_weight=class_weight, engine=engine
    )


def plan_memory(
    X: Any,
    y: Any,
    sample_weight: Any,
    groups: Any = None,
    *,
    task: str,
    classes: Any,
    class_weight: Any,
    engine: Mapper,
) -> Plan:
    """The plan for rows in memory. Blocks are decoded here, on threads: the arrays need not travel for it."""
    if y is None:
        raise UsageError("requires y to be passed, but the target y is None")
    X, y, sample_weight, groups, _ = split_named(X, y, sample_weight, groups)
    several = task in SEVERAL
    task_names = list(y.columns) if several and hasattr(y, "columns") else None
    rows = as_rows(X, clean=False)
    n_labels = count_rows(y)
    if n_labels != rows.n_rows:
        raise DataError(
            f"Found input variables with inconsistent numbers of samples: X has {rows.n_rows} rows, y has {n_labels}"
        )
    if rows.n_features == 0 and rows.n_rows:
        raise DataError(f"X has 0 feature(s) (shape=({rows.n_rows}, 0)) while a minimum of 1 is required.")
    weight = check_weight(sample_weight, rows.n_rows)
    labels = y if several or task == "regression" else factorise(y)
    stats = scan(task, labels, weight)
    coder, task_classes = plan_coder(stats, task, classes, class_weight, task_names)
    keep = weight > 0
    kept_y, kept_weight = (labels, weight) if np.all(keep) else (take_rows(y, keep), weight[keep])
    codes, kept_weight = coder.encode(kept_y, kept_weight)
    group = None if groups is None else group_numbers(groups, rows.n_rows)[keep]
    outputs = n_outputs(coder, stats)
    try:
        # most matrices are clean, and putting them by column tells
        partitions = _blocks(rows, keep, codes, kept_weight, group, outputs, engine, strict=True)
    except Unclean:
        partitions = _blocks(as_rows(X), keep, codes, kept_weight, group, outputs, engine, strict=False)
    nbytes = sum(partition.nbytes for partition in partitions)
    about = coder.task, rows.n_features, rows.names, class_list(coder)

    def fingerprint() -> str:
        return joined_digest(about, map(partition_digest, partitions))

    return Plan.of(
        coder,
        stats,
        items=partitions,
        rows=tuple(partition.n_rows for partition in partitions),
        n_features=rows.n_features,
        feature_names=rows.names,
        classes=task_classes,
        # nothing but a checkpoint waits for it
        digest=known(fingerprint()) if nbytes < ASIDE_BYTES else engine.run_in_background(fingerprint),
        nbytes_estimate=nbytes,
        streams=False,
        notes=label_notes(stats.count, {}) if classes is None else (),
    )


def _blocks(
    rows: Rows,
    keep: NDArray[np.bool_],
    codes: NDArray[Any],
    weight: NDArray[np.float64],
    group: NDArray[np.uint64] | None,
    outputs: int,
    engine: Mapper,
    strict: bool,
) -> tuple[Partition, ...]:
    """The rows to keep as partitions, on threads; `strict` refuses rows that are not clean (``csc.Unclean``)."""
    bounds = block_bounds(rows, keep, outputs)
    offsets = np.cumsum([0, *(np.count_nonzero(keep[a:b]) for a, b in itertools.pairwise(bounds))])

    alone = len(bounds) == 2

    def cut(number: int) -> Partition:
        start, stop = int(bounds[number]), int(bounds[number + 1])
        mine = slice(int(offsets[number]), int(offsets[number + 1]))
        kept = keep[start:stop]
        every = bool(np.all(kept))
        if strict and every and rows.dense is not None:
            indptr, row, value = dense_to_csc(rows.dense[start:stop], rows.dtype)
        else:
            indptr, row, value = to_csc(
                [rows.piece(start, stop)],
                rows.n_features,
                dtype=rows.dtype,
                keep=None if every else kept,
                names=rows.names,
                strict=strict,
                each=engine.on_driver if alone else None,
            )
        y, s = np.ascontiguousarray(codes[mine]), np.ascontiguousarray(weight[mine])
        return Partition(indptr, row, value, y, s, f"block-{number:05d}", None if group is None else group[mine])

    # threads share the blocks, or the only one
    return (cut(0),) if alone else tuple(engine.on_driver(cut, range(len(bounds) - 1)))
