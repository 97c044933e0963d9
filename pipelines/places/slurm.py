"""Kind "slurm": workers are jobs of Slurm (dask-jobqueue), and so is the process of the run.

The job of the run may be requeued: it goes on from the checkpoint, since ``dboost resume`` does what is not done yet.
"""

from __future__ import annotations

import contextlib
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dboost.errors import ClusterError
from dboost.interop.extras import imported

from ..config import ClusterSettings
from .place import LOG, ClusterKind, called, client_of, command, number_of, options_of
from .security import security_of

SCRIPT = "driver.sbatch"
# What the job of the run has itself; options.driver replaces and adds to it.
_DRIVER = {"cpus-per-task": "2", "mem": "4G"}


class Slurm(ClusterKind):
    """Jobs of Slurm."""

    takes = ("memory_limit", "tls", "options")
    says = {"memory": "memory_limit", "n_workers": "workers"}

    @contextlib.contextmanager
    def cluster(self, settings: ClusterSettings) -> Iterator[Any]:
        """Workers as jobs."""
        jobqueue = imported("dask_jobqueue", "slurm")
        arguments = _arguments(settings)
        with client_of("slurm", lambda: jobqueue.SLURMCluster(**arguments), number_of(settings)) as client:
            yield client

    def shown(self, settings: ClusterSettings, folder: Path) -> str:
        """The script of the run's job, and that of a worker's."""
        shown = script(settings, folder)
        jobqueue = imported("dask_jobqueue", "slurm")
        job = jobqueue.slurm.SLURMJob(scheduler="tcp://SCHEDULER:8786", name="worker", **_of_a_job(settings))
        return f"{shown}\n# {number_of(settings)} jobs of workers, each:\n{job.job_script()}"

    def start(self, settings: ClusterSettings, folder: Path) -> dict[str, Any]:
        """Submit the run's job."""
        path = folder / SCRIPT
        path.write_text(script(settings, folder), encoding="utf-8")
        said = _called(["sbatch", "--parsable", str(path)])
        return {"job": said.split(";")[0].strip()}

    def stop(self, started: dict[str, Any]) -> str:
        """Send the run SIGTERM, which leaves the model so far; its workers' jobs end with it."""
        job = str(started["job"])
        try:
            _called(["scancel", "--signal=TERM", "--batch", job])
        except ClusterError as error:
            if "Invalid job id" not in error.what:
                raise
            return f"job {job} had ended already"
        return f"job {job} was asked to end"


def script(settings: ClusterSettings, folder: Path) -> str:
    """The job of the run."""
    options = options_of(settings)
    wanted = _DRIVER | {str(key): str(value) for key, value in options.get("driver", {}).items()}
    for name in ("queue", "account"):
        if options.get(name):
            wanted.setdefault({"queue": "partition"}.get(name, name), str(options[name]))
    log = shlex.quote(str(folder / LOG))
    lines = [
        "#!/bin/sh",
        f"#SBATCH --job-name=dboost-{re.sub(r'[^A-Za-z0-9._-]+', '-', folder.name)}",
        f"#SBATCH --output={log}",
        "#SBATCH --open-mode=append",
        "#SBATCH --requeue",
        *(f"#SBATCH --{name}={value}" for name, value in wanted.items()),
        # a run on another node that was killed has left its name in the lock; two jobs of one name never run at once
        f"exec {shlex.join([*command(folder), '--take-over'])}",
    ]
    return "\n".join(lines) + "\n"


def _arguments(settings: ClusterSettings) -> dict[str, Any]:
    security = security_of(settings.tls)
    found = _of_a_job(settings)
    if security is not None:
        found |= {"security": security, "protocol": "tls://"}
        found.setdefault("shared_temp_directory", str(Path.cwd()))
    return found


def _of_a_job(settings: ClusterSettings) -> dict[str, Any]:
    """Arguments of a worker's job."""
    given = options_of(settings)
    given.pop("driver", None)
    given.setdefault("cores", 2)
    given.setdefault("memory", settings.memory_limit or "4GiB")
    # one process with all threads of a job shares what it remembers of the data
    given.setdefault("processes", 1)
    return given


def _called(program: list[str]) -> str:
    return called(program, "", 60, "submit from a node that has Slurm")
