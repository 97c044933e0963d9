"""All 573,800 arXiv titles and 172 categories on an embedded cluster of two workers: seconds, memory, certificate.

Run with ``python -m lab titles``; needs ``DBOOST_DATA_HOME``. Prepares the titles (vocabulary, tf-idf, Parquet),
trains an l1/linf model to a certified gap, prints what it took and writes ``runs/titles.md``. Exit code 1 when a limit
is missed.

Covers: time and peak memory of a whole run. Does not cover: error on held-out titles; all of them are trained on.
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
from lab.datasets.arxiv import titles_path
from lab.memory import PeakMemory

GIB = 2**30
LIMIT_SECONDS = 600.0
LIMIT_WORKER = 3 * GIB
LIMIT_DRIVER = 2 * GIB
COLUMNS = ("what", "measured", "limit", "met")


def run(source: Path, folder: Path, workers: int, tol: float, alpha: float | str, min_df: int) -> dict[str, Any]:
    """Prepare, train and score; returns the measurements.

    Parameters
    ----------
    source : path
        The Parquet file of titles.
    folder : path
        Where the prepared set is written.
    workers : int
    tol : float
        Certified relative gap to train to.
    alpha : float or "auto"
    min_df : int
        A term is kept when it is in this many titles.
    """
    found: dict[str, Any] = {}
    began = time.perf_counter()

    def lap(name: str) -> None:
        nonlocal began
        now = time.perf_counter()
        found[name] = now - began
        began = now

    def show(record: dict[str, Any]) -> None:
        print(
            f"  round {record['round']:3d}  objective {record['objective']:.6f}  gap {record['gap']:.1e}  "
            f"rows {record['active_rows']}  passes {record['passes']}  {record['seconds']:.1f} s",
            flush=True,
        )

    with (
        PeakMemory() as peak,
        embedded_cluster(n_workers=workers) as cluster,
        cluster.get_client() as client,
    ):
        found["pids"] = {pid: address for address, pid in client.run(_pid).items()}
        lap("seconds cluster")
        with DaskEngine(client) as engine:
            prepare_text(source, folder, text="title", label="primary_cat", min_df=min_df, engine=engine)
        lap("seconds prepare")
        data = dboost.ParquetData(folder)
        model = dboost.BoostedClassifier(penalty="l1/linf", alpha=alpha, tol=tol, client=client, callbacks=[show])
        model.fit(data)
        lap("seconds train")
        found["error"] = 1.0 - model.score(data)
        lap("seconds score")
    found["model"] = model
    found["driver"] = peak.driver
    found["workers"] = {pid: peak.children.get(pid, 0) for pid in found["pids"]}
    found["other"] = max((size for pid, size in peak.children.items() if pid not in found["pids"]), default=0)
    return found


def _pid() -> int:
    import os

    return os.getpid()


def report(found: dict[str, Any], tol: float) -> list[dict[str, Any]]:
    """Return the lines of the table."""
    model = found["model"]
    total = found["seconds prepare"] + found["seconds train"]

    def line(what: str, measured: str, limit: str = "", met: bool | None = None) -> dict[str, Any]:
        judged = "" if met is None else "yes" if met else "NO"
        return {"what": what, "measured": measured, "limit": limit, "met": judged}

    lines = [
        line("prepare", f"{found['seconds prepare']:.1f} s"),
        line("train", f"{found['seconds train']:.1f} s"),
        line("prepare and train", f"{total:.1f} s", f"{LIMIT_SECONDS:.0f} s", total < LIMIT_SECONDS),
        line("certified relative gap", f"{model.duality_gap_:.2e}", f"{tol:g}", model.duality_gap_ <= tol),
    ]
    for number, size in enumerate(found["workers"].values(), start=1):
        lines.append(line(f"peak memory, worker {number}", f"{size / GIB:.2f} GiB", "3 GiB", size < LIMIT_WORKER))
    lines += [
        line("peak memory, driver", f"{found['driver'] / GIB:.2f} GiB", "2 GiB", found["driver"] < LIMIT_DRIVER),
        line("peak memory, largest other process", f"{found['other'] / GIB:.2f} GiB"),
        line("features used", f"{model.model_.n_hypotheses:,} of {model.n_features_in_:,}"),
        line("classes", f"{len(model.classes_)}"),
        line("rounds", f"{model.n_iter_}"),
        line("passes", f"{model.history_[-1]['passes']}"),
        line("error on the training titles", f"{found['error']:.4f}"),
        line("scoring all titles", f"{found['seconds score']:.1f} s"),
        line("stopped because", model.stop_reason_),
    ]
    return lines


def main(argv: Sequence[str] | None = None) -> int:
    """Run and judge; returns 1 when a limit is missed."""
    parser = argparse.ArgumentParser(prog="python -m lab titles", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--tol", type=float, default=1e-3)
    parser.add_argument("--alpha", type=float, help="strength (default: 0.05 of the largest useful one)")
    parser.add_argument("--min-df", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("runs/titles.md"))
    asked = parser.parse_args(argv)
    source = titles_path()
    with tempfile.TemporaryDirectory(prefix="dboost-titles-") as scratch:
        alpha = "auto" if asked.alpha is None else asked.alpha
        found = run(source, Path(scratch) / "prepared", asked.workers, asked.tol, alpha, asked.min_df)
    lines = report(found, asked.tol)
    text = tables.markdown(lines, COLUMNS)
    print(f"\n{text}")
    tables.write(asked.out, f"arXiv titles, l1/linf, {asked.workers} workers", [text])
    return 1 if any(line["met"] == "NO" for line in lines) else 0
