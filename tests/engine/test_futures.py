"""Partitions that live on the cluster already, as for Dask collections."""

from __future__ import annotations

import os
import re
import signal
import warnings
from collections import Counter

import numpy as np
import pytest

from dboost.engine.dask.engine import DaskEngine
from dboost.errors import ClusterError
from dboost.partition import Partition
from tests.engine import leaves
from tests.engine.conftest import ROWS, pids, same_bits, scheduler_keys, undisturbed, wait_until

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def futures(two_processes):
    """Blocks scattered over the workers against the order of the partitions."""
    addresses = sorted(two_processes.nthreads())
    made = [
        two_processes.submit(
            leaves.make_partition,
            f"block-{i}",
            n,
            key=f"source-{i}",
            workers=[addresses[i % 2]],
            allow_other_workers=True,
        )
        for i, n in enumerate(ROWS)
    ]
    yield made
    for future in made:
        future.release()


def blocks_fetched(client):
    """How often each block, or a list of blocks, was fetched by one worker from another."""

    def read(dask_worker):
        return [str(key) for entry in dask_worker.transfer_incoming_log for key in entry["keys"]]

    found = Counter(key for keys in client.run(read).values() for key in keys)
    return Counter({key: n for key, n in found.items() if re.match("source|.*(home|partitions)", key)})


def test_futures_are_items(two_processes, futures):
    expected = undisturbed(leaves.plain, 1.0)
    with DaskEngine(two_processes) as engine:
        engine.set_plan(futures, ROWS, "run")
        before = blocks_fetched(two_processes)
        assert same_bits(engine.map_reduce(leaves.plain, 1.0, name="plain"), expected)
        # Each block has moved once to the worker that sums it, and on from one that stole it while idle.
        moved = blocks_fetched(two_processes) - before
        assert moved and set(moved.values()) == {1}
        for _ in range(2):
            assert same_bits(engine.map_reduce(leaves.plain, 1.0, name="plain"), expected)
        assert blocks_fetched(two_processes) - before == moved
        # as results of tasks, since the scheduler drops mere copies
        assert sum(key.startswith("dboost-home-") for key in scheduler_keys(two_processes)) == len(ROWS)
        assert engine.map(leaves.describe, futures, "!", name="describe") == [f"block-{i}!" for i in range(8)]
    wait_until(lambda: scheduler_keys(two_processes) == [])
    assert all(f.status == "finished" for f in futures), "the engine released what is not its own"


@pytest.mark.full
def test_a_lost_worker_takes_no_future_with_it(two_processes, futures):
    expected = undisturbed(leaves.plain, 1.0)
    with DaskEngine(two_processes) as engine:
        engine.set_plan(futures, ROWS, "run")
        assert same_bits(engine.map_reduce(leaves.plain, 1.0, name="plain"), expected)
        os.kill(sorted(pids(two_processes).values())[0], signal.SIGKILL)
        assert same_bits(engine.map_reduce(leaves.plain, 1.0, name="plain"), expected)
        wait_until(lambda: engine.n_workers == 2)
        assert same_bits(engine.map_reduce(leaves.plain, 1.0, name="plain"), expected)


def test_a_failing_future_surfaces(two_processes):
    broken = two_processes.submit(leaves.make_partition, "block-0", "not a number", key="source-broken")
    with DaskEngine(two_processes) as engine:
        engine.set_plan([broken], [5], "run")
        with pytest.raises(TypeError):
            engine.map_reduce(leaves.plain, 1.0, name="plain")
    broken.release()


def test_lost_scattered_data_is_an_error_and_not_a_wait(two_processes):
    [scattered] = two_processes.scatter([leaves.make_partition("block-0", 5)], workers=[min(pids(two_processes))])
    with DaskEngine(two_processes) as engine:
        engine.set_plan([scattered], [5], "run")
        os.kill(pids(two_processes)[min(pids(two_processes))], signal.SIGKILL)
        wait_until(lambda: scattered.status in ("cancelled", "lost"))
        with pytest.raises(ClusterError, match="cancelled"):
            engine.map_reduce(leaves.plain, 1.0, name="plain")


def test_large_blocks_bring_no_advice(one_worker):
    n = 1_500_000
    block = Partition(
        indptr=np.array([0, n]),
        rows=np.arange(n, dtype=np.int32),
        values=np.ones(n),
        y=np.ones((n, 1), dtype=np.int8),
        weight=np.ones(n),
        key="large",
    )
    with DaskEngine(one_worker) as engine, warnings.catch_warnings():
        warnings.simplefilter("error")
        engine.set_plan([block], [n], "run")
        assert engine.map_reduce(leaves.plain, 1.0, name="plain").add["rows"] == n
        assert engine.bytes_moved >= block.nbytes
    wait_until(lambda: scheduler_keys(one_worker) == [])
