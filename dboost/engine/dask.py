"""The engine that runs on a Dask cluster.

Covers: ``DaskEngine``: which tasks a pass consists of, and that nothing of it is left behind.
Does not cover: what a task does (``tasks``), how it is submitted (``submission``) and waited for (``watchdog``).

A pass is one task per worker over a bundle of neighbouring partitions, and nothing else when the sum is not sharded.
The driver merges what comes back along the tree. With shards the bundles' sums stay where they are; a small task picks
each shard out of each bundle, and one task per shard merges, finishes, and returns the small value.

All tasks are plain: no actors, no scattered data, no worker attributes. A worker that dies costs its bundle, which the
scheduler computes again elsewhere; ``allow_other_workers`` is always set, because a task that is bound to a worker
waits for ever when that worker is gone.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Any

from distributed import Client, Future

from dboost.engine import submission, tasks, versions
from dboost.engine.assignment import Bundle, assign, keep_order
from dboost.engine.base import EnginePlan, Finish, FinishArgs, Leaf, Step, finishing_args
from dboost.engine.bundle import combine_sums
from dboost.engine.memo import nbytes_of
from dboost.engine.submission import NAMES_SHOWN, Submission, names, release
from dboost.engine.tree import Node
from dboost.engine.watchdog import Limits, Watchdog
from dboost.errors import ClusterError, UsageError
from dboost.partition import Partition, Sums

WORKERS_MAX_AGE = 1.0


class DaskEngine:
    """Run passes on a Dask cluster.

    Not for use by several threads at once; open one engine per thread on the same client instead.

    Parameters
    ----------
    client : distributed.Client
        Synchronous. It stays open, and so does its cluster.
    retries : int
        Times a task is run again after an error that is not one of dboost's.
    no_worker_timeout : float
        Seconds without any worker after which the pass ends.
    silent_timeout : float
        Seconds without a sign of life after which a worker is named in a warning.
    stall_timeout : float
        Seconds without one finished task or partition after which the pass ends.
    version_timeout : float
        Seconds that scheduler and workers have to tell their versions.
    memo_bytes : int, optional
        What a worker process may remember (default: 40 % of its memory limit).

    Raises
    ------
    UsageError
        `client` is no synchronous Dask client.
    ClusterError
        No workers, no scheduler, or other versions there than here.
    """

    def __init__(
        self,
        client: Any,
        *,
        retries: int = 2,
        no_worker_timeout: float = 30.0,
        silent_timeout: float = 10.0,
        stall_timeout: float = 600.0,
        version_timeout: float = 10.0,
        memo_bytes: int | None = None,
    ) -> None:
        if not isinstance(client, Client):
            raise UsageError(
                f"client is a {type(client).__name__}; expected a dask.distributed.Client",
                hint="for an address write Client(address), for a cluster cluster.get_client()",
            )
        if client.asynchronous:
            raise UsageError(
                "the Dask client is asynchronous; dboost drives its rounds from ordinary code",
                hint="open Client(address) without asynchronous=True, or call fit in a thread of its own",
            )
        self.client: Any = client
        self._bytes_received = 0
        self.seconds = {"driver": 0.0, "wait": 0.0}
        self._version_timeout = version_timeout
        self._memo_bytes = memo_bytes
        self._watchdog = Watchdog(client, Limits(no_worker_timeout, silent_timeout, stall_timeout))
        self._token = uuid.uuid4().hex[:8]
        self._tasks = Submission(client, self._token, retries)
        self._passes = 0
        self._runs: set[str] = set()
        self._plan: EnginePlan | None = None
        self._order: list[str] = []
        self._threads: dict[str, int] = {}
        self._bundles: list[Bundle] = []
        self._looked = float("-inf")
        self._checked: set[str] = set()
        self._kept: dict[Any, tuple[str, Any]] = {}
        self._homes: dict[str, str] = {}
        self._closed = False
        self._refresh(strict=True)

    @property
    def n_workers(self) -> int:
        """Number of running workers, at most a second ago."""
        self._refresh()
        return len(self._threads)

    @property
    def bytes_moved(self) -> int:
        """Bytes sent to and received from workers, without what workers send each other."""
        return self._tasks.bytes_sent + self._bytes_received

    def set_plan(self, items: Sequence[Any], rows: Sequence[int], run_id: str) -> None:
        """Name the partitions that `map_reduce` sums over: blocks, descriptions, or futures of blocks.

        Blocks that are in this process are sent to the workers once, as results of tasks; the scheduler keeps them
        too, to give them to another worker when one is lost.
        """
        self._forget_kept()
        self._plan = EnginePlan(tuple(items), tuple(int(r) for r in rows), f"{run_id}-{self._token}")
        self._runs.add(self._plan.run_id)
        self._bundles = []

    def _refresh(self, strict: bool = False) -> None:
        """Look at the workers, unless that was done a moment ago; check the versions of those that are new."""
        if self._closed:
            raise UsageError("the engine is closed; open a new one")
        if time.monotonic() - self._looked < WORKERS_MAX_AGE and self.client.status == "running":
            return
        threads = self._watchdog.workers()
        new = set(threads) - self._checked
        if new:
            # The questions inside have their own limits; the outer one only covers all of them together.
            limit = 3 * self._version_timeout + 1
            self._checked |= self._watchdog.ask(
                lambda: versions.check(self.client, new, self._version_timeout, strict), limit
            )
        if threads != self._threads:
            self._order = keep_order(self._order, list(threads))
            self._threads = threads
            self._bundles = []
        self._looked = time.monotonic()

    def _assignment(self, name: str) -> tuple[EnginePlan, list[Bundle]]:
        self._refresh()
        if self._plan is None:
            raise UsageError(f"pass {name!r} was started before set_plan named the partitions")
        if not self._bundles:
            self._bundles = assign(self._plan.rows, [(a, self._threads[a]) for a in self._order])
            places = {(bundle.lo, bundle.hi) for bundle in self._bundles}
            for place in [p for p in self._kept if isinstance(p, tuple) and p not in places]:
                release([self._kept.pop(place)[1]])
        return self._plan, self._bundles

    def _items(self, plan: EnginePlan, bundle: Bundle) -> Any:
        """Return the items of a bundle as an argument of its task."""
        items = plan.items[bundle.lo : bundle.hi]
        if any(isinstance(item, Future | Partition) for item in items):
            return [self._home(i, items[i - bundle.lo], bundle.address) for i in range(bundle.lo, bundle.hi)]
        place = (bundle.lo, bundle.hi)
        if place not in self._kept:
            self._kept[place] = (
                "",
                self._tasks.argument(list(items), "plan", bundle.address, limit=submission.PLAN_HOLD_BYTES),
            )
        return self._kept[place][1]

    def _home(self, i: int, item: Any, address: str) -> Any:
        """Return a partition's future at the worker that sums it.

        A bundle's partitions may lie anywhere at first. A task that merely returns its input gives them a home:
        mere copies would be dropped again by the scheduler, which keeps one of each result.
        """
        if not isinstance(item, Future | Partition):
            return item
        if i not in self._kept or self._kept[i][0] != address:
            release([self._kept.pop(i, ("", None))[1]])
            home = self._tasks.hold(item, "home", address)
            self._kept[i] = (address, home)
            self._homes[str(home.key)] = f"partition {getattr(item, 'key', i)}"
            if isinstance(item, Partition):
                self._tasks.bytes_sent += item.nbytes
        return self._kept[i][1]

    # -- passes ------------------------------------------------------------------------------------------------------

    def map(self, fn: Callable[..., Any], items: Sequence[Any], *args: Any, name: str) -> list[Any]:
        """Return ``[fn(item, *args) for item in items]``; see `Engine.map`."""
        start = time.perf_counter()
        self._refresh()
        self._passes += 1
        # Four tasks per thread even out what takes longer; more would only cost the scheduler.
        count = max(1, min(len(items), 4 * sum(self._threads.values())))
        cuts = [len(items) * i // count for i in range(count + 1)]
        runs: list[list[Any]] = [list(items[a:b]) for a, b in pairwise(cuts) if b > a]
        described: dict[str, str] = {}
        futures: list[Future[Any]] = []
        held: Any = None
        try:
            held = self._tasks.argument(args, name, None, len(runs))
            for run in runs:
                key = self._key("map", name, len(futures))
                described[key] = names(run)
                futures.append(self._tasks.submit(tasks.map_task, key, fn, run, held, key=key))
            chunks = self._wait(futures, futures, name, described, start, beside=True)
        finally:
            release([*futures, held])
        return [value for chunk in chunks for value in chunk]

    def map_reduce(
        self,
        leaf: Leaf,
        *args: Any,
        name: str,
        shards: Sequence[Any] | None = None,
        finish: Finish | None = None,
        finish_args: FinishArgs | None = None,
    ) -> Any:
        """Sum `leaf` over the partitions along the fixed tree; see `Engine.map_reduce`."""
        start = time.perf_counter()
        plan, bundles = self._assignment(name)
        self._passes += 1
        described: dict[str, str] = {}
        futures: list[Any] = []
        held: Any = None
        try:
            held = self._tasks.argument(args, name, None, len(bundles))
            for bundle in bundles:
                key = self._key("", name, len(futures))
                described[key] = names(plan.items[bundle.lo : bundle.hi])
                nodes = [(lo - bundle.lo, hi - bundle.lo) for lo, hi in bundle.nodes]
                task_args = (
                    key,
                    plan.run_id,
                    self._items(plan, bundle),
                    plan.rows[bundle.lo : bundle.hi],
                    nodes,
                    leaf,
                    held,
                    None if shards is None else list(shards),
                    self._memo_bytes,
                )
                futures.append(self._tasks.submit(tasks.bundle_task, *task_args, key=key, address=bundle.address))
            nodes = [node for bundle in bundles for node in bundle.nodes]
            if shards is None:
                parts = self._wait(futures, futures, name, described, start)
                total: Sums = combine_sums(plan.rows, nodes, [sums for part in parts for sums in part])
                return total if finish is None else finish(total, None, *finishing_args(finish_args, None))
            wanted = self._reductions(plan, futures, nodes, name, shards, finish, finish_args)
            described |= {str(future.key): f"the sum of shard {i}" for i, future in enumerate(wanted)}
            return self._wait(wanted, futures, name, described, start)
        finally:
            release([*futures, held])

    def scan(self, step: Step, state: Any, *args: Any, name: str) -> Any:
        """Carry `state` through the partitions in their order, one task per bundle; see `Engine.scan`."""
        start = time.perf_counter()
        plan, bundles = self._assignment(name)
        self._passes += 1
        described: dict[str, str] = {}
        futures: list[Any] = []
        try:
            for bundle in bundles:
                key = self._key("scan", name, len(futures))
                described[key] = names(plan.items[bundle.lo : bundle.hi])
                task_args = (key, plan.run_id, self._items(plan, bundle), state, step, args, self._memo_bytes)
                futures.append(self._tasks.submit(tasks.scan_task, *task_args, key=key, address=bundle.address))
                state = futures[-1]
            return self._wait(futures[-1:], futures, name, described, start)[0]
        finally:
            release(futures)

    def _reductions(
        self,
        plan: EnginePlan,
        futures: list[Any],
        nodes: list[Node],
        name: str,
        shards: Sequence[Any],
        finish: Finish | None,
        finish_args: FinishArgs | None,
    ) -> list[Future[Any]]:
        """Submit one reduction per shard; every new task is added to `futures`."""
        sums = list(futures)
        extras = [finishing_args(finish_args, shard) for shard in shards]
        self._tasks.bytes_sent += nbytes_of(extras)
        pairs = [(future, s) for s in range(len(shards)) for future in sums]
        picks = self.client.map(
            tasks.pick,
            [future for future, _ in pairs],
            [s for _, s in pairs],
            key=[self._key("pick", name, i) for i in range(len(pairs))],
            pure=False,
            retries=self._tasks.retries,
        )
        futures.extend(picks)
        wanted: list[Future[Any]] = self.client.map(
            tasks.reduce_task,
            [picks[i * len(sums) : (i + 1) * len(sums)] for i in range(len(shards))],
            list(shards),
            extras,
            key=[self._key("reduce", name, i) for i in range(len(shards))],
            pure=False,
            retries=self._tasks.retries,
            rows=plan.rows,
            nodes=nodes,
            finish=finish,
        )
        futures.extend(wanted)
        return wanted

    def _wait(
        self,
        wanted: list[Future[Any]],
        futures: list[Future[Any]],
        name: str,
        described: dict[str, str],
        start: float,
        beside: bool = False,
    ) -> list[Any]:
        """Collect results; on any error or interrupt cancel the pass.

        `beside` tells that a worker may have several of these tasks at once. Dask blames all of them for its death.
        """
        known = self._homes | described

        def describe(key: str) -> str:
            text = known.get(key, f"task {key}")
            others = [known[str(f.key)] for f in futures if beside and f.key != key and f.status != "finished"]
            more = f" and {len(others) - NAMES_SHOWN} more" if len(others) > NAMES_SHOWN else ""
            return f"{text} (or, beside it, {', '.join(others[:NAMES_SHOWN])}{more})" if others else text

        before = time.perf_counter()
        self.seconds["driver"] += before - start
        try:
            results = self._watchdog.collect(wanted, futures, name, describe)
            for result in results:
                if isinstance(result, tasks.Refused):
                    raise result.error
        except BaseException:
            self._looked = float("-inf")
            self._cancel(futures)
            raise
        finally:
            self.seconds["wait"] += time.perf_counter() - before
        self._bytes_received += sum(nbytes_of(result) for result in results)
        return results

    # -- tasks and their end -----------------------------------------------------------------------------------------

    def _key(self, role: str, name: str, number: int) -> str:
        """Return a key that is readable and unique; the scheduler groups tasks by its first words."""
        words = ["dboost", *([role] if role else []), name, self._token, str(self._passes), str(number)]
        return "-".join(words)

    def _cancel(self, futures: Sequence[Any]) -> None:
        # The cluster may be what failed, so nothing here may wait long or hide the first error.
        mine: list[Any] = [f for f in futures if isinstance(f, Future) and f.status != "cancelled"]
        with suppress(TimeoutError, OSError, ClusterError):
            self._watchdog.ask(lambda: self.client.cancel(mine, asynchronous=True, force=True), 2.0)

    def _forget_kept(self) -> None:
        release([value for _, value in self._kept.values()])
        self._kept = {}
        self._homes = {}

    def close(self) -> None:
        """Release all tasks of this engine and make the workers forget its runs, as far as they can be reached."""
        if self._closed:
            return
        self._closed = True
        self._forget_kept()
        self._plan = None
        if self.client.status != "running" or not self._runs:
            return
        forgets: list[Future[Any]] = []
        # An error here would hide that of the fit; what is not forgotten now is pushed out by the next run.
        with suppress(TimeoutError, OSError, ClusterError):
            for i, address in enumerate(self._watchdog.ask(self.client.scheduler.ncores_running, 2.0)):
                key = f"dboost-close-{self._token}-{i}"
                forgets.append(self._tasks.submit(tasks.forget_task, sorted(self._runs), key=key, address=address))
            self._watchdog.ask(lambda: self.client.gather(forgets, errors="skip", asynchronous=True), 2.0)
        release(forgets)

    def __enter__(self) -> DaskEngine:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
