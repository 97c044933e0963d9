"""``python -m lab bench stumps``: a round of boosting on stumps, every threshold or ends of bins, beside LightGBM's.

Classical boosting with the logistic loss moves one stump a round, of all thresholds between neighbouring values
(``Stumps()``) or of the ends of at most 256 bins (``exact=False``), which are what LightGBM knows with trees of two
leaves. Many rows show what a round costs, many rounds whether it grows with the stumps that a model holds.

Covers: seconds a round of both, in-process and on two workers; what all rounds took. Does not cover: which stumps
(tests compare each round with all of them), accuracy.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.boosting.fit import FitSettings, Fitting
from dboost.data.plan import build_plan
from dboost.engine.dask.cluster import embedded_cluster
from dboost.engine.dask.engine import DaskEngine
from dboost.engine.local import LocalEngine
from dboost.errors import ConvergenceWarning
from dboost.hypotheses.stumps.family import Stumps
from lab import machine, tables
from lab.benchmarks.process import peer_python

BLOCKS, WORKERS = 8, 2
# Rows, columns and rounds, and whether workers are measured too.
SIZES = ((1_000_000, 200, 12, True), (200_000, 50, 300, False))
QUICK = ((20_000, 20, 5, False), (5_000, 10, 40, False))
COLUMNS = (
    "rows",
    "columns",
    "rounds",
    "what",
    "seconds a round",
    "the last rounds",
    "all rounds",
    "LightGBM's a round",
)
_SECONDS = 1800.0


def block(number: int, rows: int, columns: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """One block of the data: half of the columns are normal, a quarter has a heavy tail, a quarter few values."""
    rng = np.random.default_rng([5, number])
    X = rng.normal(size=(rows, columns)).astype(np.float32)
    half, quarter = columns // 2, columns // 4
    X[:, half : half + quarter] = np.exp(1.5 * X[:, half : half + quarter])
    X[:, half + quarter :] = np.round(X[:, half + quarter :], 2)
    score = np.sin(3.0 * X[:, :6]).sum(axis=1) + 1.5 * (X[:, 0] < 0.3) - 1.2 * (X[:, half] < 0.7) + np.tanh(X[:, -1])
    return X, np.where(score + rng.logistic(size=rows) > 0.5, 1, -1)


def run(out: Path, quick: bool, settings: Any) -> int:
    """Measure, write ``stumps.md`` and ``stumps.json``."""
    records: list[dict[str, Any]] = []
    for rows, columns, rounds, workers in QUICK if quick else SIZES:
        blocks = [block(number, rows // BLOCKS, columns) for number in range(BLOCKS)]
        X, y = (np.concatenate([part[i] for part in blocks]) for i in range(2))
        del blocks
        found = {"LightGBM": _lightgbm(X, y, rounds, settings.threads)}
        for exact in (True, False):
            what = "every threshold" if exact else "ends of bins"
            with LocalEngine(settings.threads) as engine:
                found[what] = _seconds(build_plan(X, y, task="binary", engine=engine), engine, rounds, exact)
            if workers:
                found[f"{what}, {WORKERS} workers"] = _on_workers(rows, columns, rounds, exact)
        peer = found["LightGBM"]
        records += [_record((rows, columns, rounds), what, seconds, peer) for what, seconds in found.items() if seconds]
    table = tables.markdown(records, COLUMNS)
    print(table, flush=True)
    about = (
        f"Medians, {settings.threads} threads. The last rounds are the last tenth. "
        "LightGBM: trees of two leaves, 255 bins, a learning rate of 1; its rounds sum second derivatives too."
    )
    facts = "; ".join(f"{name} {value}" for name, value in machine.describe().items())
    tables.write(out / "stumps.md", "Rounds on stumps", [about, table, facts])
    (out / "stumps.json").write_text(json.dumps({"records": records, "machine": machine.describe()}, indent=1))
    return 0


def _seconds(plan: Any, engine: Any, rounds: int, exact: bool) -> list[float]:
    """Seconds of each round of a fit."""
    settings = FitSettings("log", "none", update="forward", tol=0.0, max_rounds=rounds, hypotheses=Stumps(exact=exact))
    fitting = Fitting(plan, engine, settings)
    # loads the loops, and is no part of a round
    fitting.null()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return [float(record["seconds"]) for record in fitting.fit("auto").history]


def _on_workers(rows: int, columns: int, rounds: int, exact: bool) -> list[float]:
    import dask
    import dask.array as da

    made = [dask.delayed(block)(number, rows // BLOCKS, columns) for number in range(BLOCKS)]
    shape = rows // BLOCKS, columns
    X = da.concatenate([da.from_delayed(part[0], shape, np.float32) for part in made])
    y = da.concatenate([da.from_delayed(part[1], shape[:1], np.int64) for part in made])
    with embedded_cluster(WORKERS) as cluster, cluster.get_client() as client, DaskEngine(client) as engine:
        return _seconds(build_plan(X, y, task="binary", engine=engine), engine, rounds, exact)


_LIGHTGBM = """
import json, sys, time
import lightgbm, numpy as np
folder, rounds, threads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
X, y = np.load(folder + "/X.npy"), np.load(folder + "/y.npy")
parameters = {"objective": "binary", "num_leaves": 2, "max_bin": 255, "min_data_in_leaf": 1, "learning_rate": 1.0,
              "num_threads": threads, "verbose": -1}
booster = lightgbm.Booster(parameters, lightgbm.Dataset(X, label=(y > 0).astype(np.int32), params=parameters))
seconds = []
for _ in range(rounds):
    began = time.perf_counter()
    booster.update()
    seconds.append(time.perf_counter() - began)
print(json.dumps(seconds))
"""


def _lightgbm(X: NDArray[Any], y: NDArray[Any], rounds: int, threads: int) -> list[float]:
    """Seconds of each of LightGBM's rounds in the peers' interpreter; none, and a line, where it is not there."""
    with tempfile.TemporaryDirectory(prefix="dboost-stumps-") as folder:
        np.save(Path(folder) / "X.npy", X)
        np.save(Path(folder) / "y.npy", y)
        command = [peer_python(), "-c", _LIGHTGBM, folder, str(rounds), str(threads)]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    if ended.returncode:
        print(f"LightGBM was not measured: {(ended.stderr.strip().splitlines() or ['it ended without a word'])[-1]}")
        return []
    found: list[float] = json.loads(ended.stdout.strip().splitlines()[-1])
    return found


def _record(size: tuple[int, int, int], what: str, seconds: list[float], peer: list[float]) -> dict[str, Any]:
    median, last = statistics.median(seconds), statistics.median(seconds[-max(1, len(seconds) // 10) :])
    return dict(
        zip(
            COLUMNS,
            (
                f"{size[0]:,}",
                size[1],
                size[2],
                what,
                f"{median:.4f}",
                f"{last:.4f}",
                f"{sum(seconds):.1f}",
                f"{statistics.median(peer) / median:.2f}" if peer else "-",
            ),
            strict=True,
        )
    )
