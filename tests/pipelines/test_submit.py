"""Runs that are put on a cluster and left there: started, followed, stopped, resumed; what a dry run shows; TLS."""

import io
import json
import os
import time

import pytest
from distributed import Client, Security

from dboost.errors import DataError, UsageError
from pipelines.cli import main
from pipelines.cluster import connect
from pipelines.config import ClusterSettings
from pipelines.console import Console
from pipelines.places.kubernetes import manifests
from pipelines.places.place import Request
from pipelines.places.registry import PLACES
from pipelines.places.security import FILES, security_of
from pipelines.places.slurm import script
from pipelines.runs.fingerprints import of_model
from pipelines.runs.listing import listed
from pipelines.runs.lock import LOCK, hold_lock
from tests.pipelines.test_runs import FILE, file  # noqa: F401

pytestmark = pytest.mark.timeout(120)


def wait(condition, folder):
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until, (folder / "driver.log").read_text()
        time.sleep(0.1)


def test_a_run_is_left_alone_followed_and_read(file, capsys):  # noqa: F811
    # a process of its own has the defaults of a user, and this one those of tests
    file.write_text(file.read_text().replace("[model]", "[model]\nstandardize = false"))
    assert main(["submit", str(file), "--workers", "0"]) == 0
    folder = file.parent / "runs" / "trees"
    assert "next: dboost logs" in capsys.readouterr().out
    assert main(["logs", str(folder), "--follow"]) == 0
    shown = capsys.readouterr().out
    assert "stage done: stage train" in shown and "run done" in shown and ", gap " in shown
    assert listed(folder, folder.parent).state == "done"
    assert main(["run", str(file), "--out", str(file.parent / "alone")]) == 0
    assert of_model(folder / "model") == of_model(file.parent / "alone" / "model")
    capsys.readouterr()
    assert main(["logs", str(folder), "--log-format", "json"]) == 0
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert events[-1]["event"] == "run_done" and events[-1]["at"] > 1e9


def test_a_run_that_is_stopped_goes_on(file):  # noqa: F811
    file.write_text(FILE.replace("alpha = 0.005", "alpha = 1e-7\ntol = 1e-12\nmax_rounds = 400"))
    folder = file.parent / "runs" / "trees"
    assert main(["submit", str(file), "--to", "local", "--workers", "1"]) == 0
    wait(lambda: listed(folder, folder.parent).rounds, folder)
    assert main(["submit", str(file), "--workers", "0"]) == 2  # it is at work
    assert main(["stop", str(folder)]) == 0
    wait(lambda: listed(folder, folder.parent).state in ("stopped", "done"), folder)
    main(["resume", str(folder), "--workers", "0"])
    main(["run", str(file), "--out", str(file.parent / "alone"), "--set", "cluster.workers=0"])
    assert of_model(folder / "model") == of_model(file.parent / "alone" / "model")


def test_a_run_that_cannot_begin_says_why(file, capsys):  # noqa: F811
    os.unlink(file.parent / "documents.parquet")
    assert main(["submit", str(file), "--workers", "0"]) == 4
    assert "documents.parquet" in capsys.readouterr().err


def test_a_dry_run_writes_nothing(file, capsys):  # noqa: F811
    before = sorted(file.parent.rglob("*"))
    assert main(["submit", str(file), "--to", "local", "--dry-run"]) == 0
    assert "resume" in capsys.readouterr().out
    assert main(["submit", str(file), "--to", "ssh", "--workers", "1", "--hosts", "a,b,c", "--dry-run"]) == 0
    assert "# 1 worker on c" in capsys.readouterr().out
    assert sorted(file.parent.rglob("*")) == before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--to", "slum"], "did you mean 'slurm'?"),
        (["--to", "ssh", "--workers", "1", "--hosts", "one", "--dry-run"], "has 1 hosts"),
        (["--to", "kubernetes", "--workers", "2", "--dry-run"], "needs options.image"),
        (["--to", "gateway", "--dry-run"], "workers is 0, which is no cluster, and --to gateway is of one"),
        (["--options", '{"a": null}'], "without null"),
        (["--to", "local", "--workers", "1", "--hosts", "a"], "--hosts has no effect on this kind of cluster"),
        (["--to", "local", "--hosts", "a"], "workers is 0, which is no cluster, and hosts is of one"),
    ],
)
def test_requests_without_meaning(
    file,  # noqa: F811
    capsys,
    arguments,
    said,
):
    code = main(["submit", str(file), *arguments])
    assert code in (2, 4) and said in capsys.readouterr().err


