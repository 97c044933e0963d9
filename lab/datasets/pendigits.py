"""Digits written with a pen: 7,494 + 3,498 rows of eight points (16 columns), 10 classes.

Covers: ``load`` (values as they are, 0 to 100) and the synthetic twin.

Source: E. Alpaydin, F. Alimoglu, "Pen-Based Recognition of Handwritten Digits", UCI Machine Learning Repository, 1998.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lab.datasets.base import Dataset, data_file, numeric_table

N_FEATURES = 16


def _names() -> NDArray[np.str_]:
    return np.asarray([f"{'xy'[j % 2]}{j // 2 + 1}" for j in range(N_FEATURES)], dtype=np.str_)


def _read(path: Path) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    X, y = numeric_table(path, N_FEATURES, delimiter=",")
    return X, y.astype(np.int64)


def load(home: str | Path | None = None) -> Dataset:
    """Load the set in its original split."""
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
