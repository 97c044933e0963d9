"""Where a command runs: threads of this process, an embedded cluster, or a scheduler elsewhere.

Covers: choosing between them, connecting under a timeout, closing what was opened here. Does not cover: how the
embedded cluster is sized and guarded (``dboost.engine.cluster``).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

from dboost.errors import ClusterError, UsageError

from .config import ClusterSettings
from .console import Console

ADDRESS_VARIABLE = "DASK_SCHEDULER_ADDRESS"


@contextlib.contextmanager
def connect(settings: ClusterSettings, console: Console) -> Iterator[Any]:
    """Yield a Dask client, or None for threads of this process (``workers = 0``); closes what was opened here.

    Raises
    ------
    UsageError
        For an address with a user in it, which Dask does not take.
    ClusterError
        When the scheduler does not answer within ``connect_timeout`` seconds.
    """
    address = settings.scheduler or os.environ.get(ADDRESS_VARIABLE)
    if settings.workers == 0 and not settings.scheduler:
        yield None
        return
    if address and "://" not in address:
        # Dask takes it so, and only in a whole address can a password be told from a host.
        address = f"tcp://{address}"
    if address and "@" in address:
        # Dask's own refusal, some seconds later, repeats the address with what stands before the @.
        raise UsageError(f"the address of the scheduler names a user: {address}", hint="leave out what is before the @")
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
    from distributed import Client

    try:
        client = Client(address, timeout=timeout, set_as_default=False)
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


def engine_on(client: Any) -> Any:
    """An engine on a client, or on the threads of this process; use it as a context manager."""
    if client is None:
        from dboost.engine.local import LocalEngine

        return LocalEngine()
    from dboost.engine.dask import DaskEngine

    return DaskEngine(client)
