"""Kind "local": workers of this machine."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dboost.engine.machine import refuse_daemonic
from dboost.errors import UsageError

from . import driver
from .place import Request
from .security import security_of


class Local:
    """A cluster inside this machine; see ``dboost.engine.dask.cluster``."""

    apart = False

    def check(self, request: Request) -> None:
        """Hosts and options are of other kinds, and a daemonic process may start no workers."""
        refuse_daemonic()
        if request.hosts:
            raise UsageError("a local cluster has no hosts", hint="leave them out, or take kind ssh")
        if request.options:
            raise UsageError("a local cluster takes no options", hint="workers and memory_limit are all it has")

    @contextlib.contextmanager
    def cluster(self, request: Request) -> Iterator[Any]:
        """The embedded cluster."""
        from dboost.engine.dask.cluster import embedded_cluster

        with (
            embedded_cluster(request.workers, request.memory_limit, security=security_of(request.tls)) as cluster,
            cluster.get_client() as client,
        ):
            yield client

    def shown(self, request: Request, folder: Path) -> str:
        """The command of the run."""
        return shlex.join(driver.command(folder))

    start = staticmethod(lambda request, folder: driver.start(folder))
    stop = staticmethod(driver.stop)
