"""An engine whose partitions are those of another, seen in another way: without some rows, or less a number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Self, TypeVar

from dboost.engine.base import Engine, Finish, FinishArgs, Leaf, Step
from dboost.engine.seconds import Seconds
from dboost.partition import Partition
from dboost.passes import views
from dboost.passes.views import View

T = TypeVar("T")
S = TypeVar("S")


class EngineView:
    """Run passes on another engine, over its partitions as they are seen in some way.

    Parameters
    ----------
    engine : Engine
        Its plan is set. It stays open when this one is done with, and other fits may use it meanwhile.
    view : View
        The way.
    """

    def __init__(self, engine: Engine, view: View) -> None:
        self._engine = engine
        self._view = view

    @property
    def n_workers(self) -> int:
        """As of the other engine."""
        return self._engine.n_workers

    @property
    def bytes_moved(self) -> int:
        """As of the other engine."""
        return self._engine.bytes_moved

    @property
    def seconds(self) -> Seconds:
        """As of the other engine."""
        return self._engine.seconds

    def set_plan(self, items: Sequence[Any], rows: Sequence[int], run_id: str) -> None:
        """Keep the plan of the other engine: it is its partitions that are seen."""

    def label(self, *words: str) -> None:
        """As ``Engine.label``."""
        self._engine.label(*words)

    def resident_partitions(self) -> tuple[Partition, ...] | None:
        """None: the partitions of the other engine are not seen as they lie there."""
        return None

    def in_this_process(self) -> AbstractContextManager[Engine]:
        """As ``Engine.in_this_process``: what is sampled by a pass of this engine was seen in its way already."""
        return self._engine.in_this_process()

    def map(self, fn: Callable[..., T], items: Sequence[Any], *args: Any, name: str) -> list[T]:
        """As ``Engine.map``."""
        return self._engine.map(fn, items, *args, name=name)

    def on_driver(self, fn: Callable[[S], T], items: Sequence[S]) -> list[T]:
        """As ``Engine.on_driver``."""
        return self._engine.on_driver(fn, items)

    def run_in_background(self, fn: Callable[[], T]) -> Callable[[], T]:
        """As ``Engine.run_in_background``."""
        return self._engine.run_in_background(fn)

    def map_reduce(
        self,
        leaf: Leaf,
        *args: Any,
        name: str,
        shards: Sequence[Any] | None = None,
        finish: Finish | None = None,
        finish_args: FinishArgs | None = None,
    ) -> Any:
        """As ``Engine.map_reduce``, over the partitions as they are seen."""
        seeing = views.through if shards is None else views.shard_through
        return self._engine.map_reduce(
            seeing, self._view, leaf, *args, name=name, shards=shards, finish=finish, finish_args=finish_args
        )

    def scan(self, step: Step, state: Any, *args: Any, name: str) -> Any:
        """As ``Engine.scan``, through the partitions as they are seen."""
        return self._engine.scan(views.step_through, state, self._view, step, *args, name=name)

    def close(self) -> None:
        """Do nothing: the other engine belongs to whom opened it."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
