"""What the defaults are worth: twenty data sets beside scikit-learn's estimators that choose a strength themselves.

Run with ``python -m lab defaults``; needs ``DBOOST_DATA_HOME``. Each set is split once, at most ``--rows`` rows of it;
the default, ``prefer="few"`` and the better of the peers are fitted, and scored on the other rows. The peers are given
tables that are scaled. Prints the table, writes ``runs/defaults.md``, and with ``--picture FILE`` draws the frontier of
some sets: accuracy over the number of features, beside chi2, ``SelectFromModel`` and l1, each refitted by a ridge.

Covers: scores, features, seconds, and these as a multiple of one fit at the strength that was chosen.
Does not cover: what a first fit compiles.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, issparse
from sklearn import datasets as shipped
from sklearn.feature_selection import SelectFromModel, chi2
from sklearn.linear_model import LassoCV, LogisticRegression, LogisticRegressionCV, PoissonRegressor, RidgeCV
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import dboost
from lab import tables
from lab.datasets import arxiv, imdb, libsvm, numbers, reuters, stackoverflow, usps

COLUMNS = (
    "data", "rows", "columns", "peer", "default", "se", "within", "used", "few", "used by few", "s", "fits", "peer s"
)  # fmt: skip
PICTURED = ("stackoverflow", "arxiv", "imdb", "grain", "usps", "a9a")


def _split(load: Callable[[], Any]) -> Callable[[], tuple[Any, Any]]:
    """All rows of a set with a split of its own, put together again."""

    def rows() -> tuple[Any, Any]:
        data = load()
        return data.X, data.y

    return rows


def _one_topic(task: int) -> Callable[[], tuple[Any, Any]]:
    def rows() -> tuple[Any, Any]:
        data = reuters.load()
        return data.X, data.y[:, int(np.argsort(-(data.y > 0).sum(axis=0))[task])]

    return rows


def _counts() -> tuple[Any, Any]:
    """Counts whose mean is exponential in five of thirty columns, in units that differ by thousands."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 30))
    y = rng.poisson(np.exp(0.5 + X[:, :5] @ [0.5, -0.4, 0.3, -0.2, 0.2]))
    return X * np.geomspace(1e-2, 1e2, 30), y.astype(np.float64)


def _shipped(name: str) -> Callable[[], tuple[Any, Any]]:
    return lambda: getattr(shipped, f"load_{name}")(return_X_y=True)


_CLASSES = ("pima", "german", "ringnorm", "segmentation", "pendigits", "landsat")
SETS: dict[str, Callable[[], tuple[Any, Any]]] = {
    "iris": _shipped("iris"),
    "wine": _shipped("wine"),
    "breast_cancer": _shipped("breast_cancer"),
    "digits": _shipped("digits"),
    "diabetes": _shipped("diabetes"),
    **{name: partial(numbers.rows, name) for name in ("boston", "ailerons", *_CLASSES)},
    "usps": _split(usps.load),
    "a9a": _split(libsvm.load),
    "counts": _counts,
    "stackoverflow": _split(stackoverflow.load),
    "arxiv": _split(arxiv.load),
    "imdb": _split(imdb.load),
    "grain": _one_topic(3),
}
REGRESSIONS = ("diabetes", "boston", "ailerons", "counts")


def measure(name: str, rows: int, seed: int) -> tuple[dict[str, Any], Any]:
    """One set: its record, and its split with the fitted default."""
    X, y = SETS[name]()
    # a dense matrix of pixels or of columns is a table, however it was stored
    X = X.tocsr() if issparse(X) and X.shape[1] > 300 else X.toarray() if issparse(X) else np.asarray(X)
    labels = None if name in REGRESSIONS else y
    if labels is not None:
        # so that each class has rows in every part
        known, counts = np.unique(y, return_counts=True)
        held = np.isin(y, known[counts * rows >= 6 * max(rows, len(y))])
        X, y = X[held], y[held]
        labels = y
    if X.shape[0] > rows:
        X, _, y, _ = train_test_split(X, y, train_size=rows, random_state=seed, stratify=labels)
        labels = None if labels is None else y
    parts = train_test_split(X, y, test_size=1 / 3, random_state=seed, stratify=labels)
    A, B, a, b = parts
    if issparse(A):
        A, B = csr_matrix(A), csr_matrix(B)
    kind: Any = dboost.BoostedClassifier if labels is not None else dboost.BoostedRegressor
    more: dict[str, Any] = {"loss": "poisson"} if name == "counts" else {}
    default, seconds = _timed(kind(**more), A, a)
    few, _ = _timed(kind(prefer="few", **more), A, a)
    taken = next(row for row in default.frontier_ if row["chosen"])
    single = {"alpha": taken["alpha"]} if taken["alpha"] else {"penalty": "l2_squared", "alpha": taken["ridge"]}
    _, once = _timed(kind(**single, **more), A, a)
    peers = [_timed(peer, A, a) for peer in _peers(name, issparse(A))]
    scores = [peer.score(B, b) for peer, _ in peers]
    best = int(np.argmax(scores))
    score = default.score(B, b)
    se = _standard_error(peers[best][0], B, b, labels is not None)
    found = {
        "data": name, "rows": A.shape[0], "columns": A.shape[1], "peer": scores[best], "default": score, "se": se,
        "within": "yes" if score >= scores[best] - se else "no", "used": default.model_.n_hypotheses,
        "few": few.score(B, b), "used by few": few.model_.n_hypotheses, "s": seconds, "fits": seconds / once,
        "peer s": peers[best][1],
    }  # fmt: skip
    return found, (parts, default)


