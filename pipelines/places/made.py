"""A client of a cluster that a package has made, and the end of both.

Covers: waiting for the first worker, errors of the package in one line, removing the cluster whatever happens.
Does not cover: which cluster it is.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from dboost.errors import ClusterError, DboostError

# Seconds in which the first worker of a cluster must come; queues of batch systems may take long.
PATIENCE = 3600.0


@contextlib.contextmanager
def client_of(kind: str, make: Callable[[], Any], workers: int, patience: float = PATIENCE) -> Iterator[Any]:
    """A client of a new cluster with its first worker.

    `workers`: how many it is told to have; 0 where `make` has said so.
    """
    from distributed import Client

    with contextlib.ExitStack() as opened:
        try:
            cluster = opened.enter_context(contextlib.closing(make()))
            if workers:
                cluster.scale(workers)
            client = opened.enter_context(Client(cluster, set_as_default=False))
            # a fit begins with what there is, and takes workers as they come
            client.wait_for_workers(1, timeout=patience)
        except DboostError:
            raise
        except Exception as error:
            words = " ".join(str(error).split()) or type(error).__name__
            raise ClusterError(f"the {kind} cluster did not come up: {words[:300]}") from error
        yield client
