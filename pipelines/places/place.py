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
    """A cluster that is asked for.

    Parameters
    ----------
    workers : int or None
        How many; None for what the kind takes by itself.
    memory_limit : str or None
        Of each worker, such as "2GiB".
    hosts : tuple of str
        Machines of kind "ssh", the first of which has the scheduler.
    tls : str or None
        "temporary", or the folder of ca.pem, cert.pem and key.pem.
    options : dict
        Further arguments of the package that makes the cluster, as it names them.
    """

    workers: int | None = None
    memory_limit: str | None = None
    hosts: tuple[str, ...] = ()
    tls: str | None = None
    options: dict[str, Any] = field(default_factory=dict)

    def number(self) -> int:
        """How many workers, where the kind has no number of its own.

        Raises
        ------
        UsageError
        """
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
        """A client of a new cluster; the cluster is removed at the end.

        Raises
        ------
        UsageError
            The request has no meaning here, or the package that makes such clusters is not installed.
        ClusterError
            It does not come up.
        """
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
