"""Which engine a fit runs on.

Covers: ``ENGINES``, the engines by the kind of client they run on, and ``open_engine``.
Does not cover: starting a cluster (``cluster``).
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from dboost.engine.base import Engine
from dboost.engine.local import LocalEngine
from dboost.errors import UsageError, type_name

# class of a client -> module and class of the engine that runs on such a client, and is made from it. Both are named
# and not imported: neither is loaded before a fit is given such a client.
ENGINES: dict[str, tuple[str, str]] = {
    "distributed.client.Client": ("dboost.engine.dask.engine", "DaskEngine"),
}


def engine_class(client: Any) -> Any:
    """The class of the engine for a client: that of its own class in ``ENGINES``, or else of the nearest base.

    Raises UsageError: no engine runs on such a client.
    """
    for cls in type(client).__mro__:
        found = ENGINES.get(f"{cls.__module__}.{cls.__qualname__}")
        if found is not None:
            return getattr(import_module(found[0]), found[1])
    raise UsageError(
        f"client is {type_name(client)}; expected a dask.distributed.Client",
        hint="for an address write Client(address), for a cluster cluster.get_client()",
    )


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

    `client`: use this one, whatever the input is. `distributed_input`: the input is a Dask collection or a Parquet data
    set: use the current client, if there is one. `options`: options of the engine, for example of `DaskEngine`
    (``no_worker_timeout``, ``stall_timeout``, ``retries``, ...); without meaning in-process, where no worker can be
    lost. Raises UsageError: no engine runs on such a client, or it is an asynchronous one. Raises ClusterError: the
    cluster cannot be used.
    """
    if client is None and distributed_input:
        client = current_client()
    if client is None:
        return LocalEngine()
    engine: Engine = engine_class(client)(client, **options)
    return engine
