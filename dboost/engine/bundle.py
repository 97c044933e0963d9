"""The work of one process in one pass: leaves on a bundle of partitions, folded along the tree.

Covers: loading through the memo, several shards, several threads. Both engines run their passes through here, which
is why they give the same bits.
Does not cover: where the process is, or what happens to the sums afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from itertools import accumulate
from typing import Any, cast

import numpy as np

from dboost.engine.base import Leaf
from dboost.engine.dask.deferred import loaded, open_late
from dboost.engine.memo import Memo, MemoStore
from dboost.engine.tree import Node, combine, fold_many
from dboost.partition import Partition, Sums


def merge_lists(left: list[Sums], right: list[Sums]) -> list[Sums]:
    """Merge the sums of several shards, shard by shard, into those on the left."""
    return [a.merge(b) for a, b in zip(left, right, strict=True)]


def copy_sums(sums: Sums) -> Sums:
    """Return sums that share no array with `sums`, so that others may be merged into them."""
    return Sums(
        add={k: v.copy() if isinstance(v, np.ndarray) else v for k, v in sums.add.items()},
        peak={k: v.copy() for k, v in sums.peak.items()},
        parts={k: list(v) for k, v in sums.parts.items()},
    )


def combine_sums(rows: Sequence[int], nodes: Sequence[Node], values: Sequence[Sums], root: Node | None = None) -> Sums:
    """Merge the sums of nodes that cover the tree, or the node `root` of it; `values` stay as they are.

    They are results of other tasks: a task that is run again must find them unchanged.
    """
    given = {id(v) for v in values}

    def merge(left: Sums, right: Sums) -> Sums:
        return (copy_sums(left) if id(left) in given else left).merge(right)

    total = combine(rows, nodes, values, merge, root)
    return copy_sums(total) if id(total) in given else total


SHARE_STAYING = 0.25
"""Share of the memo for decoded partitions where not all of them fit. The rest is for what is derived from them, above
all the columns of the model: a pass that finds these in the memo reads nothing, and most passes are such."""


def open_partition(item: Any, store: MemoStore, run: str, stays: bool = True) -> Partition:
    """Return the partition: the item itself, or read, through the memo where it `stays` there.

    What does not stay is read when a leaf asks for its features, and comes by row where it can; leaves take all forms.
    """
    if isinstance(item, Partition):
        return item
    if not stays:
        return cast(Partition, open_late(item, store, run))
    return cast(
        Partition, store.get(run, item.key, "partition", None, lambda: loaded(item, store, run, item.load), True)
    )


def staying(items: Sequence[Any], store: MemoStore) -> list[bool]:
    """Tell which decoded partitions stay in the memo: all, or the first ones up to a share of it.

    Passes visit partitions in turn. A cache that drops what was used least recently would then drop each one just
    before it is needed again, and never save a single reading.
    """
    sizes = [0 if isinstance(item, Partition) else int(item.nbytes_estimate) for item in items]
    if sum(sizes) <= store.budget:
        return [True] * len(sizes)
    return [total <= SHARE_STAYING * store.budget for total in accumulate(sizes)]


def run_bundle(
    items: Sequence[Any],
    rows: tuple[int, ...],
    nodes: Sequence[Node],
    leaf: Leaf,
    args: tuple[Any, ...],
    shards: Sequence[Any] | None,
    done: Callable[[int, int, Sums], None],
    *,
    store: MemoStore,
    run: str,
    threads: int = 1,
    helpers: Executor | None = None,
    stop: Callable[[], bool] | None = None,
    progress: Callable[[], None] | None = None,
) -> None:
    """Sum `leaf` over each node of a bundle, for each shard.

    `items`, `rows`: the partitions of the bundle and their rows.
    `nodes`: nodes of the tree over these partitions, numbered from the start of the bundle.
    `done`: ``done(shard_number, node_number, sums)``, called once for each, from any thread (shard 0 without shards).
    `stop`: true when the result is no longer wanted.
    `progress`: called whenever a leaf is finished.

    Notes
    -----
    With shards there are two orders. Decoded partitions that fit the memo are visited once per shard, so that only
    one shard's partial sums are alive per level of the tree. Partitions that have to be read again each time are
    visited once, for all shards together. The sums are the same in both.
    """
    stays = staying(items, store)
    if shards is None:
        groups: list[list[int]] = [[0]]
    elif all(stays):
        groups = [[s] for s in range(len(shards))]
    else:
        groups = [list(range(len(shards)))]

    def evaluate(job: int, i: int) -> list[Sums]:
        partition = open_partition(items[i], store, run, stays[i])
        memo = Memo(store, run, partition.key, once=len(groups) == 1)
        if shards is None:
            sums = [leaf(partition, memo, *args)]
        else:
            sums = [leaf(partition, memo, shards[s], *args) for s in groups[job // len(nodes)]]
        if progress is not None:
            progress()
        return sums

    def hand_over(job: int, value: list[Sums]) -> None:
        for s, sums in zip(groups[job // len(nodes)], value, strict=True):
            done(s, job % len(nodes), sums)

    jobs = [node for _ in groups for node in nodes]
    try:
        fold_many(rows, jobs, evaluate, merge_lists, hand_over, threads, helpers, stop)
    finally:
        store.end_pass(run)
