"""``python -m lab same-features``: how well, and how soon, models do that use the same number of features.

Each data set has a training and a test part, and models of at most 8, 16, 32 and 64 features are asked for. A path of
strengths gives for each of these numbers the model of the smallest strength that uses no more; its error is told as it
is, and after a refit without a penalty on its features, where that has an optimum. The others hold exactly so many.

- **l1/l2**: ``regularization_path``, and ``relaxed`` for the refit.
- **ShareBoost**: ``ShareBoostClassifier``, one run for each number of features.
- **glmnet**: R's, ``type.multinomial="grouped"``, the strengths of our path, its own tolerance.
- **abess**: best subsets by splicing, ``MultinomialRegression``, one fit for each number of features.

Errors are computed here for all of them, from weights. All run on one core, where the system lets a process choose:
glmnet uses no more. A peer that is not installed is named and left out.

Covers: two sets. Does not cover: time to a given accuracy (``lab bench``).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dboost
from dboost.errors import DataError
from lab import tables
from lab.datasets import arxiv, usps
from lab.oracle.peers import peer_python

Array = NDArray[np.float64]

SIZES = (8, 16, 32, 64)
STRENGTHS, EPS, TOL = 40, 1e-2, 1e-4
COLUMNS = ("data", "model", "features", "test error %", "after a refit %", "seconds")
HERE = Path(__file__).parent
LIMIT = 900.0
"""Seconds that a peer may take for all that is asked of it."""


@dataclass(frozen=True)
class Problem:
    """Training and test examples of several classes, dense, classes as codes from 0."""

    name: str
    X: Array
    y: NDArray[np.int32]
    X_test: Array
    y_test: NDArray[np.int32]

    def error(self, W: Array, b: Array) -> float:
        """Share of the test examples that weights (n, k) and intercepts (k,) get wrong, in per cent."""
        return 100.0 * float(np.mean(np.argmax(self.X_test @ W + b, axis=1) != self.y_test))


@dataclass(frozen=True)
class Found:
    """A model and what it took; `seconds` are those of the whole run that gave it."""

    size: int
    W: Array
    b: Array
    seconds: float
    refit: tuple[Array, Array] | None = None


def digits() -> Problem:
    """Handwritten digits, 256 pixels, 10 classes."""
    data = usps.load()
    return _coded("usps", data.X, data.y, data.X_test, data.y_test)


def words() -> Problem:
    """Abstracts by archive, the 500 most frequent words, the archives with 200 abstracts and more."""
    data = arxiv.load(n_documents=6000, n_test=6000)
    often = np.argsort(-np.asarray((data.X != 0).sum(axis=0)).ravel(), kind="stable")[:500]
    labels, count = np.unique(data.y, return_counts=True)
    large = labels[count >= 200]
    kept, held = np.isin(data.y, large), np.isin(data.y_test, large)
    X, X_test = (part[:, np.sort(often)].toarray() for part in (data.X[kept], data.X_test[held]))
    return _coded("arXiv", X, data.y[kept], X_test, data.y_test[held])


PROBLEMS: dict[str, Callable[[], Problem]] = {"arxiv": words, "usps": digits}


def _coded(name: str, X: Any, y: Any, X_test: Any, y_test: Any) -> Problem:
    classes = np.unique(y)
    dense = [np.ascontiguousarray(part.toarray() if hasattr(part, "toarray") else part, float) for part in (X, X_test)]
    codes = [np.searchsorted(classes, part).astype(np.int32) for part in (y, y_test)]
    return Problem(name, dense[0], codes[0], dense[1], codes[1])


def dense(model: Any, n: int) -> tuple[Array, Array]:
    """Weights (n, k) and intercepts (k,) of one of our models."""
    W = np.zeros((n, model.intercept.size))
    W[model.active] = model.W
    return W, np.asarray(model.intercept)


def of_path(sizes: Sequence[int], models: Sequence[tuple[Array, Array]]) -> dict[int, int]:
    """For each number of features, which model of a path of falling strengths uses no more, the last before more."""
    used = [int(np.count_nonzero(np.abs(W).max(axis=1))) for W, _ in models]
    first_beyond = {size: next((i for i, n in enumerate(used) if n > size), len(used)) for size in sizes}
    return {size: at - 1 for size, at in first_beyond.items() if at > 0}


def ours(problem: Problem, sizes: Sequence[int]) -> tuple[Array, Iterable[Found]]:
    """The path of l1/l2; returns its strengths too."""
    n = problem.X.shape[1]
    few = np.random.default_rng(0).permutation(problem.y.size)[:500]
    # Compiled loops are loaded once for a process, before any of it is timed.
    dboost.BoostedClassifier(penalty="l1/l2").fit(problem.X[few], problem.y[few])
    dboost.ShareBoostClassifier(max_rounds=2).fit(problem.X[few], problem.y[few])
    begun = time.perf_counter()
    path = dboost.regularization_path(problem.X, problem.y, penalty="l1/l2", n_alphas=STRENGTHS, eps=EPS, tol=TOL)
    seconds = time.perf_counter() - begun
    found = []
    for size, at in of_path(sizes, [dense(model, n) for model in path.models]).items():
        estimator = dboost.BoostedClassifier(penalty="l1/l2", alpha=float(path.alphas[at]), tol=TOL)
        fitted = estimator.fit(problem.X, problem.y)
        try:
            refit = dense(dboost.relaxed(fitted, problem.X, problem.y).model_, n)
        except DataError:
            # Features that separate a class have no best weights without a penalty.
            refit = None
        found.append(Found(size, *dense(path.models[at], n), seconds, refit))
    return path.alphas, found


def shareboost(problem: Problem, sizes: Sequence[int]) -> Iterable[Found]:
    """One run for each number of features."""
    n = problem.X.shape[1]
    for size in sizes:
        begun = time.perf_counter()
        model = dboost.ShareBoostClassifier(max_rounds=size).fit(problem.X, problem.y).model_
        yield Found(size, *dense(model, n), time.perf_counter() - begun)


def glmnet(problem: Problem, sizes: Sequence[int], strengths: Array, folder: Path) -> Iterable[Found]:
    """R's glmnet along the same strengths."""
    (m, n), k = problem.X.shape, int(problem.y.max()) + 1
    problem.X.T.tofile(folder / "X.bin")
    problem.y.tofile(folder / "y.bin")
    strengths.tofile(folder / "lambda.bin")
    (folder / "shape.csv").write_text(f"{m},{n},{strengths.size}\n", encoding="utf-8")
    _run(["Rscript", str(HERE / "grouped.R"), str(folder)])
    seconds, fits = (float(part) for part in (folder / "seconds.csv").read_text(encoding="utf-8").split(","))
    whole = np.fromfile(folder / "W.bin").reshape(int(fits), k, n + 1).transpose(0, 2, 1)
    models = [(one[1:], one[0]) for one in whole]
    return [Found(size, *models[at], seconds) for size, at in of_path(sizes, models).items()]


