"""Clusters that the engine tests share; each test leaves them as it found them."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time

import numpy as np
import pytest

from dboost.engine.dask.engine import DaskEngine
from dboost.engine.local import LocalEngine
from tests.engine import leaves


def scheduler_keys(client):
    """Keys of dboost that the scheduler knows."""
    keys = client.run_on_scheduler(lambda dask_scheduler: [str(k) for k in dask_scheduler.tasks])
    return [k for k in keys if k.startswith("dboost")]


def wait_until(condition, seconds=20.0):
    """Wait for something that happens soon."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


def pids(client):
    """Process id of each worker."""
    return client.run(os.getpid)


ROWS = [20, 1, 1, 40, 3, 0, 9, 30]


def undisturbed(leaf, *args, rows=ROWS):
    """What a pass gives in this process."""
    specs, rows = leaves.make_specs(rows)
    with LocalEngine(1) as engine:
        engine.set_plan(specs, rows, "undisturbed")
        return engine.map_reduce(leaf, *args, name="undisturbed")


@contextlib.contextmanager
def meanwhile(*steps):
    """Take steps in a thread beside the block, one after the other."""
    thread = threading.Thread(target=lambda: [step() for step in steps])
    thread.start()
    try:
        yield
    finally:
        thread.join(40)


def struck(condition, pids, ending=signal.SIGKILL):
    """`meanwhile`, once a condition holds: send a signal to processes."""
    return meanwhile(lambda: wait_until(condition), lambda: [os.kill(pid, ending) for pid in pids()])


ENGINES = ["local-1", "local-3", "dask-1", "dask-2"]


@pytest.fixture(params=ENGINES)
def engine(request):
    """Every engine in turn."""
    if request.param.startswith("local"):
        with LocalEngine(int(request.param[-1])) as opened:
            yield opened
        return
    client = request.getfixturevalue("one_worker" if request.param == "dask-1" else "two_processes")
    with DaskEngine(client) as opened:
        yield opened
    wait_until(lambda: scheduler_keys(client) == [])


def same_bits(a, b):
    """True when two sums are equal to the last bit."""
    assert a.add.keys() == b.add.keys() and a.peak.keys() == b.peak.keys()
    return (
        all(np.asarray(a.add[k]).tobytes() == np.asarray(b.add[k]).tobytes() for k in a.add)
        and all(a.peak[k].tobytes() == b.peak[k].tobytes() for k in a.peak)
        and a.parts == b.parts
    )
