"""What cross-validation costs: 10 folds x 50 strengths on the arXiv abstracts, in cold fits of the smallest strength.

Run with ``python -m lab cv-cost``; needs ``DBOOST_DATA_HOME`` (not with ``--synthetic``). Fits the smallest
strength from nothing a few times and takes the median, cross-validates once, prints both and their ratio, and writes
``runs/cv-cost.md``. Cold fits and the path of all rows end at one certified gap, the fits without a fold at the
estimator's default for them or at ``--fold-tol``. Exit code 1 when the ratio is not below its limit.

Covers: seconds on this machine, one penalty after the other. Does not cover: whether the chosen model is good.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dboost
from dboost.errors import ConvergenceWarning
from lab import tables
from lab.datasets import Dataset, arxiv

LIMIT = 25.0
COLUMNS = (
    "penalty", "cold fit (s)", "cold fits", "cross-validation (s)", "ratio", "limit", "met", "ratio of CPU time",
    "worst gap", "chosen",
)  # fmt: skip


def machine() -> str:
    """Return the processor, its cores and the software."""
    name = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        lines = [line for line in info.read_text(encoding="utf-8").splitlines() if line.startswith("model name")]
        name = lines[0].split(":", 1)[1].strip() if lines else name
    return f"{name}, {os.cpu_count()} cores, Python {platform.python_version()}, dboost {dboost.__version__}"


def measure(
    data: Dataset, penalty: str, folds: int, n_alphas: int, eps: float, tol: float, fold_tol: float | None, repeats: int
) -> dict[str, Any]:
    """Time cold fits of the smallest strength, then the whole cross-validation; returns the line of the table.

    Parameters
    ----------
    data : Dataset
    penalty : str
    folds, n_alphas : int
    eps : float
        Smallest strength over the largest.
    tol : float
        Certified relative gap of the cold fits and of the path of all rows.
    fold_tol : float or None
        That of the fits without a fold; None is the default of the estimator.
    repeats : int
        Number of cold fits.
    """
    known: dict[str, Any] = {"penalty": penalty, "tol": tol}
    smallest = eps * dboost.BoostedClassifier(**known, max_rounds=1).fit(data.X, data.y).alpha_max_
    seconds, busy = [], []
    for _ in range(repeats):
        began, worked = time.perf_counter(), time.process_time()
        cold = dboost.BoostedClassifier(**known, alpha=smallest).fit(data.X, data.y)
        seconds.append(time.perf_counter() - began)
        busy.append(time.process_time() - worked)
        print(f"  {penalty}: cold fit {seconds[-1]:.1f} s, gap {cold.duality_gap_:.1e}, "
              f"{len(cold.active_features_)} features", flush=True)  # fmt: skip
    began, worked = time.perf_counter(), time.process_time()
    model = dboost.BoostedClassifierCV(**known, cv=folds, n_alphas=n_alphas, eps=eps, fold_tol=fold_tol)
    model.fit(data.X, data.y)
    total = time.perf_counter() - began
    one = statistics.median(seconds)
    # processor time is little disturbed by other jobs of the machine; what a user waits for is the clock
    processor = (time.process_time() - worked) / statistics.median(busy)
    print(f"  {penalty}: {folds} folds x {n_alphas} strengths {total:.1f} s = {total / one:.1f} cold fits, "
          f"{processor:.1f} of processor time", flush=True)  # fmt: skip
    return {
        "penalty": penalty,
        "cold fit (s)": one,
        "cold fits": ", ".join(f"{s:.1f}" for s in seconds),
        "cross-validation (s)": total,
        "ratio": total / one,
        "limit": LIMIT,
        "met": "yes" if total / one < LIMIT else "NO",
        "ratio of CPU time": processor,
        "worst gap": f"{model.path_.gaps.max():.1e}, folds {model.fold_gaps_.max():.1e}",
        "chosen": f"{model.alpha_ / model.alpha_max_:.3g} of alpha_max, {len(model.active_features_)} features",
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Measure each penalty; returns 1 when a ratio is not below its limit."""
    parser = argparse.ArgumentParser(prog="python -m lab cv-cost", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--documents", type=int, default=60_000)
    parser.add_argument("--penalty", action="append", help="default: l1/l2 and l1/linf")
    parser.add_argument("--folds", type=int, default=10)
    parser.add_argument("--alphas", type=int, default=50)
    parser.add_argument("--eps", type=float, default=1e-2)
    parser.add_argument("--tol", type=float, default=1e-4)
    parser.add_argument("--fold-tol", type=float, help="gap of the fits without a fold (default: the estimator's)")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--synthetic", action="store_true", help="the tiny made-up twin, to try this program")
    parser.add_argument("--out", type=Path, default=Path("runs/cv-cost.md"))
    asked = parser.parse_args(argv)
    data = arxiv.synthetic() if asked.synthetic else arxiv.load(n_documents=asked.documents, n_test=0)
    about = (
        f"{data.name}: {data.X.shape[0]:,} x {data.X.shape[1]:,}, {data.X.nnz:,} nonzeros, "
        f"{len(set(data.y.tolist()))} classes; {asked.folds} folds x {asked.alphas} strengths down to {asked.eps:g} of "
        f"the largest, tol {asked.tol:g}. "
        f"{machine()}."
    )
    print(about, flush=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        lines = [
            measure(data, penalty, asked.folds, asked.alphas, asked.eps, asked.tol, asked.fold_tol, asked.repeats)
            for penalty in asked.penalty or ("l1/l2", "l1/linf")
        ]
    text = tables.markdown(lines, COLUMNS)
    print(f"\n{text}")
    tables.write(asked.out, "Cost of cross-validation", [about, text])
    return 1 if any(line["met"] == "NO" for line in lines) else 0
