"""One fit, everywhere: the same bits from threads and from 24 clusters that grow, shrink, lose workers or are shared.

Run with ``python -m lab same-bits`` (a minute with ``--quick``). Prints the sha256 of (active features, W, intercept)
of every fit and whether all fits of one plan agree; writes ``runs/same-bits.md``. Exit code 1 when they do not.

Covers: two plans (blocks of equal size, and of sizes from one row to tens of thousands), threads of this process; 1 to
8 workers of one and two threads; workers within the process; clusters that grow, shrink, adapt to their load from no
worker, lose a worker or carry another program's tasks while the fit goes on. Does not cover: agreement between
different plans, which is to rounding only; faults by the hundred (``lab campaign``).
"""

from __future__ import annotations

import argparse
import hashlib
import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import dboost
from lab import tables

N_FEATURES = 2000
N_CLASSES = 8
STORED = 50
PLANS = {"equal blocks": (20_000,) * 8, "unequal blocks": (1, 60_000, 37, 45_000, 2, 3, 30_000, 4_957, 20_000)}
COLUMNS = ("plan", "engine", "sha256 of (active, W, b)", "rows", "rounds", "gap", "seconds", "same")
AT_ROUND = 2
"""The round after which something happens to the cluster."""

Strike = Callable[[Any], None]


