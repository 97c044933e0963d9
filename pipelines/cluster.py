"""Where a command runs: threads of this process, an embedded cluster, or a scheduler elsewhere.

Covers: choosing between them, connecting under a timeout, closing what was opened here. Does not cover: how the
embedded cluster is sized and guarded (``dboost.engine.cluster``).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

from dboost.errors import ClusterError

from .config import ClusterSettings
from .console import Console

# Seconds for taking leave of a scheduler that has not answered.
CLOSE_SECONDS = 1.0
ADDRESS_VARIABLE = "DASK_SCHEDULER_ADDRESS"


@contextlib.contextmanager
def connect(settings: ClusterSettings, console: Console) -> Iterator[Any]:
    """Yield a Dask client, or None for threads of this process (``workers = 0``); closes what was opened here.

    Raises
    ------
    ClusterError
        When the scheduler does not answer within ``connect_timeout`` seconds.
    """
    address = settings.scheduler or os.environ.get(ADDRESS_VARIABLE)
    if settings.workers == 0 and not settings.scheduler:
        yield None
        return
    with contextlib.ExitStack() as opened:
        with console.stage("cluster"):
            client = opened.enter_context(
                _remote(address, settings.connect_timeout) if address else _embedded(settings)
            )
        threads = client.nthreads()
        console.say(f"{len(threads)} workers, {sum(threads.values())} threads; {address or 'in this machine'}")
        yield client


@contextlib.contextmanager
def _embedded(settings: ClusterSettings) -> Iterator[Any]:
    from dboost.engine.cluster import embedded_cluster

    with (
        embedded_cluster(n_workers=settings.workers, memory_limit=settings.memory_limit) as cluster,
        cluster.get_client() as client,
    ):
        yield client


@contextlib.contextmanager
def _remote(address: str, timeout: float) -> Iterator[Any]:
    try:
        client = _connected(address, timeout)
    except (OSError, TimeoutError, ValueError) as error:
        raise ClusterError(
            f"no Dask scheduler answers at {address} within {timeout:g} s ({type(error).__name__})",
            hint="check the address and that the scheduler runs, or leave out --scheduler",
        ) from error
    try:
        yield client
    finally:
        # The cluster is somebody else's: only our connection is closed.
        client.close(timeout=5)


def _connected(address: str, timeout: float) -> Any:
    """A client of a scheduler; after an error or an interrupt nothing of it is left.

    A client that was not closed closes itself when Python ends, and then waits for a thread that has ended already.
    """
    from distributed import Client

    client = Client.__new__(Client)
    try:
        client.__init__(address, timeout=timeout, set_as_default=False)
    except BaseException:
        if getattr(client, "status", "closed") != "closed":
            with contextlib.suppress(Exception):
                client.close(timeout=CLOSE_SECONDS)
            client.status = "closed"
        raise
    return client


def engine_on(client: Any) -> Any:
    """An engine on a client, or on the threads of this process; use it as a context manager."""
    if client is None:
        from dboost.engine.local import LocalEngine

        return LocalEngine()
    from dboost.engine.dask import DaskEngine

    return DaskEngine(client)
