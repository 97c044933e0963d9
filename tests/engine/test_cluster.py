"""The embedded cluster: its shape, and that it ends quietly. Replacing lost workers is in ``test_traps``."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import dask
import pytest

from dboost.engine.dask.cluster import embedded_cluster, worker_shape
from dboost.errors import UsageError

pytestmark = pytest.mark.timeout(60)

GIB = 2**30


def test_the_shape_follows_the_machine():
    for cores, memory, asked, shape in [
        (1, 4 * GIB, None, (1, 1)),
        (2, 8 * GIB, None, (2, 1)),
        (16, 64 * GIB, None, (4, 4)),
        (16, 3 * GIB, None, (2, 8)),
        (8, GIB // 2, None, (1, 8)),
        (2, 8 * GIB, 5, (5, 1)),
        (16, 64 * GIB, 2, (2, 8)),
    ]:
        workers, threads, each = worker_shape(cores, memory, asked)
        assert (workers, threads) == shape
        assert 0.79 * memory - workers < workers * each <= 0.8 * memory


def test_no_workers_are_refused():
    with pytest.raises(UsageError, match="n_workers is 0"):
        embedded_cluster(0)


@pytest.mark.parametrize("cores, gib, most", [(1, 8, 4), (2, 8, 8), (64, 512, 256), (64, 1, 5)])
def test_more_workers_than_cores_or_memory_carry_are_refused(monkeypatch, cores, gib, most):
    # 500 workers on two cores were started, one after the other.
    started = []
    monkeypatch.setattr("dboost.engine.dask.cluster.available_cores", lambda: cores)
    monkeypatch.setattr("dboost.engine.dask.cluster.available_memory", lambda: gib * GIB)
    monkeypatch.setattr(
        "dboost.engine.dask.cluster.EmbeddedCluster", lambda **options: started.append(options["n_workers"])
    )
    embedded_cluster(most)
    with pytest.raises(UsageError, match=rf"{most + 1} workers were asked for; .*{cores} core.* at most {most}"):
        embedded_cluster(most + 1)
    assert started == [most]


@pytest.mark.parametrize("limit", ["2XiB", "-1", "abc", "", -1, 1000, "100 MiB"])
def test_a_memory_limit_that_no_worker_can_live_with_is_refused(monkeypatch, limit):
    monkeypatch.setattr("dboost.engine.dask.cluster.EmbeddedCluster", lambda **options: pytest.fail("it was started"))
    with pytest.raises(UsageError, match="memory_limit is .* 160 MiB"):
        embedded_cluster(1, memory_limit=limit)


@pytest.mark.parametrize("limit, given", [("2 GiB", 2 * GIB), ("1e9", 10**9), (GIB, GIB), (0, 0), ("0", 0)])
def test_a_memory_limit_reaches_the_workers(monkeypatch, limit, given):
    options = {}
    monkeypatch.setattr("dboost.engine.dask.cluster.EmbeddedCluster", lambda **found: options.update(found))
    embedded_cluster(1, memory_limit=limit)
    assert options["memory_limit"] == given


def _run(text: str, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    script = tmp_path / "script.py"
    script.write_text(text)
    root = str(Path(__file__).parents[2])
    return subprocess.run(
        [sys.executable, str(script)],
        env={"PYTHONPATH": root, "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=50,
    )


LIFE = """
import gc, os, signal, sys
import dask
import psutil
from dboost.engine.dask.cluster import EmbeddedCluster, embedded_cluster

broken = []


class Broken(EmbeddedCluster):
    async def _start(self):
        broken.append(self)
        raise RuntimeError("broken off")


def leave(loop, error):
    left = loop.create_future()
    left.set_exception(error)
    del left
    gc.collect()


if __name__ == "__main__":
    try:
        Broken(n_workers=1, processes=True, host="127.0.0.1", dashboard_address="127.0.0.1:0")
    except RuntimeError as error:
        print(error)
    broken[0].close()
    leave(broken[0].loop.asyncio_loop, ValueError("a nanny that never came up"))
    before = dask.config.get("distributed.deploy.lost-worker-timeout")
    with embedded_cluster(1, memory_limit="512 MiB") as cluster, cluster.get_client() as client:
        loop = cluster.loop.asyncio_loop
        assert dask.config.get("distributed.deploy.lost-worker-timeout") == "1 day"
        [info] = client.scheduler_info()["workers"].values()
        assert info["memory_limit"] == 2**29
        [pid] = client.run(os.getpid).values()
        assert client.scheduler_info()["services"]["dashboard"] > 0
        listening = {
            c.laddr.ip
            for process in (psutil.Process(), psutil.Process(pid))
            for c in process.net_connections("tcp")
            if c.status == psutil.CONN_LISTEN
        }
        assert listening == {"127.0.0.1"}, listening
        os.kill(pid, signal.SIGKILL)
    assert dask.config.get("distributed.deploy.lost-worker-timeout") == before
    cluster.close()
    leave(loop, TimeoutError("Timeout"))
    print("quiet until here", file=sys.stderr)
    leave(loop, ValueError("of another kind"))
    print("end")
"""


def test_it_listens_on_loopback_only_and_ends_quietly_and_hides_no_other_error(tmp_path):
    """One process for all, as each takes seconds to start.

    LocalCluster's dashboard binds every interface unless told otherwise, and a nanny that restarts its worker while
    the cluster closes used to print a traceback. A loop that ends just after a connection's timeout leaves a future
    whose exception nobody reads, and so do the tasks of a cluster that never came up, even when Python closes it.
    """
    done = _run(LIFE, tmp_path)
    quiet, _, rest = done.stderr.partition("quiet until here\n")
    assert (done.returncode, done.stdout, quiet) == (0, "broken off\nend\n", ""), done.stderr
    assert rest.endswith("ValueError: of another kind\n") and rest.count("never retrieved") == 1, rest


TOLD_LATE = """
import atexit
import logging


def told_late():
    logging.getLogger("distributed.nanny").info("a worker is gone")


def closed():
    with hushed():
        pass


# What is asked for last is called first when Python ends.
atexit.register(told_late)
atexit.register(closed)
import distributed
from dboost.engine.dask.cluster import hushed

told_late()
"""


def test_what_dask_tells_after_a_cluster_was_closed_at_the_end_of_python_is_not_said(tmp_path):
    done = _run(TOLD_LATE, tmp_path)
    assert (done.returncode, done.stderr.count("a worker is gone")) == (0, 1), done.stderr


def test_workers_have_no_profiler(two_processes):
    """It may wait for ever in CPython 3.11, and the worker with it."""

    def callbacks(dask_worker):
        return sorted(dask_worker.periodic_callbacks)

    for found in two_processes.run(callbacks).values():
        assert found and not [name for name in found if "profile" in name]


def test_the_shared_cluster_left_the_configuration_readable(two_processes):
    assert dask.config.get("distributed.deploy.lost-worker-timeout") == "1 day"
    assert len(two_processes.scheduler_info()["workers"]) == 2
