"""Run a peer, or the reference, on one problem in a process of its own, with a time limit.

Covers: the job files, the interpreter that has the peers, what came back. Does not cover: what each peer minimises
(``worker``), the comparison (``compare``).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.oracle.worker import NOT_INSTALLED

GRACE = 45.0
"""Seconds to start, read the data and finish a step, beyond the budget."""
PEER_PYTHON_VARIABLE = "DBOOST_PEER_PYTHON"
ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Job:
    """One problem for one solver."""

    # A key of ``worker.PEERS``, or ``"reference"``.
    peer: str
    # Folder with the stored X and y.
    data: str
    loss: str
    penalty: str
    # On the mean loss.
    alpha: float
    intercept: bool
    # Budget of the solver; the process is ended at this plus `GRACE`.
    seconds: float


@dataclass(frozen=True)
class Answer:
    """What a solver returned; W and b are None when there is no answer, and `note` says why."""

    W: NDArray[np.float64] | None
    b: NDArray[np.float64] | None
    seconds: float
    note: str = ""


def store(folder: Path, X: Any, y: NDArray[Any]) -> None:
    """Write a problem's X and y where a worker reads them."""
    import scipy.sparse

    folder.mkdir(parents=True, exist_ok=True)
    if scipy.sparse.issparse(X):
        scipy.sparse.save_npz(folder / "X.npz", scipy.sparse.csr_matrix(X), compressed=False)
    else:
        np.save(folder / "X.npy", X)
    np.save(folder / "y.npy", y)


def peer_python(variable: str = PEER_PYTHON_VARIABLE, folder: str = ".peers") -> str:
    """Return the interpreter that runs the peers: ``DBOOST_PEER_PYTHON``, that of `make peers`, or this one."""
    made = ROOT / folder / "bin" / "python"
    return os.environ.get(variable) or (str(made) if made.exists() else sys.executable)


def run(job: Job, scratch: Path) -> Answer:
    """Solve one job in a process of its own.

    A peer that is not installed, fails or runs out of time gives an answer without W, and the reason.
    """
    job_file, answer_file = scratch / "job.json", scratch / "answer.npz"
    job_file.write_text(json.dumps(asdict(job)))
    answer_file.unlink(missing_ok=True)
    environment = dict(os.environ)
    if job.peer == "reference":
        command = [sys.executable, "-m", f"{__package__}.reference"]
        # The folder above this package, so that the current folder does not matter.
        paths = [str(Path(__file__).resolve().parents[2]), environment.get("PYTHONPATH", "")]
        environment["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    else:
        command = [peer_python(), str(Path(__file__).with_name("worker.py"))]
    try:
        done = subprocess.run(
            [*command, str(job_file), str(answer_file)],
            env=environment,
            timeout=job.seconds + GRACE,
            capture_output=True,
            text=True,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Answer(None, None, job.seconds + GRACE, f"no answer in {job.seconds + GRACE:.0f} s")
    if done.returncode == NOT_INSTALLED:
        return Answer(None, None, 0.0, "not installed")
    if done.returncode != 0 or not answer_file.is_file():
        lines = done.stderr.strip().splitlines()
        return Answer(None, None, 0.0, f"failed: {lines[-1][:120] if lines else done.returncode}")
    with np.load(answer_file) as answer:
        return Answer(answer["W"], answer["b"], float(answer["seconds"]))
