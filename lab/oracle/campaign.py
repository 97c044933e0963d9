"""Run the oracle: ``python -m lab oracle``.

Solves every problem of ``problems`` with this library and with its peers, prints the table and writes it to
``runs/oracle.md``. Exit code 1 when an optimum disagrees or is not certified, 3 when the data is not there.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

from lab import tables
from lab.benchmarks.process import PEER_PYTHON_VARIABLE, peer_python, store
from lab.datasets import SYNTHETIC
from lab.oracle.compare import COLUMNS, compare, strength
from lab.oracle.ours import solve
from lab.oracle.problems import DATA, encode, problems

TOL = 1e-7


def main(argv: list[str] | None = None) -> int:
    """Run the problems that were asked for; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m lab oracle", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", action="append", choices=sorted(DATA), help="only these data sets")
    parser.add_argument("--penalty", action="append", help="only these penalties")
    parser.add_argument("--seconds", type=float, default=90.0, help="budget of each peer (default 90)")
    parser.add_argument("--out", type=Path, default=Path("runs/oracle.md"))
    asked = parser.parse_args(argv)
    listed = [p for p in problems() if asked.data is None or p.data in asked.data]
    listed = [p for p in listed if asked.penalty is None or p.penalty in asked.penalty]
    print(f"peers run under {peer_python()} (set {PEER_PYTHON_VARIABLE} to another Python)", flush=True)
    began = time.perf_counter()
    _warm()
    records: list[dict[str, Any]] = []
    held, data = "", None
    with tempfile.TemporaryDirectory(prefix="dboost-oracle-") as scratch:
        for problem in listed:
            folder = Path(scratch) / problem.data
            if data is None or held != problem.data:
                held, data = problem.data, DATA[problem.data]()
                store(folder, data.X, data.y)
            alpha = strength(data, problem)
            ours = solve(data, problem.penalty, alpha, problem.intercept, TOL)
            for record in compare(data, problem, alpha, ours, folder, asked.seconds):
                records.append(record)
                print(tables.markdown([record], COLUMNS).splitlines()[2], flush=True)
    text = tables.markdown(records, COLUMNS)
    minutes = (time.perf_counter() - began) / 60.0
    bad = [r for r in records if "DISAGREES" in r["verdict"] or "NOT CERTIFIED" in r["verdict"]]
    summary = (
        f"{len(listed)} problems, {len(records)} comparisons, {len(bad)} not in agreement, {minutes:.1f} minutes. "
        f"tol {TOL:g}; P is the mean loss plus penalty, evaluated by the same plain code for both sides; the "
        "recomputed gaps come from W alone. A short stop counts against a peer only when our recomputed gap shows it."
    )
    print(f"\n{text}\n\n{summary}")
    tables.write(asked.out, "Oracle: our optima and those of independent solvers", [summary, text])
    return 1 if bad else 0


def _warm() -> None:
    """Compile every kernel on the synthetic twins, so that no fit pays for it."""
    for name in ("arxiv", "imdb", "bibtex", "mnist"):
        data = encode(SYNTHETIC[name](0))
        for penalty in ("l1", "l1/l2", "l1/linf", "l1/l2+l1"):
            solve(data, penalty, 0.01, True, 1e-3)
