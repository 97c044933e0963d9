"""The functions that run on Dask workers.

Covers: the tasks of a pass (hold, bundle, pick, merge, reduce), of `Engine.scan` and `Engine.map`, and of closing. Each
is a pure function of its arguments, so the scheduler may run it again, elsewhere, any number of times.
Does not cover: which task goes where (``dboost.engine.dask.engine``).

An error of dboost (bad data, for instance) is returned as `Refused` and not raised: raising would make Dask retry
what cannot succeed. Any other error is raised, and retried, since it may be a passing failure of the storage.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import psutil
from distributed import get_worker

from dboost.engine.bundle import combine_sums, open_partition, run_bundle, staying
from dboost.engine.dask.wire_format import Blob, unpack
from dboost.engine.helping_threads import Helpers
from dboost.engine.machine import available_cores, available_memory
from dboost.engine.memo import SHARE_OF_MEMORY, MemoStore, nbytes_of, process_store
from dboost.engine.tree import Abandoned
from dboost.errors import DboostError
from dboost.partition import Sums

PROGRESS_TOPIC = "dboost-progress"
PROGRESS_SECONDS = 2.0

SHARE_IN_USE = 0.55
"""Share of a worker's limit for its libraries and what it remembers; the rest is for the partition in work."""

COMPILED_BYTES = 128 * 2**20
"""What kernels that are not loaded yet will take."""


@dataclass(frozen=True)
class Refused:
    """An error of dboost on its way to the driver."""

    error: DboostError


@dataclass(frozen=True)
class Done:
    """What a task gives, and the seconds it took."""

    value: Any
    kernels: float  # Seconds of computing, along the longest chain of tasks up to this one.
    network: float  # Seconds of receiving and decoding arguments, along the same chain.

    def __sizeof__(self) -> int:
        # The scheduler weighs results by this number.
        return nbytes_of(self.value) + 64


class Clock:
    """Seconds of one task: what came before it, receiving and decoding, then computing.

    `before`: results of tasks that this one waited for. `received`: seconds in which its arguments came from other
    workers.
    """

    def __init__(self, before: Sequence[Any] = (), received: float = 0.0) -> None:
        self.kernels = max((done.kernels for done in before), default=0.0)
        self.network = max((done.network for done in before), default=0.0) + received
        self._start = time.perf_counter()

    def decoded(self) -> None:
        """What follows is computing."""
        now = time.perf_counter()
        self.network += now - self._start
        self._start = now

    def done(self, value: Any) -> Done:
        """The result of the task with its seconds."""
        return Done(value, self.kernels + time.perf_counter() - self._start, self.network)


def _clock(before: Sequence[Any] = ()) -> Clock:
    """The clock of the running task of Dask."""
    return Clock(before, _received(get_worker()))


def _received(worker: Any) -> float:
    """Seconds in which arguments of the running task came from other workers."""
    task = worker.state.tasks[worker.get_current_task()]
    wanted = {dependency.key for dependency in task.dependencies}
    spans = [
        (record["start"], record["stop"])
        for record in list(getattr(worker, "transfer_incoming_log", ()))[-len(wanted) :]
        if wanted and not wanted.isdisjoint(record["keys"])
    ]
    return max(stop for _, stop in spans) - min(start for start, _ in spans) if spans else 0.0


def hold(value: Any) -> Any:
    """Return `value`: the one copy that the tasks of a pass share.

    Unlike scattered data it is a task result, which the scheduler computes again when its worker dies.
    """
    return value


def pick(bundle: Any, number: int) -> Any:
    """Return the sums of one shard of a bundle, so that only they travel to the shard's reduction."""
    if isinstance(bundle, Refused):
        return bundle
    return Done([bundle.value[number]], bundle.kernels, bundle.network)


