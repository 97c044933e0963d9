"""Data that does not fit the workers' memory: what a pass costs against merely reading the files.

Run with ``python -m lab.benchmarks.streaming`` or ``python -m lab bench streaming``; needs ``DBOOST_DATA_HOME``. Writes
``streaming.md`` and ``streaming.json``, and next to them, until it ends, the documents (about 2 GB).

Five million documents are drawn with replacement from the arXiv abstracts and written as Parquet in the form of
``dboost prepare``. Two workers with one thread each fit them; the memory limit of each is a quarter of the decoded
data. The same files are read with pyarrow alone by two processes with one thread each, before and after. Titles would
be the smaller set, but a quarter of five million titles is less than a Python process with NumPy takes.

Covers: seconds of each kind of pass, the workers' peak memory, a fit to its end. Does not cover: data that fits
(``scaling``).
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import shutil
import statistics
import sys
import time
import warnings
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import dboost
from dboost.boosting.fit import FitSettings, Fitting
from dboost.data.plan import build_plan
from dboost.engine.dask.cluster import embedded_cluster
from dboost.engine.dask.engine import DaskEngine
from dboost.errors import ConvergenceWarning, DboostError
from lab import tables
from lab.benchmarks import resampled
from lab.benchmarks.overhead import Stopwatch
from lab.memory import PeakMemory

ROWS = 5_000_000
WORKERS = 2
SHARE = 4
GOAL = 0.5
MIB = float(2**20)
# Less than this holds no worker: Python, NumPy, pyarrow and compiled code take half of it.
LEAST_LIMIT = 750 * 2**20
COLUMNS = ("pass", "passes", "seconds", "MB/s", "against reading")


def read_files(paths: Sequence[str]) -> tuple[int, float]:
    """Decode files with pyarrow and nothing else; return the rows and the processor seconds."""
    import pyarrow.parquet as pq

    rows = 0
    start = time.process_time()
    for path in paths:
        with pq.ParquetFile(path, memory_map=False) as file:
            for group in range(file.num_row_groups):
                rows += file.read_row_group(group, use_threads=False).num_rows
    return rows, time.process_time() - start


def reading(pool: ProcessPoolExecutor, paths: Sequence[str]) -> tuple[float, float]:
    """Seconds until all processes have read their share of the files, and the processor seconds of all."""
    shares = [list(paths[i::WORKERS]) for i in range(WORKERS)]
    start = time.perf_counter()
    done = list(pool.map(read_files, shares))
    return time.perf_counter() - start, sum(spent for _, spent in done)


def fitted(
    client: Any, folder: Path, n_features: int, tol: float, seconds: float
) -> tuple[Any, list[dict[str, Any]], list[dict[str, Any]]]:
    """Fit until `tol`, or until the time is up; the result, its passes and its rounds."""
    data = dboost.ParquetData(folder, features=["indices", "values"], label="label", n_features=n_features)
    end = time.perf_counter() + seconds

    def late(record: dict[str, Any], state: Any) -> bool:
        print(
            f"  round {record['round']:3d}  gap {record['gap']:.1e}  rows {record['active_rows']}  "
            f"passes {record['passes']}  {record['seconds']:.1f} s (kernels {record['seconds_kernels']:.1f})",
            flush=True,
        )
        return time.perf_counter() > end

    with DaskEngine(client) as engine, warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        plan = build_plan(data, task="multiclass", engine=engine)
        watched = Stopwatch(engine)
        fitting = Fitting(plan, watched, FitSettings("multinomial", penalty="l1/l2", tol=tol))
        result = fitting.fit(0.2 * fitting.alpha_max(), callback=late)
    return result, watched.passes, [dict(record) for record in result.history]


def run(out: Path, quick: bool, tol: float = 1e-3, seconds: float = 150.0, rows: int = ROWS) -> int:
    """Write the documents, measure, write the page; 0 always.

    Parameters
    ----------
    out : Path
        Folder for the page, and for the documents while it runs.
    quick : bool
        200,000 documents; the workers' limit is then the least that holds a worker.
    tol : float
        Certified relative gap of the fit.
    seconds : float
        The fit ends with the first round after this time.
    rows : int
        Documents; of less than five million, a quarter holds no worker, and the limit is the least that does.
    """
    rows = 200_000 if quick else rows
    corpus = resampled.load("abstracts", 5_000 if quick else None)
    n, k = corpus.X.shape[1], int(corpus.y.max()) + 1
    folder = out / "documents"
    shutil.rmtree(folder, ignore_errors=True)
    try:
        stored = resampled.write(corpus, folder, rows)
        del corpus
        found = _measured(folder, rows, stored, n, k, tol, seconds)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    (out / "streaming.json").write_text(json.dumps(found, indent=1, default=float) + "\n", encoding="utf-8")
    parts = page(found)
    print("\n\n".join(parts), flush=True)
    tables.write(out / "streaming.md", "Data larger than memory", parts)
    return 0


def _measured(folder: Path, rows: int, stored: int, n: int, k: int, tol: float, seconds: float) -> dict[str, Any]:
    decoded = 8 * stored + 12 * rows
    limit = max(decoded // SHARE, LEAST_LIMIT)
    paths = sorted(str(path) for path in folder.iterdir())
    found: dict[str, Any] = {"rows": rows, "stored": stored, "features": n, "classes": k, "decoded": decoded}
    found |= {"files": sum(Path(path).stat().st_size for path in paths), "limit": limit}
    with ProcessPoolExecutor(WORKERS, mp_context=multiprocessing.get_context("spawn")) as pool:
        list(pool.map(read_files, [paths[:1]] * WORKERS))
        alone = [reading(pool, paths), reading(pool, paths)]
        with (
            PeakMemory() as peak,
            embedded_cluster(WORKERS, memory_limit=limit) as cluster,
            cluster.get_client() as client,
        ):
            before = client.run(_pid)
            start, spent = time.perf_counter(), sum(client.run(time.process_time).values())
            result, found["passes"], found["history"] = fitted(client, folder, n, tol, seconds)
            found["seconds"] = time.perf_counter() - start
            found["processor"] = sum(client.run(time.process_time).values()) - spent
            found["lost workers"] = len(set(before.values()) - set(client.run(_pid).values()))
        found["peak"] = [peak.children.get(pid, 0) for pid in before.values()]
        found["driver"] = peak.driver
        alone.append(reading(pool, paths))
    found["reading"] = [wall for wall, _ in alone]
    found["reading processor"] = statistics.median(spent for _, spent in alone)
    found |= {"stop": result.stop_reason, "gap": result.gap, "rounds": result.n_iter, "tol": tol}
    return found


def _pid() -> int:
    import os

    return os.getpid()


def page(found: dict[str, Any]) -> list[str]:
    """Paragraphs and tables of what was found."""
    plain = statistics.median(found["reading"])
    decoded = found["decoded"]
    by_name: dict[str, list[float]] = {}
    for one in found["passes"]:
        by_name.setdefault(one["name"], []).append(one["wall"])
    lines = [_line("pyarrow alone", found["reading"], decoded, plain)]
    lines += [_line(name, walls, decoded, plain) for name, walls in by_name.items()]
    walls = [wall for given in by_name.values() for wall in given]
    mean = sum(walls) / len(walls)
    lines.append({**_line("all passes, mean", [mean], decoded, plain), "passes": len(walls)})
    share = plain / mean
    finished = found["gap"] <= found["tol"]
    peaks = ", ".join(f"{size / MIB:.0f}" for size in found["peak"])
    said = (
        f"{found['rows']:,} documents, {found['stored']:,} stored values, {found['features']:,} features, "
        f"{found['classes']} classes: {decoded / MIB:.0f} MiB decoded, {found['files'] / MIB:.0f} MiB of files. "
        f"Workers: {WORKERS} with one thread and {found['limit'] / MIB:.0f} MiB each; peaks {peaks} MiB, "
        f"{found['lost workers']} lost. Driver: peak {found['driver'] / MIB:.0f} MiB.\n\n"
        f"The fit {'finished' if finished else 'was ended by its time limit'}: {found['rounds']} rounds, "
        f"{len(walls)} passes, {found['seconds']:.0f} s, certified gap {found['gap']:.1e} (asked {found['tol']:g}).\n\n"
        f"Passes run at {share:.2f} times the speed of reading with pyarrow alone; goal {GOAL}: "
        f"{'met' if share >= GOAL else 'MISSED'}. In processor seconds, which other programs change less: "
        f"{found['reading processor'] / (found['processor'] / len(walls)):.2f} times."
    )
    return [said, tables.markdown(lines, COLUMNS), " ".join((__doc__ or "").split("\n\n")[2].split())]


def _line(name: str, walls: Sequence[float], decoded: int, plain: float) -> dict[str, Any]:
    middle = statistics.median(walls)
    return {
        "pass": name,
        "passes": len(walls),
        "seconds": f"{middle:.2f}",
        "MB/s": f"{decoded / middle / 1e6:.0f}",
        "against reading": f"{plain / middle:.2f}",
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Command line."""
    about = (__doc__ or "").splitlines()[0]
    parser = argparse.ArgumentParser(prog="python -m lab.benchmarks.streaming", description=about)
    parser.add_argument("--quick", action="store_true", help="200,000 documents")
    parser.add_argument("--tol", type=float, default=1e-3)
    parser.add_argument("--seconds", type=float, default=150.0, help="the fit ends with the first round after this")
    parser.add_argument("--rows", type=int, default=ROWS, help="documents")
    parser.add_argument("--finish", action="store_true", help="fit until the certified gap is at most tol")
    parser.add_argument("--out", type=Path, default=Path("runs/bench/streaming"))
    asked = parser.parse_args(argv)
    asked.out.mkdir(parents=True, exist_ok=True)
    return run(asked.out, asked.quick, asked.tol, float("inf") if asked.finish else asked.seconds, asked.rows)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except DboostError as error:
        print(f"streaming: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
