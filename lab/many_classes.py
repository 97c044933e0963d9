"""Thousands of classes: what a fit takes as their number grows, over the same documents.

Run with ``python -m lab many-classes``. Documents are made up: most of their words are drawn from a Zipf law, six of
each from eight words that its class has for its own, and the classes' sizes follow a Zipf law too. Each number of
classes is fitted in a process of its own, so that peaks of memory are its own; ``runs/many-classes.md`` says what they
took. Exit code 1 where seconds or megabytes grow faster than the classes, with a margin for noise, or a gap is missed.

Covers: time, memory and certificates against the number of classes. Does not cover: real labels, or error.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import dboost
from lab import tables

COLUMNS = (
    "penalty", "classes", "rows", "weights", "gap", "largest strength (s)", "fit (s)", "passes", "predict (s)",
    "MB over the data", "met",
)  # fmt: skip
# What may grow by so much more than the classes do.
NOISE = 1.5
_WORDS, _OWN, _OF_A_CLASS = 40, 6, 8
_PREDICTED = 20_000


@dataclass(frozen=True)
class Asked:
    """One fit: sizes, penalty, share of the largest strength, tolerance, seed."""

    documents: int
    words: int
    classes: int
    penalty: str
    share: float
    tol: float
    seed: int = 0


def made_up(asked: Asked) -> tuple[Any, Any]:
    """Documents as rows of unit length, and their classes, each of which has one at least."""
    rng = np.random.default_rng(asked.seed)
    m, n, k = asked.documents, asked.words, asked.classes
    often, large = 1.0 / np.arange(1, n + 1), 1.0 / np.arange(1, k + 1)
    y = rng.choice(k, m, p=large / large.sum())
    y[:k] = np.arange(k)
    own = rng.integers(0, n, (k, _OF_A_CLASS))
    words = rng.choice(n, (m, _WORDS), p=often / often.sum())
    theirs = own[y][np.arange(m)[:, None], rng.integers(0, _OF_A_CLASS, (m, _OWN))]
    columns = np.hstack([words, theirs])
    rows = np.repeat(np.arange(m), columns.shape[1])
    X = sp.csr_matrix((np.ones(columns.size), (rows, columns.ravel())), shape=(m, n))
    X.sum_duplicates()
    X.data = 1.0 + np.log(X.data)
    length = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    return sp.csr_matrix(sp.diags(1.0 / length) @ X), y


def fitted(asked: Asked) -> dict[str, Any]:
    """Fit, and say what it took; in a process of its own."""
    X, y = made_up(asked)
    # Compiled loops are loaded once for a process, before any of it is timed.
    dboost.BoostedClassifier(penalty=asked.penalty, alpha=1e-2, max_rounds=3).fit(X[:500], y[:500] % 5)
    before = _peak()
    begun = time.perf_counter()
    largest = dboost.regularization_path(X, y, penalty=asked.penalty, n_alphas=1).alphas[0]
    strength = time.perf_counter() - begun
    begun = time.perf_counter()
    alpha = asked.share * float(largest)
    model = dboost.BoostedClassifier(penalty=asked.penalty, alpha=alpha, tol=asked.tol).fit(X, y)
    fit = time.perf_counter() - begun
    begun = time.perf_counter()
    model.predict(X[:_PREDICTED])
    last = model.history_[-1]
    return {
        "penalty": asked.penalty,
        "classes": asked.classes,
        "rows": int(last["active_rows"]),
        "weights": int(last["entries"]),
        "gap": float(last["gap"]),
        "largest strength (s)": round(strength, 2),
        "fit (s)": round(fit, 1),
        "passes": round(float(last["passes"])),
        "predict (s)": round(time.perf_counter() - begun, 2),
        "MB over the data": round(_peak() - before),
    }


def _peak() -> float:
    """Largest resident size of this process so far, in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def judged(lines: Sequence[dict[str, Any]], tol: float) -> list[dict[str, Any]]:
    """The lines, each with whether it is certified and took no more, for its classes, than the one of fewest."""
    first: dict[str, dict[str, Any]] = {}
    found = []
    for line in lines:
        least = first.setdefault(line["penalty"], line)
        grown = NOISE * line["classes"] / least["classes"]
        linear = all(line[what] <= grown * max(least[what], 1.0) for what in ("fit (s)", "MB over the data"))
        found.append(line | {"met": "yes" if linear and line["gap"] <= tol else "NO"})
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Run and judge; returns 1 when a limit is missed."""
    parser = argparse.ArgumentParser(prog="python -m lab many-classes", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--documents", type=int, default=50_000)
    parser.add_argument("--words", type=int, default=20_000)
    parser.add_argument("--classes", type=int, nargs="+", default=[1_000, 3_000, 10_000])
    parser.add_argument("--penalty", nargs="+", default=["l1/l2", "l1"])
    parser.add_argument("--share", type=float, default=0.1, help="of the largest useful strength")
    parser.add_argument("--tol", type=float, default=1e-3)
    parser.add_argument("--out", type=Path, default=Path("runs/many-classes.md"))
    asked = parser.parse_args(argv)
    lines = []
    for penalty in asked.penalty:
        for classes in asked.classes:
            one = Asked(asked.documents, asked.words, classes, penalty, asked.share, asked.tol)
            with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as alone:
                lines.append(alone.submit(fitted, one).result())
            print("  ".join(f"{name} {lines[-1][name]}" for name in COLUMNS[:-1]), flush=True)
    lines = judged(lines, asked.tol)
    text = tables.markdown(lines, COLUMNS)
    print(f"\n{text}")
    tables.write(asked.out, f"{asked.documents:,} documents, {asked.words:,} words, many classes", [text])
    return 1 if any(line["met"] == "NO" for line in lines) else 0
