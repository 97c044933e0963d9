"""What is killed goes on, to the same bits: work whose scheduler comes back by itself, and a run when it is resumed."""

import json
import subprocess
import sys
import time
from contextlib import nullcontext
from io import StringIO
from typing import Any

import pytest

from dboost.errors import SchedulerLostError
from dboost.model.fitted import read_model
from lab.campaign.command import Tally
from lab.run_kills import FIT, TRAIN, rows_of, trials, write_run
from lab.scheduler_file import address_in
from pipelines.cluster import REJOINS, ClusterSession
from pipelines.config import ClusterSettings
from pipelines.console import Console
from pipelines.runs.fingerprints import of_model
from tests.pipelines.conftest import LOCAL, ROOT, started

pytestmark = [pytest.mark.full, pytest.mark.timeout(180)]


class Manager:
    """Starts a scheduler and a worker, always at the same port, and kills them, as a cluster's manager may."""

    def __init__(self, folder):
        self.folder = folder
        self.port = "0"
        self.processes: list[subprocess.Popen[bytes]] = []
        self.address = self.start()
        self.port = self.address.rpartition(":")[2]

    def start(self):
        file = self.folder / "scheduler.json"
        file.unlink(missing_ok=True)
        self._run("scheduler", "--port", self.port, "--scheduler-file", str(file))
        address = address_in(file)
        self._run("worker", "--no-nanny", "--nthreads", "1", "--scheduler-file", str(file))
        return address

    def _run(self, *words):
        command = [sys.executable, "-m", "dask", *words, "--host", "127.0.0.1", "--dashboard-address", "127.0.0.1:0"]
        quiet = subprocess.DEVNULL
        self.processes.append(subprocess.Popen(command, cwd=ROOT, stdout=quiet, stderr=quiet))

    def kill(self):
        for process in self.processes:
            process.kill()
            process.wait()
        self.processes.clear()


@pytest.fixture
def manager(tmp_path):
    manager = Manager(tmp_path)
    try:
        yield manager
    finally:
        manager.kill()


def until(process, event, told):
    """Read events up to the first of a kind."""
    assert process.stdout is not None
    for line in process.stdout:
        told.append(json.loads(line))
        if told[-1]["event"] == event:
            return
    raise AssertionError(f"no {event}: {process.communicate()[1]}")


def ended(process):
    """What a process tells until it ends well."""
    rest, errors = process.communicate(timeout=120)
    assert process.returncode in (0, 6), errors
    return [json.loads(line) for line in rest.splitlines()]


def finished(*words):
    with started("-m", "pipelines", *words) as process:
        ended(process)


def test_a_training_goes_on_when_the_scheduler_is_back(manager, prepared, tmp_path):
    words = ["train", str(prepared), *TRAIN[:-1], "60", "--log-format", "json", "--out"]
    finished(*words, str(tmp_path / "plain"), *LOCAL)
    told: list[dict[str, Any]] = []
    with started("-m", "pipelines", *words, str(tmp_path / "out"), "--scheduler", manager.address) as process:
        until(process, "round", told)
        manager.kill()
        until(process, "scheduler_lost", told)
        manager.start()
        until(process, "scheduler_rejoined", told)
        later = ended(process)
    assert of_model(tmp_path / "out") == of_model(tmp_path / "plain")
    assert not (tmp_path / "out.unfinished").exists()
    # it went on and did not begin again
    done = [event["round"] for event in told if event["event"] == "round"]
    again = [event["round"] for event in later if event["event"] == "round"]
    assert again[0] > 1 or done[-1] < 3


def test_a_run_goes_on_when_the_scheduler_is_back(manager, tmp_path):
    file = write_run(tmp_path / "run", FIT.replace("400", "60"), 400)
    words = ["run", str(file), "--trust", "--log-format", "json", "--out"]
    finished(*words, str(tmp_path / "plain"))
    told: list[dict[str, Any]] = []
    file.write_text(file.read_text().replace("workers = 0", f'scheduler = "{manager.address}"'))
    with started("-m", "pipelines", *words, str(tmp_path / "out")) as process:
        until(process, "round", told)
        manager.kill()
        until(process, "scheduler_lost", told)
        manager.start()
        ended(process)
    assert of_model(tmp_path / "out" / "model") == of_model(tmp_path / "plain" / "model")
    assert rows_of(tmp_path / "out") == rows_of(tmp_path / "plain")


def test_one_that_stays_away_is_told_after_the_wait(manager, prepared, tmp_path):
    told: list[dict[str, Any]] = []
    away = ["--scheduler", manager.address, "--rejoin-seconds", "2", "--log-format", "json"]
    with started("-m", "pipelines", "train", str(prepared), *TRAIN, "--out", str(tmp_path / "out"), *away) as process:
        until(process, "round", told)
        manager.kill()
        until(process, "scheduler_lost", told)
        begun = time.monotonic()
        _, errors = process.communicate(timeout=60)
    assert time.monotonic() - begun < 20
    assert process.returncode == 4 and len(errors.splitlines()) == 1, errors
    assert "lost the scheduler" in errors and "goes on" in errors
    partial = read_model(tmp_path / "out.unfinished" / "model.partial").certificate
    assert partial.stop_reason == "interrupted" and partial.n_iter >= 1


class Lost:
    """Work whose scheduler is always lost."""

    def __init__(self):
        self.calls = 0

    def __call__(self, client):
        self.calls += 1
        raise SchedulerLostError("lost the scheduler")


@pytest.mark.parametrize(
    ("settings", "client"),
    [
        (ClusterSettings(workers=0), None),
        (ClusterSettings(scheduler="tcp://127.0.0.1:9"), object()),
        (ClusterSettings(scheduler="tcp://127.0.0.1:9", rejoin_seconds=0.0), object()),
    ],
)
def test_nobody_is_waited_for_who_is_not_brought_back(settings, client, monkeypatch):
    monkeypatch.delenv("DASK_SCHEDULER_ADDRESS", raising=False)
    work = Lost()
    with (
        ClusterSession(settings, Console("plain", out=StringIO()), client) as cluster,
        pytest.raises(SchedulerLostError),
    ):
        cluster.run_with_rejoin(work)
    assert work.calls == 1


def test_a_scheduler_that_dies_of_the_work_is_not_waited_for_for_ever(monkeypatch):
    class Client:
        def wait_for_workers(self, count, timeout):
            pass

    work, out = Lost(), StringIO()
    monkeypatch.setattr("pipelines.cluster.connect", lambda *_: nullcontext(Client()))
    with ClusterSession(ClusterSettings(scheduler="tcp://127.0.0.1:9"), Console("plain", out=out)) as cluster:
        with pytest.raises(SchedulerLostError):
            cluster.run_with_rejoin(work)
    assert work.calls == REJOINS + 1
    assert out.getvalue().count("is back") == REJOINS


@pytest.mark.parametrize("part", ["fit", "cv", "train", "retrain"])
def test_killed_work_goes_on_to_the_same_end(part, tmp_path):
    """SIGKILL at any instant: the same model and predictions, and no stage is done twice."""
    tally = Tally()
    trials(part, 1, tmp_path, tally)
    assert (tally.tried, tally.failed) == (1, 0)
