"""An engine whose partitions are those of another, with offsets beside their labels."""

from __future__ import annotations

from dataclasses import replace

from dboost.engine.base import Engine
from dboost.partition import Partition
from dboost.passes.offsets import Offsets
from dboost.problem.engine_view import EngineView


class OffsetEngine(EngineView):
    """An engine that sees the partitions of another with the offsets of their examples.

    Parameters
    ----------
    engine : Engine
        Its plan is set. It stays open when this one is done with, and other fits may use it meanwhile.
    offsets : Offsets
        Which columns hold them.
    """

    def __init__(self, engine: Engine, offsets: Offsets) -> None:
        there = engine.resident_partitions() or ()
        labels = engine.on_driver(offsets.labels, there) if there else []
        made = dict(zip([part.key for part in there], labels, strict=True))
        self._seen: tuple[Partition, ...] = tuple(replace(part, y=made[part.key]) for part in there)
        super().__init__(engine, replace(offsets, made=made))

    def resident_partitions(self) -> tuple[Partition, ...] | None:
        """The partitions with their offsets, where those of the other engine lie in this process."""
        return self._seen or None
