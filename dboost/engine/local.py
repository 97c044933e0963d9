"""The engine that runs in this process, on threads.

Covers: ``LocalEngine``. Never imports Dask.
Does not cover: parallelism inside a leaf; compiled functions release the interpreter lock and use one thread each.
"""

from __future__ import annotations

import os
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, Self, TypeVar

from dboost import interruption
from dboost.engine.base import EnginePlan, Finish, FinishArgs, Leaf, Seconds, Step, View, finishing_args
from dboost.engine.bundle import open_partition, run_bundle, staying
from dboost.engine.helping_threads import Helpers, give_back, helpers
from dboost.engine.machine import available_cores, available_memory
from dboost.engine.memo import SHARE_OF_MEMORY, MemoStore, process_store
from dboost.engine.tree import fold_many
from dboost.engine.views import EngineView
from dboost.errors import UsageError
from dboost.partition import Partition, Sums
from dboost.progress import counted

T = TypeVar("T")
S = TypeVar("S")


class LocalEngine:
    """Run passes in this process.

    `n_threads`: threads that share the partitions (default: the cores this process may use). `memo`: where decoded
    partitions and margins are remembered (default: the store of this process).
    """

    seconds: Seconds

    def __init__(self, n_threads: int | None = None, memo: MemoStore | None = None) -> None:
        if n_threads is not None and n_threads < 1:
            raise UsageError(f"n_threads is {n_threads}; expected a positive number, or None for all cores")
        self.n_threads = _cores(_affinity()) if n_threads is None else int(n_threads)
        self.seconds = Seconds()
        self._store = process_store(lambda: int(SHARE_OF_MEMORY * available_memory())) if memo is None else memo
        self._token = uuid.uuid4().hex[:8]
        self._runs: set[str] = set()
        self._plan: EnginePlan | None = None
        self._helpers: Helpers | None = None
        self._callers, self._counting = 0, threading.Lock()
        self._pid = os.getpid()
        self._closed = False

    @property
    def n_workers(self) -> int:
        return 1

    @property
    def bytes_moved(self) -> int:
        return 0

    @property
    def memory_budget(self) -> int:
        """Bytes of decoded partitions and derived arrays that stay in memory between passes."""
        return self._store.budget

    def set_plan(self, items: Sequence[Any], rows: Sequence[int], run_id: str) -> None:
        self._forget_runs()
        self._plan = EnginePlan(tuple(items), tuple(int(r) for r in rows), f"{run_id}-{self._token}")
        self._runs.add(self._plan.run_id)

    def planned(self, name: str) -> EnginePlan:
        """The plan of the pass `name`; UsageError where no plan was set, or the engine is closed."""
        if self._closed:
            raise UsageError("the engine is closed; open a new one")
        if self._plan is None:
            raise UsageError(f"pass {name!r} was started before set_plan named the partitions")
        return self._plan

    def label(self, *words: str) -> None:
        """Take note of nothing: nobody watches the threads; see `Engine.label`."""

    def through(self, view: View, *words: str) -> EngineView:
        """The same partitions, seen in another way; see `Engine.through`."""
        return EngineView(self, view, words)

    def resident_partitions(self) -> tuple[Partition, ...] | None:
        """The partitions, where the plan holds them and no descriptions of them; see `Engine.resident_partitions`."""
        items = () if self._plan is None else self._plan.items
        return items if items and all(isinstance(item, Partition) for item in items) else None

    def map(self, fn: Callable[..., T], items: Sequence[Any], *args: Any, name: str) -> list[T]:
        start = time.perf_counter()
        fn = counted(fn, name, len(items))
        results: list[T] = self.on_driver(lambda item: fn(item, *args), items)
        self.seconds.kernels += time.perf_counter() - start
        return results

    def on_driver(self, fn: Callable[[S], T], items: Sequence[S]) -> list[T]:
        interruption.check()
        if len(items) == 1 and not self._closed:
            # most work of a small fit is not worth a second thread, nor the ways to share it
            return [fn(items[0])]
        results: list[Any] = [None] * len(items)

        def done(job: int, value: Any) -> None:
            results[job] = value

        jobs = [(i, i + 1) for i in range(len(items))]
        fold_many(
            (0,) * len(items),
            jobs,
            lambda job, i: fn(items[i]),
            _never_merged,
            done,
            self._share_of_threads(),
            self._pool(),
            _stops(),
        )
        return results

    def run_in_background(self, fn: Callable[[], T]) -> Callable[[], T]:
        """Begin ``fn()`` on a thread that helps; with one thread it is done at once. See `Engine.run_in_background`."""
        pool = self._pool()
        if pool is not None:
            return pool.submit(fn).result
        found = fn()
        return lambda: found

    def map_reduce(
        self,
        leaf: Leaf,
        *args: Any,
        name: str,
        shards: Sequence[Any] | None = None,
        finish: Finish | None = None,
        finish_args: FinishArgs | None = None,
    ) -> Any:
        start = time.perf_counter()
        plan = self.planned(name)
        results: list[Any] = [None] * (1 if shards is None else len(shards))

        def done(s: int, node: int, total: Sums) -> None:
            shard = None if shards is None else shards[s]
            results[s] = total if finish is None else finish(total, shard, *finishing_args(finish_args, shard))

        run_bundle(
            plan.items,
            plan.rows,
            [(0, len(plan.rows))],
            leaf,
            args,
            shards,
            done,
            store=self._store,
            run=plan.run_id,
            threads=self._share_of_threads(),
            helpers=self._pool(),
            stop=_stops(),
        )
        self.seconds.kernels += time.perf_counter() - start
        return results[0] if shards is None else results

    def scan(self, step: Step, state: Any, *args: Any, name: str) -> Any:
        start = time.perf_counter()
        plan = self.planned(name)
        for item, stays in zip(plan.items, staying(plan.items, self._store), strict=True):
            interruption.check()
            state = step(open_partition(item, self._store, plan.run_id, stays), state, *args)
        self.seconds.kernels += time.perf_counter() - start
        return state

    @contextmanager
    def one_of_several(self) -> Iterator[None]:
        """A caller beside others, each of whose passes takes no more threads than its share of all.

        A thread that helps two callers mostly waits for the interpreter: ten paths of 50 strengths took 10.1 to 11.1 s
        on two threads, and 8.4 to 8.8 where each of the two that run at a time keeps to its own (2026-12).
        """
        with self._counting:
            self._callers += 1
        try:
            yield
        finally:
            with self._counting:
                self._callers -= 1

    def _share_of_threads(self) -> int:
        """Threads of a pass."""
        return max(1, self.n_threads // max(1, self._callers))

    def close(self) -> None:
        """Let go of the threads, and forget what was remembered for this engine's runs."""
        if self._closed:
            return
        self._closed = True
        self._plan = None
        if self._helpers is not None:
            give_back(self._helpers)
            self._helpers = None
        self._forget_runs()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _forget_runs(self) -> None:
        """Forget what was remembered for all plans so far: passes ask for nothing but what is of the current one."""
        for run in self._runs:
            self._store.drop(run)

    def _pool(self) -> Helpers | None:
        if self._closed:
            raise UsageError("the engine is closed; open a new one")
        if self.n_threads == 1:
            return None
        if self._helpers is None or self._pid != os.getpid():
            # Threads do not survive a fork; a pool inherited from the parent would wait for ever.
            self._pid = os.getpid()
            self._helpers = helpers(self.n_threads - 1)
        return self._helpers


def _affinity() -> tuple[int, ...]:
    """The processors that this process may use, where the system says."""
    return tuple(sorted(os.sched_getaffinity(0))) if hasattr(os, "sched_getaffinity") else ()


@cache
def _cores(_: tuple[int, ...]) -> int:
    """As ``available_cores``, whose files of control groups take longer to read than a round of a small fit."""
    return available_cores()


def _stops() -> Callable[[], bool] | None:
    """What threads ask before each partition: it raises the exception of a request to stop, which they hand on."""
    asked = interruption.current()
    if asked is None:
        return None

    def stop() -> bool:
        asked.check()
        return False

    return stop


def _never_merged(left: Any, right: Any) -> Any:
    raise AssertionError("single leaves have no sibling")
