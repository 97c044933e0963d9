"""What there is for a training: the processes that work on it, with their memory and threads.

Covers: workers as the scheduler knows them, and this process within its container. Does not cover: what others on the
machine use right now.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import psutil

from dboost.data.budget import workers_of
from dboost.engine.machine import available_cores, available_memory


@dataclass(frozen=True)
class Place:
    """A process that works on partitions."""

    name: str  # address of a worker; of this process "this process"
    memory: int  # bytes it may use
    # Whether it is ended when it takes more. A worker without a limit of its own, and this process, share what the
    # machine has.
    limited: bool
    threads: int


@dataclass(frozen=True)
class Room:
    """All of them."""

    places: tuple[Place, ...]  # the workers; without a cluster this process alone
    cluster: bool
    driver: int  # bytes that this process may use
    swap: int  # bytes of swap of this machine

    @property
    def threads(self) -> int:
        """Threads of all places together."""
        return sum(place.threads for place in self.places)


def room_of(client: Any = None) -> Room:
    """What a Dask client has, or this process where there is none."""
    memory, cores, swap = available_memory(), available_cores(), int(psutil.swap_memory().total)
    if client is None:
        return Room((Place("this process", memory, False, cores),), False, memory, swap)
    places = []
    for address, worker in sorted(workers_of(client).items()):
        threads, limit = int(worker["nthreads"]), int(worker["memory_limit"] or 0)
        # As the engine counts: workers without a limit share the memory of a machine like this one.
        share = memory // max(1, cores // max(1, threads))
        places.append(Place(address, limit or share, limit > 0, threads))
    return Room(tuple(places), True, memory, swap)