def _peers(name: str, sparse: bool) -> list[Any]:
    if name == "counts":
        found: list[Any] = [GridSearchCV(PoissonRegressor(max_iter=500), {"alpha": np.geomspace(1e-4, 10, 6)}, cv=5)]
    elif name in REGRESSIONS:
        found = [RidgeCV(np.geomspace(1e-3, 1e3, 13)), LassoCV(cv=5)]
    else:
        grid = (0.1, 1.0, 10.0) if sparse else np.geomspace(1e-2, 1e2, 5)
        found = [LogisticRegressionCV(Cs=grid, cv=3, max_iter=200)]
    return [peer if sparse else make_pipeline(StandardScaler(), peer) for peer in found]


def _timed(model: Any, X: Any, y: Any) -> tuple[Any, float]:
    began = time.process_time()
    return model.fit(X, y), time.process_time() - began


def _standard_error(peer: Any, X: Any, y: Any, labels: bool) -> float:
    """The standard error of the score of the peer on these rows."""
    guess = peer.predict(X)
    losses = (guess != y) * 1.0 if labels else (guess - y) ** 2 / np.var(y)
    return float(np.std(losses) / np.sqrt(len(losses)))


def frontier(parts: Any, sizes: Sequence[int]) -> dict[str, list[tuple[int, float]]]:
    """Accuracy on held-out rows at each number of features, by each way to choose them."""
    A, B, a, b = parts
    full = LogisticRegression(C=3.0, max_iter=100).fit(A, a)
    path = dboost.regularization_path(A, a, penalty="l1/l2", n_alphas=8, tol=1e-2)

    def refitted(columns: Any) -> tuple[int, float]:
        # The default chooses its ridge on rows of the training part, and so do its peers.
        model = LogisticRegressionCV(Cs=(1.0, 3.0, 10.0, 30.0), cv=3, max_iter=100).fit(A[:, columns], a)
        return len(columns), model.score(B[:, columns], b)

    found: dict[str, list[tuple[int, float]]] = {"default": [], "chi2": [], "SelectFromModel": []}
    scores = np.nan_to_num(chi2(A, a)[0])
    for size in sizes:
        model = dboost.BoostedClassifier(max_features=size).fit(A, a)
        found["default"].append((model.model_.n_hypotheses, model.score(B, b)))
        found["chi2"].append(refitted(np.sort(np.argsort(-scores, kind="stable")[:size])))
        chosen = SelectFromModel(full, max_features=size, threshold=-np.inf, prefit=True)
        found["SelectFromModel"].append(refitted(np.flatnonzero(chosen.get_support())))
    found["l1/l2"] = [refitted(model.active) for model in path.models if model.n_hypotheses >= min(sizes)]
    return found


def main(arguments: Sequence[str]) -> int:
    """Measure, print, write; returns an exit code."""
    parser = argparse.ArgumentParser(prog="python -m lab defaults", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", nargs="*", default=list(SETS), choices=list(SETS), help="data sets (default: all)")
    parser.add_argument("--rows", type=int, default=4500, help="at most so many rows of each")
    parser.add_argument("--seed", type=int, default=0, help="of the splits")
    parser.add_argument("--picture", type=Path, help="file for a picture of the frontier of some sets")
    parser.add_argument("--out", type=Path, default=Path("runs/defaults.md"))
    asked = parser.parse_args(arguments)
    records, curves = [], {}
    for name in asked.data:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            record, (parts, _) = measure(name, asked.rows, asked.seed)
            if asked.picture is not None and name in PICTURED:
                n = parts[0].shape[1]
                sizes = [100, 200, 400, 800, 1600] if n > 3200 else [n // 16, n // 8, n // 4, n // 2]
                curves[name] = frontier(parts, sizes)
        records.append(record)
        print(tables.markdown([record], COLUMNS).splitlines()[-1], flush=True)
    within = sum(record["within"] == "yes" for record in records)
    table = tables.markdown(records, COLUMNS)
    paragraphs = [table, f"Within one standard error of the better peer: {within} of {len(records)}."]
    for name, curve in curves.items():
        lines = [f"- {way}: " + ", ".join(f"{score:.4f} ({size})" for size, score in at) for way, at in curve.items()]
        paragraphs.append(f"Accuracy (features), {name}:\n\n" + "\n".join(lines))
    print("\n\n".join(paragraphs))
    tables.write(asked.out, "The defaults beside scikit-learn's", paragraphs)
    if curves:
        from matplotlib.figure import Figure

        across = min(len(curves), 3)
        down = -(-len(curves) // across)
        figure = Figure(figsize=(5 * across, 4 * down), layout="constrained")
        every = np.ravel(figure.subplots(down, across))
        for axes in every[len(curves) :]:
            axes.set_axis_off()
        for axes, (name, curve) in zip(every, curves.items(), strict=False):
            for way, at in curve.items():
                axes.plot(*zip(*sorted(at), strict=True), marker="o", label=way)
            axes.set(xscale="log", xlabel="features", ylabel="accuracy", title=name)
            axes.legend()
        figure.savefig(asked.picture)
    return 0
