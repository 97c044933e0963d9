"""One trial in a process of its own: ``python -m lab.chaos.trial SCENARIO MOMENT FOLDER``.

Covers: the cluster, the fit, the fault beside it, one JSON line of what came of it.
Does not cover: judging it, or ending a trial that hangs (``campaign``).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lab.chaos.scenarios import SCENARIOS, Scenario
from lab.chaos.strikes import nothing
from lab.chaos.work import DATA, fit
from lab.scheduler_file import address_in

MEMORY = "1 GiB"
"""Of each worker: several times what the fit takes, and little enough to be taken in a second."""


@contextmanager
def cluster_of(scenario: Scenario) -> Iterator[Any]:
    """Open the cluster of a scenario and yield a client."""
    from dboost.engine.dask.cluster import EmbeddedCluster, embedded_cluster

    if scenario.outside:
        with outside(scenario.workers) as client:
            yield client
        return
    if scenario.workers:
        with embedded_cluster(scenario.workers, memory_limit=MEMORY) as cluster:
            with cluster.get_client() as client:
                yield client
        return
    with EmbeddedCluster(
        n_workers=0, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0", silence_logs=50
    ) as cluster:
        cluster.adapt(minimum=0, maximum=2)
        with cluster.get_client() as client:
            yield client


@contextmanager
def outside(workers: int, nanny: bool = False) -> Iterator[Any]:
    """A scheduler and workers as processes of their own, on loopback, with nannies or without; yields a client."""
    from distributed import Client

    started: list[subprocess.Popen[bytes]] = []

    def start(*words: str) -> None:
        command = [sys.executable, "-m", "dask", *words, "--host", "127.0.0.1", "--dashboard-address", "127.0.0.1:0"]
        # Workers import what a fit sends them from where this process does.
        environment = {**os.environ, "PYTHONPATH": os.getcwd()}
        unheard = subprocess.DEVNULL
        started.append(subprocess.Popen(command, env=environment, stdout=unheard, stderr=unheard))

    with tempfile.TemporaryDirectory() as folder:
        address = Path(folder) / "scheduler.json"
        try:
            start("scheduler", "--port", "0", "--scheduler-file", str(address))
            address_in(address)
            kind = "--nanny" if nanny else "--no-nanny"
            for _ in range(workers):
                start("worker", kind, "--nthreads", "1", "--scheduler-file", str(address))
            client = Client(scheduler_file=str(address), timeout=20, set_as_default=False)
            client.wait_for_workers(workers, timeout=60)
            yield client
        finally:
            # A process that was stopped is killed as well as any other; the client has nobody to take leave of. A
            # nanny is asked, so that it ends its worker.
            for process in started:
                process.terminate() if nanny else process.kill()
                process.wait()


def run(scenario: Scenario, moment: float, folder: Path) -> dict[str, Any]:
    """Fit while the fault comes `moment` seconds after the first round; return what came of it."""
    found: dict[str, Any] = {"struck": None, "bits": None, "error": None}
    began, over = threading.Event(), threading.Event()

    def strike(client: Any) -> None:
        began.wait()
        found["first"] = time.monotonic()
        if not over.wait(moment):
            found["struck"] = time.monotonic()
            scenario.strike(client, folder)

    with cluster_of(scenario) as client:
        start = time.monotonic()
        thread = threading.Thread(target=strike, args=(client,), daemon=True)
        thread.start()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                found["bits"] = fit(folder / DATA, client, began)
            except Exception as error:
                found["error"] = f"{type(error).__name__}: {error}"
        end = time.monotonic()
        over.set()
        found["rounds"] = end - found.get("first", start)
        # Where the cluster itself is the fault, it is there from the start.
        fault = start if scenario.strike is nothing else found["struck"]
        found["after"] = end - (fault or start)
        found["warnings"] = [str(w.message) for w in caught if "submitted again" in str(w.message)]
        # What the parent waits for; a stopped worker may hold the end of the cluster up.
        print(json.dumps(found), flush=True)
    return found


def main(arguments: Sequence[str]) -> int:
    """Run the trial that the arguments name."""
    name, moment, folder = arguments
    run(SCENARIOS[name], float(moment), Path(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
