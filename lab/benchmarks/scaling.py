"""Cost against work, and what a cluster of two workers costs beside two threads.

Run with ``python -m lab.benchmarks.scaling`` or ``python -m lab bench scaling``; needs ``DBOOST_DATA_HOME``. Writes
``scaling.md`` and ``scaling.json``, and next to them, until it ends, the documents.

Rows: arXiv titles, as many as there are, three and ten times as many drawn with replacement. Classes: the 9 or 36
largest categories and one of all others, or all 172. Features: the most frequent terms, or all terms beside hashed
pairs. Each fit is in-process, on two threads, in a process of its own that loads its rows from disk; memory is the peak
of that process above its size when its kernels were compiled and no rows were there. Then the titles are fitted from
Parquet in turn in-process on two threads and on two worker processes with one thread each.

Covers: seconds per pass, passes, memory, Dask against threads. Does not cover: peers, data larger than memory
(``streaming``).
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import dboost
from dboost.boosting.fit import FitResult, FitSettings, Fitting
from dboost.data.plan import build_plan
from dboost.engine.dask.cluster import embedded_cluster
from dboost.engine.dask.engine import DaskEngine
from dboost.engine.local import LocalEngine
from dboost.errors import ConvergenceWarning, DboostError
from lab import tables
from lab.benchmarks import resampled
from lab.benchmarks.overhead import Stopwatch

THREADS = 2
TOL = 1e-3
SHARE_OF_MAX = 0.1
MEMORY_GOAL = 1.5
DASK_GOAL = 1.25
MIB = float(2**20)
ARRAYS = ("data", "indices", "indptr", "y")
COLUMNS = ("problem", "rows", "features", "classes", "stored values", "rounds", "passes", "ms per pass", "of the first",
           "work of the first", "seconds", "gap", "stored MiB", "margins MiB", "peak MiB", "peak / (both)")  # fmt: skip
DASK_COLUMNS = ("run", "engine", "seconds", "processor seconds", "passes", "gap", "kernels", "network", "scheduler")


def peak_memory() -> int:
    """Largest resident size of this process so far, bytes.

    Not ``ru_maxrss``, which a process inherits from the one that started it.
    """
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise OSError("/proc/self/status does not tell VmHWM")


def fit(plan: Any, engine: Any, tol: float) -> tuple[FitResult, Fitting]:
    """One l1/l2 fit at a tenth of the largest strength."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitting = Fitting(plan, engine, FitSettings("multinomial", penalty="l1/l2", tol=tol))
        return fitting.fit(SHARE_OF_MAX * fitting.alpha_max()), fitting


def job(folder: Path, features: int) -> dict[str, Any]:
    """One fit of the rows saved in a folder; runs in a process of its own."""
    rng = np.random.default_rng(0)
    y = np.load(folder / "y.npy", mmap_mode="r")
    k = int(y.max()) + 1
    tiny = sparse.random_array((20 * k, 50), density=0.2, format="csr", rng=rng, dtype=np.float32)
    tiny.indices, tiny.indptr = tiny.indices.astype(np.int32), tiny.indptr.astype(np.int32)
    with LocalEngine(THREADS) as engine:
        plan = build_plan(tiny, np.arange(20 * k, dtype=np.int32) % k, task="multiclass", engine=engine)
        fit(plan, engine, 1e-2)
    before = peak_memory()
    given = {name: np.load(folder / f"{name}.npy") for name in ARRAYS}
    y = given.pop("y")
    X = sparse.csr_array(tuple(given[name] for name in ARRAYS[:3]), shape=(y.shape[0], features))
    stored = sum(array.nbytes for array in given.values()) + y.nbytes
    start, spent = time.perf_counter(), time.process_time()
    with LocalEngine(THREADS) as engine:
        plan = build_plan(X, y, task="multiclass", engine=engine)
        watched = Stopwatch(engine)
        result, _ = fit(plan, watched, TOL)
    return {
        "rows": X.shape[0],
        "features": features,
        "classes": k,
        "nnz": int(X.nnz),
        "seconds": time.perf_counter() - start,
        "processor": time.process_time() - spent,
        "rounds": result.n_iter,
        "passes": len(watched.passes),
        "in passes": sum(one["wall"] for one in watched.passes),
        "gap": result.gap,
        "stored": stored,
        "margins": 8 * X.shape[0] * k,
        "peak": peak_memory() - before,
    }


