"""House values in the suburbs of Boston: 506 rows of 13 columns, a regression.

Covers: ``table`` (all rows, values as they are), ``load`` (a random split, as the source has none), the synthetic twin.
Does not cover: scaling.

Source: Harrison, Rubinfeld, J. Environ. Econ. Manag. 5 (1978); StatLib and UCI, "Housing".
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lab.datasets.base import Dataset, data_file, numeric_table, random_split

NAMES = ("crim", "zn", "indus", "chas", "nox", "rm", "age", "dis", "rad", "tax", "ptratio", "b", "lstat")


def table(home: str | Path | None = None) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.str_]]:
    """Return X (506, 13), y (506,), the median value of a home in thousands of dollars, and the names of the columns.

    Sixteen values are exactly 50: the source cut them off there.
    """
    path = data_file(home, "boston", "housing.data")
    X, y = numeric_table(path, len(NAMES), target="value")
    return X, y, np.asarray(NAMES, dtype=np.str_)


def load(home: str | Path | None = None, *, test_share: float = 0.2, seed: int = 0) -> Dataset:
    """Load the set, split at random.

    Parameters
    ----------
    home : path, optional
        Folder of the data sets; without it ``DBOOST_DATA_HOME``.
    """
    X, y, names = table(home)
    train, test = random_split(y.shape[0], test_share, seed)
    return Dataset("boston", X[train], y[train], X[test], y[test], names, "regression")


def synthetic(seed: int = 0) -> Dataset:
    """Return a tiny twin: 90 + 30 rows of 13 columns whose value is a product of two of them and one more."""
    rng = np.random.default_rng(seed)
    X = rng.random((120, len(NAMES))) * np.geomspace(1.0, 400.0, len(NAMES))
    unit = X / X.max(axis=0)
    y = 10.0 + 20.0 * unit[:, 5] * unit[:, 12] - 5.0 * unit[:, 0] + 0.5 * rng.standard_normal(120)
    names = np.asarray(NAMES, dtype=np.str_)
    return Dataset("boston-synthetic", X[:90], y[:90], X[90:], y[90:], names, "regression")
