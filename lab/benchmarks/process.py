"""A peer in a process of its own: started once for a data set and penalty, given orders, ended at its time limit.

Covers: interpreters, the stored problem, threads and cores of the child, orders with deadlines, ending it with all it
started.
Does not cover: what the orders mean (``worker``), which time limits (``measure``).
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.engine.machine import available_cores
from lab.benchmarks.peers import Peer
from lab.benchmarks.worker import NOT_INSTALLED

ROOT = Path(__file__).resolve().parents[2]
"""The checkout that this file is of."""
PEER_PYTHON_VARIABLE, LIGHTNING_VARIABLE = "DBOOST_PEER_PYTHON", "DBOOST_LIGHTNING_PYTHON"
START = 60.0
"""Seconds that a process has to read the data and compile, unless it is given others."""
COMPILE = 300.0
"""Seconds for our own process, which compiles every kernel where none is cached yet."""
_POOLS = (
    "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS", "NUMBA_NUM_THREADS",
)  # fmt: skip


class Missing(Exception):
    """The peer is not installed in its environment."""


class Failed(Exception):
    """The peer ended with an error; the text is the last line it wrote."""


class TimeUp(Exception):
    """The peer did not answer in time and was ended."""


def interpreter(peer: Peer) -> str:
    """The Python that has a peer: this one for dboost, else the one its environment's variable names."""
    if peer.environment == "own":
        return sys.executable
    if peer.environment == "lightning":
        return peer_python(LIGHTNING_VARIABLE, ".peers-lightning")
    return peer_python()


def peer_python(variable: str = PEER_PYTHON_VARIABLE, folder: str = ".peers") -> str:
    """The interpreter that runs peers: that of the variable, of the environment of `make peers`, or this one."""
    made = ROOT / folder / "bin" / "python"
    return os.environ.get(variable) or (str(made) if made.exists() else sys.executable)


def store(folder: Path, X: Any, y: NDArray[Any]) -> None:
    """Write a problem's X and y where a worker reads them."""
    import scipy.sparse

    folder.mkdir(parents=True, exist_ok=True)
    if scipy.sparse.issparse(X):
        scipy.sparse.save_npz(folder / "X.npz", scipy.sparse.csr_matrix(X), compressed=False)
    else:
        np.save(folder / "X.npy", X)
    np.save(folder / "y.npy", y)


def environment(peer: Peer, threads: int, root: Path = ROOT) -> dict[str, str]:
    """Variables of the child: as many threads in every pool; for dboost itself the checkout `root` to import it from.

    How idle threads of OpenMP wait is left to it: they spin for about a millisecond and then sleep. Told to sleep at
    once, cyanure took 2.7 times as long on a machine whose processors wake slowly.
    """
    found = {**os.environ, **{name: str(threads) for name in _POOLS}}
    found.pop("OMP_WAIT_POLICY", None)
    if peer.environment == "own":
        found["PYTHONPATH"] = os.pathsep.join(path for path in (str(root), found.get("PYTHONPATH", "")) if path)
    else:
        found.pop("PYTHONPATH", None)
    return found


class PeerProcess:
    """One peer with one stored problem.

    `folder`: the stored problem. `opening`: loss, penalty, alpha_max and threads, for the worker's ``open``; also
    ``rungs``, where others than the first of the peer's ladder are to be compiled. `log`: what the peer prints is added
    here. `root`: the checkout whose ``dboost`` runs, where the peer is dboost. `about`: what the worker said of itself
    when it was open. `child`: the process, while there is one.
    """

    def __init__(self, peer: Peer, folder: Path, opening: dict[str, Any], log: Path, root: Path = ROOT) -> None:
        self.peer = peer
        self.folder = folder
        self.opening = opening
        self.log = log
        self.root = root
        self.about: dict[str, Any] = {}
        self.child: subprocess.Popen[bytes] | None = None
        self._pending = b""
        self._opened = False

    def order(self, seconds: float, **order: Any) -> dict[str, Any]:
        """Send one order and wait for its answer; starts the process when there is none."""
        self.ready()
        self._send(order)
        return self._receive(seconds)

    def launch(self) -> None:
        """Start the process unless it runs, without waiting until it is ready."""
        if self.child is None:
            self._start()

    def ready(self, seconds: float = START) -> None:
        """Wait until the process has its data loaded and is compiled; starts it unless it runs."""
        self.launch()
        if not self._opened:
            self.about = self._receive(seconds)
            self._opened = True

    def _start(self) -> None:
        script = Path(__file__).with_name("worker.py")
        threads = int(self.opening["threads"])
        with self.log.open("ab") as log:
            self.child = subprocess.Popen(
                [interpreter(self.peer), "-P", str(script), self.peer.name, str(self.folder)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment(self.peer, threads, self.root),
                start_new_session=True,
            )
        if hasattr(os, "sched_setaffinity") and available_cores() > threads:
            os.sched_setaffinity(self.child.pid, sorted(os.sched_getaffinity(0))[:threads])
        self._pending = b""
        self._opened = False
        self._send({"do": "open", **self.opening})

    def _send(self, order: dict[str, Any]) -> None:
        assert self.child is not None and self.child.stdin is not None
        # a process that is gone says why when its answer is waited for
        with contextlib.suppress(BrokenPipeError):
            self.child.stdin.write(json.dumps(order).encode() + b"\n")
            self.child.stdin.flush()

    def _receive(self, seconds: float) -> dict[str, Any]:
        child = self.child
        assert child is not None and child.stdout is not None
        deadline = time.monotonic() + seconds
        with selectors.DefaultSelector() as ready:
            ready.register(child.stdout, selectors.EVENT_READ)
            while b"\n" not in self._pending:
                left = deadline - time.monotonic()
                if left <= 0.0 or not ready.select(left):
                    self.close()
                    raise TimeUp(f"no answer in {seconds:.1f} s")
                part = os.read(child.stdout.fileno(), 1 << 16)
                if not part:
                    self._gone()
                self._pending += part
        line, self._pending = self._pending.split(b"\n", 1)
        reply: dict[str, Any] = json.loads(line)
        if not reply.pop("ok"):
            raise Failed(str(reply["error"]))
        return reply

    def _gone(self) -> None:
        """The process ended by itself: say why."""
        assert self.child is not None
        code = self.child.wait()
        self.close()
        if code == NOT_INSTALLED:
            raise Missing(f"{self.peer.module} is not installed in its environment")
        lines = self.log.read_text(errors="replace").strip().splitlines()
        raise Failed(f"ended with code {code}: {lines[-1][:200] if lines else 'no word'}")

    def close(self) -> None:
        """End the process and everything it started; those are in a session of their own."""
        child, self.child = self.child, None
        if child is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                # what could not be flushed is for nobody
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()

    def __enter__(self) -> PeerProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
