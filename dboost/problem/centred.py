"""Engines whose partitions are those of another, with some columns, or labels and offsets, less their centres."""

from __future__ import annotations

from dataclasses import replace

from dboost.engine.base import Engine
from dboost.partition import Partition
from dboost.passes.centring import Centres, LabelCentres
from dboost.problem.engine_view import EngineView


class CentredEngine(EngineView):
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

    def __init__(self, engine: Engine, centres: Centres) -> None:
        there = engine.resident_partitions()
        made = engine.on_driver(centres.made_of, there) if there else []
        self.centres = replace(centres, made={part.key: part for part in made})
        super().__init__(engine, self.centres)

    def resident_partitions(self) -> tuple[Partition, ...] | None:
        """The partitions less their centres, where those of the other engine lie in this process."""
        return tuple(self.centres.made.values()) or None


class LabelCentredEngine(EngineView):
    """An engine that sees the partitions of another with labels, and offsets of scores, less their centres.

    Parameters
    ----------
    engine : Engine
        Its plan is set. It stays open when this one is done with, and other fits may use it meanwhile.
    centres : LabelCentres
        What is taken off them.
    """

    def __init__(self, engine: Engine, centres: LabelCentres) -> None:
        there = engine.resident_partitions() or ()
        self._seen: tuple[Partition, ...] = tuple(replace(part, y=centres.of(part)) for part in there)
        super().__init__(engine, replace(centres, made={part.key: part.y for part in self._seen}))

    def resident_partitions(self) -> tuple[Partition, ...] | None:
        """The partitions as they are seen, where those of the other engine lie in this process."""
        return self._seen or None
