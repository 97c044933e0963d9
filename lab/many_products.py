"""All pairwise products of 2,000 words over 100,000 arXiv documents, certified optimal over all 2 million of them.

Run with ``python -m lab many-products``; needs ``DBOOST_DATA_HOME``. The 60,000 abstracts and 40,000 further
titles are prepared with the 2,000 most frequent words. A short path of models over all words and all their products,
each candidate scaled to deviation 1, is trained on an embedded cluster, and ``runs/many_products.md`` says what it
took. Exit code 1 when a limit is missed.

Covers: time and peak memory with candidates that are never stored. Does not cover: error on held-out documents.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dboost
from dboost.data import prepare_text
from dboost.engine.dask.cluster import embedded_cluster
from dboost.engine.dask.engine import DaskEngine
from lab import tables
from lab.datasets.arxiv import documents
from lab.memory import PeakMemory

GIB = 2**30
LIMIT_SECONDS = 600.0
LIMIT_WORKER = 3 * GIB
# Strengths of the path: each starts from the model before it, and each is certified.
STRENGTHS = 4
COLUMNS = ("what", "measured", "limit", "met")


def write_documents(path: Path, count: int) -> int:
    """Write documents and their archives as Parquet, in row groups that two workers can share; returns their number."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    texts, archives = documents(count)
    table = pa.table({"text": texts, "archive": archives})
    pq.write_table(table, path, row_group_size=10_000, write_page_checksum=True)
    return len(texts)


def run(
    source: Path, folder: Path, words: int, penalty: str, standardize: bool, share: float, tol: float, workers: int
) -> dict[str, Any]:
    """Prepare and train; returns the measurements.

    Parameters
    ----------
    source : path
        The Parquet file of documents.
    folder : path
        Where the prepared set is written.
    words : int
        Raw features.
    penalty : str
    standardize : bool
        Whether every candidate is penalised by its standard deviation.
    share : float
        The last strength of the path, as a share of alpha_max over all candidates.
    tol : float
        Certified relative gap to train to.
    workers : int
    """
    found: dict[str, Any] = {}

    with PeakMemory() as peak, embedded_cluster(n_workers=workers) as cluster, cluster.get_client() as client:
        found["pids"] = list(client.run(_pid).values())
        began = time.perf_counter()
        with DaskEngine(client) as engine:
            prepare_text(source, folder, text="text", label="archive", min_df=5, max_features=words, engine=engine)
        found["prepare"] = time.perf_counter() - began
        data = dboost.ParquetData(folder)
        family = dboost.Products(max_degree=2)
        began = time.perf_counter()
        path = dboost.regularization_path(
            data,
            n_alphas=STRENGTHS,
            eps=share,
            penalty=penalty,
            tol=tol,
            standardize=standardize,
            hypotheses=family,
            client=client,
        )
        found["train"] = time.perf_counter() - began
    found["path"] = path
    found["driver"] = peak.driver
    found["workers"] = [peak.children.get(pid, 0) for pid in found["pids"]]
    return found


def _pid() -> int:
    import os

    return os.getpid()


def report(found: dict[str, Any], rows: int, tol: float) -> list[dict[str, Any]]:
    """Return the lines of the table."""
    path = found["path"]
    model = path.estimator(len(path) - 1)

    def line(what: str, measured: str, limit: str = "", met: bool | None = None) -> dict[str, Any]:
        return {
            "what": what,
            "measured": measured,
            "limit": limit,
            "met": "" if met is None else "yes" if met else "NO",
        }

    last = model.history_[-1]
    seconds = found["prepare"] + found["train"]
    used = model.active_features_
    products = sum("*" in name or "^" in name for name in used)
    return [
        line("documents, words, classes", f"{rows:,}, {model.n_features_in_:,}, {len(model.classes_)}"),
        line("candidates", f"{int(last['candidates']):,}"),
        line("strengths", f"{len(path)}, from alpha_max to {model.alpha_ / model.alpha_max_:.2g} alpha_max"),
        line("prepare", f"{found['prepare']:.1f} s"),
        line("train", f"{found['train']:.1f} s"),
        line("all of it", f"{seconds:.1f} s", f"{LIMIT_SECONDS:.0f} s", seconds < LIMIT_SECONDS),
        line(
            "largest certified gap over all candidates",
            f"{path.gaps.max():.2e}",
            f"{tol:g}",
            bool(path.gaps.max() <= tol),
        ),
        *(
            line(f"peak memory, worker {n}", f"{size / GIB:.2f} GiB", "3 GiB", size < LIMIT_WORKER)
            for n, size in enumerate(found["workers"], start=1)
        ),
        line("peak memory, driver", f"{found['driver'] / GIB:.2f} GiB"),
        line("scaled to deviation 1", "yes" if model.standardize else "no"),
        line("hypotheses used", f"{len(used):,}, of which products {products:,}"),
        line("passes", f"{sum(row['passes'] for row in path.table)}"),
        line("stopped because", model.stop_reason_),
    ]


def main(argv: Sequence[str] | None = None) -> int:
    """Run and judge; returns 1 when a limit is missed."""
    parser = argparse.ArgumentParser(prog="python -m lab many-products", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--words", type=int, default=2_000)
    parser.add_argument("--penalty", default="l1/linf")
    parser.add_argument("--standardize", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--share", type=float, default=0.2, help="last strength, as a share of the largest useful one")
    parser.add_argument("--tol", type=float, default=1e-3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("runs/many_products.md"))
    asked = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="dboost-products-") as scratch:
        source = Path(scratch) / "documents.parquet"
        rows = write_documents(source, asked.documents)
        how = (asked.words, asked.penalty, asked.standardize, asked.share, asked.tol, asked.workers)
        found = run(source, Path(scratch) / "prepared", *how)
    lines = report(found, rows, asked.tol)
    text = tables.markdown(lines, COLUMNS)
    print(f"\n{text}")
    tables.write(asked.out, f"Products of {asked.words:,} words, {asked.penalty}, {asked.workers} workers", [text])
    return 1 if any(line["met"] == "NO" for line in lines) else 0
