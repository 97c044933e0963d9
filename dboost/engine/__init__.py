"""Where functions run: in this process on threads, or on a Dask cluster.

``base``      what the rest of dboost may rely on: ``Engine.map``, ``Engine.map_reduce``, ``set_plan``, ``close``
``defaults``  what most engines share: all but the sums
``views``     ``Engine.through``: the partitions of another engine, without some rows or columns, or less a number
``select``    ``ENGINES``, the engines by client; ``open_engine`` picks one from the client and the kind of input
``tree``      the fixed summation tree, the reason why any number of workers and threads gives the same bits
``memo``      what a process remembers between passes, within a budget of bytes
``bundle``    the work of one process in one pass
``local``     ``LocalEngine``: threads
``dask``      ``DaskEngine``: one plain, retryable task per worker and pass
``direct``    short passes as calls to the workers, past the scheduler's queues
``assignment``, ``submission``  which worker gets which part of the tree; how tasks are handed over
``tasks``     the functions that run on Dask workers
``watchdog``  waiting for tasks without ever waiting for ever
``versions``  the comparison of package versions between client, scheduler and workers
``cluster``   a local cluster sized to the machine, on loopback only
``machine``   cores and memory this process may use

A pass is a pure function of the partitions and of its arguments. No state lives on a worker that cannot be rebuilt:
no actors, no scattered data, no worker attributes. A lost, late or new worker costs a recomputation of its part.

Leaves are compiled functions that release the interpreter lock and use one thread each; the engine gives every
process as many threads as it owns. Leaves keep away from BLAS inside sums, whose threads would both oversubscribe
the cores and make the bits depend on their number. Nothing here imports Dask until a ``DaskEngine`` is opened.
"""

from __future__ import annotations
