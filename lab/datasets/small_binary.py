"""Small two-class tables: Diabetes (Pima), German credit, Ringnorm.

Covers: ``table`` (all rows by name, values as they are), the synthetic twin. Does not cover: splits.

Sources: Smith et al. 1988, NIDDK ("pima"); StatLog German Credit in its numeric form, H. Hofmann ("german"); L. Breiman
1996, the copy of G. Raetsch's benchmark ("ringnorm").
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dboost.errors import UsageError
from lab.datasets.base import data_file, numeric_table


@dataclass(frozen=True)
class Source:
    """Where a table lies and how it is written."""

    folder: str
    file: str
    # None: blanks.
    delimiter: str | None
    # Column of the label, 0 or -1.
    label: int
    # The label that becomes +1.
    positive: float
    n_features: int


SOURCES = {
    "ringnorm": Source("ringnorm", "ringnorm_data.csv", ",", 0, 1.0, 20),
    "pima": Source("pima", "pima-indians-diabetes.data", ",", -1, 1.0, 8),
    "german": Source("german_numeric", "german.data-numeric", None, -1, 2.0, 24),
}


def table(name: str, home: str | Path | None = None) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return X (m, n) and the labels -1 and +1 (m,) of a table."""
    if name not in SOURCES:
        raise UsageError(f"unknown table {name!r}", hint=f"known tables: {', '.join(SOURCES)}")
    source = SOURCES[name]
    path = data_file(home, source.folder, source.file)
    X, labels = numeric_table(path, source.n_features, place=source.label, delimiter=source.delimiter)
    return X, np.where(labels == source.positive, 1, -1)


def synthetic(seed: int = 0) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return a tiny twin: 120 rows of 5 columns, labels by two of them and noise."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(120, 5)), 1)
    return X, np.where(X[:, 0] - X[:, 1] + 0.5 * rng.normal(size=120) > 0, 1, -1)


def stump_columns(X: NDArray[np.float64], *others: NDArray[np.float64]) -> list[NDArray[np.int8]]:
    """All decision stumps of a table as columns in {-1, +1}: every midpoint of distinct values, and the constant last.

    Parameters
    ----------
    X : float64 array, shape (m, n)
        Its values give the thresholds.

    Returns
    -------
    list of int8 arrays, shapes (rows, number of stumps)
        For X and for each of the others.
    """
    cuts = [np.unique(column) for column in X.T]
    middles = [0.5 * (values[1:] + values[:-1]) for values in cuts]
    made = []
    for rows in (X, *others):
        above = [rows[:, j : j + 1] > middle for j, middle in enumerate(middles)]
        made.append(np.hstack([*above, np.ones((len(rows), 1), bool)]) * np.int8(2) - np.int8(1))
    return made