def abess(problem: Problem, sizes: Sequence[int], folder: Path) -> Iterable[Found]:
    """Best subsets, by the interpreter of the peers."""
    np.savez(folder / "data.npz", X=problem.X, y=problem.y, sizes=np.asarray(sizes))
    _run([peer_python(), str(HERE / "best_subset.py"), str(folder)])
    found = np.load(folder / "found.npz")
    return [Found(size, *one) for size, *one in zip(sizes, found["W"], found["b"], found["seconds"], strict=True)]


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT)
    if done.returncode != 0:
        raise RuntimeError((done.stderr.strip() or "it said nothing").splitlines()[-1])


def rows(problem: Problem, sizes: Sequence[int], say: Callable[[str], None]) -> list[dict[str, Any]]:
    """One line for each model and number of features."""
    said: list[dict[str, Any]] = []

    def add(model: str, found: Iterable[Found]) -> None:
        for one in found:
            refit = "" if one.refit is None else f"{problem.error(*one.refit):.2f}"
            used = int(np.count_nonzero(np.abs(one.W).max(axis=1)))
            line = (problem.name, model, used, f"{problem.error(one.W, one.b):.2f}", refit, f"{one.seconds:.2f}")
            said.append(dict(zip(COLUMNS, line, strict=True)))
            say("  ".join(str(part) for part in line))

    strengths, path = ours(problem, sizes)
    add("l1/l2 path", path)
    add("ShareBoost", shareboost(problem, sizes))
    with tempfile.TemporaryDirectory() as folder:
        at = Path(folder)
        peers: dict[str, Callable[[], Iterable[Found]]] = {
            "glmnet, grouped": lambda: glmnet(problem, sizes, strengths, at),
            "abess": lambda: abess(problem, sizes, at),
        }
        for name, peer in peers.items():
            try:
                add(name, peer())
            except (RuntimeError, FileNotFoundError, subprocess.TimeoutExpired) as error:
                say(f"{name}: {error}")
    return said


def main(arguments: Sequence[str] = ()) -> int:
    """Fit all, print and write the table."""
    parser = argparse.ArgumentParser(prog="python -m lab same-features", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", nargs="*", default=list(PROBLEMS), metavar="DATA", help=", ".join(PROBLEMS))
    parser.add_argument("--out", type=Path, default=Path("runs/same-features.md"))
    given = parser.parse_args(list(arguments))
    unknown = sorted(set(given.data) - set(PROBLEMS))
    if unknown:
        parser.error(f"unknown data {', '.join(unknown)}; expected {', '.join(PROBLEMS)}")
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    found: list[dict[str, Any]] = []
    for name in given.data:
        found += rows(PROBLEMS[name](), SIZES, lambda line: print(line, flush=True))
        # Written after each set: pixels, whose columns say nearly the same, take minutes.
        tables.write(given.out, "The same number of features", [tables.markdown(found, list(COLUMNS))])
    return 0
