"""Ways to see a partition: without some rows or columns, with other weights or labels, or less a number.

Covers: what such a way is (``View``), the leaves that let any other leaf see partitions so, and memos whose values are
kept apart. Does not cover: the ways themselves (``folds``, ``subsamples``, ``support``, ``offsets``, ``centring``), or
the engine that runs every pass through one (``dboost.problem.engine_view``).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Protocol

from dboost.partition import Sums


class View(Protocol):
    """A way to see partitions; it travels with every pass."""

    @property
    def lane(self) -> int | str | None:
        """What leaves remember of partitions that are seen so is kept apart from the rest by this; None: it is not."""
        ...

    def seen(self, partition: Any, memo: Any) -> Any:
        """A partition as it is seen: one itself, or what stands for it."""
        ...


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
        """As of the other memo."""
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


def through(partition: Any, memo: Any, view: View, leaf: Any, *args: Any) -> Sums:
    """What `leaf` says of a partition as it is seen."""
    sums: Sums = leaf(view.seen(partition, memo), _apart(memo, view), *args)
    return sums


def shard_through(partition: Any, memo: Any, shard: Any, view: View, leaf: Any, *args: Any) -> Sums:
    """As `through`, for a leaf with shards."""
    sums: Sums = leaf(view.seen(partition, memo), _apart(memo, view), shard, *args)
    return sums


def step_through(partition: Any, state: Any, view: View, step: Any, *args: Any) -> Any:
    """One step of a scan (``Engine.scan``), which has no memo, past a partition as it is seen."""
    return step(view.seen(partition, NoMemo()), state, *args)


def _apart(memo: Any, view: View) -> Any:
    return memo if view.lane is None else LaneMemo(memo, view.lane)
