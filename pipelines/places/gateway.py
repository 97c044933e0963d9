"""Kind "gateway": a cluster that a Dask Gateway makes, whose address and login are those of its own settings."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dboost.interop.extras import imported

from . import driver
from .made import client_of
from .place import Request


class Gateway:
    """A cluster of a Dask Gateway; it is encrypted by the gateway itself."""

    apart = False

    def check(self, request: Request) -> None:
        """A number of workers is needed."""
        request.number()

    @contextlib.contextmanager
    def cluster(self, request: Request) -> Iterator[Any]:
        """A new cluster of the gateway."""
        gateway = imported("dask_gateway", "gateway")
        options = dict(request.options)
        address = options.pop("address", None)

        def make() -> Any:
            return gateway.Gateway(address).new_cluster(shutdown_on_close=True, **options)

        with client_of("gateway", make, request.number()) as client:
            yield client

    def shown(self, request: Request, folder: Path) -> str:
        """The command of the run, and what the gateway is asked for."""
        return f"{shlex.join(driver.command(folder))}\n# {request.number()} workers of the gateway, {request.options}"

    start = staticmethod(lambda request, folder: driver.start(folder))
    stop = staticmethod(driver.stop)
