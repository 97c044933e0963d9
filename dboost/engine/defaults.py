"""What most engines share: all members of ``Engine`` but the sums.

Covers: ``EngineDefaults``, from which a new engine is made by giving it `map_reduce`.
Does not cover: how a fit finds an engine (``select``).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from dboost.engine.base import Finish, FinishArgs, Leaf
from dboost.engine.local import LocalEngine
from dboost.partition import Partition


class EngineDefaults(LocalEngine, ABC):
    """An engine that sums somewhere else, and does all other work on the threads of this process.

    A subclass gives `map_reduce`. It may replace any other member by a faster one, for example `map` by one that runs
    where the partitions are.

    Parameters
    ----------
    n_threads, memo :
        As of ``LocalEngine``, for the driver's own work.
    """

    def resident_partitions(self) -> tuple[Partition, ...] | None:
        """None: callers make no use of partitions that lie in this process; see `Engine.resident_partitions`."""
        return None

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
