"""Different versions are an error with a table, at once."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from dboost.engine.dask import versions
from dboost.engine.dask.engine import DaskEngine
from dboost.errors import ClusterError
from tests.engine import leaves
from tests.engine.conftest import pids, same_bits, undisturbed

pytestmark = pytest.mark.timeout(60)


def made(**changes):
    return dict.fromkeys(versions.PACKAGES, "1.0") | changes


def test_equal_versions_pass_and_one_that_is_not_equal_does_not():
    for mine, others in ((made(), made(numpy="0.9")), (made(dboost=None), made())):
        assert versions.compare(mine, mine, {"w1": mine, "w2": mine}) is None
        with pytest.raises(ClusterError, match="w2"):
            versions.compare(mine, mine, {"w1": mine, "w2": others})


def test_the_scheduler_need_not_have_what_only_workers_use():
    versions.compare(made(), made(numba=None, pyarrow=None), {"w1": made()})
    with pytest.raises(ClusterError, match="numba"):
        versions.compare(made(), made(numba="0.9"), {"w1": made()})
    with pytest.raises(ClusterError, match="numpy"):
        versions.compare(made(), made(numpy=None), {"w1": made()})


def test_each_package_counts():
    for package in versions.PACKAGES:
        with pytest.raises(ClusterError) as caught:
            versions.compare(made(), made(), {"tcp://w1": made(), "tcp://w2": made(**{package: "2.0"})})
        text = str(caught.value)
        assert package in text and "tcp://w2 2.0" in text and "w1" not in text
        with pytest.raises(ClusterError, match="missing"):
            versions.compare(made(), made(), {"tcp://w1": made(**{package: None})})


def test_a_mismatch_ends_the_opening_at_once(one_worker, monkeypatch):
    # Dask only warns, and the first task may wait for ever.
    own = versions.own_versions()
    monkeypatch.setattr(versions, "own_versions", lambda: own | {"numba": "0.1"})
    start = time.monotonic()
    with pytest.raises(ClusterError, match="numba") as caught:
        DaskEngine(one_worker)
    assert time.monotonic() - start < 5
    assert str(caught.value).count(str(own["numba"])) == 2
    assert caught.value.exit_code == 4


def test_a_mute_worker_does_not_hold_up_the_check(two_processes):
    address, pid = min(pids(two_processes).items())
    os.kill(pid, signal.SIGSTOP)
    start = time.monotonic()
    try:
        with pytest.raises(ClusterError, match=r"1 of 2 workers did not tell.*" + address):
            DaskEngine(two_processes, version_timeout=1)
    finally:
        os.kill(pid, signal.SIGCONT)
    assert time.monotonic() - start < 6


def test_a_worker_that_dies_during_the_check_is_left_out(two_processes):
    """Before, a fit that began in the moment of a worker's death was refused, though a new one was on its way."""
    pid = min(pids(two_processes).items())[1]
    os.kill(pid, signal.SIGSTOP)
    timer = threading.Timer(0.5, os.kill, (pid, signal.SIGKILL))
    timer.start()
    try:
        with DaskEngine(two_processes, version_timeout=3) as engine:
            engine.set_plan(*leaves.make_specs([5] * 4), "run")
            expected = undisturbed(leaves.plain, 1.0, rows=[5] * 4)
            assert same_bits(engine.map_reduce(leaves.plain, 1.0, name="plain"), expected)
    finally:
        timer.join()
        two_processes.wait_for_workers(2, timeout=30)
