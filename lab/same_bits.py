"""One fit, everywhere: the same bits from threads and from Dask with 1, 2 and 4 workers, one of them killed.

Run with ``python -m lab same-bits``. Prints the sha256 of (active features, W, intercept) of every fit and
whether all fits of one plan agree; writes ``runs/same-bits.md``. Exit code 1 when they do not.

Covers: two plans (blocks of equal size, and of sizes from one row to tens of thousands), both engines, a worker ended
with SIGKILL in the middle of a fit. Does not cover: agreement between different plans, which is to rounding only.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import signal
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import dboost
from dboost.engine.dask.cluster import embedded_cluster
from lab import tables

N_FEATURES = 2000
N_CLASSES = 8
STORED = 50
EQUAL = (20_000,) * 8
UNEQUAL = (1, 60_000, 37, 45_000, 2, 3, 30_000, 4_957, 20_000)
COLUMNS = ("plan", "engine", "sha256 of (active, W, b)", "rows", "rounds", "gap", "seconds", "same")
KILL_AFTER_ROUND = 3


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


class Killer:
    """A callback that ends one worker process with SIGKILL after a given round."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.killed: int | None = None

    def __call__(self, record: dict[str, Any]) -> None:
        """Kill once."""
        if self.killed is None and record["round"] >= KILL_AFTER_ROUND:
            self.killed = min(self.client.run(os.getpid).values())
            os.kill(self.killed, signal.SIGKILL)


def run_plan(name: str, path: Path, workers: Sequence[int]) -> list[dict[str, Any]]:
    """Fit one plan on threads and on clusters of the given sizes, the last one with a worker killed as well."""
    records: list[dict[str, Any]] = []

    def record(engine: str, client: Any, callback: Killer | None = None) -> None:
        began = time.perf_counter()
        model = fit(path, client, callback)
        seconds = time.perf_counter() - began
        if callback is not None and callback.killed is None:
            raise RuntimeError(f"the fit ended in {model.n_iter_} rounds, before a worker was killed")
        found = digest(model)
        records.append(
            {
                "plan": name,
                "engine": engine,
                "sha256 of (active, W, b)": found[:32],
                "rows": int(model.model_.active.shape[0]),
                "rounds": model.n_iter_,
                "gap": f"{model.duality_gap_:.1e}",
                "seconds": f"{seconds:.1f}",
                "same": "yes" if not records or found[:32] == records[0]["sha256 of (active, W, b)"] else "NO",
            }
        )
        print(tables.markdown(records[-1:], COLUMNS).splitlines()[2], flush=True)

    record("threads", None)
    for count in workers:
        with embedded_cluster(n_workers=count) as cluster, cluster.get_client() as client:
            record(f"Dask, {count} worker{'s' if count > 1 else ''}", client)
            if count == 2:
                record("Dask, 2 workers, one killed", client, Killer(client))
    return records


def main(argv: Sequence[str] | None = None) -> int:
    """Compare all fits; returns 1 when two of the same plan differ."""
    parser = argparse.ArgumentParser(prog="python -m lab same-bits", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--out", type=Path, default=Path("runs/same-bits.md"))
    asked = parser.parse_args(argv)
    records: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="dboost-same-bits-") as scratch:
        for name, sizes in (("equal blocks", EQUAL), ("unequal blocks", UNEQUAL)):
            path = Path(scratch) / f"{name.split()[0]}.parquet"
            write_rows(path, sizes)
            records += run_plan(name, path, asked.workers)
    text = tables.markdown(records, COLUMNS)
    differ = sum(record["same"] != "yes" for record in records)
    about = (
        f"{sum(EQUAL):,} examples, {N_FEATURES:,} features, {N_CLASSES} classes, l1/linf, tol 1e-6. Equal blocks: "
        f"{len(EQUAL)} row groups of {EQUAL[0]:,}; unequal ones: {', '.join(f'{size:,}' for size in UNEQUAL)} rows. "
        f"The killed worker got SIGKILL after round {KILL_AFTER_ROUND}. {differ} fits differ from the fit on threads "
        "of the same plan."
    )
    print(f"\n{text}\n\n{about}")
    tables.write(asked.out, "The same bits", [about, text])
    return 1 if differ else 0
