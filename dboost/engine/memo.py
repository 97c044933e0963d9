"""What a process remembers between passes: a cache with a byte budget.

Covers: ``MemoStore`` (one per process, shared by all runs in it) and ``Memo``, the view of it that a leaf sees.
Does not cover: what is worth remembering; the passes decide that.

A miss rebuilds the value, so results never depend on what is remembered; a lost worker costs a re-read and nothing
else. Values are shared between threads and passes: they must not be changed after they were built.
"""

from __future__ import annotations

import dataclasses
import sys
from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock
from typing import Any

TOKENS_PER_KIND = 1
"""Values kept per (partition, kind). A fit names a new state whenever it moves, also when it takes a step back: the
value of an older state is never asked for again, and would hold as much memory as the margins of all examples."""

SHARE_OF_MEMORY = 0.4
"""Below the share of its limit (0.6) at which a Dask worker begins to move results to disk, with room for sums."""


def nbytes_of(value: Any) -> int:
    """Return the bytes held by arrays in `value`: arrays, anything with ``nbytes``, containers and dataclasses."""
    nbytes = getattr(value, "nbytes", None)
    if nbytes is not None and hasattr(nbytes, "__index__"):
        return int(nbytes)
    if isinstance(value, tuple | list | set | frozenset):
        return sum(nbytes_of(v) for v in value)
    if isinstance(value, dict):
        return sum(nbytes_of(v) for v in value.values())
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return sum(nbytes_of(getattr(value, f.name)) for f in dataclasses.fields(value))
    if value.__class__.__module__.startswith("scipy.sparse"):
        return sum(nbytes_of(a) for a in vars(value).values())
    return sys.getsizeof(value)


Key = tuple[str, str, str, Hashable]


class MemoStore:
    """A thread-safe cache that drops what was used least recently once it holds more than `budget` bytes.

    `budget`: bytes to hold at most. A value for which there is no room is handed out and not kept.
    """

    def __init__(self, budget: int) -> None:
        self.budget = int(budget)
        self.nbytes = 0
        self._lock = Lock()
        self._values: OrderedDict[Key, tuple[Any, int]] = OrderedDict()
        self._tokens: dict[tuple[str, str, str], list[Hashable]] = {}
        self._building: dict[Key, Lock] = {}
        self._staying: set[Key] = set()
        self._passing: set[Key] = set()

    def __len__(self) -> int:
        return len(self._values)

    def get(
        self,
        run: str,
        key: str,
        kind: str,
        token: Hashable,
        build: Callable[[], Any],
        stays: bool = False,
        passing: bool = False,
    ) -> Any:
        """Return the remembered value, or build and remember it.

        Two threads that want the same value build it once; the second waits for the first. A value that stays is
        dropped only for another run, when there is nothing else to drop; a passing one at the end of the pass.
        """
        full = (run, key, kind, token)
        with self._lock:
            if full in self._values:
                self._values.move_to_end(full)
                return self._values[full][0]
            turn = self._building.setdefault(full, Lock())
        with turn:
            with self._lock:
                if full in self._values:
                    return self._values[full][0]
            try:
                value = build()
                self._put(full, value, stays, passing)
            finally:
                with self._lock:
                    self._building.pop(full, None)
        return value

    def drop(self, run: str) -> int:
        """Forget everything of a run; return the number of values forgotten."""
        with self._lock:
            mine = [full for full in self._values if full[0] == run]
            for full in mine:
                self._remove(full)
        return len(mine)

    def end_pass(self, run: str) -> None:
        """Forget what a run was to remember for one pass."""
        with self._lock:
            for full in [full for full in self._passing if full[0] == run]:
                self._remove(full)

    def forget(self, run: str, key: str, kind: str) -> None:
        """Forget what is remembered of a kind for one partition."""
        with self._lock:
            for token in list(self._tokens.get((run, key, kind), ())):
                self._remove((run, key, kind, token))

    def runs(self) -> set[str]:
        """Return the runs that have something remembered."""
        with self._lock:
            return {full[0] for full in self._values}

    def _put(self, full: Key, value: Any, stays: bool, passing: bool) -> None:
        size = nbytes_of(value)
        run, key, kind, token = full
        with self._lock:
            tokens = self._tokens.get((run, key, kind), [])
            for old in tokens[: len(tokens) + 1 - TOKENS_PER_KIND]:
                self._remove((run, key, kind, old))
            if not self._make_room(run, size):
                return
            self._values[full] = (value, size)
            if stays:
                self._staying.add(full)
            if passing:
                self._passing.add(full)
            self._tokens.setdefault((run, key, kind), []).append(token)
            self.nbytes += size

    def _make_room(self, run: str, size: int) -> bool:
        """Drop what does not stay, and what stays for other runs; whether `size` bytes more then fit.

        What stays for this run is not dropped for another value of it: passes visit partitions in turn, and each would
        be dropped just before it is needed again.
        """
        if self.nbytes + size <= self.budget:
            return True
        kept = sum(self._values[full][1] for full in self._staying if full[0] == run)
        if kept + size > self.budget:
            return False
        loose = [full for full in self._values if full not in self._staying]
        for full in loose + [full for full in self._values if full in self._staying and full[0] != run]:
            if self.nbytes + size <= self.budget:
                break
            self._remove(full)
        return True

    def _remove(self, full: Key) -> None:
        _, size = self._values.pop(full)
        self._staying.discard(full)
        self._passing.discard(full)
        self.nbytes -= size
        group = full[:3]
        self._tokens[group].remove(full[3])
        if not self._tokens[group]:
            del self._tokens[group]


class Memo:
    """The part of the store that belongs to one partition of one run; what a leaf is given.

    `run`: unique id of the run. `key`: key of the partition. `once`: whether the pass comes to the partition only once,
    for all its shards: what it is to remember for the pass is then in this object and goes with it, whatever the budget
    of the store.
    """

    __slots__ = ("_key", "_run", "_store", "_visit")

    def __init__(self, store: MemoStore, run: str, key: str, once: bool = False) -> None:
        self._store = store
        self._run = run
        self._key = key
        self._visit: dict[tuple[str, Hashable], Any] | None = {} if once else None

    @property
    def budget(self) -> int:
        """Bytes that the process remembers at most, for all partitions together."""
        return self._store.budget

    def get(
        self, kind: str, token: Hashable, build: Callable[[], Any], passing: bool = False, stays: bool = False
    ) -> Any:
        """Return the value of `kind` for the state named by `token`; ``build()`` makes it when it is not at hand.

        `kind`: what it is, for example ``"margins"``.
        `token`: names the state the value was computed from. Equal tokens must mean equal values.
        `build`: makes the value. It must be a pure function of the partition and of what `token` names.
        `passing`: whether only the shards of one pass share the value, so that it may go when the pass ends.
        `stays`: whether no other value of the run may displace it.
        """
        if passing and self._visit is not None:
            if (kind, token) not in self._visit:
                self._visit[kind, token] = build()
            return self._visit[kind, token]
        return self._store.get(self._run, self._key, kind, token, build, stays, passing)

    def forget(self, kind: str) -> None:
        """Let go of the value of `kind`, whatever state it is of: the caller knows that no pass will ask for it."""
        self._store.forget(self._run, self._key, kind)


_process_store: MemoStore | None = None
_process_lock = Lock()


def process_store(budget: Callable[[], int]) -> MemoStore:
    """Return the store of this process; the first call sets its budget to ``budget()``."""
    global _process_store
    with _process_lock:
        if _process_store is None:
            _process_store = MemoStore(budget())
        return _process_store