def in_child(corpus: resampled.Corpus, scratch: Path, name: str) -> dict[str, Any]:
    """The same, of a corpus in memory here."""
    scratch.mkdir(parents=True, exist_ok=True)
    # offsets of another type than the indices would make SciPy copy the indices
    arrays = (corpus.X.data, corpus.X.indices.astype(np.int32), corpus.X.indptr.astype(np.int32), corpus.y)
    for what, array in zip(ARRAYS, arrays, strict=True):
        np.save(scratch / f"{what}.npy", array)
    features = str(corpus.X.shape[1])
    command = [sys.executable, "-m", __spec__.name, "--job", str(scratch), "--features", features]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    shutil.rmtree(scratch)
    found = {"problem": name, **json.loads(done.stdout.splitlines()[-1])}
    print(f"{name}: {found['passes']} passes, {found['seconds']:.1f} s, peak {found['peak'] / MIB:.0f} MiB", flush=True)
    return found


def against_dask(corpus: resampled.Corpus, scratch: Path, turns: int, tol: float) -> list[dict[str, Any]]:
    """Fits of the same Parquet files in turn: in-process, on two workers, in-process, ..."""
    resampled.write_all(corpus, scratch)
    data = dboost.ParquetData(scratch, features=["indices", "values"], label="label", n_features=corpus.X.shape[1])
    lines: list[dict[str, Any]] = []

    def one(name: str, engine: Any, clock: Any) -> None:
        plan = build_plan(data, task="multiclass", engine=engine)
        start, spent = time.perf_counter(), clock()
        result, _ = fit(plan, engine, tol)
        line = {"engine": name, "seconds": time.perf_counter() - start, "processor seconds": clock() - spent}
        shares = {share: getattr(engine.seconds, share) for share in ("kernels", "network", "scheduler")}
        lines.append({**line, "passes": result.passes, "gap": result.gap, **shares})
        print(f"{name}: {lines[-1]['seconds']:.1f} s, {result.passes} passes", flush=True)

    with embedded_cluster(THREADS) as cluster, cluster.get_client() as client:

        def of_all() -> float:
            return time.process_time() + sum(client.run(time.process_time).values())

        # once without counting: processes start, kernels are loaded
        with DaskEngine(client) as engine:
            build_plan(data, task="multiclass", engine=engine)
        for _ in range(turns):
            with LocalEngine(THREADS) as threads:
                one("two threads", threads, time.process_time)
            with DaskEngine(client) as engine:
                one("two workers", engine, of_all)
    shutil.rmtree(scratch)
    return [{"run": number + 1, **line} for number, line in enumerate(lines)]


def run(out: Path, quick: bool) -> int:
    """Measure and write the page; 0 always.

    Parameters
    ----------
    out : Path
        Folder for the page, and for the rows while it runs.
    quick : bool
        8,000 titles, to see that it runs.
    """
    corpus = resampled.load("titles", 8_000 if quick else None)
    m, n = corpus.X.shape
    few = corpus.with_classes(37)
    features = (1_000, 10_000, 100_000) if quick else (10_000, 100_000, 1_000_000)
    scratch = out / "documents"
    groups = [[in_child(few if times == 1 else few.again(times * m, 0), scratch, f"rows x{times}")
               for times in (1, 3, 10)]]  # fmt: skip
    groups.append([in_child(corpus.with_classes(k), scratch, f"{k} classes") for k in (10, 37, 172)])
    groups.append([in_child(few.with_features(f), scratch, f"{f:,} features") for f in features])
    lines = against_dask(corpus, scratch, 2, 1e-2)
    (out / "scaling.json").write_text(json.dumps({"fits": groups, "dask": lines}, indent=1) + "\n", encoding="utf-8")
    parts = page(groups, lines, m, n)
    print("\n\n".join(parts), flush=True)
    tables.write(out / "scaling.md", "Cost against work", parts)
    return 0


