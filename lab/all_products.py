"""Every system over all products of degree two of many sparse columns: what a round takes as the columns grow.

Run with ``python -m lab all-products``. Rows are made up: a fiftieth of the values is stored, and the classes follow
from a few products. Each system is fitted in a process of its own, in that process and on two workers, so that peaks
of memory are its own; ``runs/all-products.md`` says what they took. Exit code 1 where the seconds of a round grow
faster than the products, with a margin for noise.

Covers: time and memory of a round against the number of products. Does not cover: that the best of all is found, which
tests/hypotheses compares with brute force; certified fits of real documents (``many_products``).
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import scipy.sparse as sp

import dboost
from dboost.engine.dask.cluster import embedded_cluster
from lab import tables
from lab.memory import PeakMemory

COLUMNS = (
    "system", "classes", "columns", "products", "engine", "rounds", "passes", "seconds a round", "MB", "MB of a worker",
    "met",
)  # fmt: skip
PAIRS = dboost.Products(max_degree=2)
TWO, MANY = 2, 10
# What may grow by so much more than the products do, and seconds that are noise.
NOISE, SHORT = 1.5, 0.05
MIB = 2**20

SYSTEMS: dict[str, tuple[tuple[int, ...], Callable[[int], Any]]] = {
    "certified": ((TWO, MANY), lambda n: dboost.BoostedClassifier(alpha=0.02, max_rounds=n)),
    "certified, deviation 1": (
        (TWO, MANY),
        lambda n: dboost.BoostedClassifier(alpha=0.1, standardize=True, max_rounds=n),
    ),
    "forward": (
        (TWO, MANY),
        lambda n: dboost.BoostedClassifier(update="forward", penalty="none", alpha=0.0, max_rounds=n),
    ),
    "ShareBoost": ((TWO, MANY), lambda n: dboost.ShareBoostClassifier(max_rounds=n)),
    "AdaBoost+L1": ((TWO,), lambda n: dboost.AdaBoostL1Classifier(max_rounds=n)),
    "leveraging": ((TWO,), lambda n: dboost.LeveragingClassifier(max_rounds=n)),
}
"""For how many classes a system is, and what makes its estimator of a number of rounds."""


@dataclass(frozen=True)
class Asked:
    """One fit: the system, classes, rows and columns, the share of values stored, rounds, workers (0: in-process)."""

    system: str
    classes: int
    rows: int
    columns: int
    stored: float
    rounds: int
    workers: int
    seed: int = 0


def made_up(asked: Asked) -> tuple[Any, Any]:
    """Sparse rows, and classes by which of some products of two columns is largest, with noise."""
    rng = np.random.default_rng([asked.seed, asked.columns])
    X = sp.random_array((asked.rows, asked.columns), density=asked.stored, format="csr", rng=rng)
    X.data = rng.uniform(0.5, 1.5, X.data.shape)
    # a few columns are stored in half of the rows, so that their products occur at all
    shape = asked.rows, 2 * asked.classes
    pairs = rng.uniform(0.5, 1.5, shape) * (rng.random(shape) < 0.5)
    X = sp.hstack([sp.csr_array(pairs), X[:, shape[1] :]], format="csr")
    score = 3.0 * pairs[:, : asked.classes] * pairs[:, asked.classes :]
    return X, (score + rng.gumbel(size=score.shape)).argmax(axis=1)


def fitted(asked: Asked) -> dict[str, Any]:
    """Fit, and say what it took; in a process of its own."""
    X, y = made_up(asked)
    make = SYSTEMS[asked.system][1]
    with ExitStack() as stack:
        stack.enter_context(warnings.catch_warnings())
        # a few rounds are what is timed, and most fits would go on
        warnings.simplefilter("ignore", dboost.ConvergenceWarning)
        client = None
        if asked.workers:
            cluster = stack.enter_context(embedded_cluster(n_workers=asked.workers))
            client = stack.enter_context(cluster.get_client())
        # Compiled loops are loaded once for a process, before any of it is timed.
        make(1).set_params(hypotheses=PAIRS, client=client).fit(X[:, :50], y)
        before = {one.pid: one.memory_info().rss for one in (psutil.Process(), *psutil.Process().children(True))}
        with PeakMemory(every=0.02) as peak:
            begun = time.perf_counter()
            model = make(asked.rounds).set_params(hypotheses=PAIRS, client=client).fit(X, y)
            seconds = time.perf_counter() - begun
    last = model.history_[-1]
    grown = [(size - before[pid]) / MIB for pid, size in peak.children.items() if pid in before]
    return {
        "system": asked.system,
        "classes": asked.classes,
        "columns": asked.columns,
        "products": int(last["candidates"]),
        "engine": f"{asked.workers} workers" if asked.workers else "in-process",
        "rounds": int(model.n_iter_),
        "passes": round(float(last["passes"])),
        "seconds a round": round(seconds / max(1, int(model.n_iter_)), 3),
        "MB": round((peak.driver - before[psutil.Process().pid]) / MIB),
        "MB of a worker": round(max(grown)) if grown else None,
    }


def judged(lines: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The lines, each with whether its rounds took no more, for its products, than those of the fewest columns."""
    first: dict[tuple[Any, ...], dict[str, Any]] = {}
    found = []
    for line in lines:
        least = first.setdefault((line["system"], line["classes"], line["engine"]), line)
        grown = NOISE * line["products"] / least["products"]
        met = line["seconds a round"] <= grown * max(least["seconds a round"], SHORT)
        found.append(line | {"met": "yes" if met else "NO"})
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Run and judge; returns 1 when rounds grow faster than the products."""
    parser = argparse.ArgumentParser(prog="python -m lab all-products", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=150)
    parser.add_argument("--columns", type=int, nargs="+", default=[5_000, 20_000])
    parser.add_argument("--stored", type=float, default=0.02, help="share of the values that are stored")
    parser.add_argument("--system", nargs="+", default=list(SYSTEMS), choices=list(SYSTEMS))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, nargs="+", default=[0, 2], help="0: in the process")
    parser.add_argument("--out", type=Path, default=Path("runs/all-products.md"))
    asked = parser.parse_args(argv)
    lines = []
    for system in asked.system:
        for classes in SYSTEMS[system][0]:
            for workers in asked.workers:
                for columns in asked.columns:
                    one = Asked(system, classes, asked.rows, columns, asked.stored, asked.rounds, workers)
                    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as alone:
                        lines.append(alone.submit(fitted, one).result())
                    print("  ".join(f"{name} {lines[-1][name]}" for name in COLUMNS[:-1]), flush=True)
    lines = judged(lines)
    text = tables.markdown(lines, COLUMNS)
    print(f"\n{text}")
    tables.write(asked.out, f"All products of many columns, {asked.rows:,} rows", [text])
    return 1 if any(line["met"] == "NO" for line in lines) else 0
