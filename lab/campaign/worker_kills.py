"""Workers killed again and again while a fit goes on: it ends with the bits of the undisturbed fit.

Ten fits on clusters of one to four workers share the kills. On half of the clusters a nanny brings a worker back; on
the others nobody does, and the campaign starts another, as a cluster's manager would. In two fits all workers die in
the same moment. A kill falls at a random moment of the rounds that follow the return of all workers.
Each fit runs in a process of its own: ``python -m lab.campaign.worker_kills WORKERS NANNY AT_ONCE KILLS SEED FOLDER``.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from lab.campaign.tally import Tally
from lab.chaos.work import DATA, weights_digest, write

ROOT = Path(__file__).resolve().parents[2]

PLANS: tuple[tuple[int, bool, bool], ...] = (
    (1, True, False), (2, True, False), (3, True, False), (4, True, False), (3, True, True),
    (1, False, False), (2, False, False), (3, False, False), (4, False, False), (2, False, True),
)  # fmt: skip
"""Workers, whether a nanny brings them back, whether all die at once."""

BESIDE = 2
"""Fits at once: most of their time is waiting for workers."""

BACK = 60.0
"""Seconds that killed workers may take to be back; an import and compiled code from the disk take some."""

LIMIT = 1200.0
"""Seconds that a fit may take with all its kills."""

LATEST = 0.3
"""Seconds after the return of all workers in which the next kill falls; some rounds."""


def rounds_for(strikes: int) -> dict[str, Any]:
    """Parameters of a fit of small steps, with more rounds than strikes."""
    return {"penalty": "l1/l2", "alpha": 1e-4, "tol": 1e-12, "update": "gradboost", "sweeps": 1,
            "max_rounds": 3 * strikes + 20}  # fmt: skip


class Killer:
    """A callback that strikes after rounds, and counts.

    Parameters
    ----------
    cluster : Workers
    kills, at_once : int, bool
    rng : random.Random
    """

    def __init__(self, cluster: Workers, kills: int, at_once: bool, rng: random.Random) -> None:
        self.cluster = cluster
        self.left = kills
        self.at_once = at_once
        self.rng = rng
        self.thread: threading.Thread | None = None

    def __call__(self, record: dict[str, Any]) -> None:
        """Strike within the rounds that follow, when the strike before it is over and all workers are there."""
        if self.left <= 0 or (self.thread is not None and self.thread.is_alive()):
            return
        pids = self.cluster.complete()
        struck = pids if self.at_once else [self.rng.choice(pids)]
        self.left -= len(struck)
        self.thread = threading.Thread(target=self._strike, args=(struck, self.rng.uniform(0.0, LATEST)))
        self.thread.start()

    def _strike(self, pids: Sequence[int], seconds: float) -> None:
        time.sleep(seconds)
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        self.cluster.bring_back(len(pids))


class Workers:
    """The workers of a cluster of this process; without nannies it starts them itself.

    Parameters
    ----------
    client : distributed.Client
    count : int
    nanny : bool
    """

    def __init__(self, client: Any, count: int, nanny: bool) -> None:
        self.client = client
        self.count = count
        self.nanny = nanny
        self.processes: list[subprocess.Popen[bytes]] = []

    def complete(self) -> list[int]:
        """Wait until all workers are there; returns their process numbers."""
        until = time.monotonic() + BACK
        while time.monotonic() < until:
            # A worker that was killed a moment ago may still be on the scheduler's list.
            pids = [pid for pid in self.client.run(os.getpid, on_error="ignore").values() if _lives(pid)]
            if len(pids) == self.count:
                return sorted(pids)
            time.sleep(0.05)
        raise RuntimeError(f"{self.count} workers were not back within {BACK:g} s")

    def bring_back(self, count: int) -> None:
        """Start so many workers, where no nanny does."""
        if self.nanny:
            return
        options = "--no-nanny --nthreads 1 --host 127.0.0.1 --no-dashboard".split()
        command = [sys.executable, "-m", "dask", "worker", self.client.scheduler.address, *options]
        environment, unheard = {**os.environ, "PYTHONPATH": str(ROOT)}, subprocess.DEVNULL
        for _ in range(count):
            started = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=unheard, stderr=unheard)
            self.processes.append(started)

    def end(self) -> None:
        """End what was started here."""
        for process in self.processes:
            process.kill()
            process.wait()


def _lives(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


@contextmanager
def cluster_of(count: int, nanny: bool) -> Iterator[Workers]:
    """A cluster on loopback, with so many workers of one thread."""
    from dboost.engine.dask.cluster import embedded_cluster

    if nanny:
        with embedded_cluster(count) as cluster, cluster.get_client() as client:
            yield Workers(client, count, nanny)
        return
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=0, host="127.0.0.1", dashboard_address="127.0.0.1:0", silence_logs=50) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        workers = Workers(client, count, nanny)
        workers.bring_back(count)
        try:
            workers.complete()
            yield workers
        finally:
            workers.end()


def fitted(folder: Path, parameters: dict[str, Any]) -> str:
    """Fit, and return the digest of the weights; that the rounds end before the tolerance is what was asked for."""
    import dboost

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dboost.ConvergenceWarning)
        model = dboost.BoostedClassifier(**parameters)
        return weights_digest(model.fit(dboost.ParquetData(str(folder / DATA), label="label")))


def disturbed(count: int, nanny: bool, at_once: bool, kills: int, seed: int, folder: Path) -> dict[str, Any]:
    """Fit with so many kills; returns the digest, the kills and the seconds."""
    with cluster_of(count, nanny) as cluster:
        killer = Killer(cluster, kills, at_once, random.Random(seed))
        begun = time.monotonic()
        digest = fitted(folder, rounds_for(kills) | {"client": cluster.client, "callbacks": [killer]})
        seconds = time.monotonic() - begun
    return {"digest": digest, "kills": kills - killer.left, "seconds": seconds}


def run(count: int, folder: Path, tally: Tally) -> None:
    """Share the kills among the fits, and compare each with the fit that nobody disturbs."""
    write(folder / DATA)
    plans = PLANS[: max(1, min(count, len(PLANS)))]
    each = max(1, count // len(plans))
    begun = time.monotonic()
    expected = fitted(folder, rounds_for(each))
    calm = time.monotonic() - begun
    costs: list[float] = []
    with ThreadPoolExecutor(BESIDE) as pool:
        found = pool.map(partial(attempt, kills=each, folder=folder), plans, range(len(plans)))
        for (workers, nanny, at_once), outcome in zip(plans, found):
            what = f"{workers} workers, {'nannies' if nanny else 'no nanny'}{', all at once' if at_once else ''}"
            if outcome.get("digest") != expected:
                for _ in range(max(1, outcome.get("kills", 0))):
                    tally.broke(f"{what}: {outcome}")
                continue
            tally.passed(what, outcome["kills"])
            costs.append((outcome["seconds"] - calm) / outcome["kills"])
    if costs:
        tally.figures["seconds per kill, median of the fits"] = f"{sorted(costs)[len(costs) // 2]:.1f}"


def attempt(plan: tuple[int, bool, bool], seed: int, *, kills: int, folder: Path) -> dict[str, Any]:
    """Run one fit in a process of its own."""
    workers, nanny, at_once = plan
    command = [sys.executable, "-m", __name__, *(str(int(x)) for x in (workers, nanny, at_once, kills, seed))]
    process = subprocess.Popen(
        [*command, str(folder)], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    try:
        out, err = process.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        return {"error": f"not over in {LIMIT:g} s"}
    finally:
        # The fit and its workers are one group, and nobody else is in it.
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    lines = out.splitlines()
    return dict(json.loads(lines[-1])) if process.returncode == 0 else {"error": " ".join(err.split())[-300:]}


if __name__ == "__main__":
    *numbers, where = sys.argv[1:]
    workers, nanny, at_once, kills, seed = map(int, numbers)
    print(json.dumps(disturbed(workers, bool(nanny), bool(at_once), kills, seed, Path(where))))
