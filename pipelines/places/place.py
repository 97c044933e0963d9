"""What a kind of cluster has to say of itself.

Covers: ``Place``, and ``Request``, what is asked of it. Does not cover: the kinds (one file each).
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from dboost.errors import UsageError


@dataclass(frozen=True)
class Request:
    """A cluster that is asked for."""

    workers: int | None = None  # how many; None for what the kind takes by itself
    memory_limit: str | None = None  # of each worker, such as "2GiB"
    hosts: tuple[str, ...] = ()  # machines of kind "ssh", the first of which has the scheduler
    tls: str | None = None  # "temporary", or the folder of ca.pem, cert.pem and key.pem
    # Further arguments of the package that makes the cluster, as it names them.
    options: dict[str, Any] = field(default_factory=dict)

    def number(self) -> int:
        """How many workers, where the kind has no number of its own."""
        if not self.workers:
            raise UsageError("how many workers?", hint="give workers, such as 8")
        return self.workers


class Place(Protocol):
    """A kind of cluster."""

    @property
    def apart(self) -> bool:
        """Whether the run's own process is started there too, and not on this machine."""
        ...

    def check(self, request: Request) -> None:
        """Refuse a request that has no meaning here (UsageError), before anything is started."""
        ...

    def cluster(self, request: Request) -> AbstractContextManager[Any]:
        """A client of a new cluster; the cluster is removed at the end."""
        ...

    def shown(self, request: Request, folder: Path) -> str:
        """What a dry run shows: what would be run or sent to make the cluster and to do the run of a folder."""
        ...

    def start(self, request: Request, folder: Path) -> dict[str, Any]:
        """Start the run of a folder, and return what is needed to stop it."""
        ...

    def stop(self, started: dict[str, Any]) -> str:
        """Stop it, as SIGTERM does; returns what was done, in words."""
        ...