def write_rows(path: Path, sizes: Sequence[int], seed: int = 0) -> None:
    """Write a sparse multiclass set as Parquet, one row group per size.

    Columns ``indices`` (list of int32), ``values`` (list of float32) and ``label``; the rows are the same for every
    cut, only the row groups differ.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(seed)
    m = sum(sizes)
    W = np.zeros((N_FEATURES, N_CLASSES), dtype=np.float64)
    W[rng.choice(N_FEATURES, 200, replace=False)] = rng.standard_normal((200, N_CLASSES))
    # Distinct ascending columns of a row: one draw in each of 50 equal ranges.
    indices = rng.integers(0, N_FEATURES // STORED, (m, STORED)) + np.arange(STORED) * (N_FEATURES // STORED)
    values = rng.exponential(1.0, (m, STORED)).astype(np.float32)
    scores = np.zeros((m, N_CLASSES))
    for j in range(STORED):
        scores += values[:, [j]] * W[indices[:, j]]
    labels = np.argmax(0.5 * scores + rng.gumbel(size=scores.shape), axis=1)
    offsets = pa.array(np.arange(m + 1, dtype=np.int32) * STORED)
    table = pa.table(
        {
            "indices": pa.ListArray.from_arrays(offsets, pa.array(indices.ravel().astype(np.int32))),
            "values": pa.ListArray.from_arrays(offsets, pa.array(values.ravel())),
            "label": pa.array([f"class {c}" for c in labels]),
        }
    )
    with pq.ParquetWriter(path, table.schema, write_page_checksum=True) as writer:
        start = 0
        for size in sizes:
            writer.write_table(table.slice(start, size), row_group_size=size)
            start += size


def digest(estimator: Any) -> str:
    """Return the sha256 of the active features, their weights and the intercept, as stored."""
    model = estimator.model_
    found = hashlib.sha256()
    for array in (model.active, model.W, model.intercept):
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()


def fit(path: Path, client: Any, callback: Callable[[dict[str, Any]], None] | None = None) -> Any:
    """Fit the model whose bits are compared."""
    data = dboost.ParquetData(path, features=("indices", "values"), label="label", n_features=N_FEATURES)
    model = dboost.BoostedClassifier(
        penalty="l1/linf", tol=1e-6, client=client, callbacks=[callback] if callback else None
    )
    return model.fit(data)


@dataclass(frozen=True)
class Shape:
    """A configuration."""

    # 0 for the threads of this process.
    workers: int
    # Of each worker, or of this process.
    threads: int
    # Whether workers are processes.
    processes: bool = True
    # Least and most workers of a cluster that follows its load.
    adapts: tuple[int, int] | None = None
    # What happens to the cluster after a round.
    strike: Strike | None = None


def grow(client: Any, to: int = 4) -> None:
    """Start more workers."""
    client.cluster.scale(to)


def retire(client: Any, leave: int = 1) -> None:
    """Let all workers but some end in order, their results moved to those that stay.

    The cluster chooses which: workers that were named beside that could be the others, so that none stayed.
    """
    client.cluster.scale(leave)


def kill(client: Any) -> None:
    """Kill a worker."""
    os.kill(min(client.run(os.getpid).values()), signal.SIGKILL)


def crowd(client: Any) -> None:
    """Give the workers tasks of another program, with priority."""
    client.neighbours = client.map(time.sleep, [0.02] * 100, pure=False, priority=10)


SHAPES: dict[str, Shape] = {
    "threads": Shape(0, 2),
    "1 worker": Shape(1, 1),
    "2 workers": Shape(2, 1),
    "3 workers, one killed": Shape(3, 1, strike=kill),
    "1 thread": Shape(0, 1),
    **{f"{n} workers of {t} threads": Shape(n, t) for n in (1, 2, 3, 4, 8) for t in (1, 2) if n * t > 2},
    "1 worker of 2 threads": Shape(1, 2),
    "2 workers in this process": Shape(2, 1, processes=False),
    "1 worker in this process, 4 threads": Shape(1, 4, processes=False),
    "adaptive, 0 to 4": Shape(0, 1, adapts=(0, 4)),
    "adaptive, 1 to 4, 2 threads": Shape(0, 2, adapts=(1, 4)),
    "1 worker, then 4": Shape(1, 1, strike=grow),
    "2 workers of 2 threads, then 4": Shape(2, 2, strike=grow),
    "4 workers, 3 retired": Shape(4, 1, strike=retire),
    "4 workers, 2 retired": Shape(4, 1, strike=partial(retire, leave=2)),
    "1 worker of 2 threads, killed": Shape(1, 2, strike=kill),
    "2 workers with other tasks": Shape(2, 1, strike=crowd),
    "4 workers of 2 threads with other tasks": Shape(4, 2, strike=crowd),
}
QUICK = 4
"""So many of the first shapes are tried with ``--quick``."""


@contextmanager
def client_of(shape: Shape) -> Iterator[Any]:
    """A client of a configuration; None for the threads of this process."""
    from distributed import Client

    from dboost.engine.dask.cluster import EmbeddedCluster

    if not shape.workers and not shape.adapts:
        cores = os.sched_getaffinity(0)
        os.sched_setaffinity(0, set(sorted(cores)[: shape.threads]))
        try:
            yield None
        finally:
            os.sched_setaffinity(0, cores)
        return
    with EmbeddedCluster(
        n_workers=shape.workers, threads_per_worker=shape.threads, processes=shape.processes, host="127.0.0.1",
        dashboard_address="127.0.0.1:0", silence_logs=50, memory_limit=0, protocol="tcp://",
    ) as cluster:  # fmt: skip
        if shape.adapts:
            cluster.adapt(minimum=shape.adapts[0], maximum=shape.adapts[1])
        with Client(cluster, set_as_default=False) as client:
            yield client


class Struck:
    """A callback that does something to the cluster, once."""

    def __init__(self, client: Any, strike: Strike | None) -> None:
        self.client = client
        self.strike = strike
        self.thread: threading.Thread | None = None

    def __call__(self, record: dict[str, Any]) -> None:
        """Do it beside the fit, which goes on."""
        if self.strike is not None and self.thread is None and record["round"] >= AT_ROUND:
            self.thread = threading.Thread(target=self.strike, args=(self.client,))
            self.thread.start()

    def done(self) -> bool:
        """Wait for its end; whether it happened, where it was to."""
        if self.thread is not None:
            self.thread.join()
        return self.strike is None or self.thread is not None


def compared(plan: str, path: Path, shapes: Sequence[str]) -> list[dict[str, Any]]:
    """Fit one plan on each shape; the bits of the first are those that all must have."""
    records: list[dict[str, Any]] = []
    for name in shapes:
        with client_of(SHAPES[name]) as client:
            struck = Struck(client, SHAPES[name].strike)
            began = time.perf_counter()
            model = fit(path, client, struck)
            seconds = time.perf_counter() - began
            if not struck.done():
                raise RuntimeError(f"{name}: the fit ended in {model.n_iter_} rounds, before anything happened")
        found = digest(model)[:32]
        records.append(
            {
                "plan": plan,
                "engine": name,
                "sha256 of (active, W, b)": found,
                "rows": int(model.model_.active.shape[0]),
                "rounds": model.n_iter_,
                "gap": f"{model.duality_gap_:.1e}",
                "seconds": f"{seconds:.1f}",
                "same": "yes" if not records or found == records[0]["sha256 of (active, W, b)"] else "NO",
            }
        )
        print(tables.markdown(records[-1:], COLUMNS).splitlines()[2], flush=True)
    return records


def main(argv: Sequence[str] | None = None) -> int:
    """Compare all fits; returns 1 when two of the same plan differ."""
    parser = argparse.ArgumentParser(prog="python -m lab same-bits", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help=f"only the first {QUICK} shapes")
    parser.add_argument("--out", type=Path, default=Path("runs/same-bits.md"))
    asked = parser.parse_args(argv)
    records: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="dboost-same-bits-") as scratch:
        for name, sizes in PLANS.items():
            path = Path(scratch) / f"{name.split()[0]}.parquet"
            write_rows(path, sizes)
            records += compared(name, path, list(SHAPES)[: QUICK if asked.quick else None])
    text = tables.markdown(records, COLUMNS)
    differ = sum(record["same"] != "yes" for record in records)
    about = (
        f"{N_FEATURES:,} features, {N_CLASSES} classes, l1/linf, tol 1e-6. {differ} fits differ from the fit on "
        "threads of the same plan."
    )
    print(f"\n{text}\n\n{about}")
    tables.write(asked.out, "The same bits", [about, text])
    return 1 if differ else 0
