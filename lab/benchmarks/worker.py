"""Run one peer on one stored problem, order by order; a script for whatever Python has the peer.

Usage: ``python -P worker.py NAME FOLDER`` with orders as JSON lines on the standard input and answers as JSON lines on
the standard output (what the peer prints goes to the standard error). FOLDER holds the problem as
``process.store`` wrote it. Exit code 3: the peer is not installed here.

Orders: ``{"do": "open", "loss": ..., "penalty": ..., "alpha_max": ..., "threads": ...}``, with ``"intercept": true``
where there is one, reads the data, brings it into the peer's layout and compiles on a small problem, with the first
rungs of the peer's ladder or those of ``"rungs": [...]``. ``{"do": "run", "alpha": ..., "rung": ..., "answer": FILE}``
times one run, with ``"repeat": true`` a short one several times; ``{"do": "path", "alphas": [...], "rung": ...,
"answer": FILE}`` a whole path. The seconds of the layout are added to both.
"""

from __future__ import annotations

import gc
import importlib
import importlib.util
import json
import os
import sys
import time
import traceback
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

NOT_INSTALLED = 3
SHORT = 0.25
SHORT_RUNS = 3
"""A run of less than so many seconds is done so often where an order asks for it."""


def load_peer(name: str) -> Any:
    """The declaration of a peer, read without the project being installed.

    The folder of this file must not be on the path of imports: its files are named like the packages they drive.
    """
    folder = Path(__file__).resolve().parent / "peers"
    spec = importlib.util.spec_from_file_location(
        "benchmark_peers", folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec is not None and spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules["benchmark_peers"] = package
    spec.loader.exec_module(package)
    file = "ours" if name == "dboost" else name.replace("-", "_")
    return importlib.import_module(f"benchmark_peers.{file}").PEER, importlib.import_module("benchmark_peers.base")


def read_problem(folder: Path) -> tuple[Any, Any]:
    """X (csr_matrix or C-contiguous array) and y."""
    import scipy.sparse

    sparse = folder / "X.npz"
    X = scipy.sparse.csr_matrix(scipy.sparse.load_npz(sparse)) if sparse.exists() else np.load(folder / "X.npy")
    return X, np.load(folder / "y.npy").astype(np.int64)


def _status(pid: str, field: str) -> int:
    try:
        lines = Path("/proc", pid, "status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(field)), 0)


def _family() -> list[str]:
    """This process and its descendants (a peer's own server is part of its memory)."""
    parents: dict[str, str] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[entry.name] = (entry / "stat").read_text().rsplit(")", 1)[1].split()[1]
            except OSError:
                continue
    mine = [str(os.getpid())]
    for pid in mine:
        mine += [child for child, parent in parents.items() if parent == pid]
    return mine


def resident() -> int:
    """Bytes resident now, with all descendants; 0 where the system does not say."""
    return sum(_status(pid, "VmRSS") for pid in _family()) if Path("/proc/self/status").exists() else 0


def peak() -> int:
    """Largest resident bytes since `reset_peak`, with all descendants."""
    if not Path("/proc/self/status").exists():
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return sum(_status(pid, "VmHWM") for pid in _family())


def reset_peak() -> None:
    """Begin to measure the peak again; where that is not allowed it counts from the start of the process."""
    for pid in _family():
        try:
            Path("/proc", pid, "clear_refs").write_text("5")
        except OSError:
            continue


class Worker:
    """What a process knows between two orders."""

    def __init__(self, peer: Any, base: Any, folder: Path) -> None:
        self.peer = peer
        self.base = base
        self.folder = folder
        self.task: Any = None
        self.prepared: Any = None
        self.layout = 0.0
        self.loaded = 0

    def open(self, order: dict[str, Any]) -> dict[str, Any]:
        """Load, bring into the peer's layout, compile."""
        X, y = read_problem(self.folder)
        high = float(order["alpha_max"])
        how = int(order["threads"]), bool(order.get("intercept", False))
        self.task = self.base.Task(X, y, order["loss"], order["penalty"], high, high, *how)
        small = self.base.small(self.task)
        # several rungs: what only a later iteration reaches is compiled too
        for rung in order.get("rungs") or self.peer.ladder(small)[: self.peer.warm]:
            self.peer.solve(self.peer.prepare(small), small, rung)
        self.prepared = self._prepared()
        gc.collect()
        self.loaded = resident()
        return {
            "version": self.peer.version() if self.peer.version else _version(self.peer.package),
            "file": str(getattr(sys.modules.get(self.peer.module), "__file__", "")),
            "loaded": self.loaded,
            "layout": self.layout,
        }

    def _prepared(self) -> Any:
        """The data in the peer's layout, and the seconds that it takes: the better of two, as the first is cold."""
        if self.peer.loads:
            return self.peer.prepare(self.task)
        taken = []
        for _ in range(2):
            began = time.perf_counter()
            prepared = self.peer.prepare(self.task)
            taken.append(time.perf_counter() - began)
        self.layout = min(taken)
        return prepared

    def run(self, order: dict[str, Any]) -> dict[str, Any]:
        """Time one run and write its W."""
        task = replace(self.task, alpha=float(order["alpha"]))
        most = SHORT_RUNS if order.get("repeat") else 1
        answer, measured = self._timed(lambda: self.peer.solve(self.prepared, task, order["rung"]), most)
        np.savez(order["answer"], W=answer.W, b=answer.b)
        return {**measured, "facts": answer.facts}

    def path(self, order: dict[str, Any]) -> dict[str, Any]:
        """Time a whole path and write every W."""
        alphas = [float(alpha) for alpha in order["alphas"]]
        task = replace(self.task, alpha=alphas[-1])
        answers, measured = self._timed(lambda: self.peer.path(self.prepared, task, alphas, order["rung"]))
        np.savez(order["answer"], **{f"W{i}": answer.W for i, answer in enumerate(answers)})
        return measured

    def _timed(self, work: Any, most: int = 1) -> tuple[Any, dict[str, Any]]:
        """Result and cost of a run; of a short one, which finds a cold machine after a pause, of the median run.

        `most`: how often a short run is done.
        """
        runs = [self._once(work)]
        while len(runs) < most and runs[0][1]["seconds"] - self.layout < SHORT:
            runs.append(self._once(work))
        result, cost = sorted(runs, key=lambda run: run[1]["seconds"])[len(runs) // 2]
        return result, {**cost, "times": [run[1]["seconds"] for run in runs]}

    def _once(self, work: Any) -> tuple[Any, dict[str, Any]]:
        gc.collect()
        reset_peak()
        busy, began = time.process_time(), time.perf_counter()
        result = work()
        seconds, cpu = time.perf_counter() - began, time.process_time() - busy
        return result, {"seconds": seconds + self.layout, "cpu": cpu, "peak": max(0, peak() - self.loaded)}


def _version(package: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return "from source"


def main(name: str, folder: str) -> int:
    """Serve orders until the standard input ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    peer, base = load_peer(name)
    try:
        __import__(peer.module)
    except ImportError as error:
        print(f"{peer.module} is not installed: {error}", file=sys.stderr)
        return NOT_INSTALLED
    worker = Worker(peer, base, Path(folder))
    for line in sys.stdin:
        order = json.loads(line)
        try:
            reply = {"ok": True, **getattr(worker, order["do"])(order)}
        except Exception as error:
            traceback.print_exc()
            reply = {"ok": False, "error": f"{type(error).__name__}: {error}"[:300]}
        answers.write(json.dumps(reply) + "\n")
        answers.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
