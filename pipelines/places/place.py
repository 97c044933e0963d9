"""What a kind of cluster has to say of itself, and what several kinds share."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import psutil

from dboost.errors import ClusterError, DboostError, UsageError

from ..config import ClusterSettings
from ..runs.folder import read_events
from ..runs.listing import listed

LOG = "driver.log"
# Seconds in which a process has either begun its run or said why it cannot.
_BEGINS = 60.0
# Seconds in which the first worker of a cluster must come; queues of batch systems may take long.
PATIENCE = 3600.0


def number_of(settings: ClusterSettings) -> int:
    """How many workers, where the kind has no number of its own."""
    if not settings.workers:
        raise UsageError("how many workers?", hint="give workers, such as 8")
    return settings.workers


def options_of(settings: ClusterSettings) -> dict[str, Any]:
    """Further arguments of the package that makes the cluster, as it names them."""
    return dict(settings.options or {})


class ClusterKind:
    """A kind of cluster."""

    # What it takes beside a number of workers; other keys of a cluster are refused.
    takes: tuple[str, ...] = ()
    # An option of its package that says what a key says, as far as there is one: such a key would have no effect.
    says: dict[str, str] = {}

    def check(self, settings: ClusterSettings) -> None:
        """Refuse what has no meaning here (UsageError), before anything is started."""
        for name in ("memory_limit", "hosts", "tls", "options"):
            if getattr(settings, name) and name not in self.takes:
                raise UsageError(f"{name}= has no effect on this kind of cluster", hint="leave it out")
        for option, name in self.says.items():
            if getattr(settings, name) is not None and _holds(settings.options, option.split(".")):
                raise UsageError(f"{name}= beside options.{option}, which says the same", hint="use one of them")
        self.check_own(settings)

    def check_own(self, settings: ClusterSettings) -> None:
        """Refuse what only this kind cannot do; a number of workers is needed by most."""
        number_of(settings)

    def cluster(self, settings: ClusterSettings) -> AbstractContextManager[Any]:
        """A client of a new cluster, which is removed at the end; UsageError or ClusterError where there is none."""
        raise NotImplementedError

    def shown(self, settings: ClusterSettings, folder: Path) -> str:
        """What a dry run shows: what would be run or sent to make the cluster and to do the run of a folder."""
        return shlex.join(command(folder))

    def start(self, settings: ClusterSettings, folder: Path) -> dict[str, Any]:
        """Start the run of a folder, and return what is needed to stop it, once it is at its first stage.

        That it holds the lock of its folder says too little: it looks at its inputs with the lock in its hands.
        """
        log = folder / LOG
        # A shell that ends at once leaves the process to the system, so that nobody has to wait for it.
        line = 'nohup "$@" >> "$0" 2>&1 < /dev/null & echo $!'
        done = subprocess.run(
            ["sh", "-c", line, str(log), *command(folder)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, start_new_session=True, cwd=folder, check=True,
        )  # fmt: skip
        pid = int(done.stdout)
        until = time.monotonic() + _BEGINS
        while time.monotonic() < until and not _begun(folder, pid):
            if not psutil.pid_exists(pid):
                if listed(folder, folder.parent).state == "done":
                    break  # there was little or nothing left to do
                said = log.read_text(encoding="utf-8", errors="replace").strip().splitlines() or ["nothing"]
                raise ClusterError(f"the run ended at once: {said[-1]}", file=str(log))
            time.sleep(0.05)
        return {"pid": pid, "host": socket.gethostname()}

    def stop(self, started: dict[str, Any]) -> str:
        """Stop it, as SIGTERM does; returns what was done, in words."""
        host, pid = started["host"], int(started["pid"])
        if host != socket.gethostname():
            raise UsageError(f"process {pid} of the run is on host {host}", hint="stop it there")
        try:
            os.kill(pid, signal.SIGTERM)
        except ProcessLookupError:
            return f"process {pid} had ended already"
        return f"process {pid} was asked to end"


def _holds(options: Any, path: Sequence[str]) -> bool:
    """Whether a table has a key, within tables of it."""
    for name in path:
        if not isinstance(options, dict) or name not in options:
            return False
        options = options[name]
    return True


@contextlib.contextmanager
def client_of(kind: str, make: Callable[[], Any], workers: int, patience: float = PATIENCE) -> Iterator[Any]:
    """A client of a new cluster with its first worker; `workers` is 0 where `make` has said how many."""
    from distributed import Client

    with contextlib.ExitStack() as opened:
        try:
            cluster = opened.enter_context(contextlib.closing(make()))
            if workers:
                cluster.scale(workers)
            client = opened.enter_context(Client(cluster, set_as_default=False))
            # a fit begins with what there is, and takes workers as they come
            client.wait_for_workers(1, timeout=patience)
        except DboostError:
            raise
        except Exception as error:
            words = " ".join(str(error).split()) or type(error).__name__
            raise ClusterError(f"the {kind} cluster did not come up: {words[:300]}") from error
        yield client


def called(program: Sequence[str], given: str, seconds: float, lacking: str) -> str:
    """What a program of a cluster's manager says, `given` what it reads; `lacking` is the cure where there is none."""
    try:
        done = subprocess.run(program, input=given, capture_output=True, text=True, timeout=seconds, check=False)
    except FileNotFoundError:
        raise UsageError(f"there is no {program[0]} on this machine", hint=lacking) from None
    except subprocess.TimeoutExpired:
        raise ClusterError(f"{program[0]} did not answer within {seconds:g} s") from None
    if done.returncode:
        raise ClusterError(f"{program[0]} failed: {' '.join(done.stderr.split())[:300]}")
    return done.stdout


# ---- a run on this machine -----------------------------------------------------------------------------------------


def command(folder: Path) -> list[str]:
    """What is run; whoever submits a run has consented to its file."""
    return [sys.executable, "-m", "dboost_pipelines", "resume", str(folder), "--trust", "--log-format", "plain"]


def _begun(folder: Path, pid: int) -> bool:
    """Whether the process has told of a stage."""
    mine = False
    for event in read_events(folder):
        if event.get("event") == "run_start":
            mine = event.get("pid") == pid
        elif mine and str(event.get("event")).startswith("stage_"):
            return True
    return False
