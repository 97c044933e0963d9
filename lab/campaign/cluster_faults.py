"""Faults of a cluster in the middle of a fit: it goes on with the same bits, or ends with one clear error in time.

Every trial is one fit in a process of its own (``python -m lab.campaign.cluster_faults SCENARIO MOMENT FOLDER``), in
which something goes wrong at a random moment: workers are killed or stopped, run out of memory, or are not there yet.
Only processes of the trial's own cluster are killed or stopped, and an outer clock ends a trial that hangs.

Covers: the scenarios, what may come of them, the verdicts. Does not cover: drivers that die (``lab.run_kills``).
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from dboost.errors import ClusterError, SchedulerLostError
from lab.campaign.command import Tally
from lab.campaign.work import DATA, fit, write
from lab.scheduler_file import address_in

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 60.0
"""Seconds from the fault to the undisturbed bits or the error."""
HANGS_AFTER = 150.0
"""Seconds after which a trial's processes are ended from outside: starting, the fit before the fault, and `LIMIT`."""
BESIDE = 2
"""Trials at once: most of their time is waiting for workers to start, or to be missed."""
LATE_TRIALS = 3
"""A fault that comes when the fit is over shows nothing, and is tried again so many times, each time earlier."""
GULP = 2**24
"""Bytes that a greedy task takes at a time: small beside any worker's limit, so that its nanny sees it grow."""
MEMORY = "1 GiB"
"""Of each worker: several times what the fit takes, and little enough to be taken in a second."""
AGAIN = 8
"""Workers that are killed one after the other in the fit of one scenario."""
CLEAR = tuple(f"{kind.__name__}: " for kind in (ClusterError, SchedulerLostError))
"""How the words of an error begin that says what became of the cluster."""


# ---- what goes wrong -------------------------------------------------------------------------------------------------


def nothing(client: Any, folder: Path) -> None:
    """Leave the fit alone: its cluster is the fault, or nothing is."""


def strike_workers(client: Any, folder: Path, *, number: int, count: int | None = None) -> None:
    """Kill workers, or stop them for good: then they keep their connections and say nothing."""
    pids = client.run(os.getpid)
    for address in sorted(pids)[:count]:
        os.kill(pids[address], number)


def kill_again(client: Any, folder: Path) -> None:
    """Kill a worker, and the next one when its nanny has started another, several times."""
    count = len(client.nthreads())
    for _ in range(AGAIN):
        strike_workers(client, folder, number=signal.SIGKILL, count=1)
        # One that was killed a moment ago may still be on the scheduler's list.
        time.sleep(0.3)
        client.wait_for_workers(count, timeout=LIMIT)


def strike_scheduler(client: Any, folder: Path, *, number: int) -> None:
    """Kill the scheduler, which knows everything, or stop it for good."""
    os.kill(client.run_on_scheduler(os.getpid), number)


def exhaust(client: Any, folder: Path, *, once: bool) -> None:
    """Let another program's task take all memory of a worker; once, or wherever it comes until Dask gives it up."""
    mark = str(folder / f"taken-{os.getpid()}") if once else ""
    future = client.submit(take_all, mark, pure=False, key=f"greedy-{os.getpid()}")
    future.add_done_callback(lambda ended: ended.release())


def take_all(mark: str) -> None:
    """Take memory until the process is ended; with a mark, do nothing the second time."""
    if mark:
        if os.path.exists(mark):
            return
        Path(mark).touch()
    taken = []
    while True:
        taken.append(b"\x01" * GULP)


def restart(client: Any, folder: Path) -> None:
    """Restart all workers, as another program on the cluster may; that takes all results away."""
    from distributed import Client

    with Client(client.scheduler.address, set_as_default=False) as other:
        other.restart(wait_for_workers=False)


def close(client: Any, folder: Path) -> None:
    """Close the client that the fit uses."""
    client.close()


@dataclass(frozen=True)
class Scenario:
    """One kind of fault."""

    # Of a whole campaign, so many trials of 150.
    share: int
    # Of the cluster at first; 0 for one that adapts to its load, up to two.
    workers: int
    # ``strike(client, folder)`` does the fault.
    strike: Callable[[Any, Path], None]
    # What the fit must come to: the bits of the undisturbed one, one clear error, or one of the two.
    ends: str = "bits"
    # Whether the scheduler is a process of its own, and nobody brings workers back.
    outside: bool = False


UNDISTURBED = "undisturbed, 2 workers"
_KILLED, _STOPPED = signal.SIGKILL, signal.SIGSTOP
_one, _all = partial(strike_workers, number=_KILLED, count=1), partial(strike_workers, number=_KILLED)
_halt = partial(strike_workers, number=_STOPPED, count=1)
SCENARIOS: dict[str, Scenario] = {
    UNDISTURBED: Scenario(1, 2, nothing),
    "the only worker killed": Scenario(25, 1, _one),
    "three workers killed at once": Scenario(20, 3, _all),
    "workers killed again and again": Scenario(10, 3, kill_again),
    "one of two workers stopped": Scenario(15, 2, _halt),
    "the only worker stopped": Scenario(4, 1, _halt, ends="error"),
    "memory taken by another task": Scenario(10, 1, partial(exhaust, once=True)),
    "memory taken again and again": Scenario(2, 1, partial(exhaust, once=False), ends="either"),
    "adaptive from no worker": Scenario(8, 0, nothing),
    "the scheduler killed": Scenario(14, 2, partial(strike_scheduler, number=_KILLED), ends="error", outside=True),
    "the scheduler stopped": Scenario(4, 2, partial(strike_scheduler, number=_STOPPED), ends="error", outside=True),
    "all workers gone for good": Scenario(4, 2, _all, ends="error", outside=True),
    "one of two workers gone for good": Scenario(13, 2, _one, outside=True),
    "workers restarted by another program": Scenario(10, 2, restart, ends="either"),
    "the client closed": Scenario(10, 2, close, ends="error"),
}
"""Name and scenario. A fault comes at a random moment of the fit."""