def page(groups: list[list[dict[str, Any]]], lines: list[dict[str, Any]], m: int, n: int) -> list[str]:
    """Paragraphs and tables of what was found."""
    rows = [_line(one, group[0]) for group in groups for one in group]
    worst = max(one["peak"] / (one["stored"] + one["margins"]) for group in groups for one in group)
    seconds = {
        name: statistics.median(line[name] for line in lines if line["engine"] == "two workers")
        / statistics.median(line[name] for line in lines if line["engine"] == "two threads")
        for name in ("seconds", "processor seconds")
    }
    shown = [
        {key: f"{value:.2f}" if isinstance(value, float) and key != "gap" else value for key, value in line.items()}
        for line in lines
    ]
    return [
        f"Multinomial loss, l1/l2 at {SHARE_OF_MAX} of the largest strength, to a certified gap of {TOL:g}. "
        f"{m:,} titles, {n:,} terms. Work: rows x classes and stored values x classes, their mean.",
        tables.markdown(rows, COLUMNS),
        f"Largest peak: {worst:.2f} times the stored rows and one matrix of margins (rows x classes, float64); goal "
        f"{MEMORY_GOAL}: {'met' if worst <= MEMORY_GOAL else 'MISSED'}. The peak holds the caller's rows and the "
        "blocks made of them.",
        "## Two workers against two threads",
        tables.markdown(shown, DASK_COLUMNS),
        f"All 172 categories, to a certified gap of 0.01, from Parquet, in turn. Two workers take "
        f"{seconds['seconds']:.2f} times the seconds of two threads ({seconds['processor seconds']:.2f} times the "
        f"processor seconds); goal {DASK_GOAL}: {'met' if seconds['seconds'] <= DASK_GOAL else 'MISSED'}.",
    ]


def _line(one: dict[str, Any], first: dict[str, Any]) -> dict[str, Any]:
    per_pass = [given["in passes"] / given["passes"] for given in (one, first)]
    work = [given["classes"] * (given["rows"] + given["nnz"]) for given in (one, first)]
    return {
        "problem": one["problem"],
        "rows": f"{one['rows']:,}",
        "features": f"{one['features']:,}",
        "classes": one["classes"],
        "stored values": f"{one['nnz']:,}",
        "rounds": one["rounds"],
        "passes": one["passes"],
        "ms per pass": f"{1e3 * per_pass[0]:.0f}",
        "of the first": f"{per_pass[0] / per_pass[1]:.2f}",
        "work of the first": f"{work[0] / work[1]:.2f}",
        "seconds": f"{one['seconds']:.1f}",
        "gap": f"{one['gap']:.1e}",
        "stored MiB": f"{one['stored'] / MIB:.0f}",
        "margins MiB": f"{one['margins'] / MIB:.0f}",
        "peak MiB": f"{one['peak'] / MIB:.0f}",
        "peak / (both)": f"{one['peak'] / (one['stored'] + one['margins']):.2f}",
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Command line."""
    about = (__doc__ or "").splitlines()[0]
    parser = argparse.ArgumentParser(prog="python -m lab.benchmarks.scaling", description=about)
    parser.add_argument("--quick", action="store_true", help="8,000 titles, to see that it runs")
    parser.add_argument("--out", type=Path, default=Path("runs/bench/scaling"))
    parser.add_argument("--job", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--features", type=int, help=argparse.SUPPRESS)
    asked = parser.parse_args(argv)
    if asked.job is not None:
        print(json.dumps(job(asked.job, asked.features)))
        return 0
    asked.out.mkdir(parents=True, exist_ok=True)
    return run(asked.out, asked.quick)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except DboostError as error:
        print(f"scaling: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
