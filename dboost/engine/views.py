"""An engine whose partitions are those of another, seen in another way: without some rows or columns, or less a number.

Covers: ``EngineView``, the leaves that let any other leaf see partitions so, and memos whose values are kept apart.
Does not cover: the ways themselves (``View``: ``folds``, ``subsamples``, ``support``, ``offsets`` and ``centring`` in
``dboost.passes``).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from dboost.engine.base import Engine, Leaf, Seconds, Step, View
from dboost.partition import Partition, Sums


class LaneMemo:
    """A memo whose values are kept apart from those of other lanes."""

    __slots__ = ("_lane", "_memo")

    def __init__(self, memo: Any, lane: int | str) -> None:
        self._memo = memo
        self._lane = lane

    def get(
        self, kind: str, token: Hashable, build: Callable[[], Any], passing: bool = False, stays: bool = False
    ) -> Any:
        return self._memo.get(f"{kind}-{self._lane}", token, build, passing, stays)

    def forget(self, kind: str) -> None:
        self._memo.forget(f"{kind}-{self._lane}")

    @property
    def budget(self) -> int:
        return int(self._memo.budget)


class NoMemo:
    """What is built once is not worth remembering: a step of a scan comes to a partition once."""

    budget = 0

    def get(
        self, kind: str, token: Hashable, build: Callable[[], Any], passing: bool = False, stays: bool = False
    ) -> Any:
        return build()

    def forget(self, kind: str) -> None:
        pass


def through(view: View, leaf: Leaf, partition: Any, memo: Any, *args: Any) -> Sums:
    """What `leaf`, with shards or without, says of a partition as it is seen."""
    apart = memo if view.lane is None else LaneMemo(memo, view.lane)
    return leaf(view.seen(partition, memo), apart, *args)


def step_through(view: View, step: Step, partition: Any, state: Any, *args: Any) -> Any:
    """One step of a scan (``Engine.scan``), which has no memo, past a partition as it is seen."""
    return step(view.seen(partition, NoMemo()), state, *args)


class _Seen:
    """Partitions of this process as a view shows them, made once."""

    lane = None

    def __init__(self, view: View, engine: Engine, there: Sequence[Partition]) -> None:
        def made(partition: Partition) -> Partition:
            seen = view.seen(partition, NoMemo())
            if isinstance(seen, Partition):
                return seen
            return Partition(seen.indptr, seen.rows, seen.values, seen.y, seen.weight, seen.key, offset=seen.offset)

        self.made = {partition.key: partition for partition in engine.on_driver(made, there)}

    def seen(self, partition: Partition, memo: Any) -> Partition:
        return self.made[partition.key]


class EngineView:
    """Passes on another engine, which stays open, over its partitions as a view shows them (``Engine.through``).

    Where those of the other engine lie in this process, and the view has no lane of its own, so do these.
    """

    def __init__(self, engine: Engine, view: View, words: tuple[str, ...] = ()) -> None:
        self._engine = engine
        self._words = words
        there = engine.resident_partitions() if view.lane is None else None
        seen = None if there is None else _Seen(view, engine, there)
        self._view: View = view if seen is None else seen
        self._there = None if seen is None else tuple(seen.made.values())

    if TYPE_CHECKING:
        n_workers: int
        bytes_moved: int
        seconds: Seconds
        map: Any
        on_driver: Any
        run_in_background: Any

    def __getattr__(self, name: str) -> Any:
        """All that does not go to the partitions is as of the other engine."""
        if name.startswith("__") or name == "_engine":
            raise AttributeError(name)
        return getattr(self._engine, name)

    def set_plan(self, items: Sequence[Any], rows: Sequence[int], run_id: str) -> None:
        """Keep the plan of the other engine: it is its partitions that are seen."""

    def through(self, view: View, *words: str) -> EngineView:
        return EngineView(self, view, words)

    def label(self, *words: str) -> None:
        """As ``Engine.label``, with the words of the view before all."""
        self._engine.label(*self._words, *words)

    def resident_partitions(self) -> tuple[Partition, ...] | None:
        return self._there

    def map_reduce(self, leaf: Leaf, *args: Any, name: str, **how: Any) -> Any:
        return self._engine.map_reduce(partial(through, self._view, leaf), *args, name=name, **how)

    def scan(self, step: Step, state: Any, *args: Any, name: str) -> Any:
        return self._engine.scan(partial(step_through, self._view, step), state, *args, name=name)

    def close(self) -> None:
        """Do nothing: the other engine belongs to whom opened it."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