# ---- a trial, in its own process -------------------------------------------------------------------------------------


@contextmanager
def cluster_of(scenario: Scenario) -> Iterator[Any]:
    """Open the cluster of a scenario and yield a client."""
    from dboost.engine.dask.cluster import EmbeddedCluster, embedded_cluster

    if scenario.outside:
        with outside(scenario.workers) as client:
            yield client
        return
    if scenario.workers:
        with embedded_cluster(scenario.workers, memory_limit=MEMORY) as cluster, cluster.get_client() as client:
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


def disturbed(scenario: Scenario, moment: float, folder: Path) -> None:
    """Fit while the fault comes `moment` seconds after the first round; print what came of it."""
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
        threading.Thread(target=strike, args=(client,), daemon=True).start()
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


# ---- judging it, from outside ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """What came of a trial."""

    outcome: str
    # From the fault to the end.
    seconds: float
    # The undisturbed bits.
    same: bool
    # The error, the engine's warnings, or what a trial wrote that came to no end.
    words: str = ""
    # Seconds from the first round to the end.
    rounds: float = 0.0


def attempt(name: str, moment: float, folder: Path, expected: str) -> Outcome:
    """Run one trial in a process group of its own, and end the group when it is over or takes too long."""
    command = [sys.executable, "-m", "lab.campaign.cluster_faults", name, str(moment), str(folder)]
    start = time.monotonic()
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )

    def end() -> None:
        # The trial, its workers and their nannies are one group, and nobody else is in it.
        os.killpg(process.pid, signal.SIGKILL)

    timer = threading.Timer(HANGS_AFTER, end)
    timer.start()
    try:
        assert process.stdout is not None and process.stderr is not None
        line = process.stdout.readline()
    finally:
        timer.cancel()
        if process.poll() is None:
            end()
    wrote = process.communicate()[1]
    seconds = time.monotonic() - start
    if not line:
        hung = seconds >= HANGS_AFTER
        return Outcome("hung" if hung else "broken", seconds, False, " ".join(wrote.split())[-300:])
    return judged(json.loads(line), expected)


def attempts(name: str, moment: float, folder: Path, expected: str) -> Outcome:
    """Run one trial, and again where its fault came when the fit was over."""
    for again in range(LATE_TRIALS):
        outcome = attempt(name, moment / 2**again, folder, expected)
        if outcome.outcome != "too late":
            break
    return outcome


def judged(found: dict[str, Any], expected: str) -> Outcome:
    """Return the outcome of a trial that came to an end."""
    if found["error"] is not None:
        return Outcome("error", found["after"], False, found["error"])
    late = found["struck"] is None
    words = "; ".join(found["warnings"])
    return Outcome("too late" if late else "fit", found["after"], found["bits"] == expected, words, found["rounds"])


def passed(outcome: Outcome, scenario: Scenario) -> bool:
    """Tell whether a trial came to the undisturbed bits, or to one clear error where that is all it can, in time."""
    if outcome.seconds > LIMIT:
        return False
    if outcome.outcome == "fit":
        return outcome.same and scenario.ends != "error"
    # An error of another kind, or of more than one line, is not clear.
    clear = outcome.words.startswith(CLEAR) and "\n" not in outcome.words
    return outcome.outcome == "error" and clear and scenario.ends != "bits"


def run(count: int, folder: Path, tally: Tally) -> None:
    """Trials of the scenarios by their shares."""
    write(folder / DATA)
    expected = fit(folder / DATA, None, threading.Event())
    calm = attempt(UNDISTURBED, 0.0, folder, expected)
    rng, whole = random.Random(0), sum(scenario.share for scenario in SCENARIOS.values())
    trials = [name for name, one in SCENARIOS.items() for _ in range(max(1, round(one.share * count / whole)))]
    moments = [rng.uniform(0.0, 0.7) * calm.rounds for _ in trials]
    slowest = 0.0
    with ThreadPoolExecutor(BESIDE) as pool:
        found = pool.map(lambda name, moment: attempts(name, moment, folder, expected), trials, moments)
        for name, outcome in zip(trials, found):
            slowest = max(slowest, outcome.seconds)
            words = f"{name}: {outcome.outcome} after {outcome.seconds:.1f} s: {outcome.words}"
            tally.check(passed(outcome, SCENARIOS[name]), f"{name}: {outcome.outcome}", words)
    tally.figures["slowest from its fault"] = f"{slowest:.1f} s"


if __name__ == "__main__":
    scenario_, moment_, folder_ = sys.argv[1:]
    disturbed(SCENARIOS[scenario_], float(moment_), Path(folder_))
