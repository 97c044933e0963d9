"""What the caller asks of workers by ``dask.annotate(resources=..., workers=...)`` around a fit.

Covers: reading it, which workers meet it, and its words for an error. Does not cover: placing tasks.

Dask does not refuse what no worker offers: such a task waits for ever. With ``allow_other_workers``, which the engine
sets so that no task waits for a dead worker, Dask drops the caller's resources as well. So the engine reads them itself
and gives its tasks to workers that meet them only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Restrictions:
    """What a worker must offer."""

    resources: tuple[tuple[str, float], ...] = ()  # Name and least amount of each resource.
    workers: tuple[str, ...] = ()  # Addresses, names or hosts, of which a worker has one; empty for any.
    others: bool = False  # Other workers may be used where none of these is there.

    def __bool__(self) -> bool:
        return bool(self.resources or self.workers)

    def allowed(self, workers: Mapping[str, Mapping[str, Any]]) -> set[str]:
        """Return the addresses of those workers that meet the restrictions.

        `workers`: what the scheduler says of each: ``resources``, ``name``, ``host``.
        """
        able = {
            address
            for address, worker in workers.items()
            if all((worker.get("resources") or {}).get(name, 0) >= amount for name, amount in self.resources)
        }
        named = {address for address in able if self._names(address, workers[address])} if self.workers else able
        return named or (able if self.others else set())

    def _names(self, address: str, worker: Mapping[str, Any]) -> bool:
        known = {address, address.rpartition("://")[2], str(worker.get("name")), str(worker.get("host"))}
        return not known.isdisjoint(self.workers)

    def words(self) -> str:
        """Return the annotation as the caller wrote it, more or less."""
        parts = [f"resources={dict(self.resources)}"] if self.resources else []
        parts += [f"workers={list(self.workers)}"] if self.workers else []
        return f"dask.annotate({', '.join(parts)})"


def restrictions_here() -> Restrictions:
    """Return the restrictions that hold where this is called."""
    import dask

    found = dask.get_annotations()
    workers = found.get("workers") or ()
    if callable(workers):
        # A function of the task's key can say nothing of tasks whose keys the caller does not know.
        workers = ()
    elif not isinstance(workers, list | tuple | set | frozenset):
        workers = (workers,)
    resources = found.get("resources") or {}
    return Restrictions(
        tuple(sorted(resources.items())) if isinstance(resources, Mapping) else (),
        tuple(sorted(str(worker) for worker in workers)),
        bool(found.get("allow_other_workers")),
    )
