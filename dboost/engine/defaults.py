"""What most engines share: all members of ``Engine`` but the sums.

Covers: ``EngineDefaults``, from which a new engine is made by giving it `map_reduce`.
Does not cover: ``LocalEngine``, which does here what the defaults ask of it, or how a fit finds an engine (``select``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Self, TypeVar

from dboost.engine.base import EnginePlan, Finish, FinishArgs, Leaf, Step, View
from dboost.engine.local import LocalEngine
from dboost.engine.seconds import Seconds
from dboost.engine.views import EngineView
from dboost.errors import UsageError
from dboost.partition import Partition

T = TypeVar("T")
S = TypeVar("S")


class EngineDefaults(ABC):
    """An engine that sums somewhere else, and does all other work on the threads of this process.

    A subclass gives `map_reduce`. It may replace any other member by a faster one, for example `map` by one that runs
    where the partitions are.

    Parameters
    ----------
    n_threads : int, optional
        Threads of this process that the driver's own work may use (default: the cores this process may use).
    """

    def __init__(self, n_threads: int | None = None) -> None:
        self._driver = LocalEngine(n_threads)
        self._plan: EnginePlan | None = None

    @property
    def n_workers(self) -> int:
        """One: this process."""
        return 1

    @property
    def bytes_moved(self) -> int:
        """None moved."""
        return 0

    @property
    def seconds(self) -> Seconds:
        """Seconds of `map` and `scan`; an engine adds those of its passes."""
        return self._driver.seconds

    def set_plan(self, items: Sequence[Any], rows: Sequence[int], run_id: str) -> None:
        """Name the partitions that `map_reduce` sums over."""
        self._plan = EnginePlan(tuple(items), tuple(int(r) for r in rows), run_id)
        self._driver.set_plan(items, rows, run_id)

    def planned(self, name: str) -> EnginePlan:
        """The plan of the pass `name`; UsageError where no plan was set."""
        if self._plan is None:
            raise UsageError(f"pass {name!r} was started before set_plan named the partitions")
        return self._plan

    def label(self, *words: str) -> None:
        """Hand it to the threads of this process, which nobody watches; see `Engine.label`."""
        self._driver.label(*words)

    def through(self, view: View, *words: str) -> EngineView:
        """The same partitions, seen in another way; see `Engine.through`."""
        return EngineView(self, view, words)

    def resident_partitions(self) -> tuple[Partition, ...] | None:
        """None: callers make no use of partitions that lie in this process; see `Engine.resident_partitions`."""
        return None

    def in_this_process(self) -> LocalEngine:
        """An engine on the threads of this process; see `Engine.in_this_process`."""
        return LocalEngine(self._driver.n_threads)

    def map(self, fn: Callable[..., T], items: Sequence[Any], *args: Any, name: str) -> list[T]:
        """Return ``[fn(item, *args) for item in items]``, computed in this process; see `Engine.map`."""
        return self._driver.map(fn, items, *args, name=name)

    def on_driver(self, fn: Callable[[S], T], items: Sequence[S]) -> list[T]:
        """Return ``[fn(item) for item in items]``; see `Engine.on_driver`."""
        return self._driver.on_driver(fn, items)

    def run_in_background(self, fn: Callable[[], T]) -> Callable[[], T]:
        """Begin ``fn()`` on a thread of this process; see `Engine.run_in_background`."""
        return self._driver.run_in_background(fn)

    @abstractmethod
    def map_reduce(
        self,
        leaf: Leaf,
        *args: Any,
        name: str,
        shards: Sequence[Any] | None = None,
        finish: Finish | None = None,
        finish_args: FinishArgs | None = None,
    ) -> Any:
        """Sum `leaf` over the partitions of the plan along the fixed tree; see `Engine.map_reduce`."""

    def scan(self, step: Step, state: Any, *args: Any, name: str) -> Any:
        """Carry `state` through the partitions, which come to this process for it; see `Engine.scan`."""
        return self._driver.scan(step, state, *args, name=name)

    def close(self) -> None:
        """Stop the threads of the driver."""
        self._plan = None
        self._driver.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