def memo_budget(worker: Any, asked: int | None) -> int:
    """Return the bytes a worker process may remember."""
    if asked is not None:
        return asked
    limit = worker.memory_manager.memory_limit
    if not limit:
        neighbours = max(1, available_cores() // worker.state.nthreads)
        return int(SHARE_OF_MEMORY * (available_memory() // neighbours))
    # Under a tight limit the libraries alone take half of it: a worker at 0.8 of its limit is paused, and if what it
    # remembers keeps it there, for good.
    room = SHARE_IN_USE * limit - psutil.Process().memory_info().rss - COMPILED_BYTES
    return int(max(0.0, min(SHARE_OF_MEMORY * limit, room)))


def _still_wanted(worker: Any) -> Callable[[], bool]:
    """Return a function that tells whether the running task was cancelled.

    Dask cannot stop a thread. A task that outlives its driver would keep the worker busy until its last partition.
    """
    task = worker.state.tasks[worker.get_current_task()]
    return lambda: task.state in ("cancelled", "released", "forgotten")


def _report(worker: Any) -> Callable[[], None]:
    """Return a function that tells the scheduler now and then that leaves are being finished."""
    key = worker.get_current_task()
    last = time.monotonic()
    count = 0

    def progress() -> None:
        nonlocal last, count
        count += 1
        now = time.monotonic()
        if now - last > PROGRESS_SECONDS:
            last = now
            worker.log_event(PROGRESS_TOPIC, {"key": key, "leaves": count})

    return progress


def bundle_task(common: Blob, part: Blob, constants: Sequence[Any], partitions: Sequence[Any] | None) -> Any:
    """Sum a leaf over a bundle of partitions with all threads of the worker.

    `common`: the same for all bundles: run, leaf, its arguments, shards, budget. `part`: what is this bundle's own:
    items, their rows, the nodes of the tree. `constants`: what was left out of `common`. `partitions`: the items, where
    they are results of tasks.
    """
    worker = get_worker()
    return sum_bundle(worker, _clock(), common, part, constants, partitions, _still_wanted(worker), _report(worker))


def sum_bundle(
    worker: Any,
    clock: Clock,
    common: Blob,
    part: Blob,
    constants: Sequence[Any],
    partitions: Sequence[Any] | None,
    stop: Callable[[], bool],
    progress: Callable[[], None],
) -> Done | Refused:
    """Sum a leaf over a bundle of partitions at `worker`; see `bundle_task` and ``bundle.run_bundle``."""
    threads = worker.state.nthreads
    run, leaf, args, shards, budget = unpack(common, constants)
    items, rows, nodes = unpack(part)
    clock.decoded()
    store: MemoStore = process_store(lambda: memo_budget(worker, budget))
    results: list[list[Any]] = [[None] * len(nodes) for _ in shards or [None]]

    def done(s: int, node: int, sums: Sums) -> None:
        results[s][node] = sums

    helpers = Helpers(threads - 1) if threads > 1 else None
    try:
        run_bundle(
            items if partitions is None else partitions,
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
            stop=stop,
            progress=progress,
        )
    except DboostError as error:
        return Refused(error)
    finally:
        if helpers is not None:
            helpers.shutdown(wait=True)
    return clock.done(results)


def _given(bundles: Sequence[Any]) -> Refused | list[list[Sums]]:
    """Return, for each shard, the sums of all nodes of some bundles, in order."""
    for bundle in bundles:
        if isinstance(bundle, Refused):
            return bundle
    return [
        [sums for of_bundle in shard for sums in of_bundle] for shard in zip(*(b.value for b in bundles), strict=True)
    ]


def merge_task(bundles: Sequence[Any], blob: Blob) -> Any:
    """Merge the sums of neighbouring bundles, of each shard that they come with, as far as the tree allows.

    `blob`: rows of the partitions of these bundles, the bundles' nodes, and the nodes they are merged to.
    """
    given = _given(bundles)
    if isinstance(given, Refused):
        return given
    clock = _clock(bundles)
    rows, nodes, wanted = unpack(blob)
    merged: list[list[Sums]] = [[] for _ in given]
    for lo, hi in wanted:
        inside = [i for i, (a, b) in enumerate(nodes) if lo <= a and b <= hi]
        for shard, values in zip(merged, given, strict=True):
            shard.append(combine_sums(rows, [nodes[i] for i in inside], [values[i] for i in inside], (lo, hi)))
    return clock.done(merged)


def reduce_task(bundles: Sequence[Any], blob: Blob, constants: Sequence[Any]) -> Any:
    """Merge one shard's sums of all bundles along the tree and finish them here.

    `blob`: rows of every partition, the nodes of all bundles in order, `finish`, the shard, further arguments.
    `constants`: what was left out of `blob`.
    """
    given = _given(bundles)
    if isinstance(given, Refused):
        return given
    clock = _clock(bundles)
    [values] = given
    rows, nodes, finish, shard, extra = unpack(blob, constants)
    clock.decoded()
    total = combine_sums(rows, nodes, values)
    if finish is None:
        return clock.done(total)
    try:
        return clock.done(finish(total, shard, *extra))
    except DboostError as error:
        return Refused(error)


def scan_task(common: Blob, part: Blob, constants: Sequence[Any], partitions: Sequence[Any] | None, before: Any) -> Any:
    """Carry a state through a bundle of partitions.

    `common`: the same for all bundles: run, step, its arguments, the first state, budget. `part`, `constants`,
    `partitions`: as in `bundle_task`. `before`: the state after the bundle before; None at the first.
    """
    if isinstance(before, Refused):
        return before
    worker = get_worker()
    clock = _clock([] if before is None else [before])
    run, step, args, state, budget = unpack(common, constants)
    items, _, _ = unpack(part)
    if before is not None:
        state = before.value
    clock.decoded()
    cancelled, report = _still_wanted(worker), _report(worker)
    store: MemoStore = process_store(lambda: memo_budget(worker, budget))
    try:
        given = items if partitions is None else partitions
        for item, stays in zip(given, staying(given, store), strict=True):
            if cancelled():
                raise Abandoned("the scan was told to stop")
            state = step(open_partition(item, store, run, stays), state, *args)
            report()
    except DboostError as error:
        return Refused(error)
    return clock.done(state)


def map_task(common: Blob, items: Any, constants: Sequence[Any]) -> Any:
    """Return Done with ``fn(item, *args)`` for a few items, or Refused.

    `common`: `fn` and `args`. `items`: the items; a list where some are results of tasks.
    """
    worker = get_worker()
    clock = _clock()
    fn, args = unpack(common, constants)
    if isinstance(items, Blob):
        items = unpack(items)
    clock.decoded()
    cancelled, report = _still_wanted(worker), _report(worker)
    results = []
    try:
        for item in items:
            if cancelled():
                raise Abandoned("the map was told to stop")
            results.append(fn(item, *args))
            report()
    except DboostError as error:
        return Refused(error)
    return clock.done(results)


def forget_task(runs: Sequence[str]) -> None:
    """Forget what this process remembers of some runs."""
    store = process_store(lambda: memo_budget(get_worker(), None))
    for run in runs:
        store.drop(run)
