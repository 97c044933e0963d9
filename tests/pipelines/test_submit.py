"""Runs that are put on a cluster and left there: started, followed, stopped, resumed; what a dry run shows; TLS."""

import json
import os
import shlex
import time
from dataclasses import replace

import pytest

from dboost.errors import DataError, UsageError
from pipelines.cli import main
from pipelines.cluster import connect
from pipelines.config import ClusterSettings
from pipelines.console import Console
from pipelines.places.kubernetes import manifests
from pipelines.places.registry import PLACES
from pipelines.places.security import FILES, security_of
from pipelines.places.slurm import script
from pipelines.runs.fingerprints import of_model
from pipelines.runs.listing import listed
from pipelines.runs.lock import LOCK, hold_lock
from tests.pipelines.conftest import FILE, LOCAL, give

pytestmark = pytest.mark.timeout(120)


def wait(condition, folder):
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until, (folder / "driver.log").read_text()
        time.sleep(0.1)


def test_a_run_is_left_alone_followed_and_read(file, prints, tells):
    # a process of its own has the defaults of a user, and this one those of tests
    file.write_text(file.read_text().replace("[model]", "[model]\nstandardize = false"))
    folder = file.parent / "runs" / "trees"
    assert "next: dboost logs" in prints("submit", file)
    shown = prints("logs", folder, "--follow")
    assert "stage done: stage train" in shown and "run done" in shown and ", gap " in shown
    assert listed(folder, folder.parent).state == "done"
    give("run", file, "--out", file.parent / "alone")
    assert of_model(folder / "model") == of_model(file.parent / "alone" / "model")
    events = tells("logs", folder)
    assert events[-1]["event"] == "run_done" and events[-1]["at"] > 1e9


@pytest.mark.parametrize("where", ["0", pytest.param("1", marks=pytest.mark.full)])
def test_a_run_that_is_stopped_goes_on(where, file):
    file.write_text(FILE.replace("alpha = 0.005", "alpha = 1e-7\ntol = 1e-12\nmax_rounds = 400"))
    folder = file.parent / "runs" / "trees"
    assert main(["submit", str(file), "--workers", where]) == 0
    wait(lambda: listed(folder, folder.parent).rounds, folder)
    assert main(["submit", str(file), "--workers", "0"]) == 2  # it is at work
    assert main(["stop", str(folder)]) == 0
    wait(lambda: listed(folder, folder.parent).state in ("stopped", "done"), folder)
    main(["resume", str(folder), *LOCAL])
    main(["run", str(file), "--out", str(file.parent / "alone"), "--set", "cluster.workers=0"])
    assert of_model(folder / "model") == of_model(file.parent / "alone" / "model")


def test_a_run_that_cannot_begin_says_why(file, refused):
    os.unlink(file.parent / "documents.parquet")
    assert "documents.parquet" in refused("submit", file, *LOCAL, code=4)


def test_a_dry_run_writes_nothing(file, prints):
    before = sorted(file.parent.rglob("*"))
    assert "resume" in prints("submit", file, "--to", "local", "--dry-run")
    hosts = ["--workers", "1", "--hosts", "a,b,c"]
    assert "# 1 worker on c" in prints("submit", file, "--to", "ssh", *hosts, "--dry-run")
    assert sorted(file.parent.rglob("*")) == before


def test_requests_without_meaning_and_folders_that_were_not_submitted(file, refused):
    for arguments, said in (
        ("--to slum", "did you mean 'slurm'?"),
        ("--to ssh --workers 1 --hosts one --dry-run", "has 1 hosts"),
        ("--to kubernetes --workers 2 --dry-run", "needs options.image"),
        ("--to gateway --dry-run", "workers is 0, which is no cluster, and --to gateway is of one"),
        ("""--options '{"a": null}'""", "without null"),
        ("--to local --workers 1 --hosts a", "--hosts has no effect on this kind of cluster"),
        ("--to local --hosts a", "workers is 0, which is no cluster, and hosts is of one"),
    ):
        assert said in refused("submit", file, *shlex.split(arguments)), arguments
    assert "was not submitted" in refused("stop", file.parent)
    assert "is no run folder" in refused("logs", file.parent, code=3)


def test_a_new_pod_takes_over_what_its_predecessor_held(tmp_path, monkeypatch):
    record = {"host": "another", "pid": 1, "since": "now", "kernel": "another"}
    (tmp_path / LOCK).write_text(json.dumps(record))
    monkeypatch.setattr("pipelines.runs.lock.is_local", lambda _: False)
    monkeypatch.setattr("pipelines.runs.lock.SETTLE", 0.0)
    with hold_lock(tmp_path, take_over=True):
        assert json.loads((tmp_path / LOCK).read_text())["pid"] == os.getpid()


def test_the_jobs_of_slurm_and_kubernetes_go_on_where_they_stopped(tmp_path):
    (tmp_path / "run.toml").write_text('[data]\ndata = "/data/x"\n[cluster]\nto = "kubernetes"\n')
    text = script(ClusterSettings(workers=2, options={"queue": "long", "driver": {"time": "10:00"}}), tmp_path)
    assert "#SBATCH --requeue" in text and "--take-over" in text
    assert "--partition=long" in text and "--time=10:00" in text
    asked = ClusterSettings(workers=2, options={"image": "i", "claim": "c"})
    found = {one["kind"]: one for one in manifests(asked, tmp_path)}
    assert found["ConfigMap"]["data"]["run.toml"] == '[data]\ndata = "/data/x"\n'
    (pod,) = found["Job"]["spec"]["template"]["spec"]["containers"]
    assert {"--take-over", "--trust"} <= set(pod["args"])
    rules = found["Job"]["spec"]["podFailurePolicy"]["rules"]
    assert rules[0]["action"] == "FailJob" and rules[0]["onExitCodes"]["values"] == [2, 3]
    with pytest.raises(UsageError, match=r"options\.certificates"):
        manifests(replace(asked, tls="temporary"), tmp_path)


# ---- certificates ----------------------------------------------------------------------------------------------------


def test_certificates_of_a_folder(tmp_path):
    with pytest.raises(DataError, match=r"ca\.pem, cert\.pem, key\.pem"):
        security_of(str(tmp_path))
    for name in FILES.values():
        (tmp_path / name).write_text("")
    assert security_of(str(tmp_path)).require_encryption
    quiet = Console("plain")
    with pytest.raises(UsageError, match="temporary certificates are made with a cluster"):
        with connect(ClusterSettings(scheduler="tls://127.0.0.1:1", tls="temporary"), quiet):
            pass
    with pytest.raises(UsageError, match="process lists"):
        PLACES["ssh"].check(ClusterSettings(hosts=("a", "b"), tls="temporary"))
    with pytest.raises(UsageError, match="name two clusters"):
        with connect(ClusterSettings(scheduler="tcp://127.0.0.1:1", to="local"), quiet):
            pass
