"""Shared fixtures, and the rule that no data test is lost silently in continuous integration."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.costs import Costs
from tests.lanes import for_all_only

if TYPE_CHECKING:
    from distributed import Client

DATA_VARIABLE = "DBOOST_DATA_HOME"

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # a shell that runs the tests in its background has interrupts ignored, which some tests send
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session", autouse=True)
def calm() -> Iterator[None]:
    """All clusters of the tests are set as those of the library: with a profiler one hung now and then."""
    import dask

    from dboost.engine.dask.cluster import CALM

    with dask.config.set(CALM):
        yield


@pytest.fixture(scope="session")
def data_home() -> Path:
    """Folder of the real data sets; the test is skipped where there is none."""
    home = os.environ.get(DATA_VARIABLE)
    if not home:
        pytest.skip(f"{DATA_VARIABLE} is not set")
    return Path(home)


@pytest.fixture(scope="session")
def processes():
    """Two worker processes; the scheduler gives a task up after it has killed two workers."""
    import dask
    from distributed import Client

    from dboost.engine.dask.cluster import embedded_cluster

    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        embedded_cluster(2, memory_limit="1 GiB") as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture
def two_processes(processes):
    """The same, with both workers alive before and nothing left behind after."""
    from tests.engine.conftest import scheduler_keys, wait_until

    wait_until(lambda: len(processes.nthreads()) == 2)
    yield processes
    wait_until(lambda: scheduler_keys(processes) == [])


@contextlib.contextmanager
def workers_here(n_workers: int, threads: int = 1) -> Iterator[Client]:
    """A client of workers inside this process; ``client.cluster`` is theirs."""
    from distributed import Client, LocalCluster

    options = {"processes": False, "dashboard_address": "127.0.0.1:0", "memory_limit": 0}
    with (
        LocalCluster(n_workers=n_workers, threads_per_worker=threads, **options) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture(scope="session")
def one_worker() -> Iterator[Client]:
    """One worker with two threads, inside this process."""
    with workers_here(1, threads=2) as client:
        yield client


def pytest_configure(config: pytest.Config) -> None:
    """What items cost is measured in every run."""
    config.pluginmanager.register(Costs())


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what `make test` leaves out of each grid, before pytest looks at the marks."""
    beyond = for_all_only(item.nodeid for item in items)
    for item in items:
        if item.nodeid in beyond:
            item.add_marker(pytest.mark.full)


def lost_in_ci(reason: str, environ: dict[str, str]) -> bool:
    """Whether a skip with this reason is a failure: data was promised and the test did not use it."""
    return environ.get("CI") == "true" and bool(environ.get(DATA_VARIABLE)) and DATA_VARIABLE in reason


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report = yield
    if report.skipped and isinstance(report.longrepr, tuple) and lost_in_ci(report.longrepr[2], dict(os.environ)):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid}: skipped in CI although {DATA_VARIABLE} is set ({report.longrepr[2]})"
    return report
