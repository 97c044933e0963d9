"""An engine whose partitions are those of another, with some columns less their centres."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from dboost import centring
from dboost.centring import Centres
from dboost.partition import Partition


class CentredEngine:
    """An engine that sees the partitions of another less their centres.

    Parameters
    ----------
    engine : Engine
        Its plan is set. It stays open when this one is done with, and other fits may use it meanwhile.
    centres : Centres
        What is taken off the stored columns.

    Attributes
    ----------
    centres : Centres
        The same, with the partitions made where they lie in this process.
    """

    def __init__(self, engine: Any, centres: Centres) -> None:
        self._engine = engine
        there: tuple[Partition, ...] | None = engine.at_hand()
        made = engine.on_driver(centres.made_of, there) if there else []
        self.centres = replace(centres, made={part.key: part for part in made})

    @property
    def n_workers(self) -> int:
        """As of the other engine."""
        return int(self._engine.n_workers)

    @property
    def bytes_moved(self) -> int:
        """As of the other engine."""
        return int(self._engine.bytes_moved)

    @property
    def seconds(self) -> Any:
        """As of the other engine."""
        return self._engine.seconds

    def set_plan(self, items: Sequence[Any], rows: Sequence[int], run_id: str) -> None:
        """Keep the plan of the other engine: the centres are those of its columns."""

    def at_hand(self) -> tuple[Partition, ...] | None:
        """The partitions less their centres, where those of the other engine lie in this process."""
        return tuple(self.centres.made.values()) or None

    def here(self) -> AbstractContextManager[Any]:
        """As ``Engine.here``: what is sampled is less its centres already."""
        found: AbstractContextManager[Any] = self._engine.here()
        return found

    def map(self, fn: Callable[..., Any], items: Sequence[Any], *args: Any, name: str) -> list[Any]:
        """As ``Engine.map``."""
        return list(self._engine.map(fn, items, *args, name=name))

    def on_driver(self, fn: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
        """As ``Engine.on_driver``."""
        return list(self._engine.on_driver(fn, items))

    def aside(self, fn: Callable[[], Any]) -> Callable[[], Any]:
        """As ``Engine.aside``."""
        found: Callable[[], Any] = self._engine.aside(fn)
        return found

    def map_reduce(self, leaf: Any, *args: Any, shards: Sequence[Any] | None = None, **kwargs: Any) -> Any:
        """As ``Engine.map_reduce``, over the partitions less their centres."""
        if shards is None:
            return self._engine.map_reduce(centring.centred, self.centres, leaf, *args, **kwargs)
        return self._engine.map_reduce(centring.centred_shard, self.centres, leaf, *args, shards=shards, **kwargs)

    def scan(self, step: Any, state: Any, *args: Any, name: str) -> Any:
        """As ``Engine.scan``, through the partitions less their centres."""
        return self._engine.scan(centring.centred_step, state, self.centres, step, *args, name=name)

    def close(self) -> None:
        """Do nothing: the other engine belongs to whom opened it."""
