"""Control of an aircraft's ailerons: 13,750 rows of 40 columns, a regression.

Covers: ``table`` (all rows, values as they are), ``load`` (a random split), the synthetic twin.
Does not cover: scaling, nor the split of the source (7,154 + 6,596 rows), which the file does not mark.

No column is constant, but 14 hold at most 13 distinct values, and the 14 delays of one signal are nearly equal.

Source: L. Torgo, collection of regression data sets; experiments of R. Camacho.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dboost.errors import DataError
from lab.datasets.base import Dataset, data_file, open_text, random_split
from lab.datasets.bibtex import parse_arff

N_FEATURES = 40
GOAL = "class"


def table(home: str | Path | None = None) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.str_]]:
    """Return X (13750, 40), y (13750,), the control action (-0.0036 to 0), and the names of the columns."""
    path = data_file(home, "ailerons", "ailerons.arff")
    with open_text(path) as lines:
        names, matrix = parse_arff(lines, str(path))
    if len(names) != N_FEATURES + 1 or names[-1] != GOAL:
        raise DataError(
            f"{len(names)} columns, the last {names[-1:]}, expected {N_FEATURES} and {GOAL!r}", file=str(path)
        )
    found = matrix.toarray()
    return np.ascontiguousarray(found[:, :-1]), found[:, -1].copy(), np.asarray(names[:-1], dtype=np.str_)


def load(home: str | Path | None = None, *, test_share: float = 6596 / 13750, seed: int = 0) -> Dataset:
    """Load the set, split at random.

    Parameters
    ----------
    home : path, optional
        Folder of the data sets; without it ``DBOOST_DATA_HOME``.
    test_share : float
        By default that of the source.
    """
    X, y, names = table(home)
    train, test = random_split(y.shape[0], test_share, seed)
    return Dataset("ailerons", X[train], y[train], X[test], y[test], names, "regression")


def synthetic(seed: int = 0) -> Dataset:
    """Return a tiny twin: 150 + 50 rows of 40 columns, some nearly equal, some of few values, the goal near -0.001."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((200, N_FEATURES)) * np.geomspace(0.01, 300.0, N_FEATURES)
    X[:, 10:24] = 0.02 + 0.004 * rng.standard_normal((200, 1)) + 1e-4 * rng.standard_normal((200, 14))
    X[:, 24:38] = 0.001 * rng.integers(-2, 3, (200, 14))
    y = -1e-3 + 1e-4 * (X[:, 0] / 0.01) - 1e-4 * (X[:, 39] / 300.0) + 2e-5 * rng.standard_normal(200)
    names = np.asarray([f"signal {j}" for j in range(N_FEATURES)], dtype=np.str_)
    return Dataset("ailerons-synthetic", X[:150], y[:150], X[150:], y[150:], names, "regression")
