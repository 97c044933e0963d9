"""Schedulers that freeze, die or lose all their workers: a run ends with one clear error, and in seconds.

Each test names the trap in what Dask does by itself. Processes that are killed here were started here.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from distributed import Client

from dboost.engine.dask.engine import DaskEngine
from dboost.errors import ClusterError, SchedulerLostError
from lab.scheduler_file import address_in
from tests.engine import leaves
from tests.engine.conftest import meanwhile, same_bits, scheduler_keys, struck, undisturbed, wait_until

pytestmark = pytest.mark.timeout(60)

ROOT = str(Path(__file__).parents[2])


def start(*words):
    """Start a scheduler or a worker as a process, on loopback."""
    command = [sys.executable, "-m", "dask", *words, "--host", "127.0.0.1", "--dashboard-address", "127.0.0.1:0"]
    env = dict(os.environ, PYTHONPATH=ROOT)
    return subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@pytest.fixture(scope="module")
def outside_scheduler(tmp_path_factory):
    """A scheduler as a process, and a client; the last test that uses it ends it."""
    address = tmp_path_factory.mktemp("outside") / "scheduler.json"
    scheduler = start("scheduler", "--port", "0", "--scheduler-file", str(address))
    client = None
    try:
        address_in(address)
        client = Client(scheduler_file=str(address), timeout=20, set_as_default=False)
        yield client, scheduler, str(address)
    finally:
        scheduler.kill()
        scheduler.wait()
        if client is not None:
            client.close(timeout=2)


@pytest.fixture
def outside(outside_scheduler):
    """The same with one worker that nobody restarts; yields client, scheduler and worker process."""
    client, scheduler, address = outside_scheduler
    worker = start("worker", "--no-nanny", "--nthreads", "1", "--scheduler-file", address)
    try:
        wait_until(lambda: len(client.nthreads()) == 1, 30)
        yield client, scheduler, worker
    finally:
        worker.kill()
        worker.wait()


@pytest.mark.full
def test_a_frozen_scheduler_ends_the_run(outside, tmp_path, monkeypatch):
    monkeypatch.setattr("dboost.engine.dask.questions.ANSWER_TIMEOUT", 1.0)
    client, scheduler, _ = outside
    marks = tmp_path / "marks"
    engine = DaskEngine(client, no_worker_timeout=2)
    engine.set_plan(*leaves.make_specs([5] * 4), "run")
    start = time.monotonic()
    try:
        with (
            struck(marks.exists, lambda: [scheduler.pid], signal.SIGSTOP),
            pytest.raises(ClusterError, match=r"lost the scheduler.*no answer"),
        ):
            engine.map_reduce(leaves.slow, 0.5, str(marks), name="slow")
        assert time.monotonic() - start < 12
        engine.close()
    finally:
        os.kill(scheduler.pid, signal.SIGCONT)
    wait_until(lambda: scheduler_keys(client) == [])


def test_no_workers_ends_within_the_timeout(outside, tmp_path):
    # no-workers-timeout is for ever by default.
    client, _, worker = outside
    marks = tmp_path / "marks"
    engine = DaskEngine(client, no_worker_timeout=1.5)
    engine.set_plan(*leaves.make_specs([5] * 4), "run")
    assert same_bits(engine.map_reduce(leaves.plain, 1.0, name="plain"), undisturbed(leaves.plain, 1.0, rows=[5] * 4))
    start = time.monotonic()
    killed = struck(marks.exists, lambda: [worker.pid])
    with killed, pytest.raises(ClusterError, match=r"no running worker for 1\.5 s"):
        engine.map_reduce(leaves.slow, 1.0, str(marks), name="slow")
    # And again without any worker from the start.
    with pytest.raises(ClusterError, match=r"no running worker for 1\.5 s"):
        engine.map_reduce(leaves.plain, 1.0, name="plain")
    with pytest.raises(ClusterError, match="no running worker for 1 s"):
        DaskEngine(client, no_worker_timeout=1)
    assert time.monotonic() - start < 20
    engine.close()


def test_a_client_that_was_closed_is_told_as_such(outside):
    """A client whose scheduler is gone closes itself, and has no address of it either: both are named."""
    engine = DaskEngine(Client(outside[0].scheduler.address, set_as_default=False))
    engine.set_plan(*leaves.make_specs([5] * 4), "run")
    engine.client.close()
    with pytest.raises(SchedulerLostError, match=r"^the client is closed.*connect a new one"):
        engine.map_reduce(leaves.plain, 1.0, name="plain")
    engine.close()


def test_a_killed_scheduler_ends_the_run_in_seconds(outside, tmp_path):
    client, scheduler, _ = outside
    marks = tmp_path / "marks"
    engine = DaskEngine(client)
    engine.set_plan(*leaves.make_specs([5] * 4), "run")
    killed = []
    kill = meanwhile(lambda: wait_until(marks.exists), scheduler.kill, lambda: killed.append(time.monotonic()))
    with kill, pytest.raises(ClusterError, match="lost the scheduler") as caught:
        engine.map_reduce(leaves.slow, 5.0, str(marks), name="slow")
    assert time.monotonic() - killed[0] < 5
    assert "resume" in str(caught.value)
    start = time.monotonic()
    with pytest.raises(ClusterError, match="lost the scheduler"):
        engine.map_reduce(leaves.plain, 1.0, name="plain")
    assert time.monotonic() - start < 8
    start = time.monotonic()
    engine.close()
    assert time.monotonic() - start < 3
