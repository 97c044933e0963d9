"""Which engine a fit runs on.

Covers: ``open_engine``.
Does not cover: starting a cluster (``cluster``).
"""

from __future__ import annotations

import sys
from typing import Any

from dboost.engine.base import Engine
from dboost.engine.local import LocalEngine


def current_client() -> Any:
    """Return the current Dask client, or None. Dask is not imported for it: without Dask there is no client."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    try:
        return distributed.Client.current()
    except ValueError:
        return None


def open_engine(client: Any = None, distributed_input: bool = False, **options: Any) -> Engine:
    """Open the engine for a fit.

    Parameters
    ----------
    client : distributed.Client, optional
        Use this one, whatever the input is.
    distributed_input : bool
        The input is a Dask collection or a Parquet data set: use the current client, if there is one.
    options
        Options of `DaskEngine` (``no_worker_timeout``, ``stall_timeout``, ``retries``, ...); without meaning
        in-process, where no worker can be lost.

    Returns
    -------
    DaskEngine or LocalEngine

    Raises
    ------
    UsageError
        The client is no Dask client, or an asynchronous one.
    ClusterError
        The cluster cannot be used.
    """
    if client is None and distributed_input:
        client = current_client()
    if client is None:
        return LocalEngine()
    from dboost.engine.dask.engine import DaskEngine

    return DaskEngine(client, **options)
