"""Digits written with a pen: 7,494 + 3,498 rows of eight points (16 columns), 10 classes.

Covers: ``load`` (values as they are, 0 to 100) and the synthetic twin.

Source: E. Alpaydin, F. Alimoglu, "Pen-Based Recognition of Handwritten Digits", UCI Machine Learning Repository, 1998.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dboost.errors import DataError

from .base import Dataset, data_file, open_text

N_FEATURES = 16


def _names() -> NDArray[np.str_]:
    return np.asarray([f"{'xy'[j % 2]}{j // 2 + 1}" for j in range(N_FEATURES)], dtype=np.str_)


def _read(path: Path) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    with open_text(path) as file:
        try:
            table: NDArray[Any] = np.loadtxt(file, dtype=np.float64, delimiter=",", ndmin=2)
        except ValueError as error:
            raise DataError(f"not a table of numbers: {error}", file=str(path)) from error
    if table.shape[1] != N_FEATURES + 1:
        raise DataError(f"{table.shape[1]} columns, expected {N_FEATURES} and the label", file=str(path))
    return table[:, :N_FEATURES], table[:, N_FEATURES].astype(np.int64)


def load(home: str | Path | None = None) -> Dataset:
    """Load the set in its original split.

    Raises
    ------
    DataError
        When a file is missing or has another number of columns.
    """
    X, y = _read(data_file(home, "pendigits", "pendigits.tra"))
    X_test, y_test = _read(data_file(home, "pendigits", "pendigits.tes"))
    return Dataset("pendigits", X, y, X_test, y_test, _names(), "multiclass")


def synthetic(seed: int = 0) -> Dataset:
    """Return a tiny twin: 240 + 80 noisy walks of eight points, labels 0 to 3."""
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(4), rng.integers(0, 4, 316)])
    centres = np.random.default_rng(7).integers(0, 100, (4, N_FEATURES))
    X = np.clip(np.rint(centres[y] + 15.0 * rng.standard_normal((320, N_FEATURES))), 0, 100)
    return Dataset("pendigits-synthetic", X[:240], y[:240], X[240:], y[240:], _names(), "multiclass")
