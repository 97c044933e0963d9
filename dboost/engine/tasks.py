"""The functions that run on Dask workers.

Covers: the tasks of a pass (hold, bundle, pick, reduce), of `Engine.scan` and `Engine.map`, and of closing. Each is a
pure function of its arguments, so the scheduler may run it again, elsewhere, any number of times.
Does not cover: which task goes where (``dboost.engine.dask``).

An error of dboost (bad data, for instance) is returned as `Refused` and not raised: raising would make Dask retry
what cannot succeed. Any other error is raised, and retried, since it may be a passing failure of the storage.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from distributed import get_worker

from dboost.engine.base import Finish, Leaf, Step
from dboost.engine.bundle import combine_sums, open_partition, run_bundle
from dboost.engine.machine import available_cores, available_memory
from dboost.engine.memo import SHARE_OF_MEMORY, MemoStore, process_store
from dboost.engine.tree import Abandoned, Node
from dboost.errors import DboostError
from dboost.partition import Sums

PROGRESS_TOPIC = "dboost-progress"
PROGRESS_SECONDS = 2.0


@dataclass(frozen=True)
class Refused:
    """An error of dboost on its way to the driver."""

    error: DboostError


def hold(value: Any) -> Any:
    """Return `value`: the one copy that the tasks of a pass share.

    Unlike scattered data it is a task result, which the scheduler computes again when its worker dies.
    """
    return value


def pick(bundle: Any, number: int) -> Any:
    """Return the sums of one shard of a bundle, so that only they travel to the shard's reduction."""
    return bundle if isinstance(bundle, Refused) else bundle[number]


def memo_budget(worker: Any, asked: int | None) -> int:
    """Return the bytes a worker process may remember."""
    if asked is not None:
        return asked
    limit = worker.memory_manager.memory_limit
    if not limit:
        neighbours = max(1, available_cores() // worker.state.nthreads)
        limit = available_memory() // neighbours
    return int(SHARE_OF_MEMORY * limit)


def _still_wanted(worker: Any, key: str) -> Callable[[], bool]:
    """Return a function that tells whether the running task was cancelled.

    Dask cannot stop a thread. A task that outlives its driver would keep the worker busy until its last partition.
    """
    task = worker.state.tasks[key]
    return lambda: task.state in ("cancelled", "released", "forgotten")


def _report(worker: Any, key: str) -> Callable[[int], None]:
    """Return a function that tells the scheduler now and then that leaves are being finished."""
    last = time.monotonic()
    count = 0

    def progress(i: int) -> None:
        nonlocal last, count
        count += 1
        now = time.monotonic()
        if now - last > PROGRESS_SECONDS:
            last = now
            worker.log_event(PROGRESS_TOPIC, {"key": key, "leaves": count})

    return progress


def bundle_task(
    key: str,
    run: str,
    items: Sequence[Any],
    rows: tuple[int, ...],
    nodes: Sequence[Node],
    leaf: Leaf,
    args: tuple[Any, ...],
    shards: Sequence[Any] | None,
    budget: int | None,
) -> Any:
    """Sum `leaf` over a bundle of partitions with all threads of the worker.

    Returns
    -------
    list of Sums, one for each node; with shards a list of such lists, one for each shard; or Refused
    """
    worker = get_worker()
    threads = worker.state.nthreads
    store: MemoStore = process_store(lambda: memo_budget(worker, budget))
    results: list[list[Any]] = [[None] * len(nodes) for _ in shards or [None]]

    def done(s: int, node: int, sums: Sums) -> None:
        results[s][node] = sums

    helpers = ThreadPoolExecutor(threads - 1, thread_name_prefix="dboost") if threads > 1 else None
    try:
        run_bundle(
            items,
            rows,
            nodes,
            leaf,
            args,
            shards,
            done,
            store=store,
            run=run,
            threads=threads,
            helpers=helpers,
            stop=_still_wanted(worker, key),
            progress=_report(worker, key),
        )
    except DboostError as error:
        return Refused(error)
    finally:
        if helpers is not None:
            helpers.shutdown(wait=True)
    return results[0] if shards is None else results


def reduce_task(
    bundles: Sequence[Any],
    shard: Any,
    extra: tuple[Any, ...],
    rows: tuple[int, ...],
    nodes: Sequence[Node],
    finish: Finish | None,
) -> Any:
    """Merge one shard's sums of all bundles along the tree and finish them here.

    Parameters
    ----------
    bundles : sequence of list of Sums
        For each bundle, the shard's sums of its nodes.
    shard, extra
        Further arguments of `finish`.
    rows : tuple of int
        Rows of every partition.
    nodes : sequence of node
        The nodes of all bundles, in order.
    """
    values: list[Sums] = []
    for bundle in bundles:
        if isinstance(bundle, Refused):
            return bundle
        values.extend(bundle)
    total = combine_sums(rows, nodes, values)
    if finish is None:
        return total
    try:
        return finish(total, shard, *extra)
    except DboostError as error:
        return Refused(error)


def scan_task(
    key: str,
    run: str,
    items: Sequence[Any],
    state: Any,
    step: Step,
    args: tuple[Any, ...],
    budget: int | None,
) -> Any:
    """Carry a state through a bundle of partitions; return it, or Refused."""
    if isinstance(state, Refused):
        return state
    worker = get_worker()
    cancelled, report = _still_wanted(worker, key), _report(worker, key)
    store: MemoStore = process_store(lambda: memo_budget(worker, budget))
    try:
        for i, item in enumerate(items):
            if cancelled():
                raise Abandoned("the scan was told to stop")
            state = step(open_partition(item, store, run), state, *args)
            report(i)
    except DboostError as error:
        return Refused(error)
    return state


def map_task(key: str, fn: Callable[..., Any], items: Sequence[Any], args: tuple[Any, ...]) -> Any:
    """Return ``fn(item, *args)`` for a few items, or Refused."""
    worker = get_worker()
    cancelled, report = _still_wanted(worker, key), _report(worker, key)
    results = []
    try:
        for i, item in enumerate(items):
            if cancelled():
                raise Abandoned("the map was told to stop")
            results.append(fn(item, *args))
            report(i)
    except DboostError as error:
        return Refused(error)
    return results


def forget_task(runs: Sequence[str]) -> None:
    """Forget what this process remembers of some runs."""
    store = process_store(lambda: memo_budget(get_worker(), None))
    for run in runs:
        store.drop(run)
