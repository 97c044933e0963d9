"""Data that the toys of this folder are fitted to."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture(scope="session")
def two_classes():
    """X of shape (2000, 12), of which two columns count, one by its absolute value, and labels."""
    rng = np.random.default_rng(7)
    X = rng.standard_normal((2000, 12)).astype(np.float32)
    noise = rng.logistic(size=2000)
    return X, np.where(1.5 * X[:, 2] + 3.0 * np.abs(X[:, 5]) - 2.4 + noise > 0.0, "yes", "no")


@pytest.fixture(scope="session")
def in_pieces(two_classes):
    """The same as dask arrays of five chunks: every engine gets them as five partitions."""
    import dask.array as da

    X, y = two_classes
    chunks = (700, 1, 599, 300, 400)
    return da.from_array(X, chunks=(chunks, -1)), da.from_array(y, chunks=(chunks,))
