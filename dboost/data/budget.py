"""How much decoded data may stay in memory.

Covers: the budget an engine states, else a part of the memory of the workers, or of this machine or container.
Does not cover: who evicts what (the engine's cache does).
"""

from __future__ import annotations

from collections.abc import Sequence
from inspect import signature
from typing import Any, Protocol, runtime_checkable

from dboost.data.prepared.mapper import Clustered, Mapper
from dboost.engine.machine import available_memory


@runtime_checkable
class Budgeted(Protocol):
    """An engine that states its own budget."""

    @property
    def memory_budget(self) -> int:
        """Bytes of decoded partitions that stay in memory between passes."""
        ...


def memory_budget(engine: Mapper) -> int:
    """Bytes of decoded partitions that fit: 40 % of workers' limits, as a ``Budgeted`` engine states, or half here."""
    if isinstance(engine, Budgeted) and not isinstance(engine, Clustered):
        return engine.memory_budget
    limits = _limits_of(engine)
    return sum(limits) * 2 // 5 if limits else available_memory() // 2


def block_budget(engine: Mapper) -> int:
    """Bytes that one block may have: it is decoded by one worker, beside Arrow's copy of it."""
    limits = _limits_of(engine)
    return most_of_a_block(limits) if limits else memory_budget(engine)


def most_of_a_block(limits: Sequence[int]) -> int:
    """Bytes that one block may have on workers of these limits: any of them may get it."""
    return min(limits) * 2 // 5


def workers_of(client: Any) -> dict[str, dict[str, Any]]:
    """What the scheduler of a Dask client says of every worker, by address."""
    # Newer versions show 5 workers unless told otherwise, older ones show all.
    every = {"n_workers": -1} if "n_workers" in signature(client.scheduler_info).parameters else {}
    workers: dict[str, dict[str, Any]] = client.scheduler_info(**every)["workers"]
    return workers


def _limits_of(engine: Mapper) -> list[int]:
    """Memory limits of the workers, empty without a client or where a worker has none."""
    if not isinstance(engine, Clustered):
        return []
    limits = [int(worker.get("memory_limit") or 0) for worker in workers_of(engine.client).values()]
    return limits if all(limits) else []
