"""The problems of the oracle: which data, loss, penalty, strength and intercept, and which peers can solve each.

Covers: the list, and the encoding of labels for ``plain``. Does not cover: solving.

Where a penalty is absent the optimum must be finite, which it is not on tens of thousands of sparse columns (the
classes are separable): those problems use 16 random projections of the columns and the frequent classes only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.datasets import arxiv, bibtex, imdb, mnist
from lab.datasets.base import Dataset

PENALTIES = ("l1", "l1/l2", "l1/linf", "l1/l2+l1")
N_PROJECTIONS = 16


@dataclass(frozen=True)
class Problem:
    """One line of the table."""

    # A key of `DATA`.
    data: str
    penalty: str
    # alpha / alpha_max; 0 without a penalty.
    ratio: float
    intercept: bool
    # Programs that solve exactly this objective, best first. Empty: the reference alone.
    peers: tuple[str, ...]


@dataclass(frozen=True)
class Encoded:
    """Data as ``plain`` and the peers take it."""

    name: str
    loss: str
    X: Any
    # -1/+1 (m,), codes (m,), or -1/+1 (m, k), as the loss asks.
    y: NDArray[np.int64]


def encode(dataset: Dataset) -> Encoded:
    """Return a data set with its labels as the losses of ``plain`` take them."""
    loss = {"binary": "log", "multiclass": "multinomial", "multitask": "multitask"}[dataset.task]
    y = np.unique(dataset.y, return_inverse=True)[1] if loss == "multinomial" else dataset.y
    return Encoded(dataset.name, loss, dataset.X, y.astype(np.int64))


def project(data: Encoded, most: int = 8, rows: int = 10_000, seed: int = 0) -> Encoded:
    """Reduce to 16 Gaussian projections of unit spread, the `most` frequent classes or tasks, `rows` random rows."""
    # Sets come sorted by label: a head of the file would be of one class.
    order = np.random.default_rng(seed).permutation(data.X.shape[0])
    X, y = data.X[order], data.y[order]
    if data.loss == "multinomial":
        kept = np.argsort(-np.bincount(y), kind="stable")[:most]
        inside = np.flatnonzero(np.isin(y, kept))[:rows]
        X, y = X[inside], np.unique(y[inside], return_inverse=True)[1].astype(np.int64)
    else:
        X, y = X[:rows], y[:rows]
        if data.loss == "multitask":
            y = y[:, np.argsort(-(y > 0).sum(axis=0), kind="stable")[:most]]
    directions = np.random.default_rng(seed).standard_normal((X.shape[1], N_PROJECTIONS))
    Z = np.asarray(X @ directions)
    return Encoded(f"{data.name}, {N_PROJECTIONS} projections", data.loss, (Z - Z.mean(axis=0)) / Z.std(axis=0), y)


N_IMAGES = 20_000

DATA: dict[str, Callable[[], Encoded]] = {
    "arxiv": lambda: encode(arxiv.load()),
    "imdb": lambda: encode(imdb.load()),
    "bibtex": lambda: encode(bibtex.load()),
    "mnist": lambda: encode(mnist.load(n_train=N_IMAGES)),
    "arxiv-projected": lambda: project(encode(arxiv.load())),
    "imdb-projected": lambda: project(encode(imdb.load())),
    "bibtex-projected": lambda: project(encode(bibtex.load())),
    "mnist-projected": lambda: project(encode(mnist.load(n_train=N_IMAGES))),
}


def problems() -> list[Problem]:
    """Return all problems, those of one data set together."""
    listed: list[Problem] = []
    group = {"l1/l2": ("cyanure",), "l1/linf": ("cyanure",), "l1/l2+l1": ("cyanure",)}
    for data in ("arxiv", "mnist"):
        listed += [Problem(data, "l1", 0.1, True, ("glmnet",))]
        for penalty, peers in group.items():
            # At 0.1 of alpha_max cyanure needs more than two minutes for the 37 very unequal archives.
            ratio = 0.2 if (data, penalty) == ("arxiv", "l1/linf") else 0.1
            listed += [Problem(data, penalty, ratio, True, peers)]
        listed += [Problem(data, "l1", 0.1, False, ("saga",))]
        listed += [Problem(data, "l1/linf", 0.1, False, ("cyanure",))]
    # With one output every penalty here is the l1 norm: the same peers solve all four.
    listed += [Problem("imdb", "l1", 0.1, False, ("liblinear", "celer", "skglm", "cyanure", "glmnet"))]
    listed += [Problem("imdb", penalty, 0.1, False, ("liblinear",)) for penalty in PENALTIES[1:]]
    listed += [Problem("imdb", "l1", 0.1, True, ("skglm", "glmnet", "cyanure"))]
    # Without an intercept the commonest words stand for it and little else is used: a smaller strength there.
    listed += [Problem("bibtex", "l1", 0.02, False, ("liblinear",)), Problem("bibtex", "l1/linf", 0.02, False, ())]
    listed += [Problem("bibtex", penalty, 0.1, True, ()) for penalty in PENALTIES]
    listed += [Problem(f"{data}-projected", "none", 0.0, True, ()) for data in ("arxiv", "imdb", "bibtex", "mnist")]
    return listed
