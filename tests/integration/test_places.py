"""Runs on clusters of other kinds, against real components of this machine: Slurm, ssh, the operator's schemas.

``make integration`` installs what these need; without it they are skipped with a reason.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from distributed import Security

from lab.run_kills import events
from pipelines.cli import main
from pipelines.runs.fingerprints import of_model
from pipelines.runs.listing import listed
from tests.integration import slurm_cluster

FILE = """
[data]
data = "documents.jsonl"
label = "label"
[prepare]
min_df = 2
[model]
penalty = "l1/l2"
alpha = 1e-5
tol = 1e-6
"""
PATIENCE = 150.0
pytestmark = pytest.mark.timeout(400)


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """A folder with documents, a run file, and the run that nothing disturbed."""
    folder = tmp_path_factory.mktemp("runs")
    rng = random.Random(0)
    words = [f"word{number}" for number in range(4000)]
    with open(folder / "documents.jsonl", "w") as out:
        for _ in range(20000):
            label = rng.randrange(6)
            text = rng.choices(words, k=30) + [words[label * 20 + rng.randrange(30)] for _ in range(6)]
            out.write(json.dumps({"text": " ".join(text), "label": f"topic {label}"}) + "\n")
    (folder / "run.toml").write_text(FILE)
    assert main(["run", str(folder / "run.toml"), "--out", str(folder / "alone")]) == 0
    return folder


def digest(folder):
    return of_model(folder / "model")


def dboost(*arguments, variables=None):
    command = [sys.executable, "-m", "pipelines", *map(str, arguments)]
    environment = dict(os.environ, **(variables or {}))
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


def wait(condition, what, folder):
    until = time.monotonic() + PATIENCE
    while not condition():
        log = folder / "driver.log"
        said = log.read_text()[-3000:] if log.exists() else "no log"
        assert time.monotonic() < until and state(folder) != "failed", f"{what}: {said}"
        time.sleep(0.2)


def rounds(folder):
    return listed(folder, folder.parent).rounds or 0


def trains(folder):
    return any(event["event"] == "stage_start" and event["stage"] == "train" for event in events(folder))


def state(folder):
    return listed(folder, folder.parent).state


# ---- Slurm -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    reason = slurm_cluster.missing()
    if reason:
        pytest.skip(reason)
    pytest.importorskip("dask_jobqueue", reason="dask-jobqueue is not installed; make integration installs it")
    with slurm_cluster.slurm(tmp_path_factory.mktemp("slurm")) as variables:
        yield variables


OPTIONS = json.dumps(
    {"interface": "lo", "cores": 1, "memory": "1500MiB", "driver": {"mem": "2G", "cpus-per-task": "1"}}
)


def submitted(work, name, variables):
    folder = work / name
    dboost("submit", work / "run.toml", "--to", "slurm", "--workers", 2, "--options", OPTIONS, "--out", folder,
           variables=variables)  # fmt: skip
    return folder


def jobs(variables, name):
    command = ["squeue", "-h", "-n", name, "-o", "%i", "-t", "RUNNING"]
    return subprocess.run(command, env=dict(os.environ, **variables), capture_output=True, text=True).stdout.split()


def test_slurm_a_run_to_its_end(work, slurm):
    folder = submitted(work, "slurm", slurm)
    wait(lambda: state(folder) == "done", "the run did not end", folder)
    assert digest(folder) == digest(work / "alone")
    wait(lambda: not jobs(slurm, "dask-worker"), "workers were left behind", folder)


def test_slurm_a_killed_worker_and_a_killed_run_cost_no_bit(work, slurm):
    folder = submitted(work, "slurm-killed", slurm)
    environment = dict(os.environ, **slurm)
    wait(lambda: rounds(folder) >= 1, "no round", folder)
    workers = jobs(slurm, "dask-worker")
    subprocess.run(["scancel", "--signal=KILL", "--full", workers[0]], env=environment, check=True)
    (job,) = jobs(slurm, f"dboost-{folder.name}")
    subprocess.run(["scontrol", "requeue", job], env=environment, check=True)

    def begun():
        # Slurm lets a job that was requeued wait for two minutes; it is told to begin at once
        command = ["scontrol", "update", f"JobId={job}", "StartTime=now"]
        subprocess.run(command, env=environment, capture_output=True, check=False)
        return job in jobs(slurm, f"dboost-{folder.name}")

    wait(lambda: job not in jobs(slurm, f"dboost-{folder.name}"), "it was not requeued", folder)
    wait(begun, "it did not begin again", folder)
    wait(lambda: state(folder) == "done", "the run did not go on", folder)
    assert digest(folder) == digest(work / "alone")


def test_slurm_stop_and_resume(work, slurm):
    folder = submitted(work, "slurm-stopped", slurm)
    # a fit takes little longer than the command that stops it takes to begin: it is stopped where training begins
    wait(lambda: trains(folder), "no training", folder)
    assert "was asked to end" in dboost("stop", folder, variables=slurm)
    wait(lambda: state(folder) in ("stopped", "done"), "the run did not stop", folder)
    dboost("resume", folder, "--workers", 0)
    assert digest(folder) == digest(work / "alone")


# ---- ssh -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def ssh(tmp_path_factory):
    """Options of a server of ssh on loopback that lets this user in with a key of its own."""
    server = shutil.which("sshd")
    if server is None:
        pytest.skip("sshd is not installed (Debian: openssh-server)")
    pytest.importorskip("asyncssh", reason="asyncssh is not installed; make integration installs it")
    folder = tmp_path_factory.mktemp("ssh")
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True)
    (folder / "allowed").write_text((folder / "user.pub").read_text())
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    (folder / "config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nAuthorizedKeysFile {folder}/allowed\n"
        f"PidFile {folder}/pid\nStrictModes no\nUsePAM no\nPermitRootLogin prohibit-password\n"
    )
    Path("/run/sshd").mkdir(exist_ok=True)
    process = subprocess.Popen([server, "-D", "-e", "-f", str(folder / "config")], stderr=subprocess.DEVNULL)
    time.sleep(1.0)
    known = folder / "known"
    known.write_text(f"[127.0.0.1]:{port} {(folder / 'host.pub').read_text()}")
    yield {"connect_options": {"port": port, "client_keys": str(folder / "user"), "known_hosts": str(known)}}
    process.terminate()
    process.wait(10)


def test_ssh_a_run_that_is_killed_and_resumed(work, ssh):
    folder = work / "ssh"
    host = {"host": "127.0.0.1"}
    options = json.dumps(ssh | {"remote_python": sys.executable, "worker_options": host, "scheduler_options": host})
    hosts = "127.0.0.1,127.0.0.1"
    made = Security.temporary()
    certificates = work / "certificates"
    certificates.mkdir()
    texts = {"ca.pem": made.tls_ca_file, "cert.pem": made.tls_client_cert, "key.pem": made.tls_client_key}
    for name, text in texts.items():
        (certificates / name).write_text(text)
    dboost("submit", work / "run.toml", "--to", "ssh", "--workers", 2, "--hosts", hosts, "--options", options,
           "--tls", certificates, "--out", folder)  # fmt: skip
    wait(lambda: rounds(folder) >= 1, "no round", folder)
    os.kill(json.loads((folder / "submitted.json").read_text())["pid"], signal.SIGKILL)
    wait(lambda: state(folder) == "killed", "it lives", folder)
    dboost("resume", folder)
    assert digest(folder) == digest(work / "alone")
    shutil.rmtree(folder)
    dboost("submit", work / "run.toml", "--to", "ssh", "--workers", 2, "--hosts", hosts, "--options", options,
           "--out", folder)  # fmt: skip
    wait(lambda: state(folder) == "done", "the run did not end", folder)
    assert digest(folder) == digest(work / "alone")


# ---- Kubernetes ------------------------------------------------------------------------------------------------------


def test_kubernetes_manifests_meet_the_schemas_of_the_operator(work):
    """Those of its own resources are in the package of the operator, those of Kubernetes in one of validators."""
    operator = pytest.importorskip("dask_kubernetes", reason="dask-kubernetes is not installed")
    validate = pytest.importorskip("kubernetes_validate", reason="kubernetes-validate is not installed")
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    import yaml

    options = {"image": "registry/dboost:0.1.0", "claim": "data", "certificates": "dboost-tls", "namespace": "ml"}
    shown = dboost("submit", work / "run.toml", "--to", "kubernetes", "--workers", 8, "--options", json.dumps(options),
                   "--dry-run")  # fmt: skip
    found = {one["kind"]: one for one in yaml.safe_load_all(shown)}
    assert set(found) == {"ConfigMap", "DaskCluster", "NetworkPolicy", "Job"}
    for kind in ("ConfigMap", "NetworkPolicy", "Job"):
        validate.validate(found[kind], "1.30", strict=True)
    folder = Path(operator.__file__).parent / "operator" / "deployment" / "helm" / "dask-kubernetes-operator" / "crds"
    (resource,) = [one for one in yaml.safe_load_all((folder / "daskcluster.yaml").read_text()) if one]
    schema = resource["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    jsonschema.validate(found["DaskCluster"], schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**found["DaskCluster"], "spec": {"worker": {"replicas": "eight"}}}, schema)
    for role in ("worker", "scheduler"):
        pod = found["DaskCluster"]["spec"][role]["spec"]
        validate.validate({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": role}, "spec": pod}, "1.30")
