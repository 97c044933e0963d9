"""Satellite image patches: 4,435 + 2,000 rows of 36 columns, 6 classes (labels 1-5 and 7).

Covers: ``load`` (values as they are, 27 to 157) and the synthetic twin.

Source: StatLog (Landsat Satellite), A. Srinivasan; Michie, Spiegelhalter, Taylor 1994.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lab.datasets.base import Dataset, data_file, numeric_table

N_FEATURES = 36


def _names() -> NDArray[np.str_]:
    # Nine pixels of a 3 x 3 neighbourhood, four spectral bands each.
    return np.asarray([f"pixel {j // 4 + 1} band {j % 4 + 1}" for j in range(N_FEATURES)], dtype=np.str_)


def _read(path: Path) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    X, y = numeric_table(path, N_FEATURES)
    return X, y.astype(np.int64)


def load(home: str | Path | None = None) -> Dataset:
    """Load the set in its original split."""
    X, y = _read(data_file(home, "landsat", "sat.trn"))
    X_test, y_test = _read(data_file(home, "landsat", "sat.tst"))
    return Dataset("landsat", X, y, X_test, y_test, _names(), "multiclass")


def synthetic(seed: int = 0) -> Dataset:
    """Return a tiny twin: 200 + 80 rows of 36 columns around three centres, labels 1, 2 and 7."""
    rng = np.random.default_rng(seed)
    codes = np.concatenate([np.arange(3), rng.integers(0, 3, 277)])
    centres = rng.integers(50, 120, (3, N_FEATURES))
    X = np.clip(np.rint(centres[codes] + 18.0 * rng.standard_normal((280, N_FEATURES))), 27, 157)
    y = np.array([1, 2, 7])[codes]
    return Dataset("landsat-synthetic", X[:200], y[:200], X[200:], y[200:], _names(), "multiclass")
