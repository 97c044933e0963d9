"""The engine that runs on a Dask cluster.

Covers: ``DaskEngine``: which tasks a pass consists of, and that nothing of it is left behind.
Does not cover: what a task does (``tasks``), how it is submitted (``submission``) and waited for (``watchdog``).

A pass is one graph, sent in one message: one task per worker over a bundle of neighbouring partitions, and nothing else
when the sum is not sharded. The driver merges what comes back along the tree; where that is much, a tree of tasks
merges first. With shards the bundles' sums stay where they are, and one task per shard merges, finishes, and returns
the small value; where there are several shards, small tasks pick each out of each bundle. Of many bundles pairs merge
all their shards before that, and what is large and wanted by all is handed on from worker to worker.

A pass that was short as tasks is one call to each worker the next time (``direct``), which saves the turns through the
scheduler; where that gives nothing, it is tasks again.

All tasks are plain: no actors, no scattered data, no worker attributes. A worker that dies costs its bundle, which the
scheduler computes again elsewhere; ``allow_other_workers`` is set, because a task that is bound to a worker waits for
ever when that worker is gone. Where that does not help (all workers were gone for a moment, or one is silent), the pass
is submitted again under fresh keys for the workers that are there: its tasks are pure, so the bits stay.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from itertools import pairwise
from typing import Any, TypeVar

from distributed import Client, Future

from dboost.engine.base import EnginePlan, Finish, FinishArgs, Leaf, Step, finishing_args
from dboost.engine.bundle import combine_sums
from dboost.engine.dask import tasks, versions
from dboost.engine.dask.assignment import Bundle, assign, keep_order
from dboost.engine.dask.direct import CALL_BYTES, DirectCalls, Part
from dboost.engine.dask.encryption import warn_of_open
from dboost.engine.dask.gathering import Arrivals
from dboost.engine.dask.holdings import Holdings
from dboost.engine.dask.pass_tasks import PassTasks, SumSizes
from dboost.engine.dask.restrictions import Restrictions, restrictions_here
from dboost.engine.dask.spent_results import Spent
from dboost.engine.dask.submission import NAMES_SHOWN, Submission, names, release
from dboost.engine.dask.watchdog import Limits, Stuck, Watchdog, Watched, killed
from dboost.engine.dask.wire_format import Blob
from dboost.engine.defaults import EngineDefaults
from dboost.engine.memo import nbytes_of
from dboost.engine.tree import Node
from dboost.errors import ClusterError, UsageError, type_name
from dboost.notices import warn_user
from dboost.progress import listener

T = TypeVar("T")

WORKERS_MAX_AGE = 1.0

RESUBMISSIONS = 3
"""Times a pass is submitted again. A partition that ends every worker it comes to would otherwise go on for ever; Dask
gives a task up after as many deaths (``allowed-failures``), but counts anew with every fresh key."""


class DaskEngine(EngineDefaults):
    """Run passes on a Dask cluster.

    Several threads may ask for passes at once, as the fits without each fold do: what is kept of passes is changed by
    one thread at a time, and none waits for the pass of another.

    `client`: synchronous. It stays open, and so does its cluster.
    `retries`: times a task is run again after an error that is not one of dboost's.
    `no_worker_timeout`: seconds without any worker that may be used after which the pass ends.
    `silent_timeout`: seconds without a sign of life after which a worker is left out until it gives one; a pass that
    needs it is submitted again, with a warning that names it.
    `stall_timeout`: seconds without one finished task or partition after which the pass ends.
    `version_timeout`: seconds that scheduler and workers have to tell their versions.
    `memo_bytes`: what a worker process may remember (default: 40 % of its memory limit).
    Raises UsageError: `client` is no synchronous Dask client. Raises ClusterError: no workers, no scheduler, or other
    versions there than here.
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
                f"client is {type_name(client)}; expected a dask.distributed.Client",
                hint="for an address write Client(address), for a cluster cluster.get_client()",
            )
        if client.asynchronous:
            raise UsageError(
                "the Dask client is asynchronous; dboost drives its rounds from ordinary code",
                hint="open Client(address) without asynchronous=True, as in any notebook; a coroutine then waits for "
                "the fit by await asyncio.to_thread(model.fit, X, y)",
            )
        super().__init__()
        self.client: Any = client
        self._bytes_received = 0
        self._version_timeout = version_timeout
        self._memo_bytes = memo_bytes
        self._watchdog = Watchdog(client, Limits(no_worker_timeout, silent_timeout, stall_timeout))
        self._tasks = Submission(client, self._token, retries)
        self._held = Holdings(self._tasks)
        self._passes = 0
        self._stage = ""
        self._order: list[str] = []
        self._threads: dict[str, int] = {}
        self._bundles: list[Bundle] = []
        self._looked = float("-inf")
        self._restrictions = Restrictions()
        self._left_out: frozenset[str] = frozenset()
        self._checked: set[str] = set()
        self._spent = Spent(client)
        self._sizes = SumSizes()
        self._direct = DirectCalls(client, self._watchdog.questions)
        self._keeping = threading.RLock()
        self._refresh(strict=True)
        warn_of_open(str(client.scheduler.address))

    @property
    def n_workers(self) -> int:
        """Number of running workers, at most a second ago."""
        with self._keeping:
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
        with self._keeping:
            self._let_go()
            super().set_plan(items, rows, run_id)
            self._bundles = []

    def label(self, *words: str) -> None:
        """Name the next passes: the last word stands in the keys of their tasks, all of them are a span of Dask."""
        with self._keeping:
            self._stage = words[-1].replace(" ", "") if words else ""
            self._tasks.label(words)

    def _refresh(self, strict: bool = False) -> None:
        """Look at the workers, unless that was done a moment ago; check the versions of those that are new."""
        if self._closed:
            raise UsageError("the engine is closed; open a new one")
        restrictions = restrictions_here()
        fresh = time.monotonic() - self._looked < WORKERS_MAX_AGE and restrictions == self._restrictions
        if fresh and self.client.status == "running":
            return
        threads = self._watchdog.workers(restrictions, self._wake)
        self._restrictions, self._left_out = restrictions, self._watchdog.silent
        # Dask may move a task to any worker, the silent ones and those that the caller did not mean among them.
        self._tasks.confined = tuple(sorted(threads)) if restrictions or self._left_out else None
        new = set(threads) - self._checked
        if new:
            # The questions inside have their own limits; the outer one only covers all of them together.
            limit = 5 * self._version_timeout + 1
            self._checked |= self._watchdog.questions.ask(
                lambda: versions.check(self.client, new, self._version_timeout, strict), limit
            )
        if threads != self._threads:
            self._order = keep_order(self._order, list(threads))
            self._threads = threads
            self._bundles = []
        self._looked = time.monotonic()

    def _wake(self) -> Any:
        self._tasks.confined = None
        return self._tasks.hold(None, "wake", None)

    def _assignment(self, name: str) -> tuple[EnginePlan, list[Bundle]]:
        self._refresh()
        plan = self.planned(name)
        if not self._bundles:
            self._bundles = assign(plan.rows, [(a, self._threads[a]) for a in self._order])
            self._held.keep_only(self._bundles)
        return plan, self._bundles

    # -- passes ------------------------------------------------------------------------------------------------------

    def _begin(self, name: str) -> PassTasks:
        with self._keeping:
            self._passes += 1
            stage = [self._stage] if self._stage else []
            return PassTasks(name, "-".join([*stage, self._token, str(self._passes)]), self._held)

    def map(self, fn: Callable[..., T], items: Sequence[Any], *args: Any, name: str) -> list[T]:
        def build(work: PassTasks) -> list[str]:
            self._refresh()
            # Four tasks per thread even out what takes longer; more would only cost the scheduler.
            count = max(1, min(len(items), 4 * sum(self._threads.values())))
            cuts = [len(items) * i // count for i in range(count + 1)]
            work.map(fn, [list(items[a:b]) for a, b in pairwise(cuts) if b > a], args)
            return list(work.described)

        return [value for chunk in self._run(name, build, items, beside=True) for value in chunk]

    def map_reduce(
        self,
        leaf: Leaf,
        *args: Any,
        name: str,
        shards: Sequence[Any] | None = None,
        finish: Finish | None = None,
        finish_args: FinishArgs | None = None,
    ) -> Any:
        pieces = None if shards is None else list(shards)
        nodes: list[Node] = []
        # Sums of shards stay on the workers, where they are merged: only tasks can do that.
        parts = self._call(name, leaf, args, nodes) if pieces is None else None

        def build(work: PassTasks) -> list[str]:
            plan, bundles = self._assignment(name)
            branches = work.bundles(plan, bundles, (plan.run_id, leaf, args, pieces, self._memo_bytes))
            if pieces is not None:
                return work.reductions(plan, branches, pieces, finish, finish_args)
            if self._sizes.by_tree(name, len(branches)):
                branches = work.merged(plan, branches)
            nodes[:] = [node for branch in branches for node in branch.nodes]
            return [branch.key for branch in branches]

        if parts is None:
            parts = self._run(name, build)
        if pieces is not None:
            return parts
        total = combine_sums(self.planned(name).rows, nodes, [sums for part in parts for sums in part[0]])
        return total if finish is None else finish(total, None, *finishing_args(finish_args, None))

    def _call(self, name: str, leaf: Leaf, args: tuple[Any, ...], nodes: list[Node]) -> list[Any] | None:
        """Return the sums of each bundle by a call to each worker, and put their nodes into `nodes`.

        None where that gives nothing, and the pass has to be tasks.
        """
        begun = time.perf_counter()
        with self._keeping:
            asked = self._called(name, leaf, args)
        if asked is None:
            return None
        bundles, common, parts = asked
        before = time.perf_counter()
        results = self._direct.call(common, parts)
        if results is None:
            return None
        nodes[:] = [node for bundle in bundles for node in bundle.nodes]
        with self._keeping:
            self._spent.beside(name)
            self._account(name, begun, before, Arrivals(), results, [])
        return [result.value for result in results]

    def _called(
        self, name: str, leaf: Leaf, args: tuple[Any, ...]
    ) -> tuple[list[Bundle], Blob, dict[str, Part]] | None:
        """The bundles, what is sent to all workers, and to each; None where the pass has to be tasks."""
        plan, bundles = self._assignment(name)
        if not self._direct.wanted(name, len(bundles)):
            return None
        common, constants = self._held.pack((plan.run_id, leaf, args, None, self._memo_bytes))
        if common.nbytes * len(bundles) > CALL_BYTES:
            return None
        parts = {}
        for bundle in bundles:
            part, partitions = self._held.of_bundle(plan, bundle)
            kept = self._held.constants(constants, bundle.address)
            if any(future.status != "finished" for future in kept):
                return None
            keys = tuple(str(future.key) for future in kept)
            parts[bundle.address] = Part(_key_or_value(part), keys, _key_or_value(partitions))
        self._held.count(common.nbytes * len(bundles))
        return bundles, common, parts

    def scan(self, step: Step, state: Any, *args: Any, name: str) -> Any:
        def build(work: PassTasks) -> list[str]:
            plan, bundles = self._assignment(name)
            return [work.scan(plan, bundles, (plan.run_id, step, args, state, self._memo_bytes))]

        return self._run(name, build)[0]

    def _run(
        self,
        name: str,
        build: Callable[[PassTasks], list[str]],
        items: Sequence[Any] | None = None,
        beside: bool = False,
    ) -> list[Any]:
        """Build a pass, submit it and return its results; again while workers that are gone or silent hold it up.

        `build`: ``build(work)`` adds the tasks for the workers that there are, and returns the keys of those wanted.
        `items`: what the tasks work on, if not on the partitions of the plan. `beside`: a worker may have several of
        these tasks at once. Dask blames all of them for its death.
        """
        for resubmissions in range(RESUBMISSIONS + 1):
            work = self._begin(name)
            try:
                return self._wait(work, build, items, beside)
            except Stuck as stuck:
                # Anything that the workers held may have been at the one that is gone.
                with self._keeping:
                    self._let_go()
                    self._bundles = []
                if resubmissions == RESUBMISSIONS:
                    what = "" if stuck.key is None else work.described.get(stuck.key, "a task")
                    raise self._given_up(name, stuck, what) from stuck
                warn_user(f"pass {name!r} is submitted again: {stuck.reason}")
        raise AssertionError("unreachable")

    @staticmethod
    def _given_up(name: str, stuck: Stuck, what: str) -> ClusterError:
        if what:
            return killed(name, what, RESUBMISSIONS + 1)
        return ClusterError(
            f"pass {name!r} was submitted {RESUBMISSIONS + 1} times, and each time workers fell silent; the last time "
            f"{stuck.reason}",
            hint="look at the logs of these workers: they are stopped, cut off or out of memory",
        )

    def _wait(
        self, work: PassTasks, build: Callable[[PassTasks], list[str]], items: Sequence[Any] | None, beside: bool
    ) -> list[Any]:
        """Build a pass, submit it and collect results; on any error or interrupt cancel it."""
        begun = time.perf_counter()
        known: dict[str, str] = {}
        futures: list[Any] = []

        def describe(key: str) -> str:
            text = known.get(key, f"task {key}")
            others = [known[str(f.key)] for f in futures if beside and f.key != key and f.status != "finished"]
            more = f" and {len(others) - NAMES_SHOWN} more" if len(others) > NAMES_SHOWN else ""
            return f"{text} (or, beside it, {', '.join(others[:NAMES_SHOWN])}{more})" if others else text

        def held() -> list[str]:
            with self._keeping:
                return self._held.keys()

        arrivals = Arrivals()
        try:
            # What the tasks are given is let go of by no other thread before they are submitted.
            with self._keeping:
                wanted = build(work)
                given = self.planned(work.name).items if items is None else items
                known |= self._held.names | work.described
                before = time.perf_counter()
                futures += self._tasks.run(work.graph, wanted)
                self._spent.beside(work.name)
                left_out, restrictions = self._left_out, self._restrictions
            watched = Watched(
                work.name,
                futures,
                list(work.graph),
                held=held,
                given=lambda: {str(item.key): names([item]) for item in given if isinstance(item, Future)},
                places=set(work.graph.places.values()),
                left_out=left_out,
                restrictions=restrictions,
                tell=None if (tell := listener()) is None else partial(tell, work.name),
            )
            results = self._watchdog.collect(watched, describe, arrivals)
            for result in results:
                if isinstance(result, tasks.Refused):
                    raise result.error
        except BaseException:
            self._looked = float("-inf")
            self._cancel(futures)
            release(futures)
            raise
        with self._keeping:
            self._account(work.name, begun, before, arrivals, results, futures)
        return [result.value for result in results]

    def _account(
        self, name: str, begun: float, before: float, arrivals: Arrivals, results: list[Any], futures: list[Any]
    ) -> None:
        """Note the seconds and bytes of a pass, and let go of its results, of large ones now."""
        now = time.perf_counter()
        size = sum(nbytes_of(result.value) for result in results)
        self._bytes_received += size
        self._sizes.note(name, size, len(results))
        kernels = max((result.kernels for result in results), default=0.0)
        network = max((result.network for result in results), default=0.0) + arrivals.seconds
        self.seconds.add(before - begun, now - before, kernels, network)
        self._spent.add(name, futures, size, now - before)
        self._direct.note(name, now - before, size)

    # -- tasks and their end -----------------------------------------------------------------------------------------

    def _cancel(self, futures: Sequence[Any]) -> None:
        # The cluster may be what failed, so nothing here may wait long or hide the first error.
        mine: list[Any] = [f for f in futures if isinstance(f, Future) and f.status != "cancelled"]
        if not mine:
            return
        with suppress(TimeoutError, OSError, ClusterError):
            self._watchdog.questions.ask(lambda: self.client.cancel(mine, asynchronous=True, force=True), 2.0)

    def _let_go(self) -> None:
        self._direct.forget()
        self._spent.release()
        self._held.release()

    def close(self) -> None:
        """Release all tasks of this engine and make the workers forget its runs, as far as they can be reached."""
        if self._closed:
            return
        super().close()
        self._let_go()
        if self.client.status != "running" or not self._runs:
            return
        forgets: list[Future[Any]] = []
        self._tasks.confined = None
        # An error here would hide that of the fit; what is not forgotten now is pushed out by the next run.
        with suppress(TimeoutError, OSError, ClusterError):
            present = set(self._watchdog.questions.ask(self.client.scheduler.ncores_running, 2.0))
            for i, address in enumerate(sorted(present - self._watchdog.silent)):
                key = f"dboost-close-{self._token}-{i}"
                forgets.append(self._tasks.submit(tasks.forget_task, sorted(self._runs), key=key, address=address))
            self._watchdog.questions.ask(lambda: self.client.gather(forgets, errors="skip", asynchronous=True), 2.0)
        release(forgets)


def _key_or_value(held: Any) -> Any:
    """The key of a task of Dask in place of its future; anything else as it is."""
    return str(held.key) if isinstance(held, Future) else held