def test_folders_that_were_not_submitted(tmp_path, capsys):
    assert main(["stop", str(tmp_path)]) == 2 and "was not submitted" in capsys.readouterr().err
    assert main(["logs", str(tmp_path)]) == 3 and "is no run folder" in capsys.readouterr().err


def test_a_new_pod_takes_over_what_its_predecessor_held(tmp_path, monkeypatch):
    record = {"host": "another", "pid": 1, "since": "now", "kernel": "another"}
    (tmp_path / LOCK).write_text(json.dumps(record))
    monkeypatch.setattr("pipelines.runs.lock.is_local", lambda _: False)
    monkeypatch.setattr("pipelines.runs.lock.SETTLE", 0.0)
    with hold_lock(tmp_path, take_over=True):
        assert json.loads((tmp_path / LOCK).read_text())["pid"] == os.getpid()


def test_the_jobs_of_slurm_and_kubernetes_go_on_where_they_stopped(tmp_path):
    (tmp_path / "run.toml").write_text('[data]\ndata = "/data/x"\n[cluster]\nto = "kubernetes"\n')
    text = script(Request(2, options={"queue": "long", "driver": {"time": "10:00"}}), tmp_path)
    assert "#SBATCH --requeue" in text and "--take-over" in text
    assert "--partition=long" in text and "--time=10:00" in text
    found = {one["kind"]: one for one in manifests(Request(2, options={"image": "i", "claim": "c"}), tmp_path)}
    assert found["ConfigMap"]["data"]["run.toml"] == '[data]\ndata = "/data/x"\n'
    (pod,) = found["Job"]["spec"]["template"]["spec"]["containers"]
    assert {"--take-over", "--trust"} <= set(pod["args"])
    rules = found["Job"]["spec"]["podFailurePolicy"]["rules"]
    assert rules[0]["action"] == "FailJob" and rules[0]["onExitCodes"]["values"] == [2, 3]
    with pytest.raises(UsageError, match=r"options\.certificates"):
        manifests(Request(2, tls="temporary", options={"image": "i", "claim": "c"}), tmp_path)


# ---- certificates ----------------------------------------------------------------------------------------------------


def test_a_cluster_with_certificates_refuses_whoever_has_none(tmp_path):
    pytest.importorskip("cryptography", reason="cryptography is not installed")
    settings = ClusterSettings(to="local", workers=1, tls="temporary")
    with connect(settings, Console("plain", out=io.StringIO())) as client:
        address = client.scheduler.address
        assert address.startswith("tls://127.0.0.1")
        assert client.submit(lambda: 7).result() == 7
        wrong = Security.temporary()
        with pytest.raises((OSError, ValueError, TypeError)):
            Client(address, security=wrong, timeout=2)


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
        PLACES["ssh"].check(Request(hosts=("a", "b"), tls="temporary"))
    with pytest.raises(UsageError, match="name two clusters"):
        with connect(ClusterSettings(scheduler="tcp://127.0.0.1:1", to="local"), quiet):
            pass


def test_a_key_of_a_cluster_that_could_have_no_effect_is_refused(tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("DASK_SCHEDULER_ADDRESS", raising=False)
    hosts = ["--to", "ssh", "--hosts", "a,b", "--workers", "2"]
    for given, said in (
        (["--workers", "2", "--connect-timeout", "5"], "--connect-timeout is of a scheduler that is there"),
        (["--workers", "0", "--rejoin-seconds", "5"], "--rejoin-seconds is of a scheduler that is there"),
        (["--workers", "2", "--hosts", "a,b"], "--hosts has no effect on this kind"),
        (["--to", "slurm", "--workers", "2", "--hosts", "a,b"], "--hosts has no effect on this kind"),
        (["--to", "gateway", "--workers", "2", "--memory-limit", "2GiB"], "--memory-limit has no effect on this kind"),
        (["--to", "gateway", "--workers", "2", "--tls", "temporary"], "--tls has no effect on this kind"),
        ([*hosts, "--options", '{"worker_options": {"n_workers": 3}}'], "--workers beside options.worker_options"),
        (["--to", "slurm", "--workers", "2", "--options", '{"n_workers": 3}'], "--workers beside options.n_workers"),
    ):
        assert main(["doctor", *given]) == 2, given
        assert said in capsys.readouterr().err, given
    assert main(["resume", str(tmp_path), "--connect-timeout", "5"]) == 2
    assert "--connect-timeout without the cluster it is of" in capsys.readouterr().err
