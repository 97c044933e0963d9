"""Handwritten digits of envelopes: 11,000 images of 16 x 16 pixels, 10 classes of 1,100.

Covers: ``load`` (pixels in [0, 1], a random split, as the source has none) and the synthetic twin.

Source: J. J. Hull, "A database for handwritten text recognition research", PAMI 16, 1994, in the form of S. Roweis.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dboost.errors import DataError
from lab.datasets.base import Dataset, data_file, random_split, read_bytes

SIDE = 16
IMAGES, LABELS = "usps_11000x256_uint8.bin", "usps_labels_uint8.bin"


def _names(side: int) -> NDArray[np.str_]:
    return np.asarray([f"pixel {row},{column}" for row in range(side) for column in range(side)], dtype=np.str_)


def load(home: str | Path | None = None, *, test_share: float = 0.3, seed: int = 0) -> Dataset:
    """Load the digits.

    `home`: folder of the data sets; without it ``DBOOST_DATA_HOME``. `test_share`: share of the images that are for
    testing. `seed`: of the split.
    """
    path = data_file(home, "usps", IMAGES)
    pixels = np.frombuffer(read_bytes(path), dtype=np.uint8)
    labels = np.frombuffer(read_bytes(data_file(home, "usps", LABELS)), dtype=np.uint8)
    if pixels.size != SIDE * SIDE * labels.size:
        raise DataError(
            f"{pixels.size} bytes of images for {labels.size} labels, expected {SIDE * SIDE} for each", file=str(path)
        )
    X, y = pixels.reshape(-1, SIDE * SIDE) / 255.0, labels.astype(np.int64)
    train, test = random_split(len(y), test_share, seed)
    return Dataset("usps", X[train], y[train], X[test], y[test], _names(SIDE), "multiclass")


def synthetic(seed: int = 0) -> Dataset:
    """Return a tiny twin: 300 + 100 noisy images of 4 x 4 pixels, labels 1 to 4 (one bright row each)."""
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(4), rng.integers(0, 4, 396)])
    X = rng.random((400, 4, 4)) * 0.5
    X[np.arange(400), y] += 0.4 * rng.random((400, 4))
    X = X.reshape(400, 16)
    return Dataset("usps-synthetic", X[:300], y[:300] + 1, X[300:], y[300:] + 1, _names(4), "multiclass")
