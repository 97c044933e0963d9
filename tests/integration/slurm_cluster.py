"""A Slurm of one machine: munge, a controller and a node of its own, in a folder, on loopback.

Debian's packages slurmctld, slurmd, slurm-client and munge are needed, and root, as Slurm itself needs it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

PROGRAMS = ("slurmctld", "slurmd", "sbatch", "munged")
_CONF = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SlurmctldPort={controller}
SlurmdPort={node}
SlurmctldParameters=enable_configless
SlurmdParameters=config_overrides
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
MpiDefault=none
ReturnToService=2
KillWait=5
SchedulerParameters=sched_interval=1,batch_sched_delay=0
RequeueExitHold=
NodeName={host} NodeAddr=127.0.0.1 CPUs=16 RealMemory=20000 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def missing() -> str:
    """Why there can be no Slurm here; empty where there can."""
    gone = [name for name in PROGRAMS if shutil.which(name) is None]
    if gone:
        return f"{', '.join(gone)} not installed (Debian: slurmctld slurmd slurm-client munge)"
    return "" if os.geteuid() == 0 else "Slurm's own processes need root"


def _port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def slurm(folder: Path) -> Iterator[dict[str, str]]:
    """Start it; yields the variables with which `sbatch` and the others find it."""
    host = socket.gethostname().split(".")[0]
    for name in ("state", "spool", "munge"):
        (folder / name).mkdir(mode=0o700)
    os.chmod(folder, 0o755)
    key = folder / "munge" / "key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o400)
    text = _CONF.format(host=host, folder=folder, controller=_port(), node=_port()).replace("RequeueExitHold=\n", "")
    (folder / "slurm.conf").write_text(text)
    environment = dict(os.environ, SLURM_CONF=str(folder / "slurm.conf"))
    (folder / "munge").chmod(0o755)
    started = []
    try:
        munge = folder / "munge"
        munged = ["munged", "--foreground", "--force", f"--key-file={key}", f"--socket={munge}/socket"]
        munged += [f"--pid-file={munge}/pid", f"--log-file={munge}/log", f"--seed-file={munge}/seed"]
        for command in (munged, ["slurmctld", "-D"], ["slurmd", "-D", "-N", host]):
            with open(folder / f"{command[0]}.out", "w") as out:
                started.append(subprocess.Popen(command, env=environment, stdout=out, stderr=out, cwd=folder))
            time.sleep(1.0)
        until = time.monotonic() + 60
        while True:
            said = subprocess.run(["sinfo", "-h", "-o", "%T"], env=environment, capture_output=True, text=True)
            if said.stdout.strip() in ("idle", "mixed"):
                break
            if time.monotonic() > until:
                logs = "\n".join(f"{path.name}:\n{path.read_text()[-2000:]}" for path in folder.glob("*.log"))
                raise RuntimeError(f"Slurm did not come up: {said.stdout} {said.stderr}\n{logs}")
            time.sleep(0.5)
        yield {"SLURM_CONF": environment["SLURM_CONF"]}
    finally:
        subprocess.run(["scancel", "--state=RUNNING"], env=environment, capture_output=True)
        for process in reversed(started):
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(15)
