"""The process of a run that is started on this machine and left alone: it outlives the terminal.

Covers: starting it, stopping it, its log. Does not cover: what it does, which is ``dboost resume``.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from dboost.errors import ClusterError, UsageError

from ..runs.folder import read_events
from ..runs.listing import listed

LOG = "driver.log"
# Seconds in which a process has either begun its run or said why it cannot.
_BEGINS = 60.0


def command(folder: Path) -> list[str]:
    """What is run; whoever submits a run has consented to its file."""
    return [sys.executable, "-m", "dboost_pipelines", "resume", str(folder), "--trust", "--log-format", "plain"]


def start(folder: Path) -> dict[str, Any]:
    """Start it, and wait until it is at its first stage.

    That it holds the lock of its folder says too little: it looks at its inputs with the lock in its hands.
    """
    log = folder / LOG
    # A shell that ends at once leaves the process to the system: it is nobody's child, and nobody has to wait for it.
    line = 'nohup "$@" >> "$0" 2>&1 < /dev/null & echo $!'
    done = subprocess.run(
        ["sh", "-c", line, str(log), *command(folder)],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, start_new_session=True, cwd=folder, check=True,
    )  # fmt: skip
    pid = int(done.stdout)
    until = time.monotonic() + _BEGINS
    while time.monotonic() < until and not _begun(folder, pid):
        if not _lives(pid):
            if listed(folder, folder.parent).state == "done":
                break  # there was little or nothing left to do
            said = log.read_text(encoding="utf-8", errors="replace").strip().splitlines() or ["nothing"]
            raise ClusterError(f"the run ended at once: {said[-1]}", file=str(log))
        time.sleep(0.05)
    return {"pid": pid, "host": socket.gethostname()}


def _begun(folder: Path, pid: int) -> bool:
    """Whether the process has told of a stage."""
    mine = False
    for event in read_events(folder):
        if event.get("event") == "run_start":
            mine = event.get("pid") == pid
        elif mine and str(event.get("event")).startswith("stage_"):
            return True
    return False


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def stop(started: dict[str, Any]) -> str:
    """Ask it to end, which leaves the model so far."""
    host, pid = started["host"], int(started["pid"])
    if host != socket.gethostname():
        raise UsageError(f"process {pid} of the run is on host {host}", hint="stop it there")
    try:
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:
        return f"process {pid} had ended already"
    return f"process {pid} was asked to end"
