"""All workers gone at once, silent workers, clusters that start empty: undisturbed bits, or one clear error in time.

Each test names what Dask does by itself. Processes that are killed or stopped here were started here.
"""

from __future__ import annotations

import os
import signal
import time
import warnings

import pytest
from distributed import Client

from dboost.engine.dask.cluster import EmbeddedCluster, embedded_cluster
from dboost.engine.dask.engine import DaskEngine
from dboost.errors import ClusterError, DboostWarning
from tests.engine import leaves
from tests.engine.conftest import ROWS, pids, same_bits, scheduler_keys, struck, undisturbed, wait_until

pytestmark = pytest.mark.timeout(60)


@pytest.fixture(scope="module")
def lonely(processes):
    """A cluster of one worker, which its nanny replaces.

    It is opened after the shared cluster, and so closed before it: each puts Dask's configuration back as it was.
    """
    with (
        embedded_cluster(1, memory_limit="512 MiB") as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture
def one_process(lonely):
    """The same with its worker alive before, and nothing left behind after."""
    wait_until(lambda: len(lonely.nthreads()) == 1)
    yield lonely
    wait_until(lambda: scheduler_keys(lonely) == [])


@pytest.mark.parametrize("blocks", ["described", pytest.param("in memory", marks=pytest.mark.full)])
def test_the_only_worker_killed_in_a_pass_is_replaced_and_the_bits_stay(one_process, tmp_path, blocks):
    # A task with workers=[dead address], allow_other_workers=True stays in Dask's state `no-worker` for ever.
    marks = tmp_path / "marks"
    expected = undisturbed(leaves.slow, 0.0, str(tmp_path / "other"))
    [(address, pid)] = pids(one_process).items()
    specs, rows = leaves.make_specs(ROWS)
    with DaskEngine(one_process) as engine:
        engine.set_plan(specs if blocks == "described" else [spec.load() for spec in specs], rows, "run")
        engine.map_reduce(leaves.plain, 1.0, name="plain")
        start = time.monotonic()
        with (
            struck(marks.exists, lambda: [pid]),
            pytest.warns(DboostWarning, match=f"submitted again: worker {address} is gone"),
        ):
            assert same_bits(engine.map_reduce(leaves.slow, 0.1, str(marks), name="slow"), expected)
        assert time.monotonic() - start < 15
        assert same_bits(engine.map_reduce(leaves.plain, 1.0, name="plain"), undisturbed(leaves.plain, 1.0))


@pytest.fixture
def patient(two_processes):
    """The shared cluster, whose scheduler gives a task up as late as Dask's does by default."""

    def allow(failures):
        two_processes.run_on_scheduler(lambda dask_scheduler: setattr(dask_scheduler, "allowed_failures", failures))

    allow(3)
    yield two_processes
    allow(1)


@pytest.mark.full
@pytest.mark.filterwarnings("ignore:pass 'slow' is submitted again")
def test_all_workers_killed_at_once_are_replaced_and_the_bits_stay(patient, tmp_path):
    marks = tmp_path / "marks"
    alive = pids(patient)
    with DaskEngine(patient) as engine:
        engine.set_plan(*leaves.make_specs(ROWS), "run")
        with struck(marks.exists, alive.values):
            total = engine.map_reduce(leaves.slow, 0.2, str(marks), name="slow")
        assert same_bits(total, undisturbed(leaves.slow, 0.0, str(tmp_path / "other")))
        assert set(patient.nthreads()).isdisjoint(alive)


@pytest.mark.full
@pytest.mark.filterwarnings("ignore:pass 'poison' is submitted again")
def test_a_partition_that_ends_the_only_worker_each_time_is_one_error(one_process):
    # Dask counts the deaths of a task that it has sent to a worker; here none of its own follows the first.
    with DaskEngine(one_process) as engine:
        engine.set_plan(*leaves.make_specs([5] * 4), "run")
        start = time.monotonic()
        with pytest.raises(ClusterError, match=r"'poison'.*block-3.*4 workers.*memory"):
            engine.map_reduce(leaves.poison, "block-3", name="poison")
        assert time.monotonic() - start < 45


def test_a_silent_worker_is_left_out_until_it_speaks_again(two_processes, tmp_path):
    # worker-ttl lets a stopped worker hold everything up for five minutes.
    marks = tmp_path / "marks"
    address, pid = min(pids(two_processes).items())
    stopped = struck(lambda: marks.exists() and str(pid) in marks.read_text().split(), lambda: [pid], signal.SIGSTOP)
    with DaskEngine(two_processes, silent_timeout=1.5) as engine:
        engine.set_plan([spec.load() for spec in leaves.make_specs(ROWS)[0]], ROWS, "run")
        start = time.monotonic()
        try:
            with stopped, pytest.warns(DboostWarning, match=f"worker {address} showed no sign of life"):
                total = engine.map_reduce(leaves.slow, 0.5, str(marks), name="slow")
            assert same_bits(total, undisturbed(leaves.slow, 0.0, str(tmp_path / "other")))
            assert time.monotonic() - start < 15
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                for _ in range(3):
                    found = engine.map_reduce(leaves.plain, 1.0, name="plain")
                    assert same_bits(found, undisturbed(leaves.plain, 1.0))
                assert engine.n_workers == 1
                assert len(engine.map(leaves.describe, leaves.make_specs(ROWS)[0], "!", name="map")) == len(ROWS)
        finally:
            os.kill(pid, signal.SIGCONT)
        wait_until(lambda: engine.n_workers == 2)
        assert same_bits(engine.map_reduce(leaves.plain, 1.0, name="plain"), undisturbed(leaves.plain, 1.0))


@pytest.mark.filterwarnings("ignore:pass 'slow' is submitted again")
def test_the_only_worker_silent_is_one_error_in_time(one_process, tmp_path):
    marks = tmp_path / "marks"
    [(address, pid)] = pids(one_process).items()
    stopped = struck(marks.exists, lambda: [pid], signal.SIGSTOP)
    with DaskEngine(one_process, silent_timeout=1.5, no_worker_timeout=2) as engine:
        engine.set_plan(*leaves.make_specs(ROWS), "run")
        start = time.monotonic()
        try:
            with stopped, pytest.raises(ClusterError, match=f"no worker that answers for 2 s.*{address}"):
                engine.map_reduce(leaves.slow, 0.3, str(marks), name="slow")
            assert time.monotonic() - start < 15
        finally:
            os.kill(pid, signal.SIGCONT)


@pytest.mark.filterwarnings("ignore:pass 'plain' is submitted again")
def test_blocks_that_lie_on_a_silent_worker_only_are_one_error_in_time(two_processes):
    address, pid = min(pids(two_processes).items())
    blocks = [
        two_processes.submit(leaves.make_partition, f"block-{i}", 5, key=f"source-{i}", workers=[address])
        for i in range(4)
    ]
    wait_until(lambda: all(block.done() for block in blocks))
    with DaskEngine(two_processes, silent_timeout=1.5, no_worker_timeout=2) as engine:
        engine.set_plan(blocks, [5] * 4, "run")
        os.kill(pid, signal.SIGSTOP)
        try:
            start = time.monotonic()
            with pytest.raises(ClusterError, match=rf"partition source-\d lies on worker {address} only"):
                engine.map_reduce(leaves.plain, 1.0, name="plain")
            assert time.monotonic() - start < 15
        finally:
            os.kill(pid, signal.SIGCONT)


def test_a_cluster_that_adapts_from_no_worker_starts_one():
    # The engine waited for a worker before it submitted anything, and the cluster for tasks before it started any.
    with EmbeddedCluster(
        n_workers=0, threads_per_worker=1, memory_limit=2**29, host="127.0.0.1", dashboard_address="127.0.0.1:0"
    ) as cluster:
        cluster.adapt(minimum=0, maximum=1, interval="200 ms")
        with Client(cluster, set_as_default=False) as client:
            start = time.monotonic()
            with DaskEngine(client, no_worker_timeout=20) as engine:
                engine.set_plan(*leaves.make_specs(ROWS), "run")
                assert same_bits(engine.map_reduce(leaves.plain, 1.0, name="plain"), undisturbed(leaves.plain, 1.0))
            assert time.monotonic() - start < 20
            wait_until(lambda: scheduler_keys(client) == [])
